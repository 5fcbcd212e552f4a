// SPDX-License-Identifier: Apache-2.0
/* tally.c - the counters and the file. Linked into each library, so each has its own.
 *
 * Counters lie in stripes, one chosen per thread, so that threads seldom share a cache line; they
 * are atomic all the same, so that no count is lost when they do. A forked child starts from zero:
 * its calls are its own file's ("%p" in the path). The file appears under its name only when
 * complete (written beside it and renamed). */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "knob.h"
#include "tally.h"

#define STRIPES 8

struct cell {
	_Alignas(64) _Atomic uint64_t calls;
	_Atomic uint64_t nested, returned, errors, bytes, total_ns, max_ns;
};
_Static_assert(sizeof(struct cell) == 64, "a cell is a cache line");

bool tally_is_on;
static struct cell cells[STRIPES][TALLY_MAX_SYMBOLS];
static atomic_uint next_stripe;
static _Thread_local unsigned own_stripe; /* 1 + index; 0: none yet */

static struct cell *cell_of(unsigned symbol)
{
	if (!own_stripe)
		own_stripe = 1 + atomic_fetch_add(&next_stripe, 1) % STRIPES;
	return &cells[own_stripe - 1][symbol];
}

static void add(_Atomic uint64_t *to, uint64_t v)
{
	atomic_fetch_add_explicit(to, v, memory_order_relaxed);
}

static uint64_t load(_Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

void tally_count_begin(unsigned symbol, bool nested)
{
	struct cell *c = cell_of(symbol);

	add(&c->calls, 1);
	if (nested)
		add(&c->nested, 1);
}

void tally_count_end(const struct tally_call *call, uint64_t dur_ns, bool failed, uint64_t bytes)
{
	struct cell *c = cell_of(call->symbol);
	uint64_t seen = load(&c->max_ns);

	add(&c->returned, 1);
	add(&c->total_ns, dur_ns);
	if (bytes)
		add(&c->bytes, bytes);
	if (failed)
		add(&c->errors, 1);
	while (seen < dur_ns && !atomic_compare_exchange_weak(&c->max_ns, &seen, dur_ns))
		;
}

void tally_sum(unsigned symbol, struct tally_sum *ret)
{
	struct tally_sum sum = {0};

	for (unsigned i = 0; i < STRIPES; i++) {
		struct cell *c = &cells[i][symbol];
		uint64_t max_ns = load(&c->max_ns);

		/* returned before calls: unreturned is never negative while threads count */
		sum.returned += load(&c->returned);
		sum.calls += load(&c->calls);
		sum.nested += load(&c->nested);
		sum.errors += load(&c->errors);
		sum.bytes += load(&c->bytes);
		sum.total_ns += load(&c->total_ns);
		if (max_ns > sum.max_ns)
			sum.max_ns = max_ns;
	}
	*ret = sum;
}

static void child_start(void)
{
	memset(cells, 0, sizeof(cells));
}

void tally_start(void)
{
	if (!knob_get()->tally || tally_library.symbol_count > TALLY_MAX_SYMBOLS)
		return;
	pthread_atfork(NULL, NULL, child_start);
	tally_is_on = true;
}

int tally_path(const char *pattern, int pid, const char *suffix, char *ret, size_t size)
{
	size_t n = 0;
	int r;

	for (const char *p = pattern; *p; p++) {
		if (p[0] == '%' && p[1] == 'p') {
			r = snprintf(ret + n, size - n, "%d", pid);
			p++;
		} else {
			r = snprintf(ret + n, size - n, "%c", *p);
		}
		if (r < 0 || (size_t)r >= size - n)
			return -ENAMETOOLONG;
		n += (size_t)r;
	}
	r = snprintf(ret + n, size - n, "%s", suffix);
	return r < 0 || (size_t)r >= size - n ? -ENAMETOOLONG : 0;
}

static void print(FILE *f)
{
	fprintf(f, "# symbol calls errors bytes total_ns max_ns nested unreturned\n");
	for (unsigned i = 0; i < tally_library.symbol_count; i++) {
		struct tally_sum s;

		tally_sum(i, &s);
		fprintf(f, "%s %llu %llu %llu %llu %llu %llu %llu\n", tally_library.symbols[i],
			(unsigned long long)s.calls, (unsigned long long)s.errors,
			(unsigned long long)s.bytes, (unsigned long long)s.total_ns,
			(unsigned long long)s.max_ns, (unsigned long long)s.nested,
			(unsigned long long)(s.calls - s.returned));
	}
}

int tally_write(void)
{
	char path[4096], tmp[4096 + 16];
	FILE *f;
	int r;

	if (!tally_is_on)
		return 0;
	r = tally_path(knob_get()->tally, getpid(), tally_library.suffix, path, sizeof(path));
	if (r < 0)
		return r;
	snprintf(tmp, sizeof(tmp), "%s.%d", path, getpid());
	f = fopen(tmp, "we");
	if (!f)
		return -errno;
	print(f);
	r = ferror(f) ? -EIO : 0;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r;
}

__attribute__((destructor)) static void tally_at_exit(void)
{
	int r = tally_write();

	if (r < 0)
		fprintf(stderr, "sim: the tally %s could not be written: %s\n", knob_get()->tally,
			strerror(-r));
}
