/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - one table: kind of delay and what else is known of it, to the problem. To add a detection: a row here, its
 * condition if it needs one, and a test. The first row that fits counts. */
#include "diagnose/findings/pattern.h"

#include "diagnose/rows/home.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"

#define ANY_KIND DELAY_KINDS

struct evidence {
	const struct recording *rec;
	const struct step_account *account;
	enum time_contrast contrast;
	const struct delay *delay;
};

typedef bool condition(const struct evidence *e);

struct pattern {
	enum delay_kind kind; /* ANY_KIND: whatever it is */
	condition *holds;     /* NULL: always */
	enum problem problem;
};

static bool is_clock(const struct evidence *e)
{
	enum resource r = e->delay->end.resource;

	return r == RESOURCE_GPU_CLOCK || r == RESOURCE_GPU_POWER || r == RESOURCE_GPU_HEAT;
}

static bool is_sharing(const struct evidence *e)
{
	return e->delay->end.resource == RESOURCE_GPU_PROCESS;
}

/* Many times the ordinary bytes go to the GPU in slow units: another model is loaded. */
static bool is_swap(const struct evidence *e)
{
	const struct step_account *a = e->account;

	return e->contrast == CONTRAST_SLOW && a->slow_bytes > THRESHOLD(SWAP_BYTES) &&
	       a->slow_bytes > THRESHOLD(SWAP_RATIO) * a->ordinary_bytes &&
	       a->slow_steps < a->ordinary_steps;
}

static bool is_apart(const struct evidence *e)
{
	uint32_t pid = e->delay->lead ? e->delay->lead->culprit_pid : 0;
	const struct process_home *own = home_of(e->rec, e->account->pid);
	const struct process_home *other = pid ? home_of(e->rec, pid) : NULL;

	return own && other && home_apart(own, other);
}

static bool is_compiling(const struct evidence *e)
{
	return e->delay->end.resource == RESOURCE_COMPILER;
}

static bool is_training(const struct evidence *e)
{
	return e->account->origin <= STEP_BY_LOADER && e->account->origin != STEP_BY_EXECUTE;
}

static bool is_agent(const struct evidence *e)
{
	return e->contrast == CONTRAST_WHOLE && !is_training(e) &&
	       e->delay->share >= THRESHOLD(MOST);
}

static bool waits_for_network(const struct evidence *e)
{
	return e->delay->lead && e->delay->lead->line == ACCOUNT_NETWORK;
}

/* What a loop waits for in every unit before it has work for the GPU: its input. */
static bool is_input(const struct evidence *e)
{
	return e->contrast == CONTRAST_WHOLE ||
	       e->delay->ordinary_ns * 2 > e->delay->slow_ns; /* more of what there always is */
}

static bool is_crowded(const struct evidence *e)
{
	return e->delay->end.resource == RESOURCE_CPU_OWN;
}

static bool is_pickling(const struct evidence *e)
{
	return e->delay->end.resource == RESOURCE_PICKLE;
}

static bool is_timer(const struct evidence *e)
{
	return e->delay->end.resource == RESOURCE_TIMER;
}

static bool is_reading(const struct evidence *e)
{
	return e->delay->end.resource == RESOURCE_DISK_READ;
}

static bool is_disk(const struct evidence *e)
{
	return is_reading(e) || e->delay->end.resource == RESOURCE_DISK_WRITE;
}

static const struct pattern patterns[] = {
	{DELAY_BY_CHECKPOINT, NULL, PROBLEM_CHECKPOINT},
	{ANY_KIND, is_pickling, PROBLEM_GOODPUT},
	{ANY_KIND, is_timer, PROBLEM_GOODPUT},
	{ANY_KIND, is_compiling, PROBLEM_KERNEL_COMPILER},
	{DELAY_BY_COMPILE, NULL, PROBLEM_KERNEL_COMPILER},
	{ANY_KIND, is_swap, PROBLEM_MODEL_SWAP},
	{DELAY_BY_GPU, is_sharing, PROBLEM_GPU_SHARING},
	{DELAY_BY_GPU, is_clock, PROBLEM_THROTTLE},
	{DELAY_BY_COPY, is_sharing, PROBLEM_GPU_SHARING},
	{DELAY_BY_COPY, is_disk, PROBLEM_STARVATION},
	{DELAY_BY_COPY, NULL, PROBLEM_PCIE},
	{DELAY_BY_ALLOCATION, NULL, PROBLEM_GPU_MEMORY},
	{DELAY_BY_CPU, is_apart, PROBLEM_NOISY_NEIGHBOUR},
	{DELAY_BY_DISK, is_apart, PROBLEM_NOISY_NEIGHBOUR},
	{DELAY_BY_CPU, NULL, PROBLEM_CPU_CONTENTION},
	{DELAY_BY_LOCK, is_crowded, PROBLEM_CPU_CONTENTION},
	{DELAY_BY_GIL, NULL, PROBLEM_CPU_CONTENTION},
	{DELAY_BY_LOADER, NULL, PROBLEM_STARVATION},
	{DELAY_BY_NETWORK, is_agent, PROBLEM_AGENT_COST},
	{DELAY_BY_NETWORK, NULL, PROBLEM_TOOL_CALLS},
	{DELAY_BY_PROCESS, waits_for_network, PROBLEM_TOOL_CALLS},
	{DELAY_BY_ASLEEP, is_input, PROBLEM_STARVATION},
	{DELAY_BY_DISK, is_reading, PROBLEM_STARVATION},
	{ANY_KIND, NULL, PROBLEM_GOODPUT},
};

enum problem pattern_problem(const struct recording *rec, const struct step_account *a,
	enum time_contrast contrast, const struct delay *d)
{
	const struct evidence e = {rec, a, contrast, d};

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if ((patterns[i].kind == ANY_KIND || patterns[i].kind == d->kind) &&
			(!patterns[i].holds || patterns[i].holds(&e)))
			return patterns[i].problem;
	return PROBLEM_GOODPUT;
}
