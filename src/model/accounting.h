/* SPDX-License-Identifier: Apache-2.0 */
/* accounting.h - the books: what was hit, and what became of it, per source.
 *
 *   hits = stored + aggregated + sum(lost)      once tracing has stopped
 *
 * hits is counted by the probes; stored by the store after commit; aggregated by the probes (calls
 * that only count) and by capture (records it folded); lost by whoever dropped something. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/call_gap.h"
#include "wire/ids.h"

struct account {
	uint64_t hits;
	uint64_t stored;
	uint64_t aggregated;
	uint64_t lost[LOSS_COUNT];
};

struct accounting {
	struct account source[WIRE_SOURCE_MAX];
	struct call_gap_sum unseen; /* calls that no probe could hit: in no number above */
};

/* What the kernel's side lost, by the CPU where it happened: a single full ring shows itself so. */
struct cpu_loss {
	uint8_t source, reason; /* enum wire_loss */
	uint16_t cpu;
	uint64_t count;
};
#define CPU_LOSSES_MAX 1024

struct cpu_losses {
	uint32_t count;
	uint32_t left_out; /* rows beyond the ceiling */
	struct cpu_loss rows[CPU_LOSSES_MAX];
};

static inline uint64_t account_lost(const struct account *a)
{
	uint64_t n = 0;

	for (int i = 0; i < LOSS_COUNT; i++)
		n += a->lost[i];
	return n;
}

static inline bool account_balances(const struct account *a)
{
	return a->hits == a->stored + a->aggregated + account_lost(a);
}
