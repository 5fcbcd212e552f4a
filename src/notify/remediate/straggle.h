/* SPDX-License-Identifier: Apache-2.0 */
/* straggle.h - processes that launch less than they used to while others have their CPUs. Pure.
 *
 * Once a second, for each process: its launches against their moving average (a fifth of the newest). After
 * three seconds of warm-up a process straggles if it launched under 70 % of that and its threads were kept
 * from a CPU at least five times in that second; it goes on while they are kept from it so often, and the
 * average stands still meanwhile. A process that launches nothing for 30 s is forgotten. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "model/event.h"

#define STRAGGLE_PROCESSES  1024
#define STRAGGLE_PREEMPTORS 16

struct straggle_process {
	uint32_t pid;
	char comm[COMM_LEN];
	struct placement place;
	uint64_t launches, before; /* as told now, and at the end of the last second */
	bool told;                 /* in this second */
	double ordinary;           /* launches a second */
	unsigned seconds, idle;    /* of the average; without launches */
	uint64_t switches;         /* in this second: kept from a CPU */
	uint32_t preemptors[STRAGGLE_PREEMPTORS];
	size_t preemptor_count;
	bool is_straggling;
	int64_t since_ns; /* it is */
};

struct straggle {
	struct idmap processes; /* pid -> struct straggle_process */
};

void straggle_init(struct straggle *s);
void straggle_done(struct straggle *s);

/* straggle_take - a stay off CPU, or the end of a process. */
void straggle_take(struct straggle *s, const struct event *e);

/* straggle_launches - @count more of @pid's launches since the trace began are these; may be called several
 * times a second, for several functions. */
void straggle_launches(struct straggle *s, uint32_t pid, const char *comm, uint64_t count);

struct straggle_verdict {
	const struct straggle_process *process;
	double drop_pct;
	bool sustained; /* it was one already a second ago */
};

/* straggle_second - a second is over. @fn is told of those that straggle; what it is given is valid during
 * its call. */
void straggle_second(struct straggle *s, wall_time now,
	void (*fn)(void *arg, const struct straggle_verdict *v), void *arg);
