/* SPDX-License-Identifier: Apache-2.0 */
/* diff_text.c - see report.h. The sentence first, then what it rests on: steps, operations, stacks, GPUs, and
 * how the recordings themselves differ. */
#include "answer/encode/report.h"

#include <math.h>

#include "base/text.h"
#include "diagnose/sentences/span_text.h"
#include "wire/names.h"
#include "answer/encode/event_json.h"

#define BOLD      "\033[1m"
#define RESET     "\033[0m"
#define ROW_SHARE 0.001 /* of a step: a line with less is left out */

static const char *format_ms(char out[TEXT_MAX], double ns)
{
	double ms = ns / (double)NS_PER_MS;

	snprintf(out, TEXT_MAX, fabs(ms) >= 1000 ? "%.0f" : fabs(ms) >= 100 ? "%.1f" : "%.2f", ms);
	return out;
}

static const char *format_change(char out[TEXT_MAX], double ns)
{
	char text[TEXT_MAX];

	snprintf(out, TEXT_MAX, "%s%.30s", ns > 0 ? "+" : "", format_ms(text, ns));
	return out;
}

static const char *format_per_s(char out[TEXT_MAX], double n)
{
	snprintf(out, TEXT_MAX, n >= 100 ? "%.0f" : n >= 10 ? "%.1f" : "%.2f", n);
	return out;
}

static void put_title(struct buf *b, const char *title, bool color)
{
	buf_printf(b, "\n%s%s%s\n", color ? BOLD : "", title, color ? RESET : "");
}

static const char *line_verdict(enum compare_verdict v)
{
	static const char *const words[] = {[COMPARE_UNKNOWN] = "too little data",
		[COMPARE_NOISE] = "within noise",
		[COMPARE_MORE] = "more",
		[COMPARE_LESS] = "less"};

	return words[v];
}

/* ---- what is compared ---- */

static void put_side(struct buf *b, const char *name, const struct diff_time *t)
{
	buf_printf(b, "  %s  ", name);
	report_date(b, t->from_ns);
	buf_printf(b, ", %s, %s", TEXT_DURATION((uint64_t)MAX(t->to_ns - t->from_ns, INT64_C(0))),
		TEXT_PLURAL(t->calls, "events"));
	if (t->calls > t->rows && t->rows)
		buf_printf(b, ", %s of them stored individually",
			TEXT_PERCENT((double)t->rows / (double)t->calls));
	buf_putc(b, '\n');
}

/* ---- steps ---- */

static void put_line(struct buf *b, const char *title, const struct diff_line *l)
{
	char one[TEXT_MAX], two[TEXT_MAX], change[TEXT_MAX];

	buf_printf(b, "  %-37s %9s %9s %10s  %s%s%s\n", title, format_ms(one, l->ns[0]),
		format_ms(two, l->ns[1]), format_change(change, l->ns[1] - l->ns[0]),
		line_verdict(l->verdict), l->place[0] ? ": " : "", l->place);
}

static void put_job(struct buf *b, const struct diff_job *j, bool color)
{
	_cleanup_buf_ struct buf title = BUF_INIT(1024);

	buf_puts(&title, "Steps of ");
	text_escape_terminal_len(&title, j->comm, strnlen(j->comm, sizeof(j->comm)));
	if (j->rank >= 0)
		buf_printf(&title, " (rank %lld)", (long long)j->rank);
	else
		buf_printf(&title, " (PID %u%s", j->pid[0], j->pid[0] == j->pid[1] ? ")" : "");
	if (j->rank < 0 && j->pid[0] != j->pid[1])
		buf_printf(&title, " and %u)", j->pid[1]);
	buf_printf(&title, ": %s in A, %s in B", TEXT_COUNT(j->steps[0]), TEXT_COUNT(j->steps[1]));
	put_title(b, buf_str(&title), color);
	buf_printf(b, "  %-37s %9s %9s %10s\n", "ms of a step", "A", "B", "difference");
	for (int i = 0; i < j->line_count; i++)
		if (MAX(j->lines[i].ns[0], j->lines[i].ns[1]) >= ROW_SHARE * j->step.ns[0])
			put_line(b, account_line_title(j->lines[i].line), &j->lines[i]);
	put_line(b, "step", &j->step);
}

static void put_jobs(struct buf *b, const struct diff_answer *a, size_t limit, bool color)
{
	for (size_t i = 0; i < MIN(a->job_count, limit); i++)
		put_job(b, &a->jobs[i], color);
	if (a->job_count > limit)
		buf_printf(b, "  %s with steps: --limit, --rank\n",
			TEXT_PLURAL(a->job_count - limit, "more processes"));
	if (!a->job_count)
		buf_puts(b, "\nSteps: not found in both A and B.\n");
}

/* ---- operations ---- */

static const char *op_verdict(const struct diff_op *o)
{
	if (o->dur == COMPARE_MORE || o->dur == COMPARE_LESS)
		return o->dur == COMPARE_MORE ? "slower" : "faster";
	if (!o->of[0].calls || !o->of[1].calls)
		return o->of[0].calls ? "only in A" : "only in B";
	if (o->calls == COMPARE_MORE || o->calls == COMPARE_LESS)
		return o->calls == COMPARE_MORE ? "more often" : "less often";
	return line_verdict(o->dur);
}

static void put_op(struct buf *b, const struct diff_op *o)
{
	char name[32], rate[2][TEXT_MAX], p50[2][TEXT_MAX], p99[2][TEXT_MAX], lost[TEXT_MAX];
	const char *text = wire_op_name(o->source, o->op, name);

	for (int i = 0; i < 2; i++) {
		bool is_there = o->of[i].calls > 0;

		format_per_s(rate[i], o->calls_s[i]);
		snprintf(p50[i], TEXT_MAX, "-");
		snprintf(p99[i], TEXT_MAX, "-");
		if (is_there && o->of[i].p99_ns) {
			text_format_duration(p50[i], o->of[i].p50_ns);
			text_format_duration(p99[i], o->of[i].p99_ns);
		}
	}
	buf_printf(b, "  %-24.*s %8s %8s", text_clip(text, 24), text, rate[0], rate[1]);
	for (int i = 0; i < 4; i++) { /* µ takes two bytes */
		const char *cell = i < 2 ? p50[i] : p99[i - 2];

		buf_printf(b, " %*s", 8 + (strstr(cell, "µ") ? 1 : 0), cell);
	}
	buf_printf(b, " %9s  %s%s\n", format_change(lost, o->lost_ns_s), op_verdict(o),
		o->nested ? " (nested)" : "");
}

/* ---- what fixes were to give ---- */

/* "GPU clock at 544 MHz …": promised 174 → about 46 ms (44–52) a step, B takes 47 ms: as promised */
static void put_promise(struct buf *b, const struct diff_promise *p)
{
	static const char *const words[] = {
#define X(NAME, id, words) [DIFF_##NAME] = words,
		DIFF_OUTCOMES(X)
#undef X
	};
	_cleanup_buf_ struct buf text = BUF_INIT(1024);
	char promised[SPAN_GAIN_MAX], given[SPAN_TEXT_MAX];

	span_text_gain(promised, (uint64_t)p->before_ns, (uint64_t)MAX(p->promised_ns, 0.0),
		(uint64_t)MAX(p->least_ns, 0.0), (uint64_t)MAX(p->most_ns, 0.0));
	buf_printf(&text, "%s. Predicted without it: steps %s; B's take %s: %s.", p->what, promised,
		span_text_one(given, (uint64_t)p->given_ns), words[p->outcome]);
	paragraph_put(b, PARAGRAPH_WIDTH, "  ", buf_str(&text));
}

static void put_promises(struct buf *b, const struct diff_answer *a, bool color)
{
	if (!a->promise_count)
		return;
	put_title(b, "Incidents of A, and what B gained", color);
	for (size_t i = 0; i < a->promise_count; i++)
		put_promise(b, &a->promises[i]);
}

/* ---- stacks, GPUs, recordings ---- */

static bool reads_same(const struct diff_stack *x, const struct diff_stack *y)
{
	return x->source == y->source && x->op == y->op && x->moved == y->moved &&
	       !strcmp(x->place, y->place);
}

/* Stacks of one line are one line here: which library code lies between is in --json. */
static void put_stack(struct buf *b, const struct diff_answer *a, size_t at)
{
	const struct diff_stack *s = &a->stacks[at];
	char one[TEXT_MAX], change[TEXT_MAX];
	double ns_s[2] = {0};
	int count = 0;

	for (size_t i = 0; i < at; i++)
		if (reads_same(&a->stacks[i], s))
			return;
	for (size_t i = at; i < a->stack_count; i++)
		if (reads_same(&a->stacks[i], s)) {
			ns_s[0] += a->stacks[i].ns_s[0];
			ns_s[1] += a->stacks[i].ns_s[1];
			count++;
		}
	buf_printf(b, "  %9s ms/s (%s in A)  %s in %s%s", format_change(change, ns_s[1] - ns_s[0]),
		format_ms(one, ns_s[0]),
		s->source == SOURCE_HOST ? "CPU time" : WIRE_OP_NAME(s->source, s->op),
		s->place[0] ? s->place : "?", s->moved ? " (lines differ from A's)" : "");
	buf_printf(b, count > 1 ? ", %d stacks\n" : "\n", count);
}

static void put_stacks(struct buf *b, const struct diff_answer *a, bool color)
{
	if (!a->stack_count)
		return;
	put_title(b, "Stacks with more time in B", color);
	for (size_t i = 0; i < a->stack_count; i++)
		put_stack(b, a, i);
}

static void put_gauges(struct buf *b, const struct diff_answer *a, bool color)
{
	if (!a->gauge_count)
		return;
	put_title(b, "GPUs (means)", color);
	for (size_t i = 0; i < a->gauge_count; i++) {
		const struct diff_gauge *g = &a->gauges[i];

		buf_printf(b, "  GPU %-3lld %-12s %9.4g %9.4g %-*s %s\n", (long long)g->gpu,
			g->title, g->mean[0], g->mean[1],
			3 + (int)strlen(g->unit) - text_clip(g->unit, 3) +
				(strchr(g->unit, '\xc2') ? 1 : 0),
			g->unit, line_verdict(g->verdict));
	}
}

static void put_facts(struct buf *b, const struct diff_answer *a, bool color)
{
	bool any = false;

	for (size_t i = 0; i < a->fact_count; i++) {
		const struct diff_fact *f = &a->facts[i];

		if (!strcmp(f->of[0], f->of[1]))
			continue;
		if (!any)
			put_title(b, "The recordings differ", color);
		any = true;
		buf_printf(b, "  %-8s A: ", f->name);
		text_escape_terminal(b, f->of[0][0] ? f->of[0] : "unknown");
		buf_puts(b, "; B: ");
		text_escape_terminal(b, f->of[1][0] ? f->of[1] : "unknown");
		buf_putc(b, '\n');
	}
}

void diff_text(struct buf *b, const struct diff_answer *a, size_t limit, bool color)
{
	buf_puts(b, color ? BOLD : "");
	paragraph_put(b, PARAGRAPH_WIDTH, "", a->summary);
	buf_puts(b, color ? RESET : "");
	put_side(b, "A", &a->time[0]);
	put_side(b, "B", &a->time[1]);
	put_promises(b, a, color);
	put_jobs(b, a, MIN(limit, (size_t)3), color);
	put_title(b, "Operations", color);
	buf_printf(b, "  %-24s %8s %8s %8s %8s %8s %8s %9s\n", "", "calls/s", "calls/s", "p50",
		"p50", "p99", "p99", "ms/s");
	buf_printf(b, "  %-24s %8s %8s %8s %8s %8s %8s %9s\n", "", "A", "B", "A", "B", "A", "B",
		"B - A");
	for (size_t i = 0; i < MIN(a->op_count, limit); i++)
		put_op(b, &a->ops[i]);
	if (a->op_count > limit)
		buf_printf(
			b, "  %s: --limit\n", TEXT_PLURAL(a->op_count - limit, "more operations"));
	put_stacks(b, a, color);
	put_gauges(b, a, color);
	put_facts(b, a, color);
	if (a->truncated)
		buf_puts(b, "\nNot everything was examined: choose shorter time ranges.\n");
}

/* ---- and /api/v1/diff. What ends in 2 is B's ---- */

static const char *verdict_id(unsigned v)
{
	static const char *const ids[] = {[COMPARE_UNKNOWN] = "unknown",
		[COMPARE_NOISE] = "noise",
		[COMPARE_MORE] = "more",
		[COMPARE_LESS] = "less"};

	return ids[v];
}

static void put_time(struct json_writer *w, const char *key, const struct diff_time *t)
{
	JSON_PUT_INTO(w, key, JSON_I("from_ns", t->from_ns), JSON_I("to_ns", t->to_ns),
		JSON_U("calls", t->calls), JSON_U("rows", t->rows));
}

/* clang-format off */
/* A's value and B's. */
#define PAIR(s, key, member, ...) ROW(s, key, member[0], ##__VA_ARGS__), ROW(s, key "2", member[1], ##__VA_ARGS__)
#define OF(key, member, ...) \
	ROW(struct diff_op, key, of[0].member, ##__VA_ARGS__), ROW(struct diff_op, key "2", of[1].member, ##__VA_ARGS__)
/* clang-format on */

static const struct row_field job_fields[] = {
	ROW(struct diff_job, "name", comm),
	ROW(struct diff_job, "rank", rank, 0, ROW_NULLS),
	PAIR(struct diff_job, "pid", pid),
	PAIR(struct diff_job, "steps", steps),
	PAIR(struct diff_job, "slow_steps", slow_steps),
	PAIR(struct diff_job, "step_ns", step.ns),
	ROW_NAMED(struct diff_job, "verdict", step.verdict, verdict_id),
	ROW_END,
};

static void json_put_job(struct json_writer *w, const struct diff_job *j)
{
	json_begin_object(w);
	row_json(w, job_fields, j, 0);
	json_begin_array_member(w, "lines");
	for (int i = 0; i < j->line_count; i++)
		JSON_PUT_OBJECT(w, JSON_S("line", account_line_id(j->lines[i].line)),
			JSON_S("title", account_line_title(j->lines[i].line)),
			JSON_R("ns", j->lines[i].ns[0]), JSON_R("ns2", j->lines[i].ns[1]),
			JSON_R("difference_ns", j->lines[i].ns[1] - j->lines[i].ns[0]),
			JSON_S("verdict", verdict_id(j->lines[i].verdict)),
			JSON_S("place", j->lines[i].place));
	json_end_array(w);
	json_end_object(w);
}

static const struct row_field op_fields[] = {
	ROW_OP_NAMED(struct diff_op, "operation"),
	ROW_NAMED(struct diff_op, "source", source, wire_source_name),
	ROW(struct diff_op, "nested", nested),
	OF("count", calls),
	PAIR(struct diff_op, "calls_s", calls_s),
	OF("p50_us", p50_ns, ROW_US),
	OF("p99_us", p99_ns, ROW_US),
	OF("avg_us", avg_ns, ROW_US),
	OF("total_us", sum_ns, ROW_US),
	ROW(struct diff_op, "lost_us_s", lost_ns_s, ROW_US),
	ROW_NAMED(struct diff_op, "duration", dur, verdict_id),
	ROW_NAMED(struct diff_op, "calls", calls, verdict_id),
	ROW_END,
};

static void json_put_stack(struct json_writer *w, const struct diff_stack *s)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("source", wire_source_name(s->source)),
		JSON_S("op", WIRE_OP_NAME(s->source, s->op)), JSON_US("us_s", s->ns_s[0]),
		JSON_US("us_s2", s->ns_s[1]), JSON_S("place", s->place), JSON_B("moved", s->moved));
	event_json_frames(w, s->stack);
	json_end_object(w);
}

static const struct row_field gauge_fields[] = {
	ROW(struct diff_gauge, "gpu", gpu),
	ROW(struct diff_gauge, "field", column),
	ROW(struct diff_gauge, "title", title),
	ROW(struct diff_gauge, "unit", unit),
	PAIR(struct diff_gauge, "mean", mean),
	ROW_NAMED(struct diff_gauge, "verdict", verdict, verdict_id),
	ROW_END,
};

static void put_fact(struct json_writer *w, const struct diff_fact *f)
{
	JSON_PUT_OBJECT(w, JSON_S("name", f->name), JSON_S("a", f->of[0]), JSON_S("b", f->of[1]),
		JSON_B("different", strcmp(f->of[0], f->of[1]) != 0));
}

static void json_put_promise(struct json_writer *w, const struct diff_promise *p)
{
	static const char *const ids[] = {
#define X(NAME, id, words) [DIFF_##NAME] = id,
		DIFF_OUTCOMES(X)
#undef X
	};

	JSON_PUT_OBJECT(w, JSON_S("summary", p->what), JSON_U("pid", p->pid),
		JSON_R("step_ns", p->before_ns), JSON_R("promised_ns", p->promised_ns),
		JSON_R("promised_least_ns", p->least_ns), JSON_R("promised_most_ns", p->most_ns),
		JSON_R("given_ns", p->given_ns), JSON_S("outcome", ids[p->outcome]));
}

#define PUT_ALL(key, put, items, count)                                                            \
	do {                                                                                       \
		json_begin_array_member(w, key);                                                   \
		for (size_t i_ = 0; i_ < (count); i_++)                                            \
			put(w, &(items)[i_]);                                                      \
		json_end_array(w);                                                                 \
	} while (0)

void diff_put(struct json_writer *w, const struct diff_answer *a, size_t limit)
{
	JSON_PUT(w, JSON_S("summary", a->summary), JSON_B("different", a->different));
	put_time(w, "a", &a->time[0]);
	put_time(w, "b", &a->time[1]);
	PUT_ALL("promises", json_put_promise, a->promises, a->promise_count);
	PUT_ALL("steps", json_put_job, a->jobs, a->job_count);
	row_json_list(w, "ops", op_fields, a->ops, sizeof(*a->ops), MIN(a->op_count, limit), 0);
	PUT_ALL("stacks", json_put_stack, a->stacks, a->stack_count);
	row_json_list(w, "gpus", gauge_fields, a->gauges, sizeof(*a->gauges), a->gauge_count, 0);
	PUT_ALL("recordings", put_fact, a->facts, a->fact_count);
}

int diff_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t limit = answer_limit(q->request->limit, DIFF_LIMIT, DIFF_LIMIT_MAX);
	_cleanup_(diff_answer_done) struct diff_answer a = {0};
	struct question second = *q;
	int r = answer_second_time(q, &second.scope, reterr);

	r = r ?: answer_diff(q, &second, &a, reterr);
	if (r < 0)
		return r;
	json_begin_object(w);
	diff_put(w, &a, limit);
	return answer_end(q, w, a.truncated || a.op_count > limit);
}
