/* SPDX-License-Identifier: Apache-2.0 */
/* delay_subject.c - see delay_subject.h. Pure. */
#include "diagnose/sentences/delay_subject.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/accounts/kernel_thread.h"
#include "diagnose/accounts/tracer_name.h"
#include "diagnose/chains/chain.h"
#include "diagnose/chains/host_code.h"
#include "diagnose/chains/whole.h"
#include "diagnose/findings/detector.h"
#include "diagnose/rows/home.h"
#include "diagnose/sentences/advice.h"
#include "diagnose/thresholds.h"
#include "model/event.h"
#include "wire/op_kind.h"

#define MORE_WAITS_RATIO 2.0
#define MORE_WAITS       8
#define MOST_BYTES       0.7 /* of what is copied: then it is that direction */

const char *delay_units(const struct step_account *a)
{
	if (a->origin == STEP_BY_REQUEST)
		return "requests";
	return a->origin == STEP_BY_TIME ? "windows" : "steps";
}

const char *delay_unit(const struct step_account *a)
{
	if (a->origin == STEP_BY_REQUEST)
		return "request";
	return a->origin == STEP_BY_TIME ? "window" : "step";
}

/* ---- the place ---- */

/* What hands work to the GPU is launching: of host code the other stacks are kept, if they have a part worth a word. */
static size_t keep_host(const struct recording *rec, struct place_weight *w, size_t n)
{
	uint64_t all = 0, own = 0;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		all += w[i].ns;
		own += host_code_drives_gpu(stack_find(rec->stacks, w[i].hash)) ? 0 : w[i].ns;
	}
	if ((double)own < THRESHOLD(PART) * (double)all)
		return n;
	for (size_t i = 0; i < n; i++)
		if (!host_code_drives_gpu(stack_find(rec->stacks, w[i].hash)))
			w[kept++] = w[i];
	return kept;
}

/* The stacks of @l, or with @waits those where the steps wait for what others do; rows of the process itself. */
static size_t weigh(const struct recording *rec, const struct step_account *a,
	const struct delay *l, bool waits, struct place_weight w[ACCOUNT_ENTRIES])
{
	size_t n = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		uint64_t hash = waits ? e->wait_hash : e->stack_hash;

		if (hash && account_entry_more(e) && delay_has(rec, l->kind, e))
			w[n++] = (struct place_weight){hash, account_entry_more(e)};
	}
	return l->kind == DELAY_BY_HOST && !waits ? keep_host(rec, w, n) : n;
}

static bool cover(const struct recording *rec, const struct step_account *a, const struct delay *l,
	bool waits, struct code_place *ret)
{
	struct place_weight w[ACCOUNT_ENTRIES];
	size_t n = weigh(rec, a, l, waits, w);

	if (!n && !waits && l->lead && l->lead->stack_hash)
		w[n++] = (struct place_weight){
			l->lead->stack_hash, MAX(account_entry_more(l->lead), UINT64_C(1))};
	return n && place_cover(rec->stacks, w, n, ret);
}

/* Where a process was stopped has nothing to do with it. */
bool delay_subject_place(const struct recording *rec, const struct step_account *a,
	const struct delay *l, const struct gpu_change *gpu, struct code_place *ret)
{
	if (l->kind == DELAY_BY_GPU && gpu && gpu->reason == GPU_BY_CALLS && gpu->call.stack_hash &&
		place_cover(rec->stacks, &(struct place_weight){gpu->call.stack_hash, 1}, 1, ret))
		return true;
	if (l->kind == DELAY_BY_STOPPED || l->kind == DELAY_BY_UNKNOWN)
		return false;
	if (l->end.stack_hash &&
		place_cover(rec->stacks, &(struct place_weight){l->end.stack_hash, 1}, 1, ret))
		return true;
	if (l->kind == DELAY_BY_PROCESS)
		return cover(rec, a, l, true, ret);
	return cover(rec, a, l, false, ret) || cover(rec, a, l, true, ret);
}

void delay_subject_stacks(const struct delay_subject *s, struct incident *inc)
{
	struct incident_stack list[ACCOUNT_ENTRIES];
	struct place_weight w[ACCOUNT_ENTRIES];
	bool waits = s->l->kind == DELAY_BY_PROCESS;
	uint64_t units = delay_is_slow(s->a) ? s->a->slow_steps : s->a->ordinary_steps;
	size_t n = s->l->kind == DELAY_BY_STOPPED ? 0 : weigh(s->rec, s->a, s->l, waits, w);

	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = (struct incident_stack){w[i].hash, w[i].ns * units, (uint32_t)units};
	inc->stack_ns = 0;
	incident_stacks_merge(list, n, inc);
	for (int i = 0; i < inc->stack_count; i++)
		inc->stacks[i].calls = (uint32_t)units;
	/* What grew at places is more than the whole where others shrank. */
	if (inc->excess_ns && inc->stack_ns > inc->excess_ns) {
		double part = (double)inc->excess_ns / (double)inc->stack_ns;

		for (int i = 0; i < inc->stack_count; i++)
			inc->stacks[i].ns = (uint64_t)(part * (double)inc->stacks[i].ns);
		inc->stack_ns = inc->excess_ns;
	}
}

/* The file with which the program begins: "train.py". */
const char *delay_subject_script(const struct recording *rec, const struct step_account *a)
{
	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		uint64_t hash = e->owner == OWNER_SELF ? e->stack_hash : e->wait_hash;
		const struct stack *s = stack_find(rec->stacks, hash);
		const char *script = s ? place_script(s) : NULL;

		if (script)
			return script;
	}
	return NULL;
}

/* ---- where the chain leads to ---- */

/* Who has a CPU: the job itself, or another program. */
static enum resource cpu_of(const struct delay_subject *s, uint32_t pid)
{
	_cleanup_(lineage_done) struct lineage lines = {0};

	return lineage_build(s->rec, &lines) == 0 && process_is_own(s->rec, s->a, &lines, pid)
		       ? RESOURCE_CPU_OWN
		       : RESOURCE_CPU_PROGRAM;
}

static void name_end(struct resource_use *end, enum resource r, const char *who, uint32_t pid)
{
	end->resource = r;
	snprintf(end->who, sizeof(end->who), "%s", who);
	end->pid = pid;
}

/* What the account alone says of it, where no chain was followed. */
static void find_end(const struct delay_subject *s, struct resource_use *end)
{
	const struct account_entry *e = s->l->lead;

	*end = s->l->end;
	if (end->resource == RESOURCE_CPU_MASK && !end->who[0] && e && e->line == ACCOUNT_CPU)
		name_end(end, RESOURCE_CPU_MASK, e->culprit, e->culprit_pid);
	if (end->resource != RESOURCE_NONE || !e)
		return;
	if (s->l->kind == DELAY_BY_PROCESS)
		name_end(end, RESOURCE_PROCESS, e->comm, e->pid);
	else if (e->culprit[0] && e->line == ACCOUNT_CPU)
		name_end(end, cpu_of(s, e->culprit_pid), e->culprit, e->culprit_pid);
	else if (e->culprit[0] && e->line == ACCOUNT_LOCK)
		name_end(end, RESOURCE_LOCK, e->culprit, e->culprit_pid);
	else if (e->culprit[0]) /* whose doing it is, of a disk or of a stop, without more */
		name_end(end, RESOURCE_NONE, e->culprit, e->culprit_pid);
}

/* Where it is known what had it, and not whose that is. */
static const char *anybody(const struct delay_subject *s)
{
	const char *who = resource_rows[s->end.resource].anybody;

	return !who[0] && s->l->kind == DELAY_BY_PROCESS ? "another process" : who;
}

static bool is_called_as_job(const struct delay_subject *s, const char *name)
{
	char job[PROCESS_WORDS_MAX];

	return !strcmp(name, process_words_last(s->rec, s->a->pid, s->a->comm, job));
}

/* Whether @name, of another process that is waited for, is what the job itself is called: then it is one of its own. Who has a
 * CPU, a disk or the GPU may be another job of the same program. */
bool delay_subject_is_jobs(const struct delay_subject *s, const char *name, uint32_t pid)
{
	return resource_is(s->end.resource, RESOURCE_IS_AWAITED) && pid != s->a->pid &&
	       is_called_as_job(s, name);
}

/* "48 × xz", "xz (pid 7)", "thread prefetch", "another process of train.py (pid 8)" */
void delay_subject_name(const struct delay_subject *s, const char *name, uint32_t pid,
	uint32_t count, char out[DELAY_VALUE_MAX])
{
	bool is_jobs = delay_subject_is_jobs(s, name, pid);
	int n;

	if (count > 1) {
		snprintf(out, DELAY_VALUE_MAX, is_jobs ? "%u other processes of %s" : "%u × %s",
			count, name);
		return;
	}
	if (pid == s->a->pid && pid) {
		snprintf(out, DELAY_VALUE_MAX, "%s%s", strncmp(name, "thread ", 7) ? "thread " : "",
			name);
		return;
	}
	n = snprintf(out, DELAY_VALUE_MAX, "%s%s",
		is_jobs                  ? "another process of "
		: kernel_thread_is(name) ? "kernel thread "
					 : "",
		name);
	if (pid && !kernel_thread_is(name))
		snprintf(out + n, DELAY_VALUE_MAX - (size_t)n, " (pid %u)", pid);
}

void delay_subject_who(const struct delay_subject *s, char out[DELAY_VALUE_MAX])
{
	const struct resource_use *end = &s->end;

	if (end->who[0] && end->resource == RESOURCE_CPU_QUOTA)
		snprintf(out, DELAY_VALUE_MAX, "%s", end->who);
	else if (end->who[0])
		delay_subject_name(s, end->who, end->pid, end->count, out);
	else
		snprintf(out, DELAY_VALUE_MAX, "%s", anybody(s));
}

/* ---- facts ---- */

static bool waits_often(const struct step_account *a)
{
	return delay_is_slow(a) && !a->is_proportional &&
	       a->slow_waits >= MORE_WAITS_RATIO * a->ordinary_waits + MORE_WAITS;
}

static unsigned facts_of_gpu(const struct delay_subject *s)
{
	const struct gpu_change *g = s->gpu;

	if (!g || s->l->kind != DELAY_BY_GPU)
		return 0;
	switch (g->reason) {
	case GPU_BY_WORK: return MORE_WORK;
	case GPU_BY_VARIETY: return MORE_WORK;
	case GPU_BY_WAITS: return MANY_WAITS;
	case GPU_BY_KERNELS: return g->kernels.from != KERNEL_OF_UNKNOWN ? NEW_TYPES : NEW_KERNELS;
	case GPU_BY_CALLS:
		return NEW_CALLS | (g->call.is_on_default_stream ? ON_DEFAULT_STREAM : 0);
	case GPU_BY_THREAD: return HELD_BY_THREAD;
	default: return 0;
	}
}

/* Which way most bytes go, by the rows of copies, which are the longer ones. */
static unsigned facts_of_copies(const struct delay_subject *s)
{
	double to = 0, from = 0;

	if (s->l->kind != DELAY_BY_COPY)
		return 0;
	for (size_t i = 0; i < s->rec->event_count; i++) {
		const struct event *e = &s->rec->events[i];
		int way = e->pid == s->a->pid ? event_copy_direction(e) : -1;

		to += way == COPY_H2D ? (double)e->dur_ns : 0;
		from += way == COPY_D2H ? (double)e->dur_ns : 0;
	}
	return to > MOST_BYTES * (to + from)     ? TO_GPU
	       : from > MOST_BYTES * (to + from) ? FROM_GPU
						 : 0;
}

static bool is_pinned(uint8_t source, uint16_t op)
{
	return source == SOURCE_CUDA
		       ? op == CUDA_HOST_ALLOC || op == CUDA_HOST_FREE || op == CUDA_HOST_REGISTER
		       : op == DRIVER_HOST_ALLOC || op == DRIVER_HOST_FREE ||
				 op == DRIVER_HOST_REGISTER;
}

struct delay_allocating delay_allocating_of(
	const struct recording *rec, const struct step_account *a)
{
	struct delay_allocating ret = {0};
	uint64_t calls[2][WIRE_OP_MAX] = {0};

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *g = &rec->aggregates[i];
		uint64_t *n;

		if (g->pid != a->pid || g->flags & WIRE_NESTED || !op_kind_is_cuda(g->source) ||
			g->op >= WIRE_OP_MAX || g->bucket.ns < a->first.ns ||
			g->bucket.ns > a->last.ns || op_kind_line(g->source, g->op) != LEDGER_ALLOC)
			continue;
		n = &calls[g->source == SOURCE_CUDA][g->op];
		*n += g->sketch.count;
		ret.all_ns += g->sketch.sum;
		ret.pinned_ns += is_pinned(g->source, g->op) ? g->sketch.sum : 0;
		if (*n > ret.calls) {
			ret.calls = *n;
			ret.source = g->source;
			ret.op = g->op;
		}
	}
	return ret;
}

static bool is_loader_stack(const struct recording *rec, uint64_t hash)
{
	const struct stack *s = stack_find(rec->stacks, hash);

	return s && place_is_loader(s);
}

/* A loader of its own kind is known by its workers' time; one that runs in the main process is none to add to. */
static bool has_loader(const struct recording *rec, const struct step_account *a)
{
	for (int i = 0; i < a->entry_count; i++)
		if (a->entries[i].owner == OWNER_LOADER ||
			place_is_loader_thread(a->entries[i].comm) ||
			is_loader_stack(rec, a->entries[i].stack_hash) ||
			is_loader_stack(rec, a->entries[i].wait_hash))
			return true;
	return false;
}

/* Processes without a number of their own come one after the other. */
static bool starts_processes(const struct recording *rec, const struct account_entry *e)
{
	const struct stack *at = e ? stack_find(rec->stacks, e->stack_hash) : NULL;
	const struct stack *wait = e ? stack_find(rec->stacks, e->wait_hash) : NULL;

	return (e && e->owner > OWNER_THREAD && !e->pid) || (at && place_is_start(at)) ||
	       (wait && place_is_start(wait));
}

static unsigned facts_of_line(const struct account_entry *e)
{
	switch (e->line) {
	case ACCOUNT_HOST: return BY_HOST;
	case ACCOUNT_DISK: return BY_DISK;
	case ACCOUNT_NETWORK: return BY_NETWORK;
	case ACCOUNT_STOPPED: return IS_STOPPED;
	default: return 0;
	}
}

static unsigned facts_of_home(const struct delay_subject *s)
{
	const struct process_home *h = home_of(s->rec, s->a->pid);

	return h && (h->container_id[0] || h->pod[0]) ? IN_CONTAINER : 0;
}

static unsigned find_facts(const struct delay_subject *s)
{
	const struct account_entry *e = s->l->lead;
	unsigned facts = frameworks_find(s->rec, s->a) | facts_of_gpu(s) | facts_of_copies(s);
	bool of_others = s->l->kind == DELAY_BY_LOADER || s->l->kind == DELAY_BY_PROCESS;

	if (s->l->kind == DELAY_BY_ALLOCATION) {
		struct delay_allocating done = delay_allocating_of(s->rec, s->a);

		facts |= done.pinned_ns * 2 > done.all_ns ? PINS_MEMORY : 0;
	}
	facts |= facts_of_home(s);
	facts |= has_loader(s->rec, s->a) ? HAS_LOADER : 0;
	facts |= s->inc->period_steps ? IS_PERIODIC : 0;
	facts |= starts_processes(s->rec, e) ? STARTS_PROCESSES : 0;
	facts |= e && of_others ? facts_of_line(e) : 0;
	facts |= e && e->owner == OWNER_THREAD && s->has_wait ? IS_AWAITED : 0;
	facts |= s->l->kind == DELAY_BY_STOPPED ? IS_STOPPED : 0;
	if (s->end.resource == RESOURCE_STOPPER ||
		(s->l->kind == DELAY_BY_STOPPED && s->end.who[0]))
		facts |= IS_STOPPED | BY_STOPPER; /* it is not the one that stands still */
	facts |= !s->rec->ledger_count && s->l->kind == DELAY_BY_UNKNOWN ? NO_LEDGER : 0;
	facts |= kernel_thread_is(s->end.who) ? IS_OF_KERNEL : 0;
	facts |= s->end.pid && s->end.count <= 1 ? HAS_PID : 0;
	if (s->end.pid == s->a->pid || s->end.resource == RESOURCE_CPU_OWN ||
		(s->end.resource == RESOURCE_CPU_PROGRAM && is_called_as_job(s, s->end.who)))
		facts |= IS_OWN;
	facts |= s->l->kind == DELAY_BY_CPU && tracer_is(s->end.who) ? IS_OF_TRACER : 0;
	if (s->end.resource == RESOURCE_CPU_PROGRAM && s->end.who_share > 0 &&
		s->end.who_share < THRESHOLD(CHAIN_MOST))
		facts |= AMONG_OTHERS;
	/* Ordinary units ask as often as slow ones. */
	if (!delay_is_slow(s->a) &&
		(s->l->kind == DELAY_BY_NETWORK ||
			(s->l->kind == DELAY_BY_PROCESS && s->has_wait)) &&
		asks_often(s->rec, s->a))
		facts |= MANY_WAITS;
	if ((s->l->kind == DELAY_BY_HOST || s->l->kind == DELAY_BY_LAUNCH ||
		    s->l->kind == DELAY_BY_COPY || s->l->kind == DELAY_BY_CALL) &&
		waits_often(s->a))
		facts |= MANY_WAITS;
	return facts;
}

void delay_subject_find(const struct recording *rec, const struct step_account *a,
	const struct delay_list *all, const struct delay *l, const struct gpu_change *gpu,
	const struct incident *inc, struct delay_subject *ret)
{
	*ret = (struct delay_subject){
		.rec = rec, .a = a, .all = all, .l = l, .gpu = gpu, .inc = inc};
	ret->has_place = delay_subject_place(rec, a, l, gpu, &ret->place);
	ret->has_wait = l->kind != DELAY_BY_STOPPED && cover(rec, a, l, true, &ret->wait);
	find_end(ret, &ret->end);
	ret->facts = find_facts(ret);
}
