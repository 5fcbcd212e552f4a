/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/compose/told.h"

#include <stdio.h>
#include <string.h>

#include "diagnose/accounts/tracer_name.h"
#include "base/macros.h"
#include "base/text.h"
#include "wire/op_kind.h"

#define KNOWN_SHARE 0.5
#define VIEW_SHARE  0.5

#define BIT(NAME)  (UINT32_C(1) << DELAY_BY_##NAME)
#define EVERYTHING UINT32_MAX
#define ASLEEP_FOR                                                                                 \
	(BIT(ASLEEP) | BIT(LOCK) | BIT(GIL) | BIT(LOADER) | BIT(PROCESS) | BIT(NETWORK) |          \
		BIT(STOPPED))

STATIC_ASSERT((int)DELAY_KINDS < 32);

bool told_is_about_time(enum problem p)
{
	switch (p) {
	case PROBLEM_SLOW_CALL:
	case PROBLEM_STARVATION:
	case PROBLEM_AGENT_COST:
	case PROBLEM_CPU_CONTENTION:
	case PROBLEM_TOOL_CALLS:
	case PROBLEM_GOODPUT:
	case PROBLEM_THROTTLE:
	case PROBLEM_NOISY_NEIGHBOUR:
	case PROBLEM_COLD_START:
	case PROBLEM_GPU_SHARING:
	case PROBLEM_CHECKPOINT:
	case PROBLEM_PCIE:
	case PROBLEM_MODEL_SWAP: return true;
	default: return false;
	}
}

bool told_has_cause(const struct incident *inc)
{
	return (inc->severity >= SEVERITY_MEDIUM || tracer_is_blamed(inc)) &&
	       (inc->problem != PROBLEM_GOODPUT || inc->explained > KNOWN_SHARE);
}

/* Problems whose name says what the time went into, whatever their causes are; 0: the causes say it. */
static uint32_t kinds_of_problem(const struct incident *inc)
{
	switch (inc->problem) {
	case PROBLEM_PCIE: return BIT(COPY);
	case PROBLEM_THROTTLE:
	case PROBLEM_GPU_SHARING: return BIT(GPU) | BIT(SYNC);
	case PROBLEM_CHECKPOINT:
		return BIT(CHECKPOINT) | BIT(DISK) | BIT(HOST) | BIT(COPY) | BIT(MEMORY);
	case PROBLEM_MODEL_SWAP: /* files, allocations, copies and what waits for them */
	case PROBLEM_GOODPUT: return EVERYTHING & ~BIT(CPU);
	case PROBLEM_COLD_START:
		return BIT(CALL) | BIT(LAUNCH) | BIT(ALLOCATION) | BIT(HOST) | BIT(GRAPH);
	default: return 0;
	}
}

static uint32_t kinds_of_cause(enum cause c)
{
	switch (c) {
	case CAUSE_PREEMPTED:
	case CAUSE_RUN_QUEUE: return BIT(CPU);
	case CAUSE_BLOCK_IO: return BIT(DISK) | BIT(CHECKPOINT) | BIT(MEMORY);
	case CAUSE_NETWORK: return BIT(NETWORK) | BIT(PROCESS);
	case CAUSE_RECLAIM: return BIT(MEMORY);
	case CAUSE_ASLEEP: return ASLEEP_FOR;
	case CAUSE_HOST_CODE: return BIT(HOST) | BIT(GC) | BIT(COMPILE) | BIT(CHECKPOINT);
	default: return 0;
	}
}

static uint64_t about_ns(const struct incident *inc, uint32_t kinds, bool with_sleep)
{
	uint64_t ns = 0;

	if (kinds_of_problem(inc))
		return kinds_of_problem(inc) & kinds ? inc->excess_ns : 0;
	for (int i = 0; i < inc->cause_count; i++)
		if (kinds_of_cause(inc->causes[i].cause) & kinds &&
			(with_sleep || inc->causes[i].cause != CAUSE_ASLEEP))
			ns += inc->causes[i].ns;
	return ns;
}

bool told_is_view(const struct incident *inc, uint32_t kinds)
{
	return inc->excess_ns &&
	       (double)about_ns(inc, kinds, true) >= VIEW_SHARE * (double)inc->excess_ns;
}

static bool is_pause(enum problem p)
{
	return p == PROBLEM_STARVATION || p == PROBLEM_TOOL_CALLS || p == PROBLEM_AGENT_COST;
}

bool told_is_of_before(const struct incident *inc, int64_t since_ns)
{
	return is_pause(inc->problem) && inc->last.ns <= since_ns;
}

bool told_leads(const struct incident *inc, uint32_t kinds)
{
	uint64_t mine = about_ns(inc, kinds, false), other = 0;

	for (int i = 0; i < inc->cause_count; i++)
		if (!(kinds_of_cause(inc->causes[i].cause) & kinds))
			other = MAX(other, inc->causes[i].ns);
	return is_pause(inc->problem) && mine && mine >= other;
}

/* Pauses are told by what most of each was spent on (engine/gap.c): what else the program did in them is the same
 * story. Who took its CPU meanwhile is another. */
static bool is_own_pause(const struct incident *inc, enum delay_kind kind)
{
	return kind != DELAY_BY_CPU && is_pause(inc->problem);
}

/* Slow calls whose cause is known are why the line of these calls grew. Waits for the GPU are not: they grow by what
 * it has to do. */
static uint32_t kinds_of_calls(const struct incident *inc)
{
	if (!inc->slow_calls)
		return 0;
	switch (op_kind_line(inc->source, inc->op)) {
	case LEDGER_COPY: return BIT(COPY);
	case LEDGER_LAUNCH: return BIT(LAUNCH);
	case LEDGER_ALLOC: return BIT(ALLOCATION);
	case LEDGER_GRAPH: return BIT(GRAPH);
	case LEDGER_COLLECTIVE: return BIT(COLLECTIVE);
	case LEDGER_CALL: return BIT(CALL);
	default: return 0;
	}
}

uint64_t told_ns(const struct incident *inc, enum delay_kind kind)
{
	uint32_t bit = UINT32_C(1) << kind;

	if ((kinds_of_calls(inc) | kinds_of_problem(inc)) & bit)
		return (uint64_t)(inc->explained * (double)inc->excess_ns);
	return told_is_view(inc, bit) || is_own_pause(inc, kind) ? about_ns(inc, bit, false) : 0;
}

void told_cede(struct incident *inc, uint32_t kinds)
{
	double known_ns = inc->explained * (double)inc->excess_ns;
	uint64_t ceded = 0;
	char text[TEXT_MAX];
	size_t said;
	int kept = 0;

	for (int i = 0; i < inc->cause_count; i++) {
		if (kinds_of_cause(inc->causes[i].cause) & kinds &&
			inc->causes[i].cause != CAUSE_ASLEEP)
			ceded += inc->causes[i].ns;
		else
			inc->causes[kept++] = inc->causes[i];
	}
	if (!ceded || ceded >= inc->excess_ns)
		return;
	inc->cause_count = kept;
	inc->excess_ns -= ceded;
	inc->explained = MAX(known_ns - (double)ceded, 0.0) / (double)inc->excess_ns;
	said = strlen(inc->explanation);
	if (said) /* with figures from before */
		snprintf(inc->explanation + said, sizeof(inc->explanation) - said,
			" Of that extra time, %s is an incident of its own.",
			text_format_duration(text, ceded));
}
