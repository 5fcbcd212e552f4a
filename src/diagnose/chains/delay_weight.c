/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/delay_weight.h"

#include "diagnose/accounts/compiler.h"
#include "diagnose/rows/place.h"
#include "diagnose/chains/host_code.h"
#include "diagnose/chains/whole.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"

static bool is_training(const struct step_account *a)
{
	return a->origin <= STEP_BY_LOADER;
}

bool delay_is_lasting(const struct step_account *a)
{
	uint32_t slow_bars = 0, full_bars = 0;

	if (a->is_varied || a->period_steps)
		return false;
	for (size_t i = 0; i < a->bar_count; i++) {
		slow_bars += a->bars[i].slow_steps > 0;
		full_bars += a->bars[i].slow_steps == a->bars[i].steps;
	}
	if (a->bar_count && a->steps > a->bar_count * THRESHOLD(IN_A_ROW))
		return full_bars * 2 >= slow_bars;
	return full_bars >= THRESHOLD(IN_A_ROW) && full_bars * 2 >= slow_bars &&
	       a->slow_last.ns - a->slow_first.ns <
		       (int64_t)(3 * (uint64_t)a->slow_steps * a->slow_step_ns);
}

static bool is_input(enum delay_kind kind)
{
	return kind == DELAY_BY_LOADER || kind == DELAY_BY_PROCESS || kind == DELAY_BY_LOCK ||
	       kind == DELAY_BY_NETWORK || kind == DELAY_BY_ASLEEP;
}

/* Whether slow units come every so many, and as many as that makes: chance has periods of its own. */
static bool is_regular(const struct step_account *a)
{
	double expected = a->period_steps ? (double)a->steps / a->period_steps : 0;

	return a->period_steps && a->slow_steps > THRESHOLD(CHAIN_MOST) * expected &&
	       a->slow_steps < THRESHOLD(MORE) * expected;
}

/* It waits to get rid of what it has written, not for somebody to ask. */
static bool waits_to_write(const struct recording *rec, const struct delay *l)
{
	const struct stack *s = l->lead ? stack_find(rec->stacks, l->lead->wait_hash) : NULL;

	return s && place_is_output(s);
}

/* What it waits for is held by a thread of its own that runs the program's own code. */
static bool waits_for_mutex(const struct recording *rec, const struct delay *l)
{
	const struct stack *wait = l->lead ? stack_find(rec->stacks, l->lead->wait_hash) : NULL;
	const struct stack *s = l->lead ? stack_find(rec->stacks, l->lead->stack_hash) : NULL;

	return l->kind == DELAY_BY_LOCK && wait && s && place_is_mutex(wait) && place_is_own(s);
}

/* Something that nobody asked for keeps it or who works for it: a lock, a limit, a disk, an acknowledgement. */
static bool is_kept(const struct delay *l)
{
	return resource_rows[l->end.resource].evidence == EVIDENCE_SEEN &&
	       l->end.resource != RESOURCE_PROCESS && l->end.resource != RESOURCE_ADDRESS;
}

/* Whether units take about the same time each, slow ones among themselves: a loop that has its next input when it asks for
 * it, not a server that waits until somebody wants something. */
static bool is_paced(const struct step_account *a)
{
	size_t near = 0;

	if (a->origin == STEP_BY_TIME || a->is_clocked)
		return false;
	for (size_t i = 0; i < a->mark_count; i++) {
		double ns = (double)a->marks[i].dur_ns;
		bool is_slow = a->marks[i].is_slow && a->slow_step_ns; /* else they are mixed */
		double usual = (double)(is_slow ? a->slow_step_ns : a->ordinary_step_ns);

		near += ns < THRESHOLD(PACED_RATIO) * usual && ns * THRESHOLD(PACED_RATIO) > usual;
	}
	return (double)near >= THRESHOLD(PACED_SHARE) * (double)a->mark_count;
}

/* Ranks wait for each other: whoever sleeps or waits keeps others waiting. */
static bool is_rank(const struct step_account *a)
{
	return a->total_ns[ACCOUNT_COLLECTIVE] > 0;
}

/* Time of a process that is followed is spent on the program's behalf; but one behind a socket that waits itself may be whom
 * the program works for, and of others it is not known. */
bool delay_is_idle(const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	bool works = l->lead && l->lead->line != ACCOUNT_NETWORK;
	bool is_known = l->kind == DELAY_BY_PROCESS && l->lead && !delay_is_foreign(l->lead) &&
			(works || waits_to_write(rec, l));

	return is_input(l->kind) && !is_training(a) && !is_rank(a) && !is_known && !is_regular(a) &&
	       !(is_paced(a) && delay_is_lasting(a));
}

/* What a slower CPU makes longer. */
static bool is_running(int line)
{
	return line == ACCOUNT_HOST || line == ACCOUNT_LAUNCH || line == ACCOUNT_CALL;
}

/* Whether ordinary steps hardly know the place of @e, and it was seen often enough to be sure. */
static bool is_new_place(const struct step_account *a, const struct account_entry *e)
{
	return e->stack_hash && e->ordinary_ns * THRESHOLD(FAR_MORE) < e->slow_ns &&
	       e->slow_ns * a->slow_steps > THRESHOLD(SAMPLED_NS);
}

/* The growth of @kind, place by place: what shrank elsewhere does not make a place look larger. */
static uint64_t all_growth_ns(const struct step_account *a, enum delay_kind kind)
{
	uint64_t ns = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];

		if ((int)e->line == (int)kind && e->owner <= OWNER_THREAD)
			ns += account_entry_more(e);
	}
	return ns;
}

/* The share of new places in what @kind grew by. Launches and other calls are made by host code and
 * take longer where that does: there all code that runs counts. Where work is handed to the GPU, which step waits for it
 * and which does not may change: that is no new place. */
static double new_places_share(
	const struct recording *rec, const struct step_account *a, enum delay_kind kind)
{
	uint64_t all = 0, fresh = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];

		if (!(kind == DELAY_BY_HOST ? e->line == ACCOUNT_HOST : is_running((int)e->line)) ||
			e->owner > OWNER_THREAD)
			continue;
		all += account_entry_more(e);
		if (is_new_place(a, e) && !host_code_drives(rec, e))
			fresh += account_entry_more(e);
	}
	return all ? (double)fresh / (double)all : 0;
}

/* Whether the place of @e takes longer as all host code does. */
static bool is_in_proportion(const struct step_account *a, const struct account_entry *e)
{
	return (double)e->slow_ns * (double)a->ordinary_ns[ACCOUNT_HOST] <
	       THRESHOLD(MORE) * (double)e->ordinary_ns * (double)a->slow_ns[ACCOUNT_HOST];
}

/* Whether a CPU is waited for longer, too: who has it uses up caches and the other half of the core. */
static bool cpu_is_busier(const struct step_account *a)
{
	return (double)a->slow_ns[ACCOUNT_CPU] - (double)a->ordinary_ns[ACCOUNT_CPU] >
	       THRESHOLD(FEW) * ((double)a->slow_step_ns - (double)a->ordinary_step_ns);
}

/* Host code that takes somewhat longer everywhere: the CPU is slower or busier, no line of the program
 * is. All that hands work to the GPU may be below one line of the program; and one may be all there is, which then
 * takes longer now and then, or while others are busy. */
static bool is_even(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	double grown = (double)all_growth_ns(a, l->kind);

	if (!is_running((int)l->kind) ||
		a->is_drift) /* a CPU does not become slower little by little */
		return false;
	if (l->end.stack_hash && l->end.share >= THRESHOLD(CHAIN_PART)) /* what it is is known */
		return false;
	if ((double)a->slow_step_ns > THRESHOLD(HALF_MORE) * (double)a->ordinary_step_ns)
		return false;
	if (l->lead && !host_code_drives(rec, l->lead) &&
		(double)(l->lead->slow_ns - l->lead->ordinary_ns) > THRESHOLD(MOST) * grown &&
		l->lead->slow_ns * a->slow_steps > THRESHOLD(SAMPLED_NS) &&
		!(is_in_proportion(a, l->lead) &&
			(cpu_is_busier(a) || !(delay_is_lasting(a) || a->period_steps))))
		return false;
	return new_places_share(rec, a, l->kind) < THRESHOLD(CHAIN_PART);
}

bool delay_is_slowed(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	return is_running((int)l->kind) && a->lost_ns && !l->end.stack_hash &&
	       (double)l->slow_ns <= THRESHOLD(WHOLE_MORE) * (double)l->ordinary_ns &&
	       new_places_share(rec, a, l->kind) < THRESHOLD(CHAIN_PART);
}

/* Whether the GPU's part of the step grew along with the host's. */
static bool gpu_grows_too(const struct step_account *a)
{
	double grown = (double)a->slow_step_ns - (double)a->ordinary_step_ns;

	return (double)a->slow_ns[ACCOUNT_GPU] - (double)a->ordinary_ns[ACCOUNT_GPU] >
	       THRESHOLD(CHAIN_PART) * grown;
}

/* What more of the same work makes longer. */
static bool grows_with_work(const struct gpu_change *gpu, enum delay_kind kind)
{
	switch (kind) {
	case DELAY_BY_GPU: return gpu->reason == GPU_BY_WAITS;
	case DELAY_BY_COPY:
	case DELAY_BY_LAUNCH:
	case DELAY_BY_GRAPH:
	case DELAY_BY_COLLECTIVE:
	case DELAY_BY_CALL:
	case DELAY_BY_HOST:
	case DELAY_BY_SYNC: return true;
	default: return false;
	}
}

/* Where launches, bytes and waits are not counted, longer waits for the GPU are most likely more work. */
static bool knows_work(const struct step_account *a)
{
	return a->ordinary_launches > 0 || a->ordinary_bytes > 0 || a->ordinary_waits > 0;
}

/* Most steps are the slow ones, and the others do more of something: steps of another kind, as before the real work
 * begins. */
static bool does_other_work(const struct step_account *a)
{
	return a->slow_steps > 2 * a->ordinary_steps &&
	       ((a->ordinary_launches > THRESHOLD(MORE) * a->slow_launches &&
			a->slow_launches > 0) ||
		       a->ordinary_bytes > THRESHOLD(MORE) * a->slow_bytes + THRESHOLD(WORK_BYTES));
}

/* As many slow units in one half of the time as in the other, more or less. */
static bool is_of_both_halves(const struct step_account *a)
{
	double slow[2] = {0};

	for (size_t i = 0; i < a->bar_count; i++)
		slow[i >= a->bar_count / 2] += a->bars[i].slow_steps;
	return MAX(slow[0], slow[1]) <= THRESHOLD(VARIED_HALVES) * MIN(slow[0], slow[1]);
}

/* Units that hardly wait for the GPU run ahead of it until its queue is full, as after a pause, and the others wait for what
 * they have put there: most units do, or in one half of the time as many as in the other. */
static bool runs_ahead(const struct step_account *a)
{
	return (a->slow_steps > a->ordinary_steps || is_of_both_halves(a)) &&
	       (double)a->ordinary_ns[ACCOUNT_GPU] < THRESHOLD(FEW) * (double)a->ordinary_step_ns;
}

/* Whether stretches of slow units and of ordinary ones follow each other again and again in a program that does not train:
 * models in turn. */
static bool takes_turns(const struct step_account *a)
{
	double row = 1, before = 0;
	int begins = 0;

	for (size_t i = 1; !is_training(a) && i < a->mark_count; i++) {
		bool is_same = a->marks[i].is_slow == a->marks[i - 1].is_slow;

		before = is_same ? before : row;
		row = is_same ? row + 1 : 1;
		begins += a->marks[i].is_slow && row == THRESHOLD(IN_A_ROW) &&
			  before >= THRESHOLD(IN_A_ROW);
	}
	return begins >= THRESHOLD(AGAIN);
}

/* More work is not a fault, and a mixture of longer and shorter steps that only the GPU knows of, or in which the
 * host and the GPU take longer together, is most likely the work's own. */
static bool is_own_work(const struct recording *rec, const struct step_account *a,
	const struct gpu_change *gpu, const struct delay *l)
{
	if (a->is_proportional && grows_with_work(gpu, l->kind))
		return true;
	if (l->kind == DELAY_BY_GPU)
		return gpu->reason == GPU_BY_WORK ||
		       (gpu->reason >= GPU_BY_VARIETY && does_other_work(a)) ||
		       gpu->reason == GPU_BY_VARIETY ||
		       ((gpu->reason == GPU_BY_NOTHING || gpu->reason == GPU_BY_KERNELS) &&
			       (!delay_is_lasting(a) || !knows_work(a) || runs_ahead(a) ||
				       takes_turns(a)));
	if (l->kind == DELAY_BY_COMPILE) /* other shapes come with their own kernels */
		return gpu->reason == GPU_BY_WORK && !delay_is_lasting(a) && !a->period_steps;
	if (l->kind == DELAY_BY_LAUNCH || l->kind == DELAY_BY_HOST || l->kind == DELAY_BY_SYNC ||
		l->kind == DELAY_BY_LOCK)
		if (does_other_work(a) && !delay_is_lasting(a) && !a->period_steps)
			return true;
	if (l->kind == DELAY_BY_LAUNCH || l->kind == DELAY_BY_HOST || l->kind == DELAY_BY_SYNC)
		return (gpu->reason == GPU_BY_WORK || gpu_grows_too(a)) && !delay_is_lasting(a) &&
		       (!a->period_steps ||
			       (gpu->reason == GPU_BY_WORK && host_code_drives(rec, l->lead)));
	return false;
}

/* Whether the loop itself sleeps, of which the work is called, or a thread of its own between what it asks for: not
 * somebody who was asked for something and lets others wait. */
static bool is_of_loop(
	const struct recording *rec, const struct step_account *a, const struct account_entry *e)
{
	const struct stack *s = stack_find(rec->stacks, e->stack_hash);

	if (e->owner == OWNER_THREAD)
		return place_is_outermost(s);
	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *work = &a->entries[i];
		const struct stack *t = stack_find(rec->stacks, work->stack_hash);

		if (work->owner == OWNER_SELF && t && place_calls(t, s) &&
			(work->line == ACCOUNT_GPU || work->line == ACCOUNT_COPY ||
				work->line == ACCOUNT_LAUNCH))
			return true;
	}
	return false;
}

bool delay_is_pause(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	if (l->kind != DELAY_BY_ASLEEP || !l->lead || l->lead->owner > OWNER_THREAD ||
		!l->lead->by_clock)
		return false;
	return !is_training(a) && is_of_loop(rec, a, l->lead);
}

bool delay_is_routine(const struct step_account *a, const struct delay *l)
{
	bool is_others =
		resource_rows[l->end.resource].evidence != EVIDENCE_KIND && l->end.pid != a->pid;
	bool is_asked_for = l->kind == DELAY_BY_HOST || l->kind == DELAY_BY_COPY ||
			    l->kind == DELAY_BY_SYNC || l->kind == DELAY_BY_DISK;
	/* Its own threads that have the CPUs now and then are how it is built. */
	bool is_crowd = l->end.resource == RESOURCE_CPU_OWN;

	if (l->kind != DELAY_BY_CHECKPOINT && !is_crowd &&
		!(is_asked_for && !is_others && a->period_steps))
		return false;
	return !delay_is_lasting(a) && !a->is_drift && is_of_both_halves(a) &&
	       (!l->lead || l->lead->owner <= OWNER_THREAD);
}

static bool lead_is_asleep(const struct delay *l)
{
	return l->lead && l->lead->line == ACCOUNT_ASLEEP;
}

bool delay_may_be_idle(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	return is_input(l->kind) && !is_training(a) && !is_paced(a) && lead_is_asleep(l) &&
	       !waits_to_write(rec, l);
}

bool delay_is_harmless(const struct recording *rec, const struct step_account *a,
	const struct gpu_change *gpu, const struct delay *l)
{
	return is_own_work(rec, a, gpu, l) || is_even(rec, a, l) || delay_is_pause(rec, a, l) ||
	       delay_is_idle(rec, a, l) || delay_is_of_tracer(l);
}

bool delay_stands_alone(enum delay_kind kind)
{
	switch (kind) {
	case DELAY_BY_CPU:
	case DELAY_BY_GIL:
	case DELAY_BY_STOPPED:
	case DELAY_BY_GC:
	case DELAY_BY_ALLOCATION:
	case DELAY_BY_MEMORY:
	case DELAY_BY_DISK:
	case DELAY_BY_CHECKPOINT:
	case DELAY_BY_COMPILE:
	case DELAY_BY_LOADER: return true;
	default: return false;
	}
}

/* Host code of the thread that feeds the GPU, which does something else: its share of a unit, and that of the function
 * with most of it. */
static double host_share(
	const struct recording *rec, const struct step_account *a, double *ret_one_place)
{
	struct place_weight weights[ACCOUNT_ENTRIES];
	struct code_place most = {0};
	uint64_t ns = 0, unit = MAX(a->ordinary_step_ns, UINT64_C(1));
	size_t n = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		const struct stack *s = stack_find(rec->stacks, e->stack_hash);

		if (e->line != ACCOUNT_HOST || e->owner > OWNER_THREAD || !s ||
			host_code_drives_gpu(s) || compiler_of_stack(s))
			continue;
		ns += e->slow_ns;
		weights[n++] = (struct place_weight){e->stack_hash, e->slow_ns};
	}
	if (n)
		place_cover(rec->stacks, weights, n, &most);
	*ret_one_place = most.share * (double)ns / (double)unit;
	return (double)ns / (double)unit;
}

/* One that has always something to do never waits for the network: then its frames tell. */
static bool is_server(const struct recording *rec, const struct step_account *a)
{
	if (is_training(a))
		return false;
	for (int i = 0; i < a->entry_count; i++) {
		const struct stack *s = stack_find(rec->stacks, a->entries[i].stack_hash);

		if (s && a->entries[i].owner <= OWNER_THREAD && place_is_server(s))
			return true;
	}
	return a->ordinary_ns[ACCOUNT_NETWORK] > 0;
}

/* Whether it is busy all the time, so that requests wait for each other. */
static bool is_saturated(const struct step_account *a)
{
	uint64_t idle = a->ordinary_ns[ACCOUNT_NETWORK] + a->ordinary_ns[ACCOUNT_ASLEEP];

	return (double)idle < THRESHOLD(LITTLE) * (double)a->ordinary_step_ns;
}

/* A server unpacks what it is asked and packs what it answers: that is its work, unless hardly anything else is done and
 * one function does it. */
static bool is_host_waste(const struct recording *rec, const struct step_account *a)
{
	double one_place, share = host_share(rec, a, &one_place);
	bool bound = (double)a->ordinary_ns[ACCOUNT_GPU] <
		     THRESHOLD(WASTE) * (double)a->ordinary_step_ns;

	if (is_server(rec, a))
		return one_place >= THRESHOLD(HOST_SERVER);
	return share >= (bound ? THRESHOLD(HOST_BOUND) : THRESHOLD(HOST_WASTE));
}

/* Threads of a runtime that wait for each other somewhere inside: how it works, unless a line of the program's own is
 * why. So it is where a framework waits for its own threads: backward() for autograd's, an array for XLA's. */
static bool is_internal(const struct recording *rec, const struct delay *l)
{
	const struct stack *s = l->lead ? stack_find(rec->stacks, l->lead->stack_hash) : NULL;
	const struct stack *wait = l->lead ? stack_find(rec->stacks, l->lead->wait_hash) : NULL;

	if (l->kind != DELAY_BY_LOCK || !l->lead || waits_for_mutex(rec, l))
		return false;
	if (host_code_drives_gpu(s) || host_code_drives_gpu(wait))
		return true;
	return !(s && stack_user_frame(s)) &&
	       (l->lead->owner == OWNER_THREAD || !(wait && stack_user_frame(wait)));
}

static bool is_waste(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	if (is_internal(rec, l))
		return false;
	if (is_input(l->kind))
		return is_training(a) || is_paced(a) || is_kept(l) || waits_to_write(rec, l) ||
		       waits_for_mutex(rec, l);
	if (l->kind == DELAY_BY_GIL &&
		is_server(rec, a)) /* one request waits for another: its load */
		return l->share >= THRESHOLD(CHAIN_MOST);
	if (l->kind == DELAY_BY_LAUNCH) /* of a process that does hardly anything else */
		return l->share >= THRESHOLD(CHAIN_MOST) &&
		       gpu_idle_share(rec, a) >= THRESHOLD(HOST_WASTE);
	return l->kind == DELAY_BY_COPY || l->kind == DELAY_BY_SYNC || delay_stands_alone(l->kind);
}

/* Of the time in all units, also in those that are not compared: what the host does while the GPU is busy
 * costs nothing. */
static double share_of_all(const struct step_account *a, enum delay_kind kind)
{
	uint64_t sum = 0;

	if ((int)kind >= ACCOUNT_LINES || a->other_steps <= THRESHOLD(LEAST_SHARE) * a->steps)
		return 1; /* several lines; or hardly any that are not compared */
	for (int i = 0; i < ACCOUNT_LINES; i++)
		sum += a->total_ns[i];
	return sum ? (double)a->total_ns[kind] / (double)sum : 0;
}

/* Processes that work for the program, on this machine and longer than for a unit, and threads that share its
 * interpreter are how it is built, as its own code is. Who reads what it writes need not hold it up. */
static double least_waste(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	bool is_own = l->kind == DELAY_BY_GIL || (l->kind == DELAY_BY_NETWORK && l->end.pid) ||
		      (l->kind == DELAY_BY_PROCESS && l->lead && l->lead->pid);

	if (is_own && l->kind != DELAY_BY_GIL && asks_often(rec, a)) /* one after the other */
		return THRESHOLD(WASTE);
	return is_own && !is_kept(l) && !waits_to_write(rec, l) ? THRESHOLD(HOST_WASTE)
								: THRESHOLD(WASTE);
}

bool delay_is_waste(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	double least = least_waste(rec, a, l);

	/* What it is is known: a library's work, something on the way. A server parses what it is asked, and has somebody else
	 * do it once that is what requests wait for. */
	if (l->kind == DELAY_BY_HOST && l->end.stack_hash && !is_server(rec, a))
		return l->share >= least;
	if (l->kind == DELAY_BY_HOST)
		return is_host_waste(rec, a) ||
		       (l->end.stack_hash && is_saturated(a) && l->share >= THRESHOLD(HOST_WASTE));
	return l->share >= least && share_of_all(a, l->kind) >= least && is_waste(rec, a, l);
}

bool delay_is_built(
	const struct recording *rec, const struct step_account *a, const struct delay *l)
{
	double least = 2 * THRESHOLD(WASTE), one_place;

	if (delay_is_waste(rec, a, l) || is_server(rec, a))
		return false;
	if (l->kind == DELAY_BY_HOST) {
		host_share(rec, a, &one_place);
		return one_place >= least;
	}
	return least_waste(rec, a, l) > least && l->share >= least &&
	       share_of_all(a, l->kind) >= least && is_waste(rec, a, l);
}
