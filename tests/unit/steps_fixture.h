/* SPDX-License-Identifier: Apache-2.0 */
/* steps_fixture.h - an account of steps that adds up: a loader's worker collates slowly in 31 of 512
 * steps, and once in a while a neighbour has the CPU. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "model/stack.h"
#include "model/step_account.h"

#define STEPS_T0_NS  1774099490000000000ll /* 2026-03-21 13:24:50 UTC */
#define STEPS_MS     1000000ull
#define STEPS_PID    4821
#define STEPS_WORKER 4850
#define STEPS_HASH   UINT64_MAX /* stored as -1 */
#define STEPS_BARS   12

static const struct stack_frame steps_frames[] = {
	{.symbol = "memcpy", .file = "libc.so.6"},
	{.py_file = "/venv/lib/python3.11/site-packages/torch/functional.py",
		.py_func = "stack",
		.py_line = 20},
	{.py_file = "/home/u/train.py", .py_func = "collate", .py_line = 88},
	{.py_file = "/usr/lib/python3.11/multiprocessing/process.py",
		.py_func = "run",
		.py_line = 108},
};
static _unused_ struct stack steps_stack = {
	.hash = STEPS_HASH, .frames = steps_frames, .count = 4, .stop = ""};

static inline void steps_fill_lines(uint64_t ns[ACCOUNT_LINES], uint64_t gpu, uint64_t launch,
	uint64_t host, uint64_t cpu, uint64_t unknown)
{
	ns[ACCOUNT_GPU] = gpu * STEPS_MS;
	ns[ACCOUNT_LAUNCH] = launch * STEPS_MS;
	ns[ACCOUNT_HOST] = host * STEPS_MS;
	ns[ACCOUNT_CPU] = cpu * STEPS_MS;
	ns[ACCOUNT_UNKNOWN] = unknown * STEPS_MS;
}

static inline void steps_fill_bars(struct step_account *a)
{
	a->bars = calloc(STEPS_BARS, sizeof(*a->bars));
	a->bar_count = a->bars ? STEPS_BARS : 0;
	for (size_t i = 0; i < a->bar_count; i++) {
		struct account_bar *b = &a->bars[i];
		bool slow = i == 4 || i == 9;

		*b = (struct account_bar){.start.ns = STEPS_T0_NS + (int64_t)(i * 5000 * STEPS_MS),
			.dur_ns = (slow ? 7000 : 4300) * STEPS_MS,
			.steps = 43,
			.slow_steps = slow ? 20 : 0};
		steps_fill_lines(b->ns, slow ? 3444 : 3440, 430, slow ? 3096 : 420, slow ? 20 : 5,
			slow ? 10 : 5);
	}
}

/* steps_fill - 470 ordinary steps of 100 ms, 31 slow ones of 236 ms, 11 others of 100 ms. */
static inline void steps_fill(struct step_account *a)
{
	*a = (struct step_account){.pid = STEPS_PID,
		.tid = STEPS_PID,
		.comm = "python3",
		.origin = STEP_BY_OPTIMIZER,
		.confidence = 0.95,
		.steps = 512,
		.ordinary_steps = 470,
		.slow_steps = 31,
		.other_steps = 11,
		.group = 1,
		.first.ns = STEPS_T0_NS,
		.last.ns = STEPS_T0_NS + 60000000000,
		.slow_first.ns = STEPS_T0_NS + 20000000000,
		.slow_last.ns = STEPS_T0_NS + 50000000000,
		.period_steps = 16,
		.ordinary_step_ns = 100 * STEPS_MS,
		.slow_step_ns = 236 * STEPS_MS,
		.lost_ns = 31 * 136 * STEPS_MS,
		.ordinary_launches = 640,
		.slow_launches = 640,
		.ordinary_bytes = 1 << 20,
		.slow_bytes = 1 << 20,
		.entries = {{.line = ACCOUNT_HOST,
				    .owner = OWNER_LOADER,
				    .pid = STEPS_WORKER,
				    .comm = "pt_data_worker",
				    .stack_hash = STEPS_HASH,
				    .ordinary_ns = 2 * STEPS_MS,
				    .slow_ns = 131 * STEPS_MS},
			{.line = ACCOUNT_CPU,
				.owner = OWNER_THREAD,
				.pid = STEPS_PID,
				.comm = "pt_autograd_0",
				.culprit_pid = 99,
				.culprit = "stress-ng",
				.ordinary_ns = 0,
				.slow_ns = 7 * STEPS_MS},
			{.line = ACCOUNT_GPU,
				.owner = OWNER_SELF,
				.pid = STEPS_PID,
				.comm = "python3",
				.ordinary_ns = 80 * STEPS_MS,
				.slow_ns = 80 * STEPS_MS}},
		.entry_count = 3,
		.unknown_reason = "3 rows of the ledger were lost"};
	steps_fill_lines(a->ordinary_ns, 80, 10, 10, 0, 0);
	steps_fill_lines(a->slow_ns, 80, 10, 137, 7, 2);
	steps_fill_lines(a->ordinary_by[OWNER_SELF], 80, 10, 8, 0, 0);
	steps_fill_lines(a->ordinary_by[OWNER_LOADER], 0, 0, 2, 0, 0);
	steps_fill_lines(a->slow_by[OWNER_SELF], 80, 10, 6, 0, 2);
	steps_fill_lines(a->slow_by[OWNER_LOADER], 0, 0, 131, 0, 0);
	steps_fill_lines(a->slow_by[OWNER_THREAD], 0, 0, 0, 7, 0);
	for (int i = 0; i < ACCOUNT_LINES; i++)
		a->total_ns[i] = 481 * a->ordinary_ns[i] + 31 * a->slow_ns[i];
	steps_fill_bars(a);
}

/* steps_fill_even - 200 steps of 20 ms, none of them slow. */
static inline void steps_fill_even(struct step_account *a)
{
	*a = (struct step_account){.pid = STEPS_PID + 1,
		.tid = STEPS_PID + 1,
		.comm = "infer\033[2J",
		.origin = STEP_BY_WAIT,
		.confidence = 0.6,
		.steps = 200,
		.ordinary_steps = 200,
		.group = 4,
		.first.ns = STEPS_T0_NS,
		.last.ns = STEPS_T0_NS + 4000000000,
		.ordinary_step_ns = 20 * STEPS_MS,
		.entries = {{.line = ACCOUNT_GPU,
			.owner = OWNER_SELF,
			.pid = STEPS_PID + 1,
			.comm = "infer\033[2J",
			.ordinary_ns = 15 * STEPS_MS,
			.slow_ns = 15 * STEPS_MS}},
		.entry_count = 1,
		.unknown_reason = ""};
	steps_fill_lines(a->ordinary_ns, 15, 4, 1, 0, 0);
	for (int i = 0; i < ACCOUNT_LINES; i++)
		a->total_ns[i] = 200 * a->ordinary_ns[i];
}

/* steps_fill_report - both; step_report_done() releases it. */
static inline int steps_fill_report(struct step_report *r)
{
	r->items = calloc(2, sizeof(*r->items));
	if (!r->items)
		return -1;
	r->count = 2;
	steps_fill(&r->items[0]);
	steps_fill_even(&r->items[1]);
	return 0;
}
