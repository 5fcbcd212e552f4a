/* SPDX-License-Identifier: Apache-2.0 */
/* incidents.c - see incidents.h. */
#include "answer/incidents.h"

#include <ctype.h>
#include <jansson.h>

#include "answer/ops.h"
#include "answer/steps.h"
#include "base/search.h"

#define WHERE_STACKS 4096 /* the heaviest are enough to say where; 0.1 ms each to read */

struct nodedb_filter incidents_filter(const struct scope *s, bool stacks)
{
	return (struct nodedb_filter){.scope = *s,
		.thin = stacks ? NODEDB_THIN_NEVER : NODEDB_THIN_LARGE,
		.labels = true, /* numbers among them are judged */
		.ledger = true,
		.kernels = true,
		.stacks = NODEDB_STACKS_USED,
		.stacks_max = stacks ? 0 : WHERE_STACKS};
}

ORDER(worst_first, struct incidents_row,
	DESCENDING(incident->severity) ?: DESCENDING(incident->excess_ns)
		?: strcmp(x->incident->id, y->incident->id))

/* The engine's own order stands where there is one node. */
static int list_rows(struct incidents_answer *a)
{
	size_t total = 0;

	for (size_t i = 0; i < a->node_count; i++)
		total += a->nodes[i].e.count;
	a->rows = calloc(total + 1, sizeof(*a->rows));
	if (!a->rows)
		return -ENOMEM;
	for (size_t i = 0; i < a->node_count; i++)
		for (size_t k = 0; k < a->nodes[i].e.count; k++)
			a->rows[a->count++] = (struct incidents_row){
				&a->nodes[i].e.incidents[k], &a->nodes[i].e.scope};
	if (a->node_count > 1)
		SORT(a->rows, a->count, worst_first);
	return 0;
}

/* Explains what is in a->nodes. */
static int explain_nodes(
	struct incidents_answer *a, bool stacks, const struct scope *asked, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->node_count; i++) {
		r = explain_find(&a->nodes[i].content, stacks, &a->nodes[i].e, reterr);
		if (r < 0)
			break;
		explanation_keep(&a->nodes[i].e, asked);
		kernel_names_put(&a->nodes[i].content, &a->nodes[i].e);
	}
	return r ?: list_rows(a);
}

/* The contents of @c become @a's. */
static int take_contents(struct incidents_answer *a, struct contents *c)
{
	a->nodes = calloc(c->count, sizeof(*a->nodes));
	if (!a->nodes)
		return -ENOMEM;
	for (; a->node_count < c->count; a->node_count++) {
		a->nodes[a->node_count].content = c->items[a->node_count];
		c->items[a->node_count] = (struct nodedb_content){0};
	}
	return 0;
}

int incidents_load(const char *path, const struct nodedb_filter *f, bool stacks,
	struct incidents_answer *ret, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	_cleanup_(contents_done) struct contents c = {0};
	int r = contents_load(path, f, &c, reterr);

	r = r ?: take_contents(&a, &c);
	r = r ?: explain_nodes(&a, stacks, &f->scope, reterr);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct incidents_answer){0};
	return 0;
}

int incidents_explain(
	struct nodedb_content *c, struct incidents_answer *ret, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	int r = take_contents(&a, &(struct contents){c, 1});

	r = r ?: explain_nodes(&a, false, &(struct scope){0}, reterr);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct incidents_answer){0};
	return 0;
}

struct report_scope incidents_scope(const struct incidents_answer *a)
{
	struct report_scope sum = a->nodes[0].e.scope;

	for (size_t i = 1; i < a->node_count; i++) {
		const struct report_scope *s = &a->nodes[i].e.scope;

		if (s->first_ns && (!sum.first_ns || s->first_ns < sum.first_ns))
			sum.first_ns = s->first_ns;
		sum.last_ns = MAX(sum.last_ns, s->last_ns);
		sum.events += s->events;
		sum.calls += s->calls;
		sum.skipped_rows += s->skipped_rows;
		sum.older_events += s->older_events;
		sum.older_ledger += s->older_ledger;
		sum.overlapping += s->overlapping;
		sum.reused += s->reused;
		sum.thinned_rows += s->thinned_rows;
		sum.pruned_rows = MAX(sum.pruned_rows, s->pruned_rows);
		sum.pruned_before = MAX(sum.pruned_before, s->pruned_before);
		sum.no_gpu_calls = sum.no_gpu_calls && s->no_gpu_calls;
		sum.completeness.known = sum.completeness.known && s->completeness.known;
		sum.completeness.hits += s->completeness.hits;
		sum.completeness.stored += s->completeness.stored;
		sum.completeness.aggregated += s->completeness.aggregated;
		sum.completeness.lost += s->completeness.lost;
		sum.completeness.books.unclean += s->completeness.books.unclean;
	}
	return sum;
}

void incidents_answer_done(struct incidents_answer *a)
{
	for (size_t i = 0; a->nodes && i < a->node_count; i++) {
		explanation_done(&a->nodes[i].e);
		nodedb_content_done(&a->nodes[i].content);
	}
	free(a->nodes);
	free(a->rows);
	*a = (struct incidents_answer){0};
}

int contents_load(const char *path, const struct nodedb_filter *f, struct contents *ret,
	struct errinfo *reterr)
{
	_cleanup_(contents_done) struct contents c = {0};
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	struct nodedb_filter one = *f;
	size_t count = 0;
	int r = f->scope.node ? 0 : nodedb_nodes(path, &nodes, &count, reterr);

	if (r < 0)
		return r;
	c.items = calloc(MAX(count, (size_t)1), sizeof(*c.items));
	if (!c.items)
		return -ENOMEM;
	do {
		if (count > 1)
			one.scope.node = nodes[c.count].name;
		r = nodedb_read(path, &one, &c.items[c.count++], reterr);
	} while (r == 0 && c.count < count);
	if (r < 0)
		return r;
	*ret = c;
	c = (struct contents){0};
	return 0;
}

void contents_done(struct contents *c)
{
	for (size_t i = 0; c->items && i < c->count; i++)
		nodedb_content_done(&c->items[i]);
	free(c->items);
	*c = (struct contents){0};
}

/* ---- An incident keeps its heaviest stacks only, so a share is a lower bound ---- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_place(const struct stack_frame *a, const struct stack_frame *b)
{
	return same_text(a->py_func, b->py_func) && same_text(a->py_file, b->py_file) &&
	       a->py_line == b->py_line && same_text(a->symbol, b->symbol) &&
	       same_text(a->file, b->file) && a->line == b->line;
}

bool where_find(const struct incident *inc, const struct stack_list *stacks, struct where *ret)
{
	struct where places[INCIDENT_STACKS] = {0}, *most = &places[0];
	uint64_t total;
	int n = 0;

	for (int i = 0; i < inc->stack_count; i++) {
		const struct stack *s = stack_find(stacks, inc->stacks[i].hash);
		const struct stack_frame *f = s ? stack_user_frame(s) : NULL;
		int k = 0;

		if (s && !f)
			f = stack_place(s);
		if (!f)
			continue;
		while (k < n && !same_place(places[k].frame, f))
			k++;
		if (k == n)
			places[n++].frame = f;
		places[k].ns += inc->stacks[i].ns;
	}
	for (int k = 1; k < n; k++)
		if (places[k].ns > most->ns)
			most = &places[k];
	if (!n)
		return false;
	*ret = *most;
	/* stacks are of whole waits, the excess only of what was too much of them */
	total = MAX(inc->excess_ns, inc->stack_ns);
	ret->share = total ? MIN((double)most->ns / (double)total, 1.0) : 0;
	return true;
}

/* stored verdicts. Their lists are JSON that somebody wrote into the file: it is
 * read again, not passed on, and what it should not hold is left out. */

#define CHAINS     1000
#define CHAINS_MAX 10000
#define JSON_MAX   (64u << 10) /* of one text in the file */

static json_t *load_array(const char *text)
{
	size_t len = strlen(text);
	json_t *root = len && len <= JSON_MAX ? json_loadb(text, len, 0, NULL) : NULL;

	if (root && json_is_array(root))
		return root;
	json_decref(root);
	return NULL;
}

void put_chain_texts(struct json_writer *w, const char *key, const char *text)
{
	_cleanup_(json_decrefp) json_t *root = load_array(text);
	json_t *item;
	size_t i;

	json_begin_array_member(w, key);
	json_array_foreach (root, i, item)
		if (json_is_string(item))
			json_put_string(w, json_string_value(item));
	json_end_array(w);
}

static void put_timeline(struct json_writer *w, const char *text)
{
	_cleanup_(json_decrefp) json_t *root = load_array(text);
	json_t *item;
	size_t i;

	json_begin_array_member(w, "timeline");
	json_array_foreach (root, i, item) {
		const json_t *us = json_object_get(item, "dur_us");
		const char *layer = json_string_value(json_object_get(item, "layer"));
		const char *op = json_string_value(json_object_get(item, "op"));
		const char *detail = json_string_value(json_object_get(item, "detail"));

		if (!json_is_object(item))
			continue;
		json_begin_object(w);
		json_string_member(w, "layer", layer ? layer : "");
		if (op)
			json_string_member(w, "op", op);
		json_string_member(w, "detail", detail ? detail : "");
		if (json_is_integer(us))
			json_int_member(w, "dur_us", json_integer_value(us));
		json_end_object(w);
	}
	json_end_array(w);
}

/* A column whose empty value means that it is not known. */
static void put_known(
	struct json_writer *w, const struct sql_table *t, size_t row, const char *name)
{
	int c = table_column(t, name);

	if (!table_text(t, row, c)[0] && table_real(t, row, c) <= 0)
		return;
	json_key(w, name);
	table_cell(w, t, row, c);
}

static void put_chain(struct json_writer *w, const struct sql_table *t, size_t row)
{
	static const char *const always[] = {
		"id", "detected_at", "severity", "summary", "root_cause", "explanation"};
	static const char *const known[] = {
		"cuda_op", "cuda_p99_us", "cuda_p50_us", "tail_ratio", "node"};

	json_begin_object(w);
	for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
		json_key(w, always[i]);
		table_cell(w, t, row, table_column(t, always[i]));
	}
	put_chain_texts(
		w, "recommendations", table_text(t, row, table_column(t, "recommendations")));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		put_known(w, t, row, known[i]);
	put_timeline(w, table_text(t, row, table_column(t, "timeline")));
	json_end_object(w);
}

int chains_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table s = {0};
	struct scope scope = q->scope;
	int r;

	/* A verdict may be found after the last event that it is about. */
	if (!q->request->to[0])
		scope.to_ns = 0;
	if (q->by_default && !q->live)
		scope.from_ns = 0;
	r = nodedb_snapshot_list(q->snapshot, NODEDB_CHAINS, &scope,
		answer_limit(q->request->limit, CHAINS, CHAINS_MAX), &s, reterr);
	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_array_member(w, "chains");
	for (size_t i = 0; i < s.row_count; i++)
		put_chain(w, &s, i);
	json_end_array(w);
	return answer_end(q, w, s.truncated);
}

/* ---- The text may have been cut anywhere by its ceiling ---- */

const char *chain_step_next(const char *lines, struct chain_step *ret)
{
	size_t line = strcspn(lines, "\n"), used;

	if (!*lines)
		return NULL;
	*ret = (struct chain_step){.layer = lines, .layer_len = MIN(strcspn(lines, "\t"), line)};
	used = MIN(ret->layer_len + 1, line);
	ret->detail = lines + used;
	ret->detail_len = MIN(strcspn(ret->detail, "\t"), line - used);
	used = MIN(used + ret->detail_len + 1, line);
	ret->has_us = isdigit((unsigned char)lines[used]) && used < line;
	ret->us = ret->has_us ? strtoull(lines + used, NULL, 10) : 0;
	return lines + line + (lines[line] == '\n');
}

/* See incidents.h. Pure. */

static bool is_span(const struct annotation_label *l)
{
	return l->span_end_ns != 0;
}

static bool holds(const struct annotation_label *l, const struct labels_span *i)
{
	if (l->pid && l->pid != i->pid)
		return false;
	if (is_span(l))
		return l->span_start_ns <= i->last_ns && l->span_end_ns >= i->first_ns;
	return l->time_ns <= i->last_ns;
}

static struct label_range *range_of(
	const char *key, struct label_range *ranges, int *count, size_t *more)
{
	for (int k = 0; k < *count; k++)
		if (!strcmp(ranges[k].key, key))
			return &ranges[k];
	if (*count == LABELS_KEYS_MAX) {
		++*more;
		return NULL;
	}
	ranges[*count] = (struct label_range){.key = key};
	return &ranges[(*count)++];
}

static void add_value(struct label_range *r, const char *value)
{
	if (r->value_count && !strcmp(r->values[r->value_count - 1], value))
		return;
	if (r->value_count == LABELS_VALUES_MAX)
		r->value_count--; /* the last place is for the last value */
	r->values[r->value_count++] = value;
	r->total++;
}

int labels_within(const struct annotation_label *labels, size_t count,
	const struct labels_span *span, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more)
{
	int keys = 0;

	*ret_more = 0;
	for (size_t n = 0; n < count; n++) {
		struct label_range *r;

		if (!holds(&labels[n], span))
			continue;
		r = range_of(labels[n].key, ret, &keys, ret_more);
		if (!r)
			continue;
		if (!is_span(&labels[n]) && labels[n].time_ns <= span->first_ns)
			r->total = (size_t)(r->value_count = 0); /* replaced before it began */
		add_value(r, labels[n].value);
	}
	return keys;
}

int labels_during(const struct annotation_label *labels, size_t count,
	const struct incident *incident, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more)
{
	struct labels_span span = {incident->pid, incident->first.ns, incident->last.ns};

	return labels_within(labels, count, &span, ret, ret_more);
}
