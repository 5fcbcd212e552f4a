/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/delay_fix.h"

#include "diagnose/accounts/place.h"
#include "diagnose/compose/detector.h"

/* The fix that is always the same. */
static const char *const plain[DELAY_KINDS] = {
	[DELAY_BY_HOST] =
		"Take that work out of the step: do it once, less often, in a loader's worker, or in code that is not Python",
	[DELAY_BY_LAUNCH] =
		"Launch fewer and larger kernels: torch.compile, CUDA graphs, foreach or fused optimizers, a larger batch",
	[DELAY_BY_GIL] =
		"Move that thread's work to another process, or into code that releases the interpreter lock",
	[DELAY_BY_GC] =
		"Call gc.freeze() after setting up, gc.disable() in the loop and gc.collect() where a pause does not matter",
	[DELAY_BY_COPY] =
		"Use pinned memory (pin_memory=True) and non_blocking=True, so that a copy does not keep its caller",
	[DELAY_BY_ALLOCATION] =
		"Do not call torch.cuda.empty_cache() in the loop; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps with changing sizes",
	[DELAY_BY_SYNC] =
		"Keep values on the GPU and read them every so many steps: item(), cpu(), print() and if on a tensor wait for the GPU",
	[DELAY_BY_CHECKPOINT] =
		"Write checkpoints less often, or smaller ones: what changes, in the type that is trained",
	[DELAY_BY_COMPILE] =
		"Keep shapes the same (pad to a few sizes), or compile with dynamic=True",
	[DELAY_BY_DISK] = "Move writing and fsync out of the step, into a thread or less often",
	[DELAY_BY_MEMORY] =
		"Raise the memory limit of the container, or use less: the kernel frees memory while the job waits",
	[DELAY_BY_STOPPED] =
		"Ask whoever stops it: a batch system that shares the node in turns (gang scheduling, suspend), `docker pause`, a debugger",
	[DELAY_BY_PROCESS] =
		"Do it less often or in the background, or make that process faster: the steps wait for it",
};

static bool lead_is(const struct delay *l, enum account_line line)
{
	return l->lead && l->lead->line == line;
}

/* The culprit is the process itself. */
static bool is_own(const struct delay *l, const struct incident *inc)
{
	return l->lead && inc->pid && l->lead->culprit_pid == inc->pid;
}

static void put_tracer_fixes(const struct delay *l, struct incident *inc)
{
	incident_fix(inc,
		"Record at less cost: `ingero trace --stack=false`, or a smaller `--overhead-budget`");
	incident_fix(inc,
		"Keep tracer and workload on different CPUs: `taskset -cp CPUS %u`, or start `ingero trace` under `taskset -c CPUS`",
		l->lead->culprit_pid);
}

static void put_loader(const struct delay *l, struct incident *inc)
{
	if (lead_is(l, ACCOUNT_HOST))
		incident_fix(
			inc, "More DataLoader workers (num_workers), or less work in __getitem__");
	else if (lead_is(l, ACCOUNT_CPU))
		incident_fix(inc, "Give the loader's workers CPUs of their own");
	else
		incident_fix(inc,
			"More workers and a larger prefetch_factor hide waiting for storage; or cache the data on a local disk");
}

static void put_cpu(const struct delay *l, struct incident *inc)
{
	incident_fix(
		inc, "Keep CPUs for the job (taskset, cpuset); check the container's CPU quota");
	if (is_own(l, inc))
		incident_fix(inc,
			"The job's own threads compete: fewer of them (OMP_NUM_THREADS, torch.set_num_threads(), background threads), or more CPUs");
	else if (l->lead && l->lead->culprit_is_worker && place_is_loader_thread(l->lead->culprit))
		incident_fix(inc,
			"The job's own threads and workers compete: fewer of them (num_workers, OMP_NUM_THREADS), or more CPUs (`taskset -cp %u` shows its set)",
			inc->pid);
	else if (l->lead && l->lead->culprit_pid)
		incident_fix(inc,
			"Stop it, move it (`taskset -cp CPUS %u`) or let it go last (`renice 19 -p %u`)",
			l->lead->culprit_pid, l->lead->culprit_pid);
}

static bool is_start(const struct recording *rec, const struct delay *l)
{
	const struct stack *s = rec->stacks && l->lead && l->lead->stack_hash
					? stack_find(rec->stacks, l->lead->stack_hash)
					: NULL;

	return s && place_is_start(s);
}

/* The usual ones of its problem are of a job that prepares its own batches, of memory that is full, of another
 * process. */
static bool is_unusual(const struct delay *l, const struct incident *inc)
{
	return l->kind == DELAY_BY_LOADER || l->kind == DELAY_BY_ALLOCATION ||
	       (l->kind == DELAY_BY_CPU && (delay_is_of_tracer(l) || is_own(l, inc)));
}

void delay_fix(const struct recording *rec, const struct delay *l, struct incident *inc)
{
	if (is_unusual(l, inc))
		inc->fix_count = 0;
	if (l->kind == DELAY_BY_LOADER)
		put_loader(l, inc);
	else if (l->kind == DELAY_BY_CPU && delay_is_of_tracer(l))
		put_tracer_fixes(l, inc);
	else if (l->kind == DELAY_BY_CPU)
		put_cpu(l, inc);
	else if (is_start(rec, l))
		incident_fix(inc,
			"Start processes once and keep them, not anew each time (DataLoader: persistent_workers=True, larger epochs)");
	else if (plain[l->kind])
		incident_fix(inc, "%s", plain[l->kind]);
}

void delay_fix_waits(struct incident *inc)
{
	incident_fix(inc, "%s", plain[DELAY_BY_SYNC]);
}
