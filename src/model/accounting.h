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

#include "base/clock.h"
#include "model/event.h"
#include "wire/ids.h"

/* Calls that were not traced because the library was mapped before it was probed.
 *
 * How many calls there were nobody knows; how long it took is known. Found by the tracer, stored as
 * `call_gaps`, and part of the books: whoever says that nothing was lost says this too. */

#define CALL_GAP_FILE_MAX 256

/* X(NAME, name, because): the name is stored; because follows the file's name in a sentence. */
#define CALL_GAP_REASONS(X)                                                                        \
	X(FIRST_SEEN, "first_seen", "found only then")                                             \
	X(ENDED, "ended", "the process exited before it could be probed")

enum call_gap_reason {
#define X(NAME, ...) CALL_GAP_##NAME,
	CALL_GAP_REASONS(X)
#undef X
		CALL_GAP_REASON_COUNT
};

struct call_gap {
	uint32_t pid;
	uint64_t start_ticks; /* 0: the process had ended before it could be asked */
	char comm[COMM_LEN];  /* "": likewise */
	wall_time from, to;
	enum call_gap_reason reason;
	char file[CALL_GAP_FILE_MAX]; /* the library's path, cut at its front */
};

struct call_gap_sum {
	uint64_t processes;
	struct call_gap longest; /* if there is any */
};

static inline uint64_t call_gap_ns(const struct call_gap *g)
{
	return g->to.ns > g->from.ns ? (uint64_t)(g->to.ns - g->from.ns) : 0;
}

const char *call_gap_reason_name(enum call_gap_reason r);

/* call_gap_reason_find - the reason of that name; CALL_GAP_FIRST_SEEN if there is none. */
enum call_gap_reason call_gap_reason_find(const char *name);

/* call_gap_set_file - the path, or its end if it is longer than CALL_GAP_FILE_MAX allows. */
void call_gap_set_file(struct call_gap *g, const char *path);

/* call_gap_sum_add - one more; @is_new_process: the first of its process. */
void call_gap_sum_add(struct call_gap_sum *s, const struct call_gap *g, bool is_new_process);

/* call_gap_sentence - "calls of PID 123 (train) before 12:00:01.003 were not traced (37.0ms;
 * libcudart.so.12 found only then)", of several processes the longest; "" if there is none. No
 * full stop. Names in it are raw: printing escapes. Returns @out. */
const char *call_gap_sentence(const struct call_gap_sum *s, char *out, size_t size);
#define CALL_GAP_SENTENCE_MAX 512

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

struct buf;

/* accounting_put_unclean - appends the sentence that says why completeness is not known after an
 * unclean end, without a full stop; nothing after a clean one. Returns whether it did. Every answer
 * that tells of losses says this instead of "none lost". */
bool accounting_put_unclean(const struct accounting *books, struct buf *b);

/* accounting_put_launches - appends the sentence that says that the number of launches is an estimate, likewise. */
bool accounting_put_launches(const struct accounting *books, struct buf *b);

/* What tracing costs, as the agent measures it itself, every few seconds. */

struct overhead {
	wall_time time;
	double share;           /* of the busiest process's time that it loses to its probes */
	double low, high;       /* the truth is between */
	uint64_t pairs;         /* of windows with and without probes that were compared; 0: high
				 * is hits x hit_ns, low what waits for the GPU cannot hide of it */
	double budget;          /* of the same; 0: no limit */
	double hit_ns;          /* cost of one hit */
	uint32_t launch_weight; /* one of so many launches is probed */
	double launch_watched; /* share of the time since the start in which launches were counted */
	double launch_error;   /* of their number since the start; 0: all were counted */
	double cpu_pct;        /* the agent's own process, of one CPU, since the last */
	uint64_t rss_bytes;    /* its memory */
	uint64_t db_bytes;     /* the store on disk */
};
