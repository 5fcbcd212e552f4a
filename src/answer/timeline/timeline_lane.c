/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_lane.c - see timeline_index.h.
 *
 * Invariants:
 *  1. The busy_ns of a lane's cells add up to the durations that were added to it, their counts to
 *     how many.
 *  2. After timeline_lanes_settle() bins ascend within each lane.
 *  3. Adding costs no more than WORK cells a slice on average: a file of slices that all last as
 *     long as the recording makes bins wider instead. */
#include "answer/timeline/timeline_index.h"

#include "base/search.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/macros.h"

#define BINS_WANTED (1u << 18)
#define SHIFT_MIN   6 /* 64 ns */
#define SHIFT_MAX   50
#define LONG_BINS   8  /* a slice of so many bins is long */
#define NEAR        64 /* cells from the end: a late one is put among them */
#define WORK        16
#define WORK_FREE   (8u << 20)

void timeline_lanes_init(struct timeline_lanes *s, int64_t origin_ns, int64_t span_ns)
{
	*s = (struct timeline_lanes){.origin_ns = origin_ns,
		.shift = SHIFT_MIN,
		.by_key = IDMAP_INIT(TIMELINE_LANES_MAX),
		.cells_max = TIMELINE_CELLS_MAX};
	while (s->shift < SHIFT_MAX && span_ns >> s->shift >= BINS_WANTED)
		s->shift++;
	s->long_ns = (int64_t)LONG_BINS << s->shift;
}

void timeline_lanes_done(struct timeline_lanes *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->list[i]->cells);
		free(s->list[i]);
	}
	free(s->list);
	free(s->rows);
	free(s->longs);
	idmap_done(&s->by_key);
	*s = (struct timeline_lanes){0};
}

static uint64_t hash_key(const struct timeline_key *k)
{
	uint64_t h = hash_number((uint64_t)k->pid << 32 | k->tid);

	h = hash_number(h ^ k->stream);
	return hash_number(h ^ ((uint64_t)k->node << 8 | (uint64_t)k->kind)) | 1;
}

int timeline_lane_find(
	struct timeline_lanes *s, const struct timeline_key *key, struct timeline_lane **ret)
{
	uint64_t id = hash_key(key);
	_cleanup_free_ struct timeline_lane *l = NULL;
	int r;

	*ret = idmap_get(&s->by_key, id);
	if (*ret || s->count == TIMELINE_LANES_MAX)
		return 0;
	r = ARRAY_RESERVE(s->list, s->room, s->count + 1, TIMELINE_LANES_MAX);
	if (r < 0)
		return r;
	l = calloc(1, sizeof(*l));
	r = l ? idmap_put(&s->by_key, id, l) : -ENOMEM;
	if (r < 0)
		return r;
	l->key = *key;
	l->rank = -1;
	l->open_end_ns = INT64_MIN;
	*ret = s->list[s->count++] = TAKE(l);
	return 0;
}

struct timeline_lane *timeline_lane_get(
	const struct timeline_lanes *s, const struct timeline_key *key)
{
	return idmap_get(&s->by_key, hash_key(key));
}

/* ---- cells ---- */

void timeline_cell_add(struct timeline_cell *c, const struct timeline_cell *more)
{
	c->busy_ns += more->busy_ns;
	c->count += more->count;
	if (c->name == more->name) {
		c->lead_ns += more->lead_ns;
	} else if (more->lead_ns > c->lead_ns) {
		c->name = more->name;
		c->lead_ns = more->lead_ns - c->lead_ns;
	} else {
		c->lead_ns -= more->lead_ns;
	}
}

ORDER(by_bin, struct timeline_cell, ASCENDING(bin))

/* Neighbours of one bin become one cell. */
static void join(struct timeline_lanes *s, struct timeline_lane *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		if (n && l->cells[n - 1].bin == l->cells[i].bin)
			timeline_cell_add(&l->cells[n - 1], &l->cells[i]);
		else
			l->cells[n++] = l->cells[i];
	s->cells -= l->count - n;
	l->count = l->sorted = n;
}

static void settle(struct timeline_lanes *s, struct timeline_lane *l)
{
	if (l->sorted == l->count)
		return;
	SORT(l->cells, l->count, by_bin);
	join(s, l);
}

void timeline_lanes_settle(struct timeline_lanes *s)
{
	for (size_t i = 0; i < s->count; i++)
		settle(s, s->list[i]);
}

/* Twice the width. */
static void coarsen(struct timeline_lanes *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct timeline_lane *l = s->list[i];

		settle(s, l);
		for (size_t k = 0; k < l->count; k++)
			l->cells[k].bin >>= 1;
		join(s, l);
	}
	for (size_t i = 0; i < s->bins; i += 2)
		s->rows[i / 2] = s->rows[i] + (i + 1 < s->bins ? s->rows[i + 1] : 0);
	s->bins = (s->bins + 1) / 2;
	s->shift++;
	s->work = 0;
}

/* The first of the cells in order whose bin is not below @bin. */
static size_t lower_bound(const struct timeline_lane *l, int64_t bin)
{
	size_t high = l->sorted;

	if (high && l->cells[high - 1].bin <= bin) /* mostly: rows come in order of time, nearly */
		return high - (l->cells[high - 1].bin == bin);
	return LOWER_BOUND(i, high, l->cells[i].bin < bin);
}

/* Adds to the cell of that bin, which stands at *at or behind it, or appends one. What is appended
 * out of order is put in order later, so that no order of rows costs more than sorting them. */
static int put_cell(
	struct timeline_lanes *s, struct timeline_lane *l, size_t *at, struct timeline_cell cell)
{
	int r;

	while (*at < l->sorted && l->cells[*at].bin < cell.bin)
		++*at;
	if (*at < l->sorted && l->cells[*at].bin == cell.bin) {
		timeline_cell_add(&l->cells[*at], &cell);
		return 0;
	}
	if (l->count > l->sorted && l->cells[l->count - 1].bin == cell.bin) {
		timeline_cell_add(&l->cells[l->count - 1], &cell);
		return 0;
	}
	r = ARRAY_RESERVE(l->cells, l->room, l->count + 1, SIZE_MAX / sizeof(*l->cells));
	if (r < 0)
		return r;
	if (l->sorted == l->count && l->count - *at <= NEAR) {
		memmove(&l->cells[*at + 1], &l->cells[*at], (l->count - *at) * sizeof(cell));
		l->cells[*at] = cell;
		l->sorted++;
	} else {
		l->cells[l->count] = cell;
	}
	l->count++;
	s->cells++;
	if (l->count > 2 * l->sorted + 1024) {
		settle(s, l);
		*at = lower_bound(l, cell.bin);
	}
	return 0;
}

/* The bin of @ns after the origin; wider bins if it would be beyond the last one. */
static uint32_t bin_of(struct timeline_lanes *s, int64_t ns)
{
	while (ns > 0 && s->shift < SHIFT_MAX + 10 && ns >> s->shift >= TIMELINE_BINS_MAX)
		coarsen(s);
	return ns > 0 ? (uint32_t)MIN(ns >> s->shift, (int64_t)TIMELINE_BINS_MAX - 1) : 0;
}

static int64_t after_origin(const struct timeline_lanes *s, int64_t ns)
{
	return ns > s->origin_ns ? ns - s->origin_ns : 0;
}

int timeline_lane_add(struct timeline_lanes *s, struct timeline_lane *lane, int64_t start_ns,
	uint64_t dur_ns, uint16_t name)
{
	int64_t end = after_origin(s, start_ns + (int64_t)dur_ns);
	uint32_t last = bin_of(s, dur_ns ? MAX(end - 1, INT64_C(0)) : end);
	uint32_t bin = bin_of(s, after_origin(s, start_ns));
	uint64_t left = dur_ns;
	uint32_t count = 1;
	size_t at = lower_bound(lane, bin);
	int r = 0;

	lane->rows++;
	s->added++;
	lane->busy_ns += dur_ns;
	for (; r == 0 && bin <= last; bin++) {
		uint64_t part =
			bin == last
				? left
				: (uint64_t)MIN((int64_t)left,
					  (((int64_t)bin + 1) << s->shift) - (end - (int64_t)left));

		r = put_cell(s, lane, &at,
			(struct timeline_cell){.bin = bin,
				.count = count,
				.busy_ns = part,
				.lead_ns = (float)part,
				.name = name});
		left -= part;
		count = 0;
		s->work++;
	}
	while (r == 0 && (s->cells > s->cells_max || s->work > WORK * s->added + WORK_FREE))
		coarsen(s);
	return r;
}

int timeline_lanes_row(struct timeline_lanes *s, int64_t start_ns)
{
	uint32_t bin = bin_of(s, after_origin(s, start_ns));

	if (bin >= s->bins) {
		size_t bins = s->bins;
		size_t want = MIN((size_t)TIMELINE_BINS_MAX, MAX((size_t)bin + 1, 2 * bins));
		uint32_t *rows = reallocarray(s->rows, want, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		memset(rows + bins, 0, (want - bins) * sizeof(*rows));
		s->rows = rows;
		s->bins = want;
	}
	s->rows[bin]++;
	return 0;
}

/* ---- long slices ---- */

/* Fewer of them: only those twice as long. */
static void drop_longs(struct timeline_lanes *s)
{
	size_t n = 0;

	s->long_ns *= 2;
	for (size_t i = 0; i < s->long_count; i++)
		if (s->longs[i].dur_ns >= (uint64_t)s->long_ns)
			s->longs[n++] = s->longs[i];
	s->long_count = n;
}

int timeline_lanes_long(struct timeline_lanes *s, const struct timeline_long *l)
{
	int r;

	while (s->long_count == TIMELINE_LONGS_MAX && s->long_ns < INT64_MAX / 4)
		drop_longs(s);
	if (l->dur_ns < (uint64_t)s->long_ns || s->long_count == TIMELINE_LONGS_MAX)
		return 0;
	r = ARRAY_RESERVE(s->longs, s->long_room, s->long_count + 1, TIMELINE_LONGS_MAX);
	if (r == 0)
		s->longs[s->long_count++] = *l;
	return r;
}

/* ---- sums ---- */

uint64_t timeline_lanes_rows(const struct timeline_lanes *s, int64_t from_ns, int64_t to_ns)
{
	int64_t first = after_origin(s, from_ns) >> s->shift;
	int64_t last = after_origin(s, to_ns) >> s->shift;
	uint64_t n = 0;

	for (int64_t i = first; i <= last && i < (int64_t)s->bins; i++)
		n += s->rows[i];
	return n;
}

int timeline_lane_sum(const struct timeline_lanes *s, const struct timeline_lane *lane,
	int64_t from_ns, int64_t to_ns, unsigned shift, timeline_sum_fn *fn, void *arg)
{
	unsigned down = shift > s->shift ? shift - s->shift : 0;
	/* whole bins of the view */
	int64_t first = after_origin(s, from_ns) >> s->shift >> down << down;
	int64_t last = (((after_origin(s, to_ns) >> s->shift >> down) + 1) << down) - 1;
	struct timeline_cell sum = {0};
	bool open = false;
	int r = 0;

	if (to_ns < s->origin_ns)
		return 0;
	for (size_t i = lower_bound(lane, first); r == 0 && i < lane->count; i++) {
		struct timeline_cell c = lane->cells[i];

		if (c.bin > last)
			break;
		c.bin >>= down;
		if (open && sum.bin == c.bin) {
			timeline_cell_add(&sum, &c);
			continue;
		}
		if (open)
			r = fn(arg, &sum);
		sum = c;
		open = true;
	}
	return r == 0 && open ? fn(arg, &sum) : r;
}
