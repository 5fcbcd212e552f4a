/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - see steps.h. */
#include "answer/steps.h"

#include "base/search.h"
#include "answer/explain.h"
#include "answer/incidents.h"
#include "diagnose/contrasts/account_task.h"

struct steps_seen { /* what the accounts could have been made of */
	size_t events, accounts;
};

static const char *find_reason(const struct steps_answer *a, const struct steps_seen *seen)
{
	if (a->count)
		return "";
	if (seen->accounts)
		return "the selected processes ran no steps in this time";
	if (seen->events)
		return "no process used a GPU for long enough in this time";
	return "nothing was recorded in this time";
}

/* The accounts of @c. */
static int add_node(struct steps_answer *a, const struct nodedb_content *c, struct steps_seen *seen)
{
	struct recording rec = explain_recording(c);
	int r = account_run(&rec, &a->reports[a->report_count]);

	if (r < 0)
		return r;
	seen->events += rec.event_count;
	seen->accounts += a->reports[a->report_count++].count;
	return 0;
}

static int add_nodes(struct steps_answer *a, const struct nodedb_content *nodes, size_t count,
	const struct scope *asked, struct errinfo *reterr)
{
	struct steps_seen seen = {0};
	int r = 0;

	a->reports = calloc(count, sizeof(*a->reports));
	if (!a->reports)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_node(a, &nodes[i], &seen);
	if (r == 0)
		a->rows = calloc(seen.accounts + 1, sizeof(*a->rows));
	if (r < 0 || !a->rows)
		return errinfo_set(reterr, -ENOMEM, "not enough memory for the account of steps");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < a->reports[i].count; k++)
			if (!asked->pid_count ||
				EXISTS(p, asked->pid_count,
					a->reports[i].items[k].pid == asked->pids[p])) {
				struct steps_row *row = &a->rows[a->count++];

				*row = (struct steps_row){.account = &a->reports[i].items[k],
					.stacks = &nodes[i].stacks,
					.is_complete =
						explain_recording(&nodes[i]).ledger_count > 0};
				snprintf(row->node, sizeof(row->node), "%s", nodes[i].node);
			}
	a->reason = find_reason(a, &seen);
	return 0;
}

int steps_from(const struct nodedb_content *c, const struct scope *s, struct steps_answer *ret,
	struct errinfo *reterr)
{
	_cleanup_(steps_answer_done) struct steps_answer a = {0};
	int r = add_nodes(&a, c, 1, s, reterr);

	if (r < 0)
		return r;
	*ret = a;
	a = (struct steps_answer){0};
	return 0;
}

int steps_load(
	const char *path, const struct scope *s, struct steps_answer *ret, struct errinfo *reterr)
{
	_cleanup_(steps_answer_done) struct steps_answer a = {0};
	struct nodedb_filter f = incidents_filter(s, false);
	int r;

	f.scope.pid_count = 0;
	r = contents_load(path, &f, &a.contents, reterr);
	r = r ?: add_nodes(&a, a.contents.items, a.contents.count, s, reterr);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct steps_answer){0};
	return 0;
}

int answer_steps(const struct question *q, struct steps_answer *ret, struct errinfo *reterr)
{
	return steps_load(nodedb_snapshot_path(q->snapshot), &q->scope, ret, reterr);
}

void steps_release_contents(struct steps_answer *a)
{
	for (size_t i = 0; i < a->count; i++)
		a->rows[i].stacks = NULL;
	contents_done(&a->contents);
}

void steps_answer_done(struct steps_answer *a)
{
	for (size_t i = 0; i < a->report_count; i++)
		step_report_done(&a->reports[i]);
	free(a->reports);
	free(a->rows);
	contents_done(&a->contents);
	*a = (struct steps_answer){0};
}

/* ---- one account ---- */

bool steps_comparable(const struct step_account *a)
{
	return a->slow_steps && a->ordinary_steps;
}

static struct steps_line make_line(const struct step_account *a, enum account_line line,
	uint64_t mean_ns, uint64_t ordinary_ns, uint64_t slow_ns)
{
	int64_t longer_ns = (int64_t)(a->slow_step_ns - a->ordinary_step_ns);
	struct steps_line l = {.line = line,
		.mean_ns = mean_ns,
		.ordinary_ns = a->ordinary_steps ? ordinary_ns : 0,
		.slow_ns = a->slow_steps ? slow_ns : 0};

	if (steps_comparable(a)) {
		l.difference_ns = (int64_t)(slow_ns - ordinary_ns);
		l.share = longer_ns ? (double)l.difference_ns / (double)longer_ns : 0;
	} else if (steps_mean_ns(a)) {
		l.share = (double)mean_ns / (double)steps_mean_ns(a);
	}
	return l;
}

ORDER(by_growth, struct steps_line,
	DESCENDING(difference_ns) ?: DESCENDING(mean_ns) ?: ASCENDING(line))

static uint64_t total_of(const struct step_account *a)
{
	uint64_t ns = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		ns += a->total_ns[i];
	return ns;
}

uint64_t steps_mean_ns(const struct step_account *a)
{
	return a->steps ? total_of(a) / a->steps : 0;
}

int steps_lines(const struct step_account *a, struct steps_line ret[ACCOUNT_LINES])
{
	int n = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		if (a->total_ns[i] || a->ordinary_ns[i] || a->slow_ns[i])
			ret[n++] = make_line(a, (enum account_line)i,
				a->steps ? a->total_ns[i] / a->steps : 0, a->ordinary_ns[i],
				a->slow_ns[i]);
	SORT(ret, (size_t)n, by_growth);
	return n;
}

struct steps_line steps_whole(const struct step_account *a)
{
	return make_line(a, ACCOUNT_LINES, steps_mean_ns(a), a->ordinary_step_ns, a->slow_step_ns);
}

struct steps_line steps_owner(const struct step_account *a, enum account_owner o)
{
	uint64_t ordinary_ns = 0, slow_ns = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++) {
		ordinary_ns += a->ordinary_by[o][i];
		slow_ns += a->slow_by[o][i];
	}
	return make_line(a, ACCOUNT_LINES, a->slow_steps ? 0 : ordinary_ns, ordinary_ns, slow_ns);
}

const char *steps_owner_title(enum account_owner o)
{
	switch (o) {
	case OWNER_SELF: return "the thread that runs the steps";
	case OWNER_THREAD: return "other threads of the process";
	case OWNER_LOADER: return "data loader workers";
	case OWNER_PROCESS: return "other processes";
	case ACCOUNT_OWNERS: break;
	}
	return "";
}

struct steps_line steps_entry(const struct step_account *a, const struct account_entry *e)
{
	return make_line(a, e->line, a->slow_steps ? 0 : e->slow_ns, e->ordinary_ns, e->slow_ns);
}

struct steps_place steps_place(const struct stack_list *stacks, const struct account_entry *e)
{
	const struct stack *s = stack_find(stacks, e->stack_hash);
	const struct stack_frame *place = s ? stack_place(s) : NULL;
	const struct stack_frame *user = s ? stack_user_frame(s) : NULL;

	return (struct steps_place){user ? user : place, user && user != place ? place : NULL};
}
