/* SPDX-License-Identifier: Apache-2.0 */
/* sketch.c - the log-linear histogram on the agent's side: adding, merging, quantiles, storage.
 *
 * Pure arithmetic over the buckets of wire/record.h. Invariants:
 *   1. counts saturate at UINT64_MAX instead of wrapping, so a hostile blob cannot make a full
 *      histogram look empty;
 *   2. count is the sum of hist[] unless it saturated or a kernel aggregate was read while it was
 *      being updated (then they differ by the calls under way, and quantiles still stay in range);
 *   3. max == 0 with count > 0 means "extremes not known" (sketch_decode() of a bare histogram) or
 *      only zeros; quantiles are clamped to min..max in every other case. */
#include "stat/sketch.h"

#include <math.h>

#include "base/macros.h"

/* Memory grows by what is needed and a quarter: most never grow again. */

/* How many buckets of @more there are none of in @s. */
static uint32_t count_new(const struct sparse *s, const struct sketch *more)
{
	uint32_t n = 0, at = 0;

	for (uint32_t b = 0; b < BUCKET_COUNT; b++) {
		if (!more->hist[b])
			continue;
		while (at < s->used && s->buckets[at].bucket < b)
			at++;
		n += at == s->used || s->buckets[at].bucket != b;
	}
	return n;
}

int sparse_reserve(struct sparse *s, const struct sketch *more)
{
	uint32_t needed = more->count ? s->used + count_new(s, more) : 0, room;
	struct sparse_bucket *p;

	if (needed <= s->room)
		return 0;
	room = MIN(needed + needed / 4, (uint32_t)BUCKET_COUNT);
	p = reallocarray(s->buckets, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	s->buckets = p;
	s->room = room;
	return 0;
}

void sparse_add(struct sparse *s, const struct sketch *more)
{
	struct sketch all = {0};
	uint32_t n = 0;

	sparse_merge(&all, s);
	sketch_merge(&all, more);
	s->count = all.count;
	s->sum = all.sum;
	s->min = all.min;
	s->max = all.max;
	for (uint32_t b = 0; b < BUCKET_COUNT; b++)
		if (all.hist[b])
			s->buckets[n++] = (struct sparse_bucket){b, all.hist[b]};
	s->used = n;
}

void sparse_merge(struct sketch *to, const struct sparse *s)
{
	struct sketch all = {.count = s->count, .sum = s->sum, .min = s->min, .max = s->max};

	for (uint32_t i = 0; i < s->used; i++)
		all.hist[s->buckets[i].bucket] = s->buckets[i].count;
	sketch_merge(to, &all);
}

void sparse_done(struct sparse *s)
{
	free(s->buckets);
	*s = (struct sparse){0};
}

#define BLOB_VERSION 1
#define LEB128_BYTES 10 /* ceil(64 / 7) */

uint64_t bucket_low(unsigned b)
{
	unsigned octave;

	if (b < BUCKET_SUB)
		return b;
	octave = (b - BUCKET_SUB) / BUCKET_SUB;
	return (uint64_t)(BUCKET_SUB + (b - BUCKET_SUB) % BUCKET_SUB) << octave;
}

/* The largest value of bucket @b; the last bucket is open, its nominal end is given. */
static uint64_t bucket_high(unsigned b)
{
	return bucket_low(b + 1) - 1;
}

static void extremes_widen(struct sketch *s, uint64_t min, uint64_t max)
{
	if (!s->count || min < s->min)
		s->min = min;
	if (!s->count || max > s->max)
		s->max = max;
}

void sketch_add(struct sketch *s, uint64_t value, uint64_t weight)
{
	uint32_t b = bucket_of(value);

	if (!weight)
		return;
	extremes_widen(s, value, value);
	s->count = capped_sum(s->count, weight);
	s->sum = capped_sum(s->sum, capped_product(value, weight));
	s->hist[b] = capped_sum(s->hist[b], weight);
}

static uint64_t scale_one(uint64_t v, double factor)
{
	double scaled = (double)v * factor + 0.5;

	return scaled >= (double)UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

void sketch_scale(struct sketch *s, double factor)
{
	if (factor == 1)
		return;
	s->sum = scale_one(s->sum, factor);
	s->count = 0;
	for (int i = 0; i < BUCKET_COUNT; i++) {
		s->hist[i] = scale_one(s->hist[i], factor);
		s->count = capped_sum(s->count, s->hist[i]);
	}
}

void sketch_merge(struct sketch *s, const struct sketch *other)
{
	if (!other->count)
		return;
	extremes_widen(s, other->min, other->max);
	s->count = capped_sum(s->count, other->count);
	s->sum = capped_sum(s->sum, other->sum);
	for (unsigned b = 0; b < BUCKET_COUNT; b++)
		s->hist[b] = capped_sum(s->hist[b], other->hist[b]);
}

/* The kernel keeps the extremes since the entry was made. One that moved between the readings is
 * exact for the difference; one that did not is known to the bucket. */
static void delta_extremes(
	struct sketch *d, const struct wire_agg *now, const struct wire_agg *before)
{
	unsigned first = 0, last = BUCKET_COUNT - 1;

	while (first < last && !d->hist[first])
		first++;
	while (last > first && !d->hist[last])
		last--;
	d->min = now->min_ns;
	d->max = now->max_ns;
	if (!before->count)
		return;
	if (now->min_ns >= before->min_ns)
		d->min = MIN(MAX(bucket_low(first), (uint64_t)now->min_ns), d->max);
	if (now->max_ns <= before->max_ns && last < BUCKET_COUNT - 1)
		d->max = MAX(MIN(bucket_high(last), (uint64_t)now->max_ns), d->min);
}

static uint64_t hist_sum(const struct sketch *s)
{
	uint64_t sum = 0;

	for (unsigned b = 0; b < BUCKET_COUNT; b++)
		sum = capped_sum(sum, s->hist[b]);
	return sum;
}

/* The @timed calls of the histogram speak for all of d->count. Bucket ends are rounded, not buckets:
 * so the buckets add up to the count, whatever was rounded before. */
static void hist_stretch(struct sketch *d, uint64_t timed)
{
	double factor = (double)d->count / (double)timed;
	uint64_t seen = 0, given = 0;

	d->sum = scale_one(d->sum, factor);
	for (unsigned b = 0; b < BUCKET_COUNT; b++) {
		uint64_t end;

		seen += d->hist[b];
		end = seen == timed ? d->count : scale_one(seen, factor);
		d->hist[b] = end - given;
		given = end;
	}
}

/* Of some calls the kernel counts all and times a part. The part stands for all; where none was
 * timed between the readings, those before do. A reading may fall between the two of a call, which is
 * timed first: it waits for the next, where its count is. */
static void delta_complete(struct sketch *d, const struct wire_agg *now)
{
	uint64_t timed = hist_sum(d);

	if (!timed) {
		d->sum = now->sum_ns;
		for (unsigned b = 0; b < BUCKET_COUNT; b++)
			d->hist[b] = now->hist[b];
		timed = hist_sum(d);
	}
	if (timed && timed != d->count)
		hist_stretch(d, timed);
}

void sketch_add_delta(struct sketch *s, const struct wire_agg *now, const struct wire_agg *before)
{
	static const struct wire_agg nothing;
	struct sketch d = {0};

	/* An entry that shrank was removed and made again: all of it is new. */
	if (!before || now->count < before->count)
		before = &nothing;
	d.count = now->count - before->count;
	d.sum = now->sum_ns - before->sum_ns;
	if (!d.count)
		return;
	/* 32-bit kernel counters may wrap between the readings; the difference is still right. */
	for (unsigned b = 0; b < BUCKET_COUNT; b++)
		d.hist[b] = (uint32_t)(now->hist[b] - before->hist[b]);
	delta_complete(&d, now);
	delta_extremes(&d, now, before);
	sketch_merge(s, &d);
}

uint64_t sketch_quantile(const struct sketch *s, double q)
{
	uint64_t rank, seen = 0, middle;
	unsigned b;

	if (!s->count || !(q > 0))
		return 0;
	/* A hair less than q: 0.07 * 100 is 7.000000000000001 in binary, and its rank is 7. */
	rank = q >= 1 ? s->count : (uint64_t)ceil(q * (1 - 1e-12) * (double)s->count);
	if (s->max && rank >= s->count)
		return s->max;
	if (s->max && rank <= 1)
		return s->min;
	for (b = 0; b < BUCKET_COUNT - 1; b++) {
		seen = capped_sum(seen, s->hist[b]);
		if (seen >= rank)
			break;
	}
	middle = bucket_low(b) + (bucket_high(b) - bucket_low(b)) / 2;
	if (!s->max)
		return middle;
	return MIN(MAX(middle, s->min), s->max);
}

static size_t leb128_put(uint8_t *out, uint64_t v)
{
	size_t n = 0;

	do {
		out[n] = (uint8_t)(v & 0x7f);
		v >>= 7;
		if (v)
			out[n] |= 0x80;
		n++;
	} while (v);
	return n;
}

/* Reads one number at *at; only the shortest form is accepted, so equal sketches are equal blobs.
 */
static int leb128_get(const uint8_t *data, size_t len, size_t *at, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < LEB128_BYTES; i++) {
		uint8_t byte;

		if (*at >= len)
			return -EBADMSG;
		byte = data[(*at)++];
		if (i == LEB128_BYTES - 1 && byte > 1)
			return -EBADMSG;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		if (!byte && i > 0)
			return -EBADMSG;
		*ret = v;
		return 0;
	}
	return -EBADMSG;
}

size_t sketch_encode(const struct sketch *s, uint8_t out[SKETCH_BLOB_MAX])
{
	size_t n = 0;
	int previous = -1;

	out[n++] = BLOB_VERSION;
	for (int b = 0; b < BUCKET_COUNT; b++) {
		if (!s->hist[b])
			continue;
		n += leb128_put(out + n, (uint64_t)(b - previous));
		n += leb128_put(out + n, s->hist[b]);
		previous = b;
	}
	return n;
}

int sketch_decode(struct sketch *s, const uint8_t *data, size_t len)
{
	struct sketch d = {0};
	size_t at = 1, bucket = 0; /* 1 + the previous bucket */

	if (!len || data[0] != BLOB_VERSION)
		return -EBADMSG;
	while (at < len) {
		uint64_t distance, count;

		if (leb128_get(data, len, &at, &distance) < 0 ||
			leb128_get(data, len, &at, &count) < 0)
			return -EBADMSG;
		if (!distance || distance > BUCKET_COUNT - bucket || !count)
			return -EBADMSG;
		bucket += distance;
		d.hist[bucket - 1] = count;
		if (__builtin_add_overflow(d.count, count, &d.count))
			return -EBADMSG;
	}
	if (s->count > UINT64_MAX - d.count)
		return -EBADMSG;
	s->count += d.count;
	for (unsigned b = 0; b < BUCKET_COUNT; b++)
		s->hist[b] = capped_sum(s->hist[b], d.hist[b]);
	return 0;
}
