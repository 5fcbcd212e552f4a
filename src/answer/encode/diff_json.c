/* SPDX-License-Identifier: Apache-2.0 */
/* diff_json.c - see diff_json.h; and /api/v1/diff. What ends in 2 is B's. */
#include "answer/encode/diff_json.h"

#include "answer/encode/event_json.h"
#include "wire/names.h"

static const char *verdict_id(enum compare_verdict v)
{
	static const char *const ids[] = {[COMPARE_UNKNOWN] = "unknown",
		[COMPARE_NOISE] = "noise",
		[COMPARE_MORE] = "more",
		[COMPARE_LESS] = "less"};

	return ids[v];
}

static void put_time(struct json_writer *w, const char *key, const struct diff_time *t)
{
	json_begin_object_member(w, key);
	json_int_member(w, "from_ns", t->from_ns);
	json_int_member(w, "to_ns", t->to_ns);
	json_uint_member(w, "calls", t->calls);
	json_uint_member(w, "rows", t->rows);
	json_end_object(w);
}

static void put_line(struct json_writer *w, const struct diff_line *l)
{
	json_begin_object(w);
	json_string_member(w, "line", account_line_id(l->line));
	json_string_member(w, "title", account_line_title(l->line));
	json_double_member(w, "ns", l->ns[0]);
	json_double_member(w, "ns2", l->ns[1]);
	json_double_member(w, "difference_ns", l->ns[1] - l->ns[0]);
	json_string_member(w, "verdict", verdict_id(l->verdict));
	json_string_member(w, "place", l->place);
	json_end_object(w);
}

static void put_job(struct json_writer *w, const struct diff_job *j)
{
	json_begin_object(w);
	json_string_member(w, "name", j->comm);
	json_key(w, "rank");
	if (j->rank < 0)
		json_put_null(w);
	else
		json_put_int(w, j->rank);
	json_uint_member(w, "pid", j->pid[0]);
	json_uint_member(w, "pid2", j->pid[1]);
	json_uint_member(w, "steps", j->steps[0]);
	json_uint_member(w, "steps2", j->steps[1]);
	json_uint_member(w, "slow_steps", j->slow_steps[0]);
	json_uint_member(w, "slow_steps2", j->slow_steps[1]);
	json_double_member(w, "step_ns", j->step.ns[0]);
	json_double_member(w, "step_ns2", j->step.ns[1]);
	json_string_member(w, "verdict", verdict_id(j->step.verdict));
	json_begin_array_member(w, "lines");
	for (int i = 0; i < j->line_count; i++)
		put_line(w, &j->lines[i]);
	json_end_array(w);
	json_end_object(w);
}

static void put_op(struct json_writer *w, const struct diff_op *o)
{
	const struct op_stat *a = &o->of[0], *b = &o->of[1];
	char name[32];

	json_begin_object(w);
	json_string_member(w, "operation", wire_op_name(o->source, o->op, name));
	json_string_member(w, "source", wire_source_name(o->source));
	json_bool_member(w, "nested", o->nested);
	json_uint_member(w, "count", a->calls);
	json_uint_member(w, "count2", b->calls);
	json_double_member(w, "calls_s", o->calls_s[0]);
	json_double_member(w, "calls_s2", o->calls_s[1]);
	put_us(w, "p50_us", (double)a->p50_ns);
	put_us(w, "p50_us2", (double)b->p50_ns);
	put_us(w, "p99_us", (double)a->p99_ns);
	put_us(w, "p99_us2", (double)b->p99_ns);
	put_us(w, "avg_us", a->avg_ns);
	put_us(w, "avg_us2", b->avg_ns);
	put_us(w, "total_us", (double)a->sum_ns);
	put_us(w, "total_us2", (double)b->sum_ns);
	put_us(w, "lost_us_s", o->lost_ns_s);
	json_string_member(w, "duration", verdict_id(o->dur));
	json_string_member(w, "calls", verdict_id(o->calls));
	json_end_object(w);
}

static void put_stack(struct json_writer *w, const struct diff_stack *s)
{
	char name[32];

	json_begin_object(w);
	json_string_member(w, "source", wire_source_name(s->source));
	json_string_member(w, "op", wire_op_name(s->source, s->op, name));
	put_us(w, "us_s", s->ns_s[0]);
	put_us(w, "us_s2", s->ns_s[1]);
	json_string_member(w, "place", s->place);
	json_bool_member(w, "moved", s->moved);
	event_json_frames(w, s->stack);
	json_end_object(w);
}

static void put_gauge(struct json_writer *w, const struct diff_gauge *g)
{
	json_begin_object(w);
	json_int_member(w, "gpu", g->gpu);
	json_string_member(w, "field", g->column);
	json_string_member(w, "title", g->title);
	json_string_member(w, "unit", g->unit);
	json_double_member(w, "mean", g->mean[0]);
	json_double_member(w, "mean2", g->mean[1]);
	json_string_member(w, "verdict", verdict_id(g->verdict));
	json_end_object(w);
}

static void put_fact(struct json_writer *w, const struct diff_fact *f)
{
	json_begin_object(w);
	json_string_member(w, "name", f->name);
	json_string_member(w, "a", f->of[0]);
	json_string_member(w, "b", f->of[1]);
	json_bool_member(w, "different", strcmp(f->of[0], f->of[1]) != 0);
	json_end_object(w);
}

static void put_promise(struct json_writer *w, const struct diff_promise *p)
{
	static const char *const ids[] = {
#define X(NAME, id, words) [DIFF_##NAME] = id,
		DIFF_OUTCOMES(X)
#undef X
	};

	json_begin_object(w);
	json_string_member(w, "summary", p->what);
	json_uint_member(w, "pid", p->pid);
	json_double_member(w, "step_ns", p->before_ns);
	json_double_member(w, "promised_ns", p->promised_ns);
	json_double_member(w, "promised_least_ns", p->least_ns);
	json_double_member(w, "promised_most_ns", p->most_ns);
	json_double_member(w, "given_ns", p->given_ns);
	json_string_member(w, "outcome", ids[p->outcome]);
	json_end_object(w);
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
	json_string_member(w, "summary", a->summary);
	json_bool_member(w, "different", a->different);
	put_time(w, "a", &a->time[0]);
	put_time(w, "b", &a->time[1]);
	PUT_ALL("promises", put_promise, a->promises, a->promise_count);
	PUT_ALL("steps", put_job, a->jobs, a->job_count);
	PUT_ALL("ops", put_op, a->ops, MIN(a->op_count, limit));
	PUT_ALL("stacks", put_stack, a->stacks, a->stack_count);
	PUT_ALL("gpus", put_gauge, a->gauges, a->gauge_count);
	PUT_ALL("recordings", put_fact, a->facts, a->fact_count);
}

int diff_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t limit = answer_limit(q->request->limit, DIFF_LIMIT, DIFF_LIMIT_MAX);
	_cleanup_(diff_answer_done) struct diff_answer a = {0};
	struct question second = *q;
	int r = answer_second_time(q, &second.scope, reterr);

	if (r == 0)
		r = answer_diff(q, &second, &a, reterr);
	if (r < 0)
		return r;
	json_begin_object(w);
	diff_put(w, &a, limit);
	return answer_end(q, w, a.truncated || a.op_count > limit);
}
