/* SPDX-License-Identifier: Apache-2.0 */
/* delay_text.c - see delay_text.h: gathers what the tables want to know of a delay, and puts their texts together. Pure. */
#include "diagnose/sentences/delay_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "diagnose/accounts/kernel_thread.h"
#include "diagnose/accounts/tracer_name.h"
#include "diagnose/chains/chain.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/chains/host_code.h"
#include "diagnose/findings/detector.h"
#include "diagnose/rows/home.h"
#include "diagnose/sentences/advice.h"
#include "diagnose/chains/kernel_type.h"
#include "diagnose/sentences/delay_sentence.h"
#include "diagnose/sentences/span_text.h"
#include "diagnose/thresholds.h"
#include "model/event.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define LINES_SHOWN      5
#define LINE_SHARE       0.02 /* of the growth: less is not worth a word */
#define WHOLE_SHARE      0.85 /* of the growth: then it is all of it, in a title */
#define MORE_WAITS_RATIO 2.0
#define MORE_WAITS       8
#define SHOWN_BYTES      1e5 /* less is "0.0 MB" */
#define MOST_BYTES       0.7 /* of what is copied: then it is that direction */
#define KERNEL_SHOWN     40 /* bytes of a kernel's short name: its beginning tells it from others */

struct subject { /* all that is known, for the functions below */
	const struct recording *rec;
	const struct step_account *a;
	const struct delay_list *all;
	const struct delay *l;
	const struct gpu_change *gpu; /* NULL: not the GPU, or nothing is known */
	const struct incident *inc;
	struct resource_use end;
	struct code_place place, wait;
	bool has_place, has_wait;
	unsigned facts;
};

enum cause delay_cause(enum delay_kind k)
{
	switch (k) {
	case DELAY_BY_CPU: return CAUSE_RUN_QUEUE;
	case DELAY_BY_DISK:
	case DELAY_BY_CHECKPOINT: return CAUSE_BLOCK_IO;
	case DELAY_BY_NETWORK: return CAUSE_NETWORK;
	case DELAY_BY_MEMORY: return CAUSE_RECLAIM;
	case DELAY_BY_ASLEEP:
	case DELAY_BY_STOPPED:
	case DELAY_BY_LOCK:
	case DELAY_BY_GIL:
	case DELAY_BY_LOADER:
	case DELAY_BY_PROCESS: return CAUSE_ASLEEP;
	case DELAY_BY_UNKNOWN: return CAUSE_UNEXPLAINED;
	case DELAY_BY_GPU:
	case DELAY_BY_SYNC:
	case DELAY_BY_COPY:
	case DELAY_BY_LAUNCH:
	case DELAY_BY_ALLOCATION:
	case DELAY_BY_GRAPH:
	case DELAY_BY_COLLECTIVE:
	case DELAY_BY_CALL: return CAUSE_CUDA_CALL;
	default: return CAUSE_HOST_CODE;
	}
}

static bool is_slow(const struct step_account *a)
{
	return a->lost_ns > 0;
}

static uint64_t growth(const struct account_entry *e)
{
	return e->slow_ns - MIN(e->slow_ns, e->ordinary_ns);
}

static const char *units_of(const struct step_account *a)
{
	if (a->origin == STEP_BY_REQUEST)
		return "requests";
	return a->origin == STEP_BY_TIME ? "windows" : "steps";
}

static const char *unit_of(const struct step_account *a)
{
	if (a->origin == STEP_BY_REQUEST)
		return "request";
	return a->origin == STEP_BY_TIME ? "window" : "step";
}

/* ---- the place ---- */

static bool drives_gpu(const struct recording *rec, const struct place_weight *w)
{
	const struct stack *s = stack_find(rec->stacks, w->hash);

	return s && host_code_drives_gpu(s);
}

/* What hands work to the GPU is launching: of host code the other stacks are kept, if they have a part worth a word. */
static size_t keep_host(const struct recording *rec, struct place_weight *w, size_t n)
{
	uint64_t all = 0, own = 0;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		all += w[i].ns;
		own += drives_gpu(rec, &w[i]) ? 0 : w[i].ns;
	}
	if ((double)own < THRESHOLD(PART) * (double)all)
		return n;
	for (size_t i = 0; i < n; i++)
		if (!drives_gpu(rec, &w[i]))
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

		if (hash && growth(e) && delay_has(rec, l->kind, e))
			w[n++] = (struct place_weight){hash, growth(e)};
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
			l->lead->stack_hash, MAX(growth(l->lead), UINT64_C(1))};
	return n && place_cover(rec->stacks, w, n, ret);
}

/* Where a process was stopped has nothing to do with it. */
bool delay_text_place(const struct recording *rec, const struct step_account *a,
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

static void put_stacks(const struct subject *s, struct incident *inc)
{
	struct incident_stack list[ACCOUNT_ENTRIES];
	struct place_weight w[ACCOUNT_ENTRIES];
	bool waits = s->l->kind == DELAY_BY_PROCESS;
	uint64_t units = is_slow(s->a) ? s->a->slow_steps : s->a->ordinary_steps;
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
static const char *script_name(const struct recording *rec, const struct step_account *a)
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
static enum resource cpu_of(const struct subject *s, uint32_t pid)
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
static void find_end(const struct subject *s, struct resource_use *end)
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
static const char *anybody(const struct subject *s)
{
	switch (s->end.resource) {
	case RESOURCE_CPU_PROGRAM: return "other programs";
	case RESOURCE_CPU_OWN: return "threads";
	case RESOURCE_CPU_QUOTA: return "its control group";
	case RESOURCE_GPU_PROCESS:
	case RESOURCE_PICKLE:
	case RESOURCE_DELAYED_ACK:
	case RESOURCE_PIPE_FULL:
	case RESOURCE_STOPPER:
	case RESOURCE_PROCESS: return "another process";
	case RESOURCE_LOCK: return "another thread";
	case RESOURCE_ADDRESS: return "a remote address";
	case RESOURCE_COMPILER: return "a compiler";
	case RESOURCE_PRECISION:
	case RESOURCE_ATTENTION: return "wide types";
	default: return s->l->kind == DELAY_BY_PROCESS ? "another process" : "";
	}
}

static bool is_called_as_job(const struct subject *s, const char *name)
{
	char job[PROCESS_WORDS_MAX];

	return !strcmp(name, process_words_last(s->rec, s->a->pid, s->a->comm, job));
}

/* Whether @name, of another process that is waited for, is what the job itself is called: then it is one of its own. Who has a
 * CPU, a disk or the GPU may be another job of the same program. */
static bool is_jobs_name(const struct subject *s, const char *name, uint32_t pid)
{
	switch (s->end.resource) {
	case RESOURCE_PROCESS:
	case RESOURCE_PICKLE:
	case RESOURCE_DELAYED_ACK:
	case RESOURCE_FILE_LOCK:
	case RESOURCE_PIPE_FULL:
	case RESOURCE_STOPPER: break;
	default: return false;
	}
	return pid != s->a->pid && is_called_as_job(s, name);
}

/* "48 × xz", "xz (pid 7)", "thread prefetch", "another process of train.py (pid 8)" */
static void put_name(const struct subject *s, const char *name, uint32_t pid, uint32_t count,
	char out[DELAY_VALUE_MAX])
{
	bool is_jobs = is_jobs_name(s, name, pid);
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

static void put_who(const struct subject *s, char out[DELAY_VALUE_MAX])
{
	const struct resource_use *end = &s->end;

	if (end->who[0] && end->resource == RESOURCE_CPU_QUOTA)
		snprintf(out, DELAY_VALUE_MAX, "%s", end->who);
	else if (end->who[0])
		put_name(s, end->who, end->pid, end->count, out);
	else
		snprintf(out, DELAY_VALUE_MAX, "%s", anybody(s));
}

/* ---- facts ---- */

static bool waits_often(const struct step_account *a)
{
	return is_slow(a) && !a->is_proportional &&
	       a->slow_waits >= MORE_WAITS_RATIO * a->ordinary_waits + MORE_WAITS;
}

static unsigned facts_of_gpu(const struct subject *s)
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
static unsigned facts_of_copies(const struct subject *s)
{
	double to = 0, from = 0;

	if (s->l->kind != DELAY_BY_COPY)
		return 0;
	for (size_t i = 0; i < s->rec->event_count; i++) {
		const struct event *e = &s->rec->events[i];
		int way = e->pid == s->a->pid ? copy_direction(e->source, e->op) : -1;

		if (way == COPY_UNKNOWN && copy_has_kind(e->source, e->op))
			way = (int)e->arg1;
		to += way == COPY_H2D ? (double)e->dur_ns : 0;
		from += way == COPY_D2H ? (double)e->dur_ns : 0;
	}
	return to > MOST_BYTES * (to + from)     ? TO_GPU
	       : from > MOST_BYTES * (to + from) ? FROM_GPU
						 : 0;
}

struct allocating { /* calls of the process that allocate: how many, how long */
	uint64_t calls, pinned_ns, all_ns;
	uint8_t source;
	uint16_t op; /* the one that is called most */
};

static bool is_pinned(uint8_t source, uint16_t op)
{
	return source == SOURCE_CUDA
		       ? op == CUDA_HOST_ALLOC || op == CUDA_HOST_FREE || op == CUDA_HOST_REGISTER
		       : op == DRIVER_HOST_ALLOC || op == DRIVER_HOST_FREE ||
				 op == DRIVER_HOST_REGISTER;
}

static struct allocating allocating_of(const struct recording *rec, const struct step_account *a)
{
	struct allocating ret = {0};
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

static unsigned facts_of_home(const struct subject *s)
{
	const struct process_home *h = home_of(s->rec, s->a->pid);

	return h && (h->container_id[0] || h->pod[0]) ? IN_CONTAINER : 0;
}

static unsigned find_facts(const struct subject *s)
{
	const struct account_entry *e = s->l->lead;
	unsigned facts = frameworks_find(s->rec, s->a) | facts_of_gpu(s) | facts_of_copies(s);
	bool of_others = s->l->kind == DELAY_BY_LOADER || s->l->kind == DELAY_BY_PROCESS;

	if (s->l->kind == DELAY_BY_ALLOCATION) {
		struct allocating done = allocating_of(s->rec, s->a);

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
	if ((s->l->kind == DELAY_BY_HOST || s->l->kind == DELAY_BY_LAUNCH ||
		    s->l->kind == DELAY_BY_COPY || s->l->kind == DELAY_BY_CALL) &&
		waits_often(s->a))
		facts |= MANY_WAITS;
	return facts;
}

/* ---- values ---- */

static void put_kernel(const char *name, char *out)
{
	char brief[KERNEL_SHORT_MAX];

	kernel_name_short(name, brief);
	snprintf(out, KERNEL_SHOWN + 8, "%.*s%s", KERNEL_SHOWN, brief,
		strlen(brief) > KERNEL_SHOWN ? "…" : "");
}

static void put_kernels(const struct kernel_change *k, struct delay_values *v)
{
	if (k->from != KERNEL_OF_UNKNOWN)
		snprintf(v->types, sizeof(v->types), "%s instead of %s", kernel_type_text(k->to),
			kernel_type_text(k->from));
	if (k->added_count)
		put_kernel(k->added[0].name, v->kernels);
}

/* What is not counted, or is the same, is not said. */
static void put_work(const struct subject *s, struct delay_values *v)
{
	const struct step_account *a = s->a;
	const struct gpu_change *g = s->gpu;
	int n = 0;

	if (a->slow_launches >= a->ordinary_launches + 1 && a->ordinary_launches > 0)
		n = snprintf(v->work, sizeof(v->work), "%.0f launches per %s instead of %.0f",
			a->slow_launches, unit_of(a), a->ordinary_launches);
	if (a->slow_bytes >= a->ordinary_bytes + SHOWN_BYTES)
		snprintf(v->work + n, sizeof(v->work) - (size_t)n,
			"%s%.1f MB copied per %s instead of %.1f MB", n ? ", " : "",
			a->slow_bytes / 1e6, unit_of(a), a->ordinary_bytes / 1e6);
	if (!v->work[0] && a->is_varied)
		snprintf(v->work, sizeof(v->work), "the work of a %s varies", unit_of(a));
	if (!v->work[0] && g && g->slow_mw > g->ordinary_mw && g->ordinary_mw > 0)
		snprintf(v->work, sizeof(v->work), "it draws %.0f W instead of %.0f",
			g->slow_mw / 1000, g->ordinary_mw / 1000);
}

static void put_gpu(const struct subject *s, struct delay_values *v)
{
	const struct gpu_change *g = s->gpu;
	char op[32];

	if (!g)
		return;
	if (g->slow_clock_mhz > 0 && g->ordinary_clock_mhz > 0)
		snprintf(v->clock, sizeof(v->clock), "%.0f MHz instead of %.0f", g->slow_clock_mhz,
			g->ordinary_clock_mhz);
	if (g->reason == GPU_BY_KERNELS)
		put_kernels(&g->kernels, v);
	if (g->reason == GPU_BY_CALLS)
		snprintf(v->call, sizeof(v->call), "%s, about %.0f per %s",
			wire_op_name(g->call.source, g->call.op, op), MAX(g->call.in_step, 1.0),
			unit_of(s->a));
	if (g->reason == GPU_BY_THREAD && g->thread)
		snprintf(v->thread, sizeof(v->thread), "%s", g->thread->comm);
}

static void put_counts(const struct subject *s, struct delay_values *v)
{
	const struct step_account *a = s->a;
	double bytes = is_slow(a) ? a->slow_bytes : a->ordinary_bytes;
	double launches = is_slow(a) ? a->slow_launches : a->ordinary_launches;

	if (bytes >= SHOWN_BYTES)
		snprintf(v->bytes, sizeof(v->bytes), "%.*f MB", bytes < 1e7, bytes / 1e6);
	if (launches >= 1)
		snprintf(v->launches, sizeof(v->launches), "%.0f", launches);
	if (is_slow(a) && a->slow_waits >= a->ordinary_waits + 1)
		snprintf(v->waits, sizeof(v->waits), "%.0f times per %s instead of %.*f",
			a->slow_waits, unit_of(a), a->ordinary_waits < 2, a->ordinary_waits);
	else if (!is_slow(a) && s->l->kind == DELAY_BY_SYNC)
		snprintf(v->waits, sizeof(v->waits), "%.0f times per %s", a->ordinary_waits,
			unit_of(a));
}

/* Calls that come in every unit: fewer are those of a pool that grows. */
static void put_calls(const struct subject *s, struct delay_values *v)
{
	struct allocating done = allocating_of(s->rec, s->a);
	double each = (double)done.calls / (double)MAX(s->a->steps, 1u);
	char op[32];

	if (s->l->kind == DELAY_BY_ALLOCATION && each >= 1)
		snprintf(v->calls, sizeof(v->calls), "%s about %.0f times per %s",
			wire_op_name(done.source, done.op, op), each, unit_of(s->a));
}

static void find_values(const struct subject *s, struct delay_values *v)
{
	const struct account_entry *e = s->l->lead;

	*v = (struct delay_values){0};
	put_who(s, v->who);
	if (s->end.on[0])
		put_name(s, s->end.on, s->end.on_pid, s->end.on_count, v->stopped);
	else if (s->end.resource == RESOURCE_STOPPER && s->l->kind == DELAY_BY_PROCESS)
		snprintf(v->stopped, sizeof(v->stopped), "a process");
	snprintf(v->detail, sizeof(v->detail), "%s", s->end.detail);
	if (s->has_place)
		place_at(&s->place, v->at, DELAY_VALUE_MAX);
	if (s->has_wait)
		place_at(&s->wait, v->wait, DELAY_VALUE_MAX);
	snprintf(v->units, sizeof(v->units), "%s", units_of(s->a));
	snprintf(v->unit, sizeof(v->unit), "%s", unit_of(s->a));
	if (e)
		snprintf(v->worker, sizeof(v->worker), "%s", e->comm);
	if (e && (s->l->kind == DELAY_BY_GIL || s->l->kind == DELAY_BY_LOCK))
		snprintf(v->thread, sizeof(v->thread), "%s", e->culprit);
	if (s->a->unknown_reason)
		snprintf(v->reason, sizeof(v->reason), "%s", s->a->unknown_reason);
	put_gpu(s, v);
	if (!v->clock[0])
		snprintf(v->clock, sizeof(v->clock), "%s",
			s->end.detail[0] ? s->end.detail : "less than before");
	put_work(s, v);
	put_counts(s, v);
	put_calls(s, v);
}

/* ---- the title ---- */

static const char *ordinal(unsigned n)
{
	if (n % 100 / 10 == 1)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* "steps take 174 ms instead of 44", "every 50th step takes …", "61 of 72 ms of every step". Where most are slow, it is the
 * others that come every so many. */
static void put_cost(const struct subject *s, const char *script, struct buf *b)
{
	const struct step_account *a = s->a;
	char text[SPAN_TEXT_MAX], more[SPAN_TEXT_MAX], share[TEXT_MAX], slow[TEXT_MAX],
		all[TEXT_MAX];
	bool is_part;

	if (!is_slow(a)) {
		span_text(text, " of ", s->l->slow_ns, a->ordinary_step_ns);
		buf_printf(b, "%s of every %s%s%s", text, unit_of(a), script ? " of " : "",
			script ? script : "");
		if (a->ordinary_step_ns)
			buf_printf(b, " (%s)",
				text_format_percent(share,
					MIN((double)s->l->slow_ns / (double)a->ordinary_step_ns,
						1.0)));
		return;
	}
	span_text(text, " instead of ", a->slow_step_ns, a->ordinary_step_ns);
	if (a->is_drift)
		buf_printf(b, "%s grew gradually to %s", units_of(a),
			span_text(text, " from ", a->drift_to_ns, a->drift_from_ns));
	else if (s->inc->period_steps > 1 && 2 * a->slow_steps <= a->steps)
		buf_printf(b, "every %u%s %s takes %s", s->inc->period_steps,
			ordinal(s->inc->period_steps), unit_of(a), text);
	else if (s->inc->since.ns)
		buf_printf(b, "%s take %s", units_of(a), text);
	else
		buf_printf(b, "%s of %s %s %s %s", text_format_count(slow, a->slow_steps),
			text_format_count(all, a->steps), units_of(a),
			a->slow_steps == 1 ? "takes" : "take", text);
	is_part = s->l->share < WHOLE_SHARE && s->l->kind != DELAY_BY_UNKNOWN;
	if (script || is_part)
		buf_printf(b, " (%s%s", script ? script : "", script && is_part ? "; " : "");
	if (is_part)
		buf_printf(
			b, "+%s from this", span_text_one(more, s->l->slow_ns - s->l->ordinary_ns));
	buf_puts(b, script || is_part ? ")" : "");
}

static void put_title(const struct subject *s, const struct delay_sentence *row,
	const struct delay_values *v, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	const char *script = script_name(s->rec, s->a);
	char head[sizeof(inc->summary)];

	delay_sentence_fill(row->head, v, head, sizeof(head));
	if ((v->at[0] && strstr(head, v->at)) || (v->wait[0] && strstr(head, v->wait)))
		script = NULL; /* the place says it */
	buf_printf(&b, "%s: ", head);
	put_cost(s, script, &b);
	snprintf(inc->summary, sizeof(inc->summary), "%s", buf_str(&b));
}

/* ---- the figures ---- */

/* "CPU +149 ms, unknown +91 ms" */
static void put_lines(const struct subject *s, struct buf *b)
{
	char text[SPAN_TEXT_MAX];
	const char *comma = "";

	for (int i = 0; s->all && i < MIN(s->all->count, LINES_SHOWN); i++) {
		const struct delay *l = &s->all->items[i];

		if (l->share < LINE_SHARE)
			break;
		buf_printf(b, "%s%s %s%s", comma, delay_text(l->kind), is_slow(s->a) ? "+" : "",
			span_text_one(text, l->slow_ns - l->ordinary_ns));
		comma = ", ";
	}
}

static void put_kernel_figures(const struct kernel_change *k, struct buf *b)
{
	char name[KERNEL_SHOWN + 8];

	buf_puts(b, " First launched when it became slow:");
	for (int i = 0; i < k->added_count; i++) {
		put_kernel(k->added[i].name, name);
		buf_printf(b, "%s %s (about %.0f each)", i ? "," : "", name, k->added[i].in_step);
	}
	buf_puts(b, ".");
}

static void put_explanation(const struct subject *s, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	const struct step_account *a = s->a;
	char lost[SPAN_TEXT_MAX], part[TEXT_MAX];

	if (is_slow(a)) {
		buf_printf(&b,
			"Slow %s lost %s in all, %s of it to this. A slow one compared with an ordinary one: ",
			units_of(a), span_text_one(lost, a->lost_ns),
			text_format_percent(part, s->l->share));
		put_lines(s, &b);
		buf_puts(&b, ".");
	} else {
		buf_printf(&b, "All %s %s%s are affected; there is no baseline.",
			text_format_count(part, a->ordinary_steps),
			a->slow_steps ? "ordinary " : "", units_of(a));
	}
	if (s->gpu && s->l->kind == DELAY_BY_GPU && s->gpu->reason == GPU_BY_KERNELS)
		put_kernel_figures(&s->gpu->kernels, &b);
	if (is_slow(a) && a->is_proportional)
		buf_printf(&b, " The work of a %s varies: longer ones do more of the same.",
			unit_of(a));
	if (delay_is_idle(s->rec, a, s->l))
		buf_puts(&b, " A program with nothing to do waits in the same way.");
	else if (delay_is_pause(s->rec, a, s->l))
		buf_puts(&b, " The program sleeps there on purpose.");
	if (s->has_place && s->place.share < 0.995)
		buf_printf(
			&b, " %s of it is spent there.", text_format_percent(part, s->place.share));
	buf_printf(&b, " %s boundary: %s (%s).", a->origin == STEP_BY_TIME ? "Window" : "Step",
		step_origin_text(a->origin), text_format_percent(part, a->confidence));
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(&b));
}

/* Rows that show it, where they are others than those of steps: which kernels ran, and when; or the new calls. */
static void put_sql(const struct subject *s, struct incident *inc)
{
	const struct step_account *a = s->a;
	const struct gpu_change *g = s->l->kind == DELAY_BY_GPU ? s->gpu : NULL;

	if (g && g->reason == GPU_BY_KERNELS)
		incident_sql(inc,
			"SELECT k.name, sum(e.timestamp BETWEEN %" PRId64 " AND %" PRId64
			") AS while_slow, count(*) AS rows FROM events e JOIN kernels k ON k.node = e.node "
			"AND k.pid = e.pid AND k.function = e.arg0 WHERE e.pid = %u AND e.flags & 1 = 0 AND "
			"e.timestamp BETWEEN %" PRId64 " AND %" PRId64 " AND " OP_KIND_LAUNCH_SQL
			" GROUP BY k.name ORDER BY while_slow DESC, rows DESC LIMIT 200",
			a->slow_first.ns, a->slow_last.ns, a->pid, a->first.ns, a->last.ns);
	if (g && g->reason == GPU_BY_CALLS)
		incident_sql(inc,
			"SELECT id, timestamp, tid, duration, arg0, arg1, stream, stack_hash FROM events WHERE pid = %u AND "
			"source = %u AND op = %u AND timestamp BETWEEN %" PRId64 " AND %" PRId64
			" ORDER BY timestamp LIMIT 200",
			a->pid, g->call.source, g->call.op, a->first.ns, a->slow_last.ns);
}

/* ---- all ---- */

static void put_advice(const struct subject *s, const struct delay_values *v, struct incident *inc)
{
	advice_put(&(struct advice_case){.kind = s->l->kind,
			   .resource = s->end.resource,
			   .facts = s->facts,
			   .who = v->who,
			   .name = is_jobs_name(s, s->end.who, s->end.pid) ? "that process"
									   : s->end.who,
			   .pid = s->end.pid},
		inc);
}

void delay_text_write(const struct recording *rec, const struct step_account *a,
	const struct delay_list *all, const struct delay *l, const struct gpu_change *gpu,
	struct incident *inc)
{
	struct subject s = {.rec = rec, .a = a, .all = all, .l = l, .gpu = gpu, .inc = inc};
	const struct delay_sentence *row;
	struct delay_values v;

	s.has_place = delay_text_place(rec, a, l, gpu, &s.place);
	s.has_wait = l->kind != DELAY_BY_STOPPED && cover(rec, a, l, true, &s.wait);
	find_end(&s, &s.end);
	s.facts = find_facts(&s);
	find_values(&s, &v);
	row = delay_sentence_find(l->kind, s.end.resource, s.facts);
	put_title(&s, row, &v, inc);
	delay_sentence_fill(row->why, &v, inc->root_cause, sizeof(inc->root_cause));
	put_explanation(&s, inc);
	put_advice(&s, &v, inc);
	put_stacks(&s, inc);
	put_sql(&s, inc);
	inc->place[0] = 0;
	if (s.has_place)
		place_format(&s.place, inc->place, sizeof(inc->place));
}
