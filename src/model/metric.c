/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c - the arena of a reading and the points in it.
 *
 * Built by one thread, then handed on whole and only read. Invariants: pieces of the arena never
 * move; a metric in the list has at least one point; what does not fit is counted in `cut` and
 * changes nothing else. */
#include "model/metric.h"

#include "base/text.h"

#define PIECE_BYTES (64u << 10)

struct piece {
	struct piece *next;
	size_t used, size;
	_Alignas(16) char data[];
};

struct metric_set {
	wall_time time;
	struct piece *pieces; /* the newest first */
	size_t bytes;
	struct metric *first, *last;
	struct metric *recent; /* the one that got the last point */
	size_t points;
	uint64_t cut;
};

struct metric_set *metric_set_new(wall_time time)
{
	struct metric_set *s = calloc(1, sizeof(*s));

	if (s)
		s->time = time;
	return s;
}

void metric_set_free(struct metric_set *s)
{
	while (s->pieces) {
		struct piece *p = s->pieces;

		s->pieces = p->next;
		free(p);
	}
	free(s);
}

static void *arena_get(struct metric_set *s, size_t size)
{
	struct piece *p = s->pieces;
	void *got;

	size = (size + 15) & ~(size_t)15;
	if (!p || p->size - p->used < size) {
		size_t room = MAX(size, (size_t)PIECE_BYTES - sizeof(*p));

		if (s->bytes + room > METRIC_BYTES_MAX)
			return NULL;
		p = malloc(sizeof(*p) + room);
		if (!p)
			return NULL;
		*p = (struct piece){.next = s->pieces, .size = room};
		s->pieces = p;
		s->bytes += room;
	}
	got = p->data + p->used;
	p->used += size;
	memset(got, 0, size);
	return got;
}

/* The value of a foreign text, as every sink may have it: UTF-8, and no longer than agreed. */
static const char *copy_text(struct metric_set *s, const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char clean[METRIC_TEXT_MAX];
	size_t len = strlen(text), used = 0;
	char *copy;

	while (len) {
		uint32_t cp;
		int n = text_utf8_next(text, len, &cp);
		const char *from = n > 0 ? text : replacement;
		size_t size = n > 0 ? (size_t)n : sizeof(replacement) - 1;

		if (used + size >= sizeof(clean))
			break;
		memcpy(clean + used, from, size);
		used += size;
		n = MAX(n, 1);
		text += n;
		len -= (size_t)n;
	}
	copy = arena_get(s, used + 1);
	if (copy)
		memcpy(copy, clean, used);
	return copy;
}

static struct metric *metric_of(struct metric_set *s, const struct metric_desc *d)
{
	struct metric *m = s->recent;

	if (m && m->desc == d)
		return m;
	for (m = s->first; m; m = m->next)
		if (m->desc == d)
			return m;
	m = arena_get(s, sizeof(*m));
	if (m)
		m->desc = d;
	return m;
}

unsigned metric_key_count(const struct metric_desc *d)
{
	unsigned n = 0;

	while (n < METRIC_KEYS_MAX && d->keys[n].otlp)
		n++;
	return n;
}

static const struct metric_attribute *copy_attributes(
	struct metric_set *s, const struct metric_desc *d, const struct metric_attribute *from)
{
	unsigned n = metric_key_count(d);
	struct metric_attribute *to = arena_get(s, MAX(n, 1u) * sizeof(*to));

	for (unsigned i = 0; to && i < n; i++) {
		to[i] = from[i];
		if (!from[i].text)
			continue;
		to[i].text = copy_text(s, from[i].text);
		if (!to[i].text)
			return NULL;
	}
	return to;
}

static void enter(struct metric_set *s, struct metric *m, struct metric_point *p)
{
	if (m->last)
		m->last->next = p;
	else
		m->first = p;
	m->last = p;
	if (!m->count++) {
		if (s->last)
			s->last->next = m;
		else
			s->first = m;
		s->last = m;
	}
	s->recent = m;
	s->points++;
}

static struct metric_point *put(struct metric_set *s, const struct metric_desc *d, wall_time start,
	const struct metric_attribute *attributes)
{
	struct metric_point *p = NULL;
	struct metric *m = s->points < METRIC_POINTS_MAX ? metric_of(s, d) : NULL;

	if (m && m->count < METRIC_SERIES_MAX)
		p = arena_get(s, sizeof(*p));
	if (p)
		p->attributes = copy_attributes(s, d, attributes);
	if (!p || !p->attributes) {
		s->cut++;
		return NULL;
	}
	p->start = d->kind == METRIC_GAUGE ? (wall_time){0} : start;
	enter(s, m, p);
	return p;
}

struct metric_point *metric_put_int(struct metric_set *s, const struct metric_desc *d,
	wall_time start, int64_t value, const struct metric_attribute *attributes)
{
	struct metric_point *p = put(s, d, start, attributes);

	if (p)
		p->value.i = value;
	return p;
}

struct metric_point *metric_put_double(struct metric_set *s, const struct metric_desc *d,
	wall_time start, double value, const struct metric_attribute *attributes)
{
	struct metric_point *p = put(s, d, start, attributes);

	if (p)
		p->value.d = value;
	return p;
}

double metric_bound(const struct metric_desc *d, unsigned i)
{
	return (double)((UINT64_C(1) << (METRIC_FIRST_BITS + i)) - 1) / d->unit_ns;
}

/* A sketch cuts each power of two into equal parts, so a bucket here is a run of whole ones. */
static void fill(struct metric_histogram *h, const struct metric_desc *d, const struct sketch *s)
{
	unsigned b = 0;

	for (unsigned i = 0; i <= METRIC_BOUNDS; i++) {
		uint64_t end =
			i < METRIC_BOUNDS ? UINT64_C(1) << (METRIC_FIRST_BITS + i) : UINT64_MAX;

		for (; b < BUCKET_COUNT && bucket_low(b) < end; b++)
			h->buckets[i] += s->hist[b];
		h->count += h->buckets[i];
	}
	h->sum = (double)s->sum / d->unit_ns;
	h->min = (double)s->min / d->unit_ns;
	h->max = (double)s->max / d->unit_ns;
}

struct metric_point *metric_put_sketch(struct metric_set *s, const struct metric_desc *d,
	wall_time start, const struct sketch *value, const struct metric_attribute *attributes)
{
	struct metric_histogram *h = arena_get(s, sizeof(*h));
	struct metric_point *p;

	if (!h) {
		s->cut++;
		return NULL;
	}
	p = put(s, d, start, attributes);
	if (!p)
		return NULL;
	fill(h, d, value);
	p->value.h = h;
	return p;
}

const struct metric *metric_first(const struct metric_set *s)
{
	return s->first;
}

wall_time metric_set_time(const struct metric_set *s)
{
	return s->time;
}

size_t metric_set_points(const struct metric_set *s)
{
	return s->points;
}

uint64_t metric_set_cut(const struct metric_set *s)
{
	return s->cut;
}
