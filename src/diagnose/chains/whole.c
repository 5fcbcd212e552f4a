/* SPDX-License-Identifier: Apache-2.0 */
/* whole.c - see whole.h. Lines say what a thread did; a cause may be on several of them: what is copied in a thousand
 * pieces, written and synced, or asked of a process that is started for it, takes the CPU's time at the same place, too. */
#include "diagnose/chains/whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "diagnose/accounts/compiler.h"
#include "diagnose/chains/gpu_change.h"
#include "diagnose/chains/host_code.h"
#include "diagnose/rows/place.h"
#include "diagnose/rows/reply.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "wire/op_kind.h"

ORDER(by_slow, struct account_entry, DESCENDING(slow_ns))

static uint64_t mix(const struct step_account *a, uint64_t ordinary_ns, uint64_t slow_ns)
{
	uint64_t steps = MAX((uint64_t)a->ordinary_steps + a->slow_steps, UINT64_C(1));

	return (uint64_t)(((__uint128_t)ordinary_ns * a->ordinary_steps +
				  (__uint128_t)slow_ns * a->slow_steps) /
			  steps);
}

static void mix_units(const struct step_account *a, struct step_account *ret)
{
	*ret = *a;
	if (!a->lost_ns)
		return;
	ret->ordinary_step_ns = 0;
	for (int l = 0; l < ACCOUNT_LINES; l++) {
		ret->ordinary_ns[l] = mix(a, a->ordinary_ns[l], a->slow_ns[l]);
		ret->ordinary_step_ns += ret->ordinary_ns[l];
		for (int o = 0; o < ACCOUNT_OWNERS; o++)
			ret->ordinary_by[o][l] = mix(a, a->ordinary_by[o][l], a->slow_by[o][l]);
	}
	for (int i = 0; i < ret->entry_count; i++) {
		ret->entries[i].slow_ns = mix(a, a->entries[i].ordinary_ns, a->entries[i].slow_ns);
		ret->entries[i].ordinary_ns = 0;
	}
	ret->ordinary_waits =
		(a->ordinary_waits * a->ordinary_steps + a->slow_waits * a->slow_steps) /
		MAX((double)(a->ordinary_steps + a->slow_steps), 1.0);
	if (a->ordinary_open_ns > 0 && a->slow_open_ns > 0)
		ret->ordinary_open_ns = (a->ordinary_open_ns * a->ordinary_steps +
						a->slow_open_ns * a->slow_steps) /
					MAX((double)(a->ordinary_steps + a->slow_steps), 1.0);
	ret->ordinary_steps = a->ordinary_steps + a->slow_steps;
	ret->slow_steps = 0;
	ret->lost_ns = ret->slow_step_ns = 0;
	ret->slow_first = ret->slow_last = (wall_time){0};
	ret->period_steps = 0;
	qsort(ret->entries, (size_t)ret->entry_count, sizeof(ret->entries[0]), by_slow);
}

/* ---- one place, one cause ---- */

/* Where the thread of the units was, by a line of the program's own; 0: not known. */
static uint64_t place_of(const struct recording *rec, const struct account_entry *e)
{
	uint64_t hash = e->owner == OWNER_SELF ? e->stack_hash : e->wait_hash;
	const struct stack *s = e->owner <= OWNER_PROCESS ? stack_find(rec->stacks, hash) : NULL;

	return s && stack_user_frame(s) && !compiler_of_stack(s) ? place_key(s) : 0;
}

/* Time that the thread need not have spent there. What waits for the GPU, a CPU or a lock has its reason elsewhere. */
static bool may_join(const struct account_entry *e)
{
	switch (e->owner == OWNER_SELF ? e->line : ACCOUNT_UNKNOWN) {
	case ACCOUNT_HOST:
	case ACCOUNT_COPY:
	case ACCOUNT_ALLOCATION:
	case ACCOUNT_DISK:
	case ACCOUNT_MEMORY:
	case ACCOUNT_NETWORK:
	case ACCOUNT_ASLEEP: return true;
	default: return e->owner == OWNER_PROCESS;
	}
}

/* Host code that hands work to the GPU is not what a place is about. */
static bool may_lead(const struct recording *rec, const struct account_entry *e)
{
	return may_join(e) && !(e->line == ACCOUNT_HOST && host_code_drives(rec, e));
}

/* @e becomes time of @owner's @line, and the sums with it. */
static void move(struct step_account *a, struct account_entry *e, const struct account_entry *to)
{
	uint64_t had = a->ordinary_ns[e->line],
		 ns = MIN(e->slow_ns, a->ordinary_by[e->owner][e->line]);
	uint64_t all = had ? (uint64_t)((__uint128_t)a->total_ns[e->line] * ns / had) : 0;

	a->ordinary_by[e->owner][e->line] -= ns;
	a->ordinary_by[to->owner][to->line] += ns;
	a->ordinary_ns[e->line] -= ns;
	a->ordinary_ns[to->line] += ns;
	all = MIN(all, a->total_ns[e->line]);
	a->total_ns[e->line] -= all;
	a->total_ns[to->line] += all;
	e->line = to->line;
	if (e->owner == to->owner)
		return;
	e->wait_hash = e->owner == OWNER_SELF ? e->stack_hash : e->wait_hash;
	e->owner = to->owner;
	e->pid = to->pid;
	memcpy(e->comm, to->comm, COMM_LEN);
}

static bool is_of(const struct account_entry *e, const struct account_entry *lead)
{
	return e->owner == lead->owner && (e->owner != OWNER_SELF || e->line == lead->line);
}

static uint64_t kind_ns(const struct step_account *a, const uint64_t *places, uint64_t place,
	const struct account_entry *of)
{
	uint64_t ns = 0;

	for (int i = 0; i < a->entry_count; i++)
		ns += places[i] == place && is_of(&a->entries[i], of) ? a->entries[i].slow_ns : 0;
	return ns;
}

/* The entry of the kind with most time at @place, of those that can be its cause. */
static const struct account_entry *lead_at(const struct recording *rec,
	const struct step_account *a, const uint64_t *places, uint64_t place)
{
	const struct account_entry *lead = NULL;
	uint64_t most = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		uint64_t ns =
			places[i] == place && may_lead(rec, e) ? kind_ns(a, places, place, e) : 0;

		if (ns > most) {
			most = ns;
			lead = e;
		}
	}
	return lead;
}

/* What a thread does with what it has waited for is its work. */
static bool is_input(const struct account_entry *e)
{
	return e->owner == OWNER_SELF && (e->line == ACCOUNT_NETWORK || e->line == ACCOUNT_ASLEEP);
}

/* Whether @e, at the same place, is time of the same cause as @lead, of which there is @lead_ns: of code that hands work to the
 * GPU a part is of its own. */
static bool joins(const struct recording *rec, const struct account_entry *e,
	const struct account_entry *lead, uint64_t lead_ns)
{
	bool is_host = e->owner == OWNER_SELF && e->line == ACCOUNT_HOST;

	if (!may_join(e) || is_of(e, lead) || (is_host && is_input(lead)))
		return false;
	return !(is_host && host_code_drives(rec, e) && e->slow_ns > lead_ns);
}

static void join_places(const struct recording *rec, struct step_account *a)
{
	uint64_t places[ACCOUNT_ENTRIES];

	for (int i = 0; i < a->entry_count; i++)
		places[i] = place_of(rec, &a->entries[i]);
	for (int i = 0; i < a->entry_count; i++) {
		uint64_t place = places[i];
		const struct account_entry *found = place ? lead_at(rec, a, places, place) : NULL;
		struct account_entry lead;
		uint64_t ns;

		if (!found)
			continue;
		lead = *found;
		ns = kind_ns(a, places, place, found);
		for (int k = 0; k < a->entry_count; k++) {
			if (places[k] != place)
				continue;
			if (joins(rec, &a->entries[k], &lead, ns))
				move(a, &a->entries[k], &lead);
			places[k] = 0;
		}
	}
}

/* ---- who reads what is written ---- */

/* A thread that waits to write waits for the process that reads, whether it was seen what that does or only that it does not
 * read. */
static void join_readers(const struct recording *rec, struct step_account *a)
{
	for (int i = 0; i < a->entry_count; i++) {
		struct account_entry *e = &a->entries[i], to = *e;
		const struct stack *s = stack_find(rec->stacks, e->stack_hash);

		if (e->owner != OWNER_SELF || e->line != ACCOUNT_LOCK || !e->culprit_pid ||
			e->culprit_pid == a->pid || !s || !place_is_output(s))
			continue;
		to.owner = OWNER_PROCESS;
		to.pid = e->culprit_pid;
		memcpy(to.comm, e->culprit, COMM_LEN);
		e->culprit[0] = 0;
		e->culprit_pid = 0;
		move(a, e, &to);
		e->stack_hash = 0; /* of what it does */
	}
}

/* ---- launch after launch ---- */

/* A reading says what was so in the second before it. */
static struct gpu_use use_of(
	const struct recording *rec, const struct step_account *a, int64_t index)
{
	int64_t from_ns = a->first.ns + (int64_t)NS_PER_S;
	struct gpu_use use = {0};
	double squares = 0, n;

	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *s = &rec->gpus[i];
		double busy = (double)MIN(s->util_gpu_pct, INT64_C(100)) / 100;

		if (s->index != index || s->time.ns < from_ns || s->time.ns > a->last.ns ||
			busy < 0)
			continue;
		for (int k = 0; k < GPU_PROCESSES_NAMED; k++)
			use.is_jobs |= gpu_sample_process(s, k) == a->pid;
		use.busy += busy;
		squares += busy * busy;
		use.is_shared |= s->processes > 1;
		use.readings++;
	}
	n = (double)MAX(use.readings, (size_t)1);
	use.busy /= n;
	use.error = sqrt(MAX(squares / n - use.busy * use.busy, 0.0) / n);
	return use;
}

struct gpu_use gpu_use_of(const struct recording *rec, const struct step_account *a)
{
	struct gpu_use most = {0};
	int count = 0;

	for (int64_t k = gpu_change_gpus(rec); k-- > 0;) {
		struct gpu_use use = use_of(rec, a, k);

		if ((double)use.readings < THRESHOLD(AGAIN))
			continue;
		count++;
		if (use.is_jobs != most.is_jobs ? use.is_jobs : use.busy >= most.busy)
			most = use;
	}
	most.is_jobs |= count == 1;
	return most;
}

double gpu_idle_share(const struct recording *rec, const struct step_account *a)
{
	struct gpu_use use = gpu_use_of(rec, a);

	return (double)use.readings >= THRESHOLD(LEAST) ? 1 - use.busy : 0;
}

static bool is_free(const struct aggregate *g)
{
	return g->source == SOURCE_CUDA ? g->op == CUDA_FREE || g->op == CUDA_HOST_FREE
					: g->op == DRIVER_FREE || g->op == DRIVER_HOST_FREE;
}

/* Calls that all take as long as the usual one; of those that free the usual one may wait for the GPU, unless others take far
 * longer. */
static double own_ns(const struct aggregate *g)
{
	double sum = (double)g->sketch.sum;
	double usual = (double)g->sketch.count * (double)sketch_quantile(&g->sketch, 0.5);

	return is_free(g) && THRESHOLD(FAR_MORE) * usual > sum ? 0 : MIN(usual, sum);
}

double allocating_own_share(const struct recording *rec, const struct step_account *a)
{
	double own = 0, all = 0;

	if (gpu_idle_share(rec, a) >= THRESHOLD(WASTE))
		return 1;
	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *g = &rec->aggregates[i];

		if (g->pid != a->pid || g->flags & WIRE_NESTED || !op_kind_is_cuda(g->source) ||
			g->bucket.ns < a->first.ns || g->bucket.ns > a->last.ns ||
			op_kind_line(g->source, g->op) != LEDGER_ALLOC)
			continue;
		all += (double)g->sketch.sum;
		own += own_ns(g);
	}
	return all > 0 ? own / all : 0;
}

bool gpu_is_never_idle(const struct recording *rec, const struct step_account *a, double lost)
{
	struct gpu_use use = gpu_use_of(rec, a);

	return (double)use.readings >= THRESHOLD(LEAST) && use.is_jobs && !use.is_shared &&
	       !a->total_ns[ACCOUNT_COLLECTIVE] && 1 - use.busy < THRESHOLD(LITTLE) * lost;
}

double delay_hidden(const struct step_account *a, const struct delay *d)
{
	return d->lead ? a->hidden_by[d->lead->owner][d->lead->line] : 0;
}

/* Kernels that a unit launches: counted in it, else what the process launched in all. */
static double launches_of(const struct recording *rec, const struct step_account *a)
{
	uint64_t calls = 0;

	if (a->ordinary_launches > 0)
		return a->ordinary_launches;
	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *g = &rec->aggregates[i];

		if (g->pid == a->pid && !(g->flags & WIRE_NESTED) &&
			op_kind_is_launch(g->source, g->op))
			calls += g->sketch.count;
	}
	return (double)calls / (double)MAX(a->steps, 1u);
}

/* Thousands of kernels follow each other, nobody waits for one, and the GPU idles all the same: it is the launching
 * that takes the time, with the code of the framework that leads to it. So it is where JAX compiles each operation
 * for itself. */
static bool is_launch_bound(const struct recording *rec, const struct step_account *a)
{
	return gpu_idle_share(rec, a) >= THRESHOLD(HOST_WASTE) &&
	       (a->executes >= THRESHOLD(EXECUTES_MANY) ||
		       launches_of(rec, a) >=
			       THRESHOLD(LAUNCHES_MANY) * MAX(a->ordinary_waits, 1.0));
}

#define COPIES_SEEN 4096 /* rows: more say no more of which way copies go */

static double share_to_host(const struct recording *rec, const struct step_account *a)
{
	size_t i = LOWER_BOUND(k, rec->event_count, rec->events[k].start.ns < a->first.ns);
	uint64_t rows = 0, to_host = 0;

	for (; i < rec->event_count && rows < COPIES_SEEN; i++) {
		const struct event *e = &rec->events[i];

		if (e->start.ns >= a->last.ns)
			break;
		if (e->tid != a->tid || e->flags & WIRE_NESTED ||
			op_kind_line(e->source, e->op) != LEDGER_COPY)
			continue;
		rows++;
		to_host += event_copy_direction(e) == COPY_D2H;
	}
	return (double)to_host / (double)MAX(rows, UINT64_C(1));
}

double gpu_drains_of(const struct recording *rec, const struct step_account *a)
{
	uint64_t copies = 0;
	double each;

	for (size_t i = 0; i < rec->ledger_count; i++)
		if (rec->ledger[i].tid == a->tid && rec->ledger[i].start.ns >= a->first.ns &&
			rec->ledger[i].start.ns < a->last.ns)
			copies += rec->ledger[i].copies;
	each = (double)copies / (double)MAX(a->steps, 1u);
	/* Most loops have few: which way they go is not looked for then. */
	return a->ordinary_waits +
	       (each >= THRESHOLD(SYNCS_MANY) ? each * share_to_host(rec, a) : 0);
}

bool gpu_gets_pieces(const struct recording *rec, const struct step_account *a)
{
	double drains = gpu_drains_of(rec, a), launches = launches_of(rec, a);

	return drains >= THRESHOLD(SYNCS_MANY) &&
	       (double)a->ordinary_step_ns <= THRESHOLD(PIECE_NS) * drains &&
	       launches >= THRESHOLD(PIECE_COUNTED) * drains &&
	       launches <= THRESHOLD(PIECE_LAUNCHES) * drains;
}

double answers_of(const struct recording *rec, const struct step_account *a)
{
	uint64_t sends = 0, receives = 0;
	int64_t first = a->last.ns;

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *g = &rec->aggregates[i];

		if (g->pid != a->pid || g->source != SOURCE_NET || g->bucket.ns < a->first.ns ||
			g->bucket.ns >= a->last.ns)
			continue;
		first = MIN(first, g->bucket.ns);
		sends += g->op == NET_SEND ? g->sketch.count : 0;
		receives += g->op == NET_RECV ? g->sketch.count : 0;
	}
	return (double)MIN(sends, receives) * (double)a->ordinary_step_ns /
	       (double)MAX(a->last.ns - first, INT64_C(1));
}

bool asks_often(const struct recording *rec, const struct step_account *a)
{
	return answers_of(rec, a) >= THRESHOLD(SYNCS_MANY) && a->origin != STEP_BY_TIME &&
	       a->origin != STEP_BY_REQUEST && reply_asks(rec, a->pid);
}

/* Whether the code of @e is a call that sends or receives, and nothing else. */
static bool is_transfer(const struct recording *rec, const struct account_entry *e)
{
	const struct stack *s = stack_find(rec->stacks, e->stack_hash);
	uint32_t network = UINT32_C(1) << ACCOUNT_NETWORK;

	return e->owner == OWNER_SELF && e->line == ACCOUNT_HOST && s && place_blocks(s) == network;
}

/* Where a unit asks again and again, what it does in the calls that ask and that take the answers is the asking. */
static void join_asking(const struct recording *rec, struct step_account *a)
{
	const struct account_entry *who = NULL;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];

		if (e->owner == OWNER_SELF && e->line == ACCOUNT_NETWORK && e->culprit_pid &&
			(!who || e->slow_ns > who->slow_ns))
			who = e;
	}
	for (int i = 0; who && i < a->entry_count; i++) {
		struct account_entry *e = &a->entries[i];

		if (!is_transfer(rec, e))
			continue;
		move(a, e, who);
		e->culprit_pid = who->culprit_pid;
		memcpy(e->culprit, who->culprit, COMM_LEN);
	}
}

static void join_launching(const struct recording *rec, struct step_account *a)
{
	a->ordinary_launches = launches_of(rec, a);
	for (int i = 0; i < a->entry_count; i++) {
		struct account_entry *e = &a->entries[i], to = *e;

		to.line = ACCOUNT_LAUNCH;
		if (e->line == ACCOUNT_HOST && e->owner <= OWNER_THREAD && host_code_drives(rec, e))
			move(a, e, &to);
	}
}

void step_account_whole(
	const struct recording *rec, const struct step_account *a, struct step_account *ret)
{
	mix_units(a, ret);
	if (asks_often(rec, ret))
		join_asking(rec, ret);
	join_places(rec, ret);
	join_readers(rec, ret);
	if (is_launch_bound(rec, ret))
		join_launching(rec, ret);
}
