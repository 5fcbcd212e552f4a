/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - runs the engine over what was loaded; puts stored incidents in order. */
#include "answer/explain.h"

#include "base/idmap.h"
#include "base/search.h"
#include "diagnose/accounts/rank_calls.h"
#include "diagnose/compose/diagnose.h"
#include "diagnose/contrasts/account_task.h"
#include "diagnose/live/incident_tracker.h"
#include "model/problem.h"
#include "wire/op_kind.h"

static bool has_gpu_calls(const struct nodedb_content *c)
{
	return EXISTS(i, c->aggregate_count, op_kind_is_gpu(c->aggregates[i].source)) ||
	       EXISTS(i, c->event_count, op_kind_is_gpu(c->events[i].source));
}

/* How many of total_calls are host events; false where only a part of them is loaded. */
static bool count_host_events(const struct nodedb_content *c, uint64_t *ret)
{
	uint64_t n = 0;

	if (c->aggregate_count && !c->older_aggregates) {
		for (size_t i = 0; i < c->aggregate_count; i++)
			if (!op_kind_is_gpu(c->aggregates[i].source))
				n += c->aggregates[i].sketch.count;
	} else if (c->total_calls == c->event_count) {
		for (size_t i = 0; i < c->event_count; i++)
			n += !op_kind_is_gpu(c->events[i].source);
	} else {
		return false;
	}
	*ret = MIN(n, c->total_calls);
	return true;
}

static struct examined examined_of(const struct nodedb_content *c)
{
	struct examined e = {.readings = c->gpu_sample_count,
		.collectives = c->collective_count,
		.groups = c->container_count};

	for (size_t i = 0; i < c->event_count; i++) {
		const struct event *v = &c->events[i];

		e.calls += op_kind_is_gpu(v->source);
		e.stays += v->source == SOURCE_HOST && v->op == HOST_SCHED_SWITCH;
	}
	return e;
}

static struct report_scope scope_of(const struct nodedb_content *c)
{
	uint64_t host_events = 0;
	bool is_known = count_host_events(c, &host_events);

	return (struct report_scope){
		.node = c->node,
		.first_ns = c->first_ns,
		.last_ns = c->last_ns,
		.events = c->event_count,
		.no_gpu_calls = !has_gpu_calls(c),
		.calls = c->total_calls - host_events,
		.host_events = host_events,
		.mixed = !is_known,
		.examined = examined_of(c),
		.skipped_rows = c->skipped_rows,
		.older_events = c->older_events,
		.older_ledger = c->older_ledger,
		.thinned_rows = c->thinned_rows,
		.completeness = completeness_of(c->has_books ? &c->books : NULL),
		.pruned_rows = c->pruned_rows,
		.pruned_before = c->pruned_before,
		.labels = c->labels,
		.label_count = c->label_count,
		.older_labels = c->older_labels,
		.stacks = c->stacks,
		.skipped_stacks = c->skipped_stacks,
	};
}

struct recording explain_recording(const struct nodedb_content *c)
{
	return (struct recording){
		.events = c->events,
		.event_count = c->event_count,
		.aggregates = c->aggregates,
		.aggregate_count = c->aggregate_count,
		.samples = c->samples,
		.sample_count = c->sample_count,
		.gpus = c->gpu_samples,
		.gpu_count = c->gpu_sample_count,
		.homes = c->homes,
		.home_count = c->home_count,
		.collectives = c->collectives,
		.collective_count = c->collective_count,
		.labels = c->labels,
		.label_count = c->label_count,
		.ledger = c->ledger,
		.ledger_count = c->ledger_count,
		.kernels = c->kernels,
		.kernel_count = c->kernel_count,
		.containers = c->containers,
		.container_count = c->container_count,
		.stacks = &c->stacks,
		.books = c->has_books ? &c->books : NULL,
		.node = c->node,
	};
}

/* Collectives of all nodes are looked at with the events of one: a rank that others wait for is
 * reported where it runs, because only there is seen what it did. Returns a row of that rank, or NULL:
 * it runs here. */
static const struct collective_row *find_elsewhere(
	const struct nodedb_content *c, const struct incident *i)
{
	const struct collective_row *elsewhere = NULL;

	if (i->source != SOURCE_NCCL || !i->culprit_node[0] || !strcmp(i->culprit_node, c->node))
		return NULL;
	for (size_t k = 0; k < c->collective_count; k++) {
		const struct collective_row *row = &c->collectives[k];

		/* By process: the rank of an incident is the job's, not a communicator's. */
		if (row->pid == i->pid && !strcmp(row->node, i->culprit_node) &&
			(!elsewhere || (row->op == i->op && row->start.ns <= i->last.ns)))
			elsewhere = row;
	}
	return elsewhere;
}

/* Whether a rank of this node is in the communicator; one without a name is of its node alone. */
static bool takes_part(const struct nodedb_content *c, uint64_t comm_hash)
{
	for (size_t k = 0; comm_hash && k < c->collective_count; k++)
		if (c->collectives[k].c.comm_hash == comm_hash &&
			!strcmp(c->collectives[k].node, c->node))
			return true;
	return false;
}

static void keep_own(const struct nodedb_content *c, struct explanation *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->count; i++) {
		const struct incident *inc = &e->incidents[i];
		const struct collective_row *row = find_elsewhere(c, inc);

		if (!row) {
			e->incidents[kept++] = *inc;
		} else if (!e->scope.late_node && takes_part(c, row->c.comm_hash)) {
			e->scope.late_node = row->node;
			e->scope.late_rank = row->c.rank;
			e->scope.late_ns = inc->excess_ns;
		}
	}
	e->count = kept;
}

/* Processes that used a GPU and have no account. */
static void find_brief(
	const struct recording *rec, const struct step_report *accounts, struct examined *e)
{
	uint32_t last = 0; /* rows of one process follow each other */

	for (size_t i = 0; i < rec->event_count && e->brief_count < EXAMINED_BRIEF; i++) {
		const struct event *v = &rec->events[i];

		if (!op_kind_is_gpu(v->source) || v->pid == last)
			continue;
		last = v->pid;
		if (EXISTS(k, e->brief_count, e->brief[k].pid == v->pid) ||
			EXISTS(k, accounts->count, accounts->items[k].pid == v->pid))
			continue;
		e->brief[e->brief_count].pid = v->pid;
		memcpy(e->brief[e->brief_count++].comm, v->comm, COMM_LEN);
	}
}

static int take_accounts(struct account_task *t, struct explanation *ret)
{
	int r = account_task_end(t);

	if (r < 0)
		return r;
	ret->accounts = t->report;
	t->report = (struct step_report){0};
	ret->scope.accounts = ret->accounts;
	ret->scope.overlapping = t->accounts.overlapping;
	ret->scope.skipped_rows += t->accounts.unfit;
	find_brief(t->rec, &ret->accounts, &ret->scope.examined);
	return 0;
}

/* How many collectives of communicators that were in use before the trace stay unmatched. */
static int count_nameless(const struct recording *rec, uint64_t *ret)
{
	_cleanup_(rank_calls_done) struct rank_calls calls;
	int r = rank_calls_find(rec, &calls);

	*ret = calls.unknown;
	return r;
}

/* How many processes used a GPU and ended before another one with their PID did: what is known by PID is of the later one. */
static int count_reused(const struct nodedb_content *c, uint64_t *ret)
{
	static char used, ended;
	struct idmap pids = IDMAP_INIT(RECORDING_ROWS_MAX);
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->event_count; i++) {
		const struct event *e = &c->events[i];
		const void *is = idmap_get(&pids, e->pid);

		if (op_kind_is_gpu(e->source)) {
			*ret += is == &ended;
			r = is == &used ? 0 : idmap_put(&pids, e->pid, &used);
		} else if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXIT && is == &used) {
			r = idmap_put(&pids, e->pid, &ended);
		}
	}
	idmap_done(&pids);
	return r;
}

int explain_find(const struct nodedb_content *c, bool stacks, struct explanation *ret,
	struct errinfo *reterr)
{
	struct recording rec = explain_recording(c);
	_cleanup_(account_task_done) struct account_task accounts = {0};
	int r;

	*ret = (struct explanation){0};
	rec.accounts = &accounts;
	account_task_begin(&accounts, &rec, true);
	ret->scope = scope_of(c);
	r = diagnose_run(&rec, &ret->incidents, &ret->count);
	r = r ?: count_nameless(&rec, &ret->scope.nameless);
	r = r ?: count_reused(c, &ret->scope.reused);
	r = r ?: take_accounts(&accounts, ret);
	if (r == 0 && !strchr(c->node, ',')) /* one node, of a file that may hold several */
		keep_own(c, ret);
	if (r == 0 && stacks) {
		ret->scope.with_stacks = true;
		ret->scope.other_stacks = c->other_stacks;
		r = stack_total_run(
			c->events, c->event_count, NULL, &ret->totals, &ret->scope.total_count);
		ret->scope.totals = ret->totals;
	}
	if (r == 0)
		return 0;
	explanation_done(ret);
	return errinfo_set(reterr, r, "not enough memory to explain %zu events", c->event_count);
}

static bool is_asked(uint32_t pid, const struct scope *s)
{
	return !s->pid_count || EXISTS(k, s->pid_count, pid == s->pids[k]);
}

static void keep_accounts(struct step_report *r, const struct scope *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->count; i++) {
		struct step_account *a = &r->items[i];

		if (!is_asked(a->pid, s)) {
			free(a->bars);
			free(a->marks);
		} else if (kept++ != i) {
			r->items[kept - 1] = *a;
		}
	}
	r->count = kept;
}

void explanation_keep(struct explanation *e, const struct scope *s)
{
	size_t n = 0;

	for (size_t i = 0; i < e->count; i++)
		if (!e->incidents[i].pid || is_asked(e->incidents[i].pid, s))
			e->incidents[n++] = e->incidents[i];
	e->count = n;
	keep_accounts(&e->accounts, s);
	e->scope.accounts = e->accounts;
}

void explanation_done(struct explanation *e)
{
	free(e->incidents);
	free(e->totals);
	step_report_done(&e->accounts);
	*e = (struct explanation){0};
}

int explain_severity(const char *name)
{
	int s = SEVERITY_COUNT - 1;

	while (s >= 0 && strcmp(name, severity_name((enum severity)s)) != 0)
		s--;
	return s;
}

static uint8_t problem_by_id(const char *id)
{
	uint8_t p = 0;

	while (p < PROBLEM_COUNT && strcmp(problem_row(p)->id, id) != 0)
		p++;
	return p;
}

void explain_past(const struct nodedb_content *c, struct explanation *e)
{
	e->scope.past_count = 0;
	for (size_t i = 0; i < c->chain_count && e->scope.past_count < PAST_SHOWN; i++) {
		const struct incident_row *row = &c->chains[i];
		struct incident said = {.problem = problem_by_id(row->problem), .pid = row->pid};

		snprintf(said.id, sizeof(said.id), "%s", row->id);
		snprintf(said.place, sizeof(said.place), "%s", row->place);
		if (row->last_ns && explain_severity(row->severity) >= (int)SEVERITY_MEDIUM &&
			!incident_is_told(&said, e->incidents, e->count))
			e->scope.past[e->scope.past_count++] = row;
	}
}

ORDER(worst_first, struct incident_row,
	explain_severity(y->severity) - explain_severity(x->severity) ?: ASCENDING(detected_ns)
		?: strcmp(x->id, y->id))

void explain_sort_chains(struct nodedb_content *c)
{
	SORT(c->chains, c->chain_count, worst_first);
}
