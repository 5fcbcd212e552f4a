/* SPDX-License-Identifier: Apache-2.0 */
/* diff_side.c - see diff.h.
 *
 * Operations rest on whole buckets within the time, if there is one: a bucket at its edge holds calls of both
 * sides of the edge. */
#include "answer/diff/diff.h"

#include "base/search.h"
#include "answer/stacks.h"
#include "base/text.h"
#include "wire/op_kind.h"

#define ROW_BUCKET_NS (5 * (int64_t)NS_PER_S) /* of rows that have no aggregates */
#define STACKS_MAX    2000                    /* those with most time */
#define BUCKETS_MAX   (1u << 17)              /* of a hostile file may be any number */

/* ---- operations ---- */

/* The whole buckets of the time. Where the recording begins or ends nothing is cut off. */
static struct scope whole_buckets(const struct question *q)
{
	struct scope s = q->scope;
	int64_t width = scope_bucket_ns(&s), last = s.to_ns;

	if (s.from_ns > q->range.first_ns)
		s.from_ns = (s.from_ns + width - 1) / width * width;
	if (s.to_ns && s.to_ns < q->range.last_ns)
		s.to_ns = (s.to_ns + 1) / width * width - 1;
	return s.from_ns < s.to_ns || !last ? s : q->scope;
}

/* What of the recording the buckets of @s cover: the asker's times may lie anywhere. */
static struct nodedb_range covered(const struct question *q, const struct scope *s, int64_t width)
{
	int64_t first = q->range.first_ns, last = q->range.last_ns;
	int64_t from = MAX(s->from_ns, first), to = MIN(s->to_ns, last);

	if (from >= to)
		return (struct nodedb_range){first, first};
	return (struct nodedb_range){
		MAX(from / width * width, first), MIN(to / width * width + width, last)};
}

static struct diff_samples *find_samples(struct diff_side *s, const struct diff_calls *c)
{
	struct diff_samples *p;

	for (size_t i = 0; i < s->sample_count; i++) {
		p = &s->samples[i];
		if (p->source == c->source && p->op == c->op && p->nested == c->nested)
			return p;
	}
	p = reallocarray(s->samples, s->sample_count + 1, sizeof(*p));
	if (!p)
		return NULL;
	s->samples = p;
	p += s->sample_count++;
	*p = (struct diff_samples){.source = c->source, .op = c->op, .nested = c->nested};
	return p;
}

int diff_samples_add(struct diff_side *s, const struct diff_calls *c)
{
	struct diff_samples *p = find_samples(s, c);
	struct diff_calls *last = p && p->bucket_count ? &p->buckets[p->bucket_count - 1] : NULL;

	if (!p)
		return -ENOMEM;
	if (last && last->bucket == c->bucket) {
		last->calls += c->calls;
		last->ns += c->ns;
		last->squares += c->squares;
		return 0;
	}
	if (p->bucket_count == p->capacity) {
		size_t more = MAX(2 * p->capacity, (size_t)16);

		last = reallocarray(p->buckets, more, sizeof(*last));
		if (!last)
			return -ENOMEM;
		p->buckets = last;
		p->capacity = more;
	}
	p->buckets[p->bucket_count++] = *c;
	return 0;
}

static int64_t overlap(int64_t bucket, int64_t width, const struct nodedb_range *span)
{
	return MIN(bucket + width, span->last_ns) - MAX(bucket, span->first_ns);
}

/* Of a bucket that was seen for a small part calls a second are not known well. */
static bool is_counted(int64_t bucket, int64_t width, const struct nodedb_range *span)
{
	return 2 * overlap(bucket, width, span) >= width;
}

static int finish_op(
	struct diff_samples *p, size_t buckets, int64_t width, const struct nodedb_range *span)
{
	double n = 0, sum = 0, squares = 0;

	p->dur = calloc(p->bucket_count + 1, sizeof(*p->dur));
	p->per_s = calloc(MAX(buckets, p->bucket_count) + 1, sizeof(*p->per_s));
	if (!p->dur || !p->per_s)
		return -ENOMEM;
	for (size_t i = 0; i < p->bucket_count; i++) {
		const struct diff_calls *c = &p->buckets[i];

		if (!(c->calls > 0))
			continue;
		p->dur[p->dur_count++] = c->ns / c->calls;
		if (is_counted(c->bucket, width, span))
			p->per_s[p->per_s_count++] =
				c->calls * 1e9 / (double)overlap(c->bucket, width, span);
		n += c->calls;
		sum += c->ns;
		squares += c->squares;
	}
	p->per_s_count = MAX(p->per_s_count, buckets); /* the others had none: 0 */
	if (n > 1)
		p->calls = (struct compare_set){
			n, sum / n, MAX((squares - sum * sum / n) / (n - 1), 0.0)};
	return 0;
}

int diff_samples_finish(struct diff_side *s, int64_t width_ns, const struct nodedb_range *span)
{
	size_t buckets = 0;
	int r = 0;

	for (int64_t b = span->first_ns / width_ns * width_ns;
		b < span->last_ns && buckets < BUCKETS_MAX; b += width_ns)
		buckets += is_counted(b, width_ns, span);
	for (size_t i = 0; r == 0 && i < s->sample_count; i++)
		r = finish_op(&s->samples[i], buckets, width_ns, span);
	return r;
}

static int add_aggregate(void *arg, const struct aggregate *a)
{
	const struct sketch *k = &a->sketch;
	struct diff_calls c = {.source = a->source,
		.op = a->op,
		.nested = a->flags & WIRE_NESTED,
		.bucket = a->bucket.ns,
		.calls = (double)k->count,
		.ns = (double)k->sum};

	for (unsigned i = 0; i < BUCKET_COUNT; i++) {
		double low = (double)bucket_low(i),
		       middle = i + 1 < BUCKET_COUNT ? (low + (double)bucket_low(i + 1)) / 2 : low;

		c.squares += (double)k->hist[i] * middle * middle;
	}
	return k->count ? diff_samples_add(arg, &c) : 0;
}

static int load_rows(const struct question *q, struct diff_side *s, struct errinfo *reterr)
{
	struct nodedb_filter filter = {.scope = q->scope};
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	int r = nodedb_read(nodedb_snapshot_path(q->snapshot), &filter, &c, reterr);

	for (size_t i = 0; r == 0 && i < c.event_count; i++) {
		const struct event *e = &c.events[i];
		double ns = (double)e->dur_ns, weight = (double)MAX(e->weight, 1u);

		r = diff_samples_add(
			s, &(struct diff_calls){.source = e->source,
				   .op = e->op,
				   .nested = e->flags & WIRE_NESTED,
				   .bucket = e->start.ns / ROW_BUCKET_NS * ROW_BUCKET_NS,
				   .calls = weight,
				   .ns = ns * weight,
				   .squares = ns * ns * weight});
	}
	return r;
}

static int load_ops(const struct question *q, struct diff_side *s, struct errinfo *reterr)
{
	bool ours = nodedb_snapshot_is_ours(q->snapshot), truncated = false;
	struct question whole = *q;
	int64_t width = ROW_BUCKET_NS;
	struct nodedb_range span = covered(q, &q->scope, width);
	int r;

	if (ours) {
		whole.scope = whole_buckets(q);
		width = scope_bucket_ns(&whole.scope);
	}
	r = answer_ops(&whole, &s->ops, reterr);
	if (r == 0 && s->ops.origin == OPS_SKETCHES) {
		span = covered(q, &whole.scope, width);
		r = nodedb_snapshot_aggregates(
			q->snapshot, &whole.scope, add_aggregate, s, &truncated, reterr);
	} else if (r == 0 && s->ops.origin == OPS_ROWS) {
		r = load_rows(q, s, reterr);
	}
	s->ops_ns = (uint64_t)MAX(span.last_ns - span.first_ns, INT64_C(1));
	s->truncated |= truncated || s->ops.truncated;
	s->time.calls = s->ops.all_calls;
	return r ?: diff_samples_finish(s, width, &span);
}

/* ---- steps ---- */

static void put_place(char out[DIFF_PLACE], const struct stack_frame *f)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 14);

	if (f)
		stack_text_frame(&b, f);
	snprintf(out, DIFF_PLACE, "%.*s", text_clip(buf_str(&b), DIFF_PLACE / 4), buf_str(&b));
}

static int64_t rank_of(const struct sql_table *p, const struct steps_row *row)
{
	int rank = table_column(p, "rank"), pid = table_column(p, "pid");
	int node = table_column(p, "node");

	for (size_t i = 0; rank >= 0 && i < p->row_count; i++)
		if (table_int(p, i, pid) == row->account->pid &&
			sql_table_cell(p, i, rank)->type == SQL_INT &&
			(!row->node[0] || !table_text(p, i, node)[0] ||
				!strcmp(table_text(p, i, node), row->node)))
			return table_int(p, i, rank);
	return -1;
}

static int load_steps(const struct question *q, struct diff_side *s, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table p = {0};
	int r = answer_steps(q, &s->steps, reterr);

	r = r
		    ?: nodedb_snapshot_list(q->snapshot, NODEDB_PROCESSES,
			       &(struct scope){.node = q->scope.node}, 0, &p, reterr);
	s->accounts = r == 0 ? calloc(s->steps.count + 1, sizeof(*s->accounts)) : NULL;
	if (!s->accounts)
		return r < 0 ? r : -ENOMEM;
	for (size_t i = 0; i < s->steps.count; i++) {
		const struct steps_row *row = &s->steps.rows[i];
		struct diff_account *a = &s->accounts[i];

		a->account = row->account;
		a->rank = rank_of(&p, row);
		for (int k = 0; k < row->account->entry_count; k++)
			put_place(a->places[k],
				steps_place(row->stacks, &row->account->entries[k]).user);
	}
	steps_release_contents(&s->steps);
	return 0;
}

/* ---- stacks ---- */

uint64_t diff_stack_key(const struct stack *s, unsigned source, unsigned op, bool loose)
{
	uint64_t key = source << 16 | op;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];
		const char *texts[] = {f->symbol, f->file, f->py_func, f->py_file};
		uint32_t lines[] = {f->line, f->py_line};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			for (const char *p = texts[k] ? texts[k] : ""; p; p = *p ? p + 1 : NULL)
				key = (key ^ (unsigned char)*p) * 0x100000001b3ULL;
		for (size_t k = 0; !loose && k < ARRAY_SIZE(lines); k++)
			key = (key ^ lines[k]) * 0x100000001b3ULL;
	}
	return key;
}

uint64_t diff_stack_lines(const struct stack *s, unsigned source, unsigned op)
{
	uint64_t key = source << 16 | op;
	bool any = false;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		for (const char *p = f->py_file; p && *p; p++)
			key = (key ^ (unsigned char)*p) * 0x100000001b3ULL;
		if (f->py_file)
			key = (key ^ f->py_line) * 0x100000001b3ULL;
		any |= f->py_file != NULL;
	}
	return any ? key : 0;
}

ORDER(by_key, struct diff_stack_row, ASCENDING(key))

/* A walk may have ended early, until the unwind tables of a file were there: its Python frames say which of the whole
 * stacks it is. Otherwise the beginning of one run would be compared with nothing. */
static void join_cut(struct diff_side *s)
{
	for (size_t i = 0; i < s->stack_count; i++) {
		struct diff_stack_row *cut = &s->stacks[i];
		const struct diff_stack_row *whole = NULL;

		if (!cut->lines || !cut->stack->stop[0])
			continue;
		for (size_t k = 0; k < s->stack_count; k++) {
			const struct diff_stack_row *row = &s->stacks[k];

			if (row->lines == cut->lines && !row->stack->stop[0] &&
				(!whole || row->ns > whole->ns))
				whole = row;
		}
		if (whole) {
			cut->key = whole->key;
			cut->loose = whole->loose;
		}
	}
}

void diff_stacks_join(struct diff_side *s)
{
	size_t n = 0;

	join_cut(s);
	SORT(s->stacks, s->stack_count, by_key);
	for (size_t i = 0; i < s->stack_count; i++) {
		struct diff_stack_row *row = &s->stacks[i], *kept = n ? &s->stacks[n - 1] : NULL;

		if (kept && kept->key == row->key) {
			struct stack *stack = kept->stack;

			kept->ns += row->ns;
			kept->rows += row->rows;
			if (stack->stop[0] && !row->stack->stop[0]) { /* the whole one stays */
				kept->stack = row->stack;
				row->stack = stack;
			}
			free(row->stack);
		} else {
			s->stacks[n++] = *row;
		}
	}
	s->stack_count = n;
}

static int add_stacks(const struct question *q, struct diff_side *s, struct errinfo *reterr)
{
	_cleanup_(stacks_answer_done) struct stacks_answer a = {0};
	int r = answer_stacks(q, &a, reterr);
	struct diff_stack_row *p;

	if (r < 0)
		return r;
	s->time.rows += (uint64_t)a.rows;
	p = reallocarray(s->stacks, s->stack_count + STACKS_MAX, sizeof(*p));
	if (!p)
		return -ENOMEM;
	s->stacks = p;
	for (size_t i = 0; r == 0 && i < MIN(a.totals.row_count, (size_t)STACKS_MAX); i++) {
		uint64_t hash = (uint64_t)table_int(&a.totals, i, STACKS_HASH);
		struct diff_stack_row row = {
			.source = (uint8_t)table_int(&a.totals, i, STACKS_SOURCE),
			.op = (uint16_t)table_int(&a.totals, i, STACKS_OP),
			.ns = table_real(&a.totals, i, STACKS_NS),
			.rows = (double)table_int(&a.totals, i, STACKS_ROWS)};

		r = hash ? nodedb_snapshot_stack(q->snapshot, hash, &row.stack, reterr) : 0;
		if (r < 0 || !row.stack)
			continue;
		row.key = diff_stack_key(row.stack, row.source, row.op, false);
		row.loose = diff_stack_key(row.stack, row.source, row.op, true);
		row.lines = diff_stack_lines(row.stack, row.source, row.op);
		s->stacks[s->stack_count++] = row;
	}
	return r;
}

/* Of calls, and where threads were when the CPUs were sampled. */
static int load_stacks(const struct question *q, struct diff_side *s, struct errinfo *reterr)
{
	struct question host = *q;
	uint64_t rows;
	int r = add_stacks(q, s, reterr);

	rows = s->time.rows;
	if (r == 0 && !q->scope.source && nodedb_snapshot_is_ours(q->snapshot)) {
		host.scope.source = SOURCE_HOST;
		host.scope.op = HOST_CPU_SAMPLE;
		r = add_stacks(&host, s, reterr);
	}
	s->time.rows = rows; /* of calls */
	diff_stacks_join(s);
	return r;
}

/* ---- the recording ---- */

static int load_facts(const struct question *q, struct diff_side *s, struct errinfo *reterr)
{
	static const struct {
		const char *column, *name;
	} rows[] = {{"node", "node"}, {"gpu_model", "GPU"}, {"gpu_driver", "driver"},
		{"cuda_ver", "CUDA"}, {"cpu_model", "CPU"}, {"kernel", "kernel"},
		{"os_release", "system"}, {"python_ver", "Python"}, {"ingero_ver", "ingero"}};
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SESSIONS,
		&(struct scope){.node = q->scope.node}, 1, &t, reterr);

	s->facts = r == 0 ? calloc(ARRAY_SIZE(rows), sizeof(*s->facts)) : NULL;
	if (!s->facts)
		return r < 0 ? r : -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *text =
			t.row_count ? table_text(&t, 0, table_column(&t, rows[i].column)) : "";

		s->facts[s->fact_count].name = rows[i].name;
		snprintf(s->facts[s->fact_count++].of[0], DIFF_FACT_MAX, "%s", text);
	}
	return 0;
}

int diff_side_load(const struct question *q, struct diff_side *ret, struct errinfo *reterr)
{
	_cleanup_(diff_side_done) struct diff_side s = {
		.time = {.from_ns = q->scope.from_ns, .to_ns = q->scope.to_ns}};
	int r = load_ops(q, &s, reterr);

	r = r ?: load_steps(q, &s, reterr);
	r = r ?: load_stacks(q, &s, reterr);
	r = r ?: answer_gpus(q, &s.gpus, reterr);
	r = r ?: load_facts(q, &s, reterr);
	if (r < 0)
		return r;
	s.truncated |= s.gpus.truncated;
	*ret = s;
	s = (struct diff_side){0};
	return 0;
}

int diff_side_explain(const struct question *q, struct diff_side *s, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	struct nodedb_filter filter = incidents_filter(&q->scope, false);
	int r = incidents_load(nodedb_snapshot_path(q->snapshot), &filter, false, &a, reterr);

	if (r < 0)
		return r;
	s->incidents = calloc(a.count + 1, sizeof(*s->incidents));
	if (!s->incidents)
		return -ENOMEM;
	for (size_t i = 0; i < a.count; i++)
		s->incidents[i] = *a.rows[i].incident;
	s->incident_count = a.count;
	return 0;
}

void diff_side_done(struct diff_side *s)
{
	for (size_t i = 0; i < s->sample_count; i++) {
		free(s->samples[i].dur);
		free(s->samples[i].per_s);
		free(s->samples[i].buckets);
	}
	for (size_t i = 0; i < s->stack_count; i++)
		free(s->stacks[i].stack);
	free(s->samples);
	free(s->stacks);
	free(s->accounts);
	free(s->facts);
	free(s->incidents);
	ops_answer_done(&s->ops);
	steps_answer_done(&s->steps);
	gpus_answer_done(&s->gpus);
	*s = (struct diff_side){0};
}
