/* SPDX-License-Identifier: Apache-2.0 */
/* comm_recovery.c - see comm_recovery.h. The error of a shift is the median, over the collectives that both ranks
 * have, of how far the difference of their waits is from that of their arrivals. */
#include "diagnose/findings/comm_recovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "stat/robust.h"

#define SHIFT_MAX    2    /* the probes come to all ranks at one moment */
#define PAIRS_MIN    20   /* fewer say nothing */
#define PAIRS_MAX    2000 /* more say no more */
#define CLEARLY      2    /* the next best shift is so many times worse */
#define FIRST_SEQ    (1 + SHIFT_MAX)
#define ERROR_MAX_NS UINT64_C(2000000) /* and 2 ms is no fit, whatever the others are */

struct rank_rows { /* of one rank: rows[first .. first + count), by seq */
	size_t first, count;
	int shift;
};

static bool is_orphan(const struct collective_row *r)
{
	return !r->c.comm_hash && r->op != NCCL_SEND && r->op != NCCL_RECV && r->c.seq &&
	       r->c.seq < UINT64_C(1) << 60 && r->c.nranks > 1 && r->c.rank >= 0 &&
	       r->c.rank < r->c.nranks && r->start.ns >= 0 && r->start.ns <= INT64_C(1) << 62;
}

static int by_rank(const void *a, const void *b)
{
	const struct collective_row *x = a, *y = b;
	int r = strcmp(x->node, y->node);

	if (!r)
		r = (x->c.nranks > y->c.nranks) - (x->c.nranks < y->c.nranks);
	if (!r)
		r = (x->c.rank > y->c.rank) - (x->c.rank < y->c.rank);
	if (!r)
		r = (x->pid > y->pid) - (x->pid < y->pid);
	return r ? r : (x->c.seq > y->c.seq) - (x->c.seq < y->c.seq);
}

static bool is_one_job(const struct collective_row *x, const struct collective_row *y)
{
	return x->c.nranks == y->c.nranks && !strcmp(x->node, y->node);
}

/* One process and one numbering; else there are several communicators of this size. */
static bool is_plain(const struct collective_row *rows, const struct rank_rows *r)
{
	for (size_t i = r->first + 1; i < r->first + r->count; i++)
		if (rows[i].pid != rows[i - 1].pid || rows[i].c.seq <= rows[i - 1].c.seq)
			return false;
	return true;
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)(a - b) : (uint64_t)(b - a);
}

/* UINT64_MAX: too few pairs. */
static uint64_t shift_error(const struct collective_row *rows, const struct rank_rows *a,
	const struct rank_rows *b, int shift, uint64_t *scratch)
{
	size_t i = a->first, k = b->first, n = 0;

	while (i < a->first + a->count && k < b->first + b->count && n < PAIRS_MAX) {
		const struct collective_row *x = &rows[i], *y = &rows[k];
		int64_t lead = (int64_t)x->c.seq + shift - (int64_t)y->c.seq;

		if (lead == 0 && x->c.wait_ns >= 0 && y->c.wait_ns >= 0)
			scratch[n++] =
				distance(y->c.wait_ns - x->c.wait_ns, x->start.ns - y->start.ns);
		i += lead <= 0;
		k += lead >= 0;
	}
	if (n < PAIRS_MIN)
		return UINT64_MAX;
	robust_sort(scratch, n);
	return robust_median(scratch, n);
}

/* How the numbers of @b lie to those of @a; false if that is not clear. */
static bool find_shift(const struct collective_row *rows, const struct rank_rows *a,
	struct rank_rows *b, uint64_t *scratch)
{
	uint64_t best = UINT64_MAX, next = UINT64_MAX;

	for (int shift = -SHIFT_MAX; shift <= SHIFT_MAX; shift++) {
		uint64_t error = shift_error(rows, a, b, shift, scratch);

		if (error < best) {
			next = best;
			best = error;
			b->shift = shift;
		} else if (error < next) {
			next = error;
		}
	}
	return best <= ERROR_MAX_NS && best < next / CLEARLY;
}

/* The name of the communicator: ranks of other nodes cannot be told to belong to it. */
static uint64_t made_up_hash(const struct collective_row *r)
{
	return hash_number(hash_bytes(r->node, strlen(r->node)) ^ (uint64_t)r->c.nranks) | 1;
}

/* Adopts rows[0 .. count), which are one job's; returns how many stay, all or none. */
static size_t comm_recovery_job(struct collective_row *rows, size_t count, uint64_t *scratch)
{
	struct rank_rows first = {0}, r = {0};
	uint64_t hash = made_up_hash(&rows[0]);
	size_t ranks = 0;

	for (size_t i = 0; i < count; i += r.count) {
		r = (struct rank_rows){.first = i};
		while (i + r.count < count && rows[i + r.count].c.rank == rows[i].c.rank)
			r.count++;
		if (!is_plain(rows, &r))
			return 0;
		if (ranks++ == 0)
			first = r;
		else if (!find_shift(rows, &first, &r, scratch))
			return 0;
		/* The first rank is compared by its own numbers until all are done. */
		for (size_t k = i; ranks > 1 && k < i + r.count; k++) {
			rows[k].c.seq = (uint64_t)((int64_t)rows[k].c.seq - r.shift + FIRST_SEQ);
			rows[k].c.comm_hash = hash;
		}
	}
	for (size_t k = 0; k < first.count; k++) {
		rows[k].c.seq += FIRST_SEQ;
		rows[k].c.comm_hash = hash;
	}
	return ranks > 1 ? count : 0;
}

int comm_recovery_run(const struct recording *rec, struct collective_row **ret, size_t *ret_count)
{
	_cleanup_free_ uint64_t *scratch = calloc(PAIRS_MAX, sizeof(*scratch));
	_cleanup_free_ struct collective_row *rows = NULL;
	size_t n = 0, kept = 0, stay, job;

	*ret = NULL;
	*ret_count = 0;
	for (size_t i = 0; i < rec->collective_count; i++)
		n += is_orphan(&rec->collectives[i]);
	if (!n)
		return 0;
	rows = calloc(n, sizeof(*rows));
	if (!rows || !scratch)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < rec->collective_count; i++)
		if (is_orphan(&rec->collectives[i]))
			rows[n++] = rec->collectives[i];
	qsort(rows, n, sizeof(*rows), by_rank);
	for (size_t i = 0; i < n; i += job) {
		for (job = 1; i + job < n && is_one_job(&rows[i], &rows[i + job]);)
			job++;
		stay = comm_recovery_job(&rows[i], job, scratch);
		memmove(&rows[kept], &rows[i], stay * sizeof(*rows));
		kept += stay;
	}
	if (!kept)
		return 0;
	*ret = TAKE(rows);
	*ret_count = kept;
	return 0;
}
