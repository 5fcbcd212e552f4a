/* SPDX-License-Identifier: Apache-2.0 */
/* steps_json.c - see report_json.h; and /api/v1/steps. */
#include "answer/encode/report_json.h"

#include "answer/encode/event_json.h"
#include "answer/encode/say.h"
#include "diagnose/accounts/account.h"

#define ACCOUNTS_FEW 3

/* What a line and an entry have in common; @w is in their object. */
static void put_times(struct json_writer *w, const struct steps_line *l)
{
	JSON_PUT(w, JSON_S("line", account_line_id(l->line)),
		JSON_S("title", account_line_title(l->line)), JSON_U("ordinary_ns", l->ordinary_ns),
		JSON_U("slow_ns", l->slow_ns), JSON_I("difference_ns", l->difference_ns),
		JSON_R("share", l->share));
}

/* Whose time it is, of those that have any. */
static void put_owners(struct json_writer *w, const struct step_account *a)
{
	json_begin_array_member(w, "owners");
	for (int i = 0; i < ACCOUNT_OWNERS; i++) {
		struct steps_line l = steps_owner(a, (enum account_owner)i);

		if (!l.ordinary_ns && !l.slow_ns)
			continue;
		JSON_PUT_OBJECT(w, JSON_S("owner", account_owner_id((enum account_owner)i)),
			JSON_S("title", steps_owner_title((enum account_owner)i)),
			JSON_U("ordinary_ns", l.ordinary_ns), JSON_U("slow_ns", l.slow_ns),
			JSON_I("difference_ns", l.difference_ns), JSON_R("share", l.share));
	}
	json_end_array(w);
}

static void put_frame(struct json_writer *w, const char *key, const struct stack_frame *f)
{
	json_key(w, key);
	if (f)
		event_json_frame(w, f);
	else
		json_put_null(w);
}

static void put_frames(struct json_writer *w, const struct stack *s)
{
	json_key(w, "frames");
	if (s)
		event_json_stack(w, s);
	else
		json_put_null(w);
}

static void put_entry(struct json_writer *w, const struct steps_row *row,
	const struct account_entry *e, enum steps_detail detail)
{
	struct steps_line l = steps_entry(row->account, e);
	struct steps_place place = steps_place(row->stacks, e);

	json_begin_object(w);
	put_times(w, &l);
	if (!row->account->slow_steps)
		json_uint_member(w, "mean_ns", l.mean_ns);
	JSON_PUT(w, JSON_S("owner", account_owner_id(e->owner)), JSON_U("pid", e->pid),
		JSON_S("comm", e->comm), JSON_U("culprit_pid", e->culprit_pid),
		JSON_S("culprit", e->culprit));
	json_string_member(w, "stack_hash",
		e->stack_hash ? FORMATTED(24, "%lld", (long long)e->stack_hash) : NULL);
	put_frame(w, "where", place.user);
	put_frame(w, "within", place.within);
	if (detail == STEPS_STACKS)
		put_frames(w, stack_find(row->stacks, e->stack_hash));
	json_end_object(w);
}

static void put_bar(struct json_writer *w, const struct account_bar *bar)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_I("start_ns", bar->start.ns), JSON_U("dur_ns", bar->dur_ns),
		JSON_U("steps", bar->steps), JSON_U("slow_steps", bar->slow_steps));
	json_begin_object_member(w, "ns");
	for (int i = 0; i < ACCOUNT_LINES; i++)
		if (bar->ns[i])
			json_uint_member(w, account_line_id((enum account_line)i), bar->ns[i]);
	json_end_object(w);
	json_end_object(w);
}

static void put_counts(struct json_writer *w, const struct step_account *a)
{
	JSON_PUT(w, JSON_S("origin", step_origin_id(a->origin)),
		JSON_S("origin_text", step_origin_text(a->origin)),
		JSON_R("confidence", a->confidence), JSON_U("steps", a->steps),
		JSON_U("ordinary_steps", a->ordinary_steps), JSON_U("slow_steps", a->slow_steps),
		JSON_U("other_steps", a->other_steps), JSON_U("group", a->group),
		JSON_U("period_steps", a->period_steps));
	if (a->is_drift)
		JSON_PUT(w, JSON_U("drift_from_ns", a->drift_from_ns),
			JSON_U("drift_to_ns", a->drift_to_ns));
	JSON_PUT(w, JSON_I("first_ns", a->first.ns), JSON_I("last_ns", a->last.ns),
		JSON_I("slow_first_ns", a->slow_first.ns), JSON_I("slow_last_ns", a->slow_last.ns),
		JSON_U("mean_step_ns", steps_mean_ns(a)),
		JSON_U("ordinary_step_ns", a->ordinary_step_ns),
		JSON_U("slow_step_ns", a->slow_step_ns), JSON_U("lost_ns", a->lost_ns),
		JSON_R("ordinary_launches", a->ordinary_launches),
		JSON_R("slow_launches", a->slow_launches),
		JSON_R("ordinary_bytes", a->ordinary_bytes), JSON_R("slow_bytes", a->slow_bytes),
		JSON_S("unknown_reason", a->unknown_reason ? a->unknown_reason : ""));
}

void steps_put_account(struct json_writer *w, const struct steps_row *row, enum steps_detail detail)
{
	const struct step_account *a = row->account;
	int entries = detail == STEPS_FEW ? MIN(a->entry_count, STEPS_ENTRIES_FEW) : a->entry_count;
	struct steps_line lines[ACCOUNT_LINES];
	int n;

	json_begin_object(w);
	JSON_PUT(w, JSON_S("node", row->node), JSON_U("pid", a->pid), JSON_U("tid", a->tid),
		JSON_S("comm", a->comm));
	put_counts(w, a);
	n = steps_lines(a, lines);
	json_begin_array_member(w, "lines");
	for (int i = 0; i < n; i++) {
		json_begin_object(w);
		put_times(w, &lines[i]);
		JSON_PUT(w, JSON_U("mean_ns", lines[i].mean_ns),
			JSON_U("total_ns", a->total_ns[lines[i].line]));
		json_end_object(w);
	}
	json_end_array(w);
	put_owners(w, a);
	json_begin_array_member(w, "entries");
	for (int i = 0; i < entries; i++)
		put_entry(w, row, &a->entries[i], detail);
	json_end_array(w);
	if (detail != STEPS_FEW) {
		json_begin_array_member(w, "bars");
		for (size_t i = 0; i < a->bar_count; i++)
			put_bar(w, &a->bars[i]);
		json_end_array(w);
	}
	json_end_object(w);
}

void steps_put(
	struct json_writer *w, const struct steps_answer *a, size_t limit, enum steps_detail detail)
{
	json_begin_array_member(w, "accounts");
	for (size_t i = 0; i < MIN(a->count, limit); i++)
		steps_put_account(w, &a->rows[i], detail);
	json_end_array(w);
	json_bool_member(w, "truncated", a->count > limit);
	if (!a->count)
		json_string_member(w, "reason", a->reason);
}

int steps_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(steps_answer_done) struct steps_answer a = {0};
	int r = answer_steps(q, &a, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	steps_put(w, &a,
		answer_limit(q->request->limit, q->request->brief ? ACCOUNTS_FEW : ACCOUNTS_MAX,
			ACCOUNTS_MAX),
		q->request->stacks  ? STEPS_STACKS
		: q->request->brief ? STEPS_FEW
				    : STEPS_FULL);
	if (q->request->say)
		say_steps(q->request->say, &a);
	put_window(q, w);
	json_end_object(w);
	return 0;
}
