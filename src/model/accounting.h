/* SPDX-License-Identifier: Apache-2.0 */
/* accounting.h - the books: what was hit, and what became of it, per source.
 *
 *   hits = stored + aggregated + sum(lost)      once tracing has stopped
 *
 * Before that, and for ever in the file of a tracer that was killed, hits may be more: the rest was
 * on its way to the store. stored and aggregated are what the file holds at any moment.
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
	uint32_t unclean;   /* sessions that ended without a clean stop: killed, or a power cut */
	int64_t unclean_ns; /* of the last event of the last of them; 0: not known */
	struct call_gap_sum unseen; /* calls that no probe could hit: in no number above */
	char missing[256];          /* what the kernel could not do, by name; "": nothing */
	double launch_watched; /* share of the time in which launches were counted; 0: not known */
	double launch_error; /* their number is an estimate within this share of itself; 0: it is none */
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

/* account_in_flight - hits of which nothing more is known. */
static inline uint64_t account_in_flight(const struct account *a)
{
	uint64_t known = a->stored + a->aggregated + account_lost(a);

	return a->hits > known ? a->hits - known : 0;
}

struct buf;

/* accounting_put_unclean - appends the sentence that says why completeness is not known after an
 * unclean end, without a full stop; nothing after a clean one. Returns whether it did. Every answer
 * that tells of losses says this instead of "none lost". */
bool accounting_put_unclean(const struct accounting *books, struct buf *b);

/* accounting_put_launches - appends the sentence that says that the number of launches is an estimate, likewise. */
bool accounting_put_launches(const struct accounting *books, struct buf *b);
