/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - exact counts of the calls of one library, taken at its exported functions.
 *
 * This is what tests hold the agent's numbers against, so a call is counted the moment it is
 * entered, and what is known at its end (error, bytes, time) the moment before it returns. A call
 * that is left by longjmp, or still under way when the file is written, is in `calls` and in
 * `unreturned`. Without SIM_TALLY a call costs one branch here and reads no clock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct tally_library {
	const char *suffix; /* of the file: ".cudart" */
	const char *const *symbols;
	size_t symbol_count; /* at most TALLY_MAX_SYMBOLS */
};

#define TALLY_MAX_SYMBOLS 128

struct tally_call {
	unsigned symbol;
	uint64_t start_ns; /* 0: not counted */
};

struct tally_sum {
	uint64_t calls, nested, returned, errors, bytes, total_ns, max_ns;
};

extern const struct tally_library tally_library; /* each library defines its own */
extern bool tally_is_on;

void tally_count_begin(unsigned symbol, bool nested);
void tally_count_end(const struct tally_call *c, uint64_t dur_ns, bool failed, uint64_t bytes);
void tally_sum(unsigned symbol, struct tally_sum *ret);

/* tally_start - count from now on if SIM_TALLY is set; runs before any exported function. */
void tally_start(void);

/* tally_path - @pattern with %p replaced by @pid, and @suffix appended; -ENAMETOOLONG. */
int tally_path(const char *pattern, int pid, const char *suffix, char *ret, size_t size);

/* tally_write - replace the library's file. 0 (also when not counting) or -errno. */
int tally_write(void);

static inline uint64_t tally_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static inline struct tally_call tally_begin(unsigned symbol, bool nested)
{
	struct tally_call c = {symbol, 0};

	if (__builtin_expect(tally_is_on, 0)) {
		tally_count_begin(symbol, nested);
		c.start_ns = tally_now_ns();
	}
	return c;
}

static inline void tally_end(const struct tally_call *c, bool failed, uint64_t bytes)
{
	if (__builtin_expect(c->start_ns != 0, 0))
		tally_count_end(c, tally_now_ns() - c->start_ns, failed, bytes);
}
