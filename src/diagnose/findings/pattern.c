/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - one table: kind of delay and what else is known of it, to the problem. To add a detection: a row here, its
 * condition if it needs one, and a test. The first row that fits counts. */
#include "diagnose/findings/pattern.h"

#include "diagnose/rows/home.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"

#define ANY_KIND     DELAY_KINDS
#define ANY_RESOURCE RESOURCE_COUNT

struct evidence {
	const struct recording *rec;
	const struct step_account *account;
	enum time_contrast contrast;
	const struct delay *delay;
};

typedef bool condition(const struct evidence *e);

struct pattern {
	enum delay_kind kind;   /* ANY_KIND: whatever it is */
	enum resource resource; /* ANY_RESOURCE: wherever it leads */
	condition *holds;       /* NULL: always */
	enum problem problem;
};

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

static const struct pattern patterns[] = {
	{DELAY_BY_CHECKPOINT, ANY_RESOURCE, NULL, PROBLEM_CHECKPOINT},
	{ANY_KIND, RESOURCE_PICKLE, NULL, PROBLEM_GOODPUT},
	{ANY_KIND, RESOURCE_TIMER, NULL, PROBLEM_GOODPUT},
	{ANY_KIND, RESOURCE_TIMEOUT, NULL, PROBLEM_GOODPUT},
	{ANY_KIND, RESOURCE_COMPILER, NULL, PROBLEM_KERNEL_COMPILER},
	{DELAY_BY_COMPILE, ANY_RESOURCE, NULL, PROBLEM_KERNEL_COMPILER},
	{ANY_KIND, ANY_RESOURCE, is_swap, PROBLEM_MODEL_SWAP},
	{DELAY_BY_GPU, RESOURCE_GPU_PROCESS, NULL, PROBLEM_GPU_SHARING},
	{DELAY_BY_GPU, RESOURCE_GPU_PERHAPS, NULL, PROBLEM_GPU_SHARING},
	{DELAY_BY_GPU, RESOURCE_GPU_CLOCK, NULL, PROBLEM_THROTTLE},
	{DELAY_BY_GPU, RESOURCE_GPU_POWER, NULL, PROBLEM_THROTTLE},
	{DELAY_BY_GPU, RESOURCE_GPU_HEAT, NULL, PROBLEM_THROTTLE},
	{DELAY_BY_COPY, RESOURCE_GPU_PROCESS, NULL, PROBLEM_GPU_SHARING},
	{DELAY_BY_COPY, RESOURCE_GPU_PERHAPS, NULL, PROBLEM_GPU_SHARING},
	{DELAY_BY_COPY, RESOURCE_DISK_READ, NULL, PROBLEM_STARVATION},
	{DELAY_BY_COPY, RESOURCE_DISK_WRITE, NULL, PROBLEM_STARVATION},
	{DELAY_BY_COPY, ANY_RESOURCE, NULL, PROBLEM_PCIE},
	{DELAY_BY_ALLOCATION, ANY_RESOURCE, NULL, PROBLEM_GPU_MEMORY},
	{DELAY_BY_CPU, ANY_RESOURCE, is_apart, PROBLEM_NOISY_NEIGHBOUR},
	{DELAY_BY_DISK, ANY_RESOURCE, is_apart, PROBLEM_NOISY_NEIGHBOUR},
	{DELAY_BY_CPU, ANY_RESOURCE, NULL, PROBLEM_CPU_CONTENTION},
	{DELAY_BY_LOCK, RESOURCE_CPU_OWN, NULL, PROBLEM_CPU_CONTENTION},
	{DELAY_BY_GIL, ANY_RESOURCE, NULL, PROBLEM_CPU_CONTENTION},
	{DELAY_BY_LOADER, ANY_RESOURCE, NULL, PROBLEM_STARVATION},
	{DELAY_BY_NETWORK, ANY_RESOURCE, is_agent, PROBLEM_AGENT_COST},
	{DELAY_BY_NETWORK, ANY_RESOURCE, NULL, PROBLEM_TOOL_CALLS},
	{DELAY_BY_PROCESS, ANY_RESOURCE, waits_for_network, PROBLEM_TOOL_CALLS},
	{DELAY_BY_ASLEEP, ANY_RESOURCE, is_input, PROBLEM_STARVATION},
	{DELAY_BY_DISK, RESOURCE_DISK_READ, NULL, PROBLEM_STARVATION},
	{ANY_KIND, ANY_RESOURCE, NULL, PROBLEM_GOODPUT},
};

enum problem pattern_problem(const struct recording *rec, const struct step_account *a,
	enum time_contrast contrast, const struct delay *d)
{
	const struct evidence e = {rec, a, contrast, d};

	for (const struct pattern *p = patterns; p < patterns + ARRAY_SIZE(patterns); p++)
		if ((p->kind == ANY_KIND || p->kind == d->kind) &&
			(p->resource == ANY_RESOURCE || p->resource == d->end.resource) &&
			(!p->holds || p->holds(&e)))
			return p->problem;
	return PROBLEM_GOODPUT;
}
