/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h - one reading of everything the agent can tell as a number: what exporters take.
 *
 * A metric is described by a const row (struct metric_desc) and has points, one for each
 * combination of its attributes' values. All of a reading lies in one arena that goes with it. The
 * two worlds that read metrics call things differently, so a row has both names: OTLP's dotted ones
 * with a unit beside them, and Prometheus's with the unit inside. */
#pragma once

#include "base/clock.h"
#include "base/macros.h"
#include "stat/sketch.h"

#define METRIC_KEYS_MAX   8
#define METRIC_POINTS_MAX 10000      /* of a reading; more are cut, and counted */
#define METRIC_SERIES_MAX 1000       /* of one metric, likewise */
#define METRIC_BYTES_MAX  (8u << 20) /* of the arena */
#define METRIC_TEXT_MAX   256        /* bytes of an attribute's value; the rest is cut off */

/* Histograms of times have these buckets: up to 2^(10+i) - 1 ns, i from 0, then the rest. Such
 * edges are edges of a sketch, so no call is on the wrong side of one. */
#define METRIC_BOUNDS     25 /* 1.023 µs … 17.2 s */
#define METRIC_FIRST_BITS 10

enum metric_kind {
	METRIC_GAUGE,
	METRIC_COUNTER, /* only grows, since the point's start */
	METRIC_HISTOGRAM,
};

struct metric_key { /* of an attribute, as either world spells it */
	const char *otlp, *label;
};

struct metric_desc {
	const char *otlp;       /* NULL: not exported by OTLP */
	const char *prometheus; /* NULL: not exported to Prometheus */
	const char *unit;       /* UCUM: "s", "By", "1", "{call}" */
	enum metric_kind kind;
	bool is_double;   /* else the values are integers; histograms have double sums */
	double unit_ns;   /* histogram: nanoseconds in one unit */
	const char *help; /* one sentence, without its full stop */
	struct metric_key keys[METRIC_KEYS_MAX]; /* in the order of a point's values */
};

struct metric_attribute {
	const char *text; /* NULL: the number */
	int64_t number;
	bool is_absent; /* the point does not have it */
};
#define METRIC_TEXT(t)   ((struct metric_attribute){.text = (t)})
#define METRIC_NUMBER(n) ((struct metric_attribute){.number = (int64_t)(n)})
#define METRIC_NONE      ((struct metric_attribute){.is_absent = true})
/* The values of a point, one for each key of its metric. */
#define METRIC_OF(...) ((const struct metric_attribute[]){__VA_ARGS__})

struct metric_histogram {
	uint64_t count;
	double sum, min, max;                /* in the metric's unit; extremes only if count > 0 */
	uint64_t buckets[METRIC_BOUNDS + 1]; /* of each alone, not added up */
};

struct metric_point {
	struct metric_point *next;
	const struct metric_attribute *attributes; /* as many as the metric has keys */
	wall_time start; /* counters and histograms: since when; 0: not known */
	union {
		int64_t i;
		double d;
		struct metric_histogram *h;
	} value;
};

struct metric {
	const struct metric_desc *desc;
	struct metric *next;
	struct metric_point *first, *last;
	size_t count;
};

struct metric_set;

/* metric_set_new - an empty reading of @time. NULL: no memory. */
struct metric_set *metric_set_new(wall_time time);
DECLARE_FREE(struct metric_set, metric_set_free)

/* metric_put_X - one point. Texts are copied, with bytes that are not UTF-8 replaced by U+FFFD.
 * @attributes may be NULL for a metric without keys. @start is ignored for gauges. Returns the
 * point, whose value may be changed until the set is handed on; NULL if it was cut. */
struct metric_point *metric_put_int(struct metric_set *s, const struct metric_desc *d,
	wall_time start, int64_t value, const struct metric_attribute *attributes);
struct metric_point *metric_put_double(struct metric_set *s, const struct metric_desc *d,
	wall_time start, double value, const struct metric_attribute *attributes);
struct metric_point *metric_put_sketch(struct metric_set *s, const struct metric_desc *d,
	wall_time start, const struct sketch *value, const struct metric_attribute *attributes);

/* metric_put_count - a whole number, from a start that is not known, with its one label; NULL: it has none. */
static inline void metric_put_count(
	struct metric_set *s, const struct metric_desc *d, const char *label, uint64_t value)
{
	metric_put_int(
		s, d, (wall_time){0}, (int64_t)value, label ? METRIC_OF(METRIC_TEXT(label)) : NULL);
}

const struct metric *metric_first(const struct metric_set *s); /* in the order of first points */
wall_time metric_set_time(const struct metric_set *s);
size_t metric_set_points(const struct metric_set *s);
uint64_t metric_set_cut(const struct metric_set *s); /* points for which there was no room */

/* metric_bound - upper end of bucket @i (below METRIC_BOUNDS) in the unit of @d. */
double metric_bound(const struct metric_desc *d, unsigned i);

/* metric_key_count - how many keys @d has. */
unsigned metric_key_count(const struct metric_desc *d);

/* clang-format off */
/* A row of those that only Prometheus reads: its kind, whether its values are doubles, and its labels. */
#define METRIC_ROW(id, KIND, is_real, name, its_unit, about, ...) \
	static const struct metric_desc id = {.prometheus = name, .unit = its_unit, .kind = METRIC_##KIND, \
		.is_double = is_real, .help = about, .keys = {__VA_ARGS__}}
#define METRIC_LABEL(name) {name, name}
/* clang-format on */
