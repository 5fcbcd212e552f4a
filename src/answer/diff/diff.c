/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - see diff.h: operations, GPUs, what the recordings are, and one sentence on top. */
#include "answer/diff/diff.h"

#include <math.h>

#include "base/search.h"
#include "base/text.h"
#include "wire/op_kind.h"

#define CALLS_MIN   30        /* without buckets: calls on either side, */
#define CALLS_SHARE 0.25      /* and what is more than noise then: calls of one moment are alike */
#define LOST_NS_S   NS_PER_MS /* a second: less is not worth a word on top */
#define NAMED       3         /* in the sentence */
#define NAMED_SHARE 0.1       /* of the difference */

/* ---- operations ---- */

static const struct op_stat *find_stat(const struct diff_side *s, const struct diff_op *o)
{
	for (size_t i = 0; i < s->ops.count; i++)
		if (s->ops.rows[i].source == o->source && s->ops.rows[i].op == o->op &&
			s->ops.rows[i].nested == o->nested)
			return &s->ops.rows[i];
	return NULL;
}

static const struct diff_samples *find_samples(const struct diff_side *s, const struct diff_op *o)
{
	static const struct diff_samples none = {0};

	for (size_t i = 0; i < s->sample_count; i++)
		if (s->samples[i].source == o->source && s->samples[i].op == o->op &&
			s->samples[i].nested == o->nested)
			return &s->samples[i];
	return &none;
}

static void judge(struct diff_op *o, const struct diff_samples *a, const struct diff_samples *b)
{
	double mean[2] = {o->of[0].avg_ns, o->of[1].avg_ns};
	double most = MAX(o->calls_s[0], o->calls_s[1]);

	if (MIN(a->dur_count, b->dur_count) >= COMPARE_MIN)
		o->dur = compare_values(
			a->dur, a->dur_count, b->dur, b->dur_count, DIFF_SHARE * mean[0])
				 .verdict;
	else if (a->calls.count >= CALLS_MIN && b->calls.count >= CALLS_MIN)
		o->dur = compare_sets(&a->calls, &b->calls, CALLS_SHARE * mean[0]).verdict;
	/* What clipping turned round is none. */
	if ((o->dur == COMPARE_MORE && mean[1] <= mean[0]) ||
		(o->dur == COMPARE_LESS && mean[1] >= mean[0]))
		o->dur = COMPARE_NOISE;
	o->calls = compare_values(
		a->per_s, a->per_s_count, b->per_s, b->per_s_count, DIFF_SHARE * most)
			   .verdict;
	if (o->calls == COMPARE_NOISE)
		o->calls = compare_part(
			a->per_s, a->per_s_count, b->per_s, b->per_s_count, DIFF_SHARE * most);
}

ORDER(by_loss, struct diff_op,
	COMPARE(op_kind_is_gpu(y->source), op_kind_is_gpu(x->source))
		?: COMPARE(fabs(y->lost_ns_s), fabs(x->lost_ns_s)) ?: ASCENDING(source)
		?: ASCENDING(op) ?: ASCENDING(nested))

static struct diff_op make_op(const struct diff_side sides[2], const struct op_stat *s)
{
	struct diff_op o = {.source = s->source, .op = s->op, .nested = s->nested};

	for (int i = 0; i < 2; i++) {
		const struct op_stat *stat = find_stat(&sides[i], &o);
		double seconds = (double)sides[i].ops_ns / (double)NS_PER_S;

		o.of[i] = stat ? *stat : (struct op_stat){0};
		o.calls_s[i] = (double)o.of[i].calls / seconds;
		o.ns_s[i] = (double)o.of[i].sum_ns / seconds;
	}
	o.lost_ns_s = o.ns_s[1] - o.ns_s[0];
	judge(&o, find_samples(&sides[0], &o), find_samples(&sides[1], &o));
	return o;
}

static int diff_compare_ops(const struct diff_side sides[2], struct diff_answer *ret)
{
	size_t n = 0;

	ret->ops = calloc(sides[0].ops.count + sides[1].ops.count + 1, sizeof(*ret->ops));
	if (!ret->ops)
		return -ENOMEM;
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < sides[i].ops.count; k++) {
			struct diff_op o = make_op(sides, &sides[i].ops.rows[k]);

			if (i == 0 || !o.of[0].calls)
				ret->ops[n++] = o;
		}
	ret->op_count = n;
	SORT(ret->ops, n, by_loss);
	return 0;
}

/* ---- GPUs and recordings ---- */

struct readings { /* of one GPU */
	double *values;
	size_t count;
	double mean;
};

static void read_gauge(
	const struct gpus_answer *g, size_t gpu, const char *column, struct readings *r)
{
	const struct sql_table *t = &g->samples;
	int c = table_column(t, column);
	double sum = 0;

	r->count = 0;
	for (size_t i = g->newest[gpu]; c >= 0 && i < t->row_count; i++)
		if (gpus_same(g, i, g->newest[gpu]) && sql_table_cell(t, i, c)->type == SQL_INT &&
			table_int(t, i, c) >= 0) {
			r->values[r->count] = (double)table_int(t, i, c);
			sum += r->values[r->count++];
		}
	r->mean = r->count ? sum / (double)r->count : 0;
}

/* GPUs are told apart by their order: those of another machine have other ids. */
static int compare_gpus(const struct diff_side sides[2], struct diff_answer *ret)
{
	static const struct {
		const char *column, *title, *unit;
		double divisor;
	} rows[] = {
#define X(column, title, unit, divisor) {column, title, unit, divisor},
		DIFF_GAUGES(X)
#undef X
	};
	const struct gpus_answer *a = &sides[0].gpus, *b = &sides[1].gpus;
	size_t count = MIN(a->count, b->count);
	_cleanup_free_ double *one = calloc(a->samples.row_count + 1, sizeof(*one));
	_cleanup_free_ double *two = calloc(b->samples.row_count + 1, sizeof(*two));
	struct readings x = {.values = one}, y = {.values = two};

	ret->gauges = calloc(count * ARRAY_SIZE(rows) + 1, sizeof(*ret->gauges));
	if (!one || !two || !ret->gauges)
		return -ENOMEM;
	for (size_t i = 0; i < count * ARRAY_SIZE(rows); i++) {
		size_t g = i / ARRAY_SIZE(rows), k = i % ARRAY_SIZE(rows);

		read_gauge(a, g, rows[k].column, &x);
		read_gauge(b, g, rows[k].column, &y);
		if (!x.count || !y.count)
			continue;
		ret->gauges[ret->gauge_count++] = (struct diff_gauge){
			.gpu = table_int(&a->samples, a->newest[g], GPUS_GPU),
			.column = rows[k].column,
			.title = rows[k].title,
			.unit = rows[k].unit,
			.mean = {x.mean / rows[k].divisor, y.mean / rows[k].divisor},
			.verdict = compare_values(one, x.count, two, y.count, DIFF_SHARE * x.mean)
					   .verdict};
	}
	return 0;
}

static int compare_facts(const struct diff_side sides[2], struct diff_answer *ret)
{
	ret->facts = calloc(sides[0].fact_count + 1, sizeof(*ret->facts));
	if (!ret->facts)
		return -ENOMEM;
	for (size_t i = 0; i < MIN(sides[0].fact_count, sides[1].fact_count); i++) {
		struct diff_fact *f = &ret->facts[ret->fact_count++];

		*f = sides[0].facts[i];
		memcpy(f->of[1], sides[1].facts[i].of[0], sizeof(f->of[1]));
	}
	return 0;
}

/* ---- the sentence ---- */

static bool is_change(enum compare_verdict v)
{
	return v == COMPARE_MORE || v == COMPARE_LESS;
}

static const char *format_ms(char out[TEXT_MAX], double ns)
{
	double ms = ns / (double)NS_PER_MS;

	snprintf(out, TEXT_MAX,
		fabs(ms) >= 99.95   ? "%.0f"
		: fabs(ms) >= 0.995 ? "%.1f"
				    : "%.2g",
		ms);
	return out;
}

static void put_change(struct buf *b, const double of[2])
{
	if (of[0] > 0)
		buf_printf(b, " (%+.0f %%)", (of[1] / of[0] - 1) * 100);
}

/* The lines that make the difference; last the time that is on no line. */
static void put_lines(struct buf *b, const struct diff_job *j)
{
	double whole = j->step.ns[1] - j->step.ns[0];
	char ms[TEXT_MAX];
	int named = 0;

	for (int i = 0; i < 2 * j->line_count && named < NAMED; i++) {
		const struct diff_line *l = &j->lines[i % j->line_count];
		double ns = l->ns[1] - l->ns[0];
		bool is_last = i >= j->line_count;

		if (l->verdict != j->step.verdict || ns / whole < NAMED_SHARE ||
			(l->line == ACCOUNT_UNKNOWN) != is_last)
			continue;
		buf_printf(b, "%s %s%s ms %s", named++ ? "," : ":", ns > 0 ? "+" : "",
			format_ms(ms, ns), account_line_title(l->line));
		if (l->place[0])
			buf_printf(b, " in %s", l->place);
	}
}

static void put_lengths(struct buf *b, const struct diff_job *j)
{
	char one[TEXT_MAX], two[TEXT_MAX];

	buf_printf(b, "B's steps take %s ms instead of %s ms", format_ms(two, j->step.ns[1]),
		format_ms(one, j->step.ns[0]));
	put_change(b, j->step.ns);
}

/* Steps that are not surely different, before what is. */
static void put_same_steps(struct buf *b, const struct diff_job *j)
{
	if (fabs(j->step.ns[1] - j->step.ns[0]) < DIFF_SHARE * j->step.ns[0]) {
		buf_puts(b, "Steps take the same time");
		return;
	}
	put_lengths(b, j);
	buf_printf(b, " on average, but that is within noise: A has %s",
		TEXT_PLURAL(j->slow_steps[0], "slow steps"));
	buf_printf(b, ", B %u", j->slow_steps[1]);
}

static void put_op(struct buf *b, const struct diff_op *o)
{
	char ms[TEXT_MAX];

	if (!is_change(o->dur)) {
		buf_printf(b, "B calls %s %.*f times a second instead of %.*f (%s%s ms a second)",
			WIRE_OP_NAME(o->source, o->op), o->calls_s[1] < 10, o->calls_s[1],
			o->calls_s[0]<10, o->calls_s[0], o->lost_ns_s> 0 ? "+" : "",
			format_ms(ms, o->lost_ns_s));
		return;
	}
	buf_printf(b, "a call of %s takes %s in B instead of %s on average",
		WIRE_OP_NAME(o->source, o->op), TEXT_DURATION((uint64_t)o->of[1].avg_ns),
		TEXT_DURATION((uint64_t)o->of[0].avg_ns));
	put_change(b, (double[]){o->of[0].avg_ns, o->of[1].avg_ns});
}

/* The operation to speak of: one whose calls take longer or shorter rather than one that is called more often,
 * which may be because everything else is quicker. */
static const struct diff_op *find_op(const struct diff_answer *a)
{
	const struct diff_op *often = NULL;

	for (size_t i = 0; i < a->op_count; i++) {
		const struct diff_op *o = &a->ops[i];

		if (!op_kind_is_gpu(o->source) || o->nested || fabs(o->lost_ns_s) < LOST_NS_S)
			continue;
		if (is_change(o->dur))
			return o;
		often = often || !is_change(o->calls) ? often : o;
	}
	return often;
}

static const struct diff_gauge *find_gauge(const struct diff_answer *a)
{
	return FIND(x, a->gauges, a->gauge_count, is_change(x->verdict));
}

/* Whether an operation differs that find_op() passes over. */
static bool is_any_other(const struct diff_answer *a)
{
	return EXISTS(
		i, a->op_count, is_change(a->ops[i].dur) && fabs(a->ops[i].lost_ns_s) >= LOST_NS_S);
}

static const struct diff_job *find_job(const struct diff_answer *a)
{
	for (size_t i = 0; i < a->job_count; i++)
		if (is_change(a->jobs[i].step.verdict))
			return &a->jobs[i];
	return a->job_count && a->jobs[0].step.verdict == COMPARE_NOISE ? &a->jobs[0] : NULL;
}

/* The sentence where nothing differs. Without GPU calls on both sides nothing was compared. */
static const char *no_difference(const struct diff_answer *a)
{
	bool has[2] = {false};

	for (size_t i = 0; i < a->op_count; i++)
		for (int k = 0; k < 2; k++)
			has[k] = has[k] ||
				 (op_kind_is_gpu(a->ops[i].source) && a->ops[i].of[k].calls > 0);
	if (!a->job_count && !(has[0] && has[1]))
		return has[0]   ? "Cannot compare: B has no GPU calls"
		       : has[1] ? "Cannot compare: A has no GPU calls"
				: "Cannot compare: neither A nor B has GPU calls";
	return is_any_other(a)
		       ? "No difference of steps, GPU calls or GPUs beyond noise; operations of the host differ"
		       : "No difference beyond noise";
}

/* The sentence, of all that was compared. */
static void diff_summarize(struct diff_answer *a)
{
	_cleanup_buf_ struct buf b = BUF_INIT(DIFF_SUMMARY);
	const struct diff_op *o = find_op(a);
	const struct diff_gauge *g = find_gauge(a);
	const struct diff_job *j = find_job(a);
	bool steps = j && is_change(j->step.verdict);

	a->different = steps || o || g;
	if (steps) {
		put_lengths(&b, j);
		put_lines(&b, j);
	} else if (j && (a->different || fabs(j->step.ns[1] - j->step.ns[0]) >=
						 DIFF_SHARE * j->step.ns[0])) {
		put_same_steps(&b, j);
	}
	if (!steps && a->different)
		buf_puts(&b, b.len ? "; " : "");
	if (!steps && o)
		put_op(&b, o);
	else if (!steps && g)
		buf_printf(&b, "GPU %lld: %s %.4g %s in B instead of %.4g %s", (long long)g->gpu,
			g->title, g->mean[1], g->unit, g->mean[0], g->unit);
	if (!b.len)
		buf_puts(&b, no_difference(a));
	buf_puts(&b, ".");
	snprintf(a->summary, sizeof(a->summary), "%s", buf_str(&b));
	if (a->summary[0] == 'a') /* a call of … */
		a->summary[0] = 'A';
}

/* ---- all ---- */

int diff_compare(const struct diff_side sides[2], struct diff_answer *ret)
{
	int r;

	for (int i = 0; i < 2; i++)
		ret->time[i] = sides[i].time;
	ret->truncated = sides[0].truncated || sides[1].truncated;
	r = diff_compare_ops(sides, ret);
	r = r ?: diff_compare_steps(sides, ret);
	r = r ?: diff_compare_stacks(sides, ret);
	r = r ?: compare_gpus(sides, ret);
	r = r ?: compare_facts(sides, ret);
	if (r == 0) {
		diff_compare_promises(sides, ret);
		diff_summarize(ret);
	}
	return r;
}

int answer_diff(const struct question *a, const struct question *b, struct diff_answer *ret,
	struct errinfo *reterr)
{
	_cleanup_(diff_answer_done) struct diff_answer d = {0};
	const struct question *const questions[] = {a, b};
	int r = 0;

	d.sides = calloc(2, sizeof(*d.sides));
	if (!d.sides)
		return -ENOMEM;
	for (int i = 0; r == 0 && i < 2; i++) {
		r = diff_side_load(questions[i], &d.sides[i], reterr);
		if (r == 0 && !d.sides[i].ops.count && !d.sides[i].steps.count &&
			!d.sides[i].stack_count && !d.sides[i].gpus.count)
			r = errinfo_set(reterr, -ESRCH,
				"nothing to compare: %s has no calls, steps, stacks or GPU readings "
				"of what was asked for",
				i ? "B, the second time," : "A, the first time,");
	}
	r = r ?: diff_side_explain(a, &d.sides[0], reterr);
	r = r ?: diff_compare(d.sides, &d);
	if (r < 0)
		return r;
	*ret = d;
	d = (struct diff_answer){0};
	return 0;
}

void diff_answer_done(struct diff_answer *a)
{
	for (int i = 0; a->sides && i < 2; i++)
		diff_side_done(&a->sides[i]);
	free(a->sides);
	free(a->ops);
	free(a->jobs);
	free(a->gauges);
	free(a->facts);
	*a = (struct diff_answer){0};
}
