/* SPDX-License-Identifier: Apache-2.0 */
/* chain_fixture.h - an account of 100 steps of 100 ms of which those from the 50th on are slow, and the rows around
 * them, written by hand. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/chains/chain.h"

#define CHAIN_T0    INT64_C(1700000000000000000)
#define CHAIN_STEP  ((int64_t)(100 * NS_PER_MS))
#define CHAIN_STEPS 100
#define CHAIN_SLOW  50 /* the first slow step */
#define CHAIN_ROWS  8192

enum { CHAIN_JOB = 100, CHAIN_GROUP = 7 };

struct chain_scene {
	struct step_account account;
	struct step_mark marks[CHAIN_STEPS];
	struct account_bar bars[CHAIN_STEPS];
	struct event events[CHAIN_ROWS];
	struct ledger_row ledger[256];
	struct host_sample samples[64];
	struct gpu_sample gpus[64];
	struct container_sample containers[64];
	struct process_home homes[256];
	struct stack_frame frames[16][6];
	struct stack made[16];
	struct stack *stacks[16];
	struct stack_list list;
	struct recording rec;
	struct delay delay;
};

/* The start of step @n and somewhat after. */
static inline int64_t chain_at(int n)
{
	return CHAIN_T0 + n * CHAIN_STEP + (int64_t)NS_PER_MS;
}

/* Steps that lose 50 ms each to @kind, which no step does before; @slow false: all are alike. */
static inline struct chain_scene *chain_scene_new(enum delay_kind kind, bool slow)
{
	struct chain_scene *s = calloc(1, sizeof(*s));
	struct step_account *a = &s->account;

	assert_non_null(s);
	for (int i = 0; i < CHAIN_STEPS; i++) {
		bool is_slow = slow && i >= CHAIN_SLOW;

		s->marks[i] = (struct step_mark){.start.ns = CHAIN_T0 + i * CHAIN_STEP,
			.dur_ns = (uint64_t)CHAIN_STEP,
			.is_slow = is_slow};
		s->bars[i] = (struct account_bar){.start.ns = CHAIN_T0 + i * CHAIN_STEP,
			.dur_ns = (uint64_t)CHAIN_STEP,
			.steps = 1,
			.slow_steps = is_slow};
	}
	*a = (struct step_account){.pid = CHAIN_JOB,
		.tid = CHAIN_JOB,
		.comm = "python3",
		.steps = CHAIN_STEPS,
		.ordinary_steps = slow ? CHAIN_SLOW : CHAIN_STEPS,
		.slow_steps = slow ? CHAIN_STEPS - CHAIN_SLOW : 0,
		.first.ns = CHAIN_T0,
		.last.ns = CHAIN_T0 + CHAIN_STEPS * CHAIN_STEP,
		.slow_first.ns = slow ? CHAIN_T0 + CHAIN_SLOW * CHAIN_STEP : 0,
		.slow_last.ns = slow ? CHAIN_T0 + CHAIN_STEPS * CHAIN_STEP : 0,
		.ordinary_step_ns = slow ? 50 * NS_PER_MS : 100 * NS_PER_MS,
		.slow_step_ns = slow ? 100 * NS_PER_MS : 0,
		.lost_ns = slow ? 2500 * NS_PER_MS : 0,
		.marks = s->marks,
		.mark_count = CHAIN_STEPS,
		.bars = s->bars,
		.bar_count = CHAIN_STEPS,
		.unknown_reason = ""};
	s->delay = (struct delay){.kind = kind, .slow_ns = 50 * NS_PER_MS, .share = 1};
	s->rec = (struct recording){.events = s->events,
		.ledger = s->ledger,
		.samples = s->samples,
		.gpus = s->gpus,
		.containers = s->containers,
		.homes = s->homes,
		.node = ""};
	return s;
}

static inline struct account_entry *chain_entry(
	struct chain_scene *s, enum account_line line, enum account_owner owner)
{
	struct account_entry *e = &s->account.entries[s->account.entry_count++];

	*e = (struct account_entry){.line = line,
		.owner = owner,
		.pid = CHAIN_JOB,
		.comm = "python3",
		.slow_ns = 50 * NS_PER_MS};
	s->delay.lead = &s->account.entries[0];
	return e;
}

/* In order of pids. */
static inline struct process_home *chain_home(
	struct chain_scene *s, uint32_t pid, const char *comm, const char *script)
{
	struct process_home *h = &s->homes[s->rec.home_count++];

	*h = (struct process_home){.pid = pid, .rank = -1};
	snprintf(h->comm, sizeof(h->comm), "%s", comm);
	snprintf(h->script, sizeof(h->script), "%s", script);
	return h;
}

/* In order of time. */
static inline struct event *chain_event(
	struct chain_scene *s, int64_t at, uint8_t source, uint16_t op, uint32_t pid)
{
	struct event *e = &s->events[s->rec.event_count++];

	assert_true(s->rec.event_count <= CHAIN_ROWS);
	*e = (struct event){.start.ns = at,
		.source = source,
		.op = op,
		.pid = pid,
		.tid = pid,
		.weight = 1,
		.comm = "python3"};
	return e;
}

static inline const struct resource_use *chain_end(struct chain_scene *s)
{
	struct gpu_change gpu;

	assert_int_equal(gpu_change_find(&s->rec, &s->account, &gpu), 0);
	chain_follow(&s->rec, &s->account, &gpu, &s->delay);
	return &s->delay.end;
}

/* A stack of these frames, innermost first; its hash. */
static inline uint64_t chain_stack(
	struct chain_scene *s, const struct stack_frame *frames, size_t n)
{
	size_t k = s->list.count++;

	memcpy(s->frames[k], frames, n * sizeof(*frames));
	s->made[k] = (struct stack){.hash = k + 1, .frames = s->frames[k], .count = n, .stop = ""};
	s->stacks[k] = &s->made[k];
	s->list.items = s->stacks;
	s->rec.stacks = &s->list;
	return k + 1;
}
