/* SPDX-License-Identifier: Apache-2.0 */
/* health_baseline.c - see health_baseline.h. */
#include "node/health/health_baseline.h"

#include <libgen.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "json/reader.h"
#include "json/writer.h"

const char *health_signal_key(enum health_signal s); /* "Throughput" */

#define HEALTH_FILE_SCHEMA 1

/* A file that cannot be used never stops the agent: it calibrates
 * again. Nothing that a newer version or another setting wrote is destroyed. */

#define ALPHA_TOLERANCE 1e-9
#define SUFFIXES_MAX    1000

const char *health_load_id(enum health_load l)
{
	return LIST_IDS(HEALTH_LOADS)[l];
}

/* ---- reading ---- */

struct content {
	double schema, samples, fast_alpha, floor_alpha;
	double fast[HEALTH_SIGNAL_COUNT], floor[HEALTH_SIGNAL_COUNT];
	int64_t saved_ns;
	bool has_saved;
};

static bool read_number(struct json_reader *r, double *ret)
{
	enum json_read t = json_read(r);

	if (t != JSON_READ_INT && t != JSON_READ_REAL)
		return false;
	*ret = t == JSON_READ_INT ? (double)r->i : r->d;
	return true;
}

/* "2026-03-24T13:48:44.5Z", as it is written; no other zone. */
static bool read_time(struct json_reader *r, struct content *c)
{
	struct tm date = {0};
	const char *end;
	double part = 0;
	char *after;

	if (json_read(r) != JSON_READ_STRING)
		return false;
	end = strptime(buf_str(&r->text), "%Y-%m-%dT%H:%M:%S", &date);
	if (end && *end == '.') {
		part = strtod(end, &after);
		end = after;
	}
	if (!end || strcmp(end, "Z") || !(part >= 0 && part < 1))
		return false;
	c->saved_ns = (int64_t)timegm(&date) * (int64_t)NS_PER_S + (int64_t)(part * 1e9);
	c->has_saved = true;
	return true;
}

static bool read_signals(struct json_reader *r, double values[HEALTH_SIGNAL_COUNT])
{
	enum json_read t = json_read(r);

	if (t != JSON_READ_OBJECT)
		return false;
	while ((t = json_read(r)) == JSON_READ_KEY) {
		int signal = -1;

		for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++)
			if (json_read_is(r, health_signal_key((enum health_signal)i)))
				signal = i;
		if (signal < 0 ? !json_skip(r, json_read(r)) : !read_number(r, &values[signal]))
			return false;
	}
	return t == JSON_READ_OBJECT_END;
}

static bool read_member(struct json_reader *r, struct content *c)
{
	if (json_read_is(r, "schema_version"))
		return read_number(r, &c->schema);
	if (json_read_is(r, "sample_count"))
		return read_number(r, &c->samples);
	if (json_read_is(r, "fast_alpha"))
		return read_number(r, &c->fast_alpha);
	if (json_read_is(r, "floor_alpha"))
		return read_number(r, &c->floor_alpha);
	if (json_read_is(r, "saved_at"))
		return read_time(r, c);
	if (json_read_is(r, "fast_ema"))
		return read_signals(r, c->fast);
	if (json_read_is(r, "hard_floor"))
		return read_signals(r, c->floor);
	return json_skip(r, json_read(r));
}

static bool read_content(struct json_reader *r, struct content *c)
{
	enum json_read t = json_read(r);

	if (t != JSON_READ_OBJECT)
		return false;
	while ((t = json_read(r)) == JSON_READ_KEY)
		if (!read_member(r, c))
			return false;
	return t == JSON_READ_OBJECT_END && json_read(r) == JSON_READ_END;
}

static bool is_sane(const struct content *c)
{
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++)
		if (!isfinite(c->fast[i]) || c->fast[i] < 0 || !isfinite(c->floor[i]) ||
			c->floor[i] < 0)
			return false;
	return c->samples >= 0 && c->samples <= 1e15 && c->samples == floor(c->samples) &&
	       c->has_saved;
}

/* What @text holds, at @now: FRESH, STALE, CORRUPT, NEWER or OTHER. Pure. */
static enum health_load health_file_parse(const char *text, size_t len,
	const struct health_baseline_settings *s, int64_t age_ns, wall_time now,
	struct health_baseline *ret)
{
	struct content c = {
		.samples = -1, .fast = {NAN, NAN, NAN, NAN}, .floor = {NAN, NAN, NAN, NAN}};
	struct json_reader r;
	bool is_read;

	if (len > HEALTH_FILE_BYTES)
		return HEALTH_LOAD_CORRUPT;
	json_reader_init(&r, text, len, 4096);
	is_read = read_content(&r, &c);
	json_reader_done(&r);
	if (is_read && c.schema > HEALTH_FILE_SCHEMA)
		return HEALTH_LOAD_NEWER;
	if (!is_read || !(c.schema >= HEALTH_FILE_SCHEMA) || !is_sane(&c))
		return HEALTH_LOAD_CORRUPT;
	if (c.saved_ns > now.ns || now.ns - c.saved_ns > age_ns)
		return HEALTH_LOAD_STALE;
	if (!(fabs(c.fast_alpha - s->fast_alpha) <= ALPHA_TOLERANCE) ||
		!(fabs(c.floor_alpha - s->floor_alpha) <= ALPHA_TOLERANCE))
		return HEALTH_LOAD_OTHER;
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		ret->fast[i] = c.fast[i];
		ret->floor[i] = c.floor[i];
	}
	ret->samples = (uint64_t)c.samples;
	return HEALTH_LOAD_FRESH;
}

/* Moves @path to a name that nobody has, so that somebody can look at it. */
static void move_aside(const char *path, wall_time now)
{
	char to[4096];
	int n = snprintf(to, sizeof(to), "%s.corrupt-%" PRId64, path, now.ns);

	for (int i = 1; n > 0 && (size_t)n + 8 < sizeof(to) && i <= SUFFIXES_MAX; i++) {
		if (access(to, F_OK) < 0) {
			(void)rename(path, to);
			return;
		}
		snprintf(to + n, sizeof(to) - (size_t)n, ".%d", i);
	}
}

enum health_load health_file_load(const char *path, const struct health_baseline_settings *s,
	int64_t age_ns, wall_time now, struct health_baseline *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(HEALTH_FILE_BYTES + 1);
	int r = file_read(path, HEALTH_FILE_BYTES, &b);
	enum health_load load;

	if (r == -ENOENT)
		return HEALTH_LOAD_MISSING;
	if ((r < 0 && r != -EFBIG) || file_is_recording(path))
		return HEALTH_LOAD_UNREADABLE;
	load = r == -EFBIG ? HEALTH_LOAD_CORRUPT
			   : health_file_parse(buf_str(&b), b.len, s, age_ns, now, ret);
	if (load == HEALTH_LOAD_STALE)
		(void)unlink(path);
	if (load == HEALTH_LOAD_CORRUPT)
		move_aside(path, now);
	return load;
}

/* ---- writing ---- */

static void put_signals(
	struct json_writer *w, const char *key, const double values[HEALTH_SIGNAL_COUNT])
{
	json_begin_object_member(w, key);
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++)
		json_double_member(w, health_signal_key((enum health_signal)i), values[i]);
	json_end_object(w);
}

static int make_folder(const char *path, struct errinfo *reterr)
{
	_cleanup_free_ char *copy = strdup(path);
	char *folder;

	if (!copy)
		return -ENOMEM;
	folder = dirname(copy);
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return errinfo_set(reterr, -errno, "cannot make the folder %.300s: %s", folder,
			strerror(errno));
	return 0;
}

int health_file_save(const char *path, const struct health_baseline *b,
	const struct health_baseline_settings *s, wall_time now, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(64 << 10);
	struct json_writer w = json_writer_to_buf(&text);
	char date[WHEN_UTC_MAX];
	int r;

	if (b->samples < s->warmup)
		return errinfo_set(reterr, -EAGAIN,
			"the baseline is not saved: it has %" PRIu64 " of the %u samples it needs",
			b->samples, s->warmup);
	w.indent = true;
	json_begin_object(&w);
	JSON_PUT(&w, JSON_I("schema_version", HEALTH_FILE_SCHEMA),
		JSON_S("saved_at", when_utc(date, now)), JSON_U("sample_count", b->samples),
		JSON_R("fast_alpha", s->fast_alpha), JSON_R("floor_alpha", s->floor_alpha));
	put_signals(&w, "fast_ema", b->fast);
	put_signals(&w, "hard_floor", b->floor);
	json_end_object(&w);
	r = json_finish(&w);
	r = r ?: make_folder(path, reterr);
	if (r < 0)
		return r;
	r = file_write_atomic(path, text.data, text.len, 0644);
	return r == 0 ? 0 : errinfo_set(reterr, r, "cannot write %.300s: %s", path, strerror(-r));
}

#define WEIGHTS_TOLERANCE 1e-6
#define PENALTY           0.5 /* factor at and below the floor */

const struct health_score_settings health_score_defaults = {
	.weight =
		{
#define X(NAME, id, key, weight) [HEALTH_##NAME] = weight,
			HEALTH_SIGNALS(X)
#undef X
		},
	.penalty_floor = 0.25,
	.degradation_zone = 0.35,
};

static const struct {
	const char *id, *key;
} names[] = {
#define X(NAME, id, key, weight) [HEALTH_##NAME] = {id, key},
	HEALTH_SIGNALS(X)
#undef X
};

const char *health_signal_id(enum health_signal s)
{
	return names[s].id;
}

const char *health_signal_key(enum health_signal s)
{
	return names[s].key;
}

int health_score_check(const struct health_score_settings *s, struct errinfo *reterr)
{
	double sum = 0;

	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		if (!(s->weight[i] > 0) || !isfinite(s->weight[i]))
			return errinfo_set(
				reterr, -EINVAL, "the weight of %s must be above 0", names[i].id);
		sum += s->weight[i];
	}
	if (!(fabs(sum - 1) <= WEIGHTS_TOLERANCE))
		return errinfo_set(
			reterr, -EINVAL, "the weights must add up to 1, and add up to %g", sum);
	if (!(s->penalty_floor >= 0) || !(s->penalty_floor < s->degradation_zone) ||
		!(s->degradation_zone <= 1))
		return errinfo_set(reterr, -EINVAL,
			"the penalty floor must be at least 0 and below the degradation zone, which must be at most 1");
	return 0;
}

static double penalty_factor(const struct health_score_settings *s, double worst)
{
	if (worst <= s->penalty_floor)
		return PENALTY; /* first, so that limits that coincide mean the penalty */
	if (worst >= s->degradation_zone)
		return 1;
	return PENALTY + (1 - PENALTY) * (worst - s->penalty_floor) /
				 (s->degradation_zone - s->penalty_floor);
}

double health_score(const struct health_score_settings *s, const double values[HEALTH_SIGNAL_COUNT],
	struct health_anomalies *ret_anomalies)
{
	struct health_anomalies found = {0};
	double sum = 0, worst = 1, v;

	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		v = values[i];
		if (isnan(v))
			found.nan |= (uint8_t)(1u << i);
		else if (isinf(v))
			found.infinite |= (uint8_t)(1u << i);
		v = isfinite(v) ? fmin(fmax(v, 0), 1) : 0;
		sum += s->weight[i] * v;
		worst = fmin(worst, v);
	}
	if (ret_anomalies)
		*ret_anomalies = found;
	return fmin(fmax(sum * penalty_factor(s, worst), 0), 1);
}

const struct health_baseline_settings health_baseline_defaults = {.fast_alpha = 0.1,
	.floor_alpha = 0.001,
	.warning_ratio = 0.5,
	.floor_warmth_min = 0.01,
	.warmup = 30};

int health_baseline_check(const struct health_baseline_settings *s, struct errinfo *reterr)
{
	if (!(s->fast_alpha > 0) || !(s->fast_alpha < 1) || !(s->floor_alpha > 0) ||
		!(s->floor_alpha < s->fast_alpha))
		return errinfo_set(reterr, -EINVAL,
			"the alphas must be between 0 and 1, that of the floor below the other");
	if (!(s->warning_ratio > 0) || !(s->warning_ratio <= 1))
		return errinfo_set(
			reterr, -EINVAL, "the warning ratio must be above 0 and at most 1");
	if (!(s->floor_warmth_min >= 0) || !(s->floor_warmth_min < 1))
		return errinfo_set(
			reterr, -EINVAL, "the floor's least value must be from 0 to below 1");
	return 0;
}

/* expm1 and log1p: (1 - alpha)^samples is nearly 1 for the long average's first samples. */
static double corrected(double sum, double alpha, uint64_t samples)
{
	return samples ? sum / -expm1((double)samples * log1p(-alpha)) : 0;
}

double health_baseline_fast(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal)
{
	return corrected(b->fast[signal], s->fast_alpha, b->samples);
}

double health_baseline_floor(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal)
{
	return corrected(b->floor[signal], s->floor_alpha, b->samples);
}

double health_baseline_ratio(const struct health_baseline *b,
	const struct health_baseline_settings *s, int signal, double raw)
{
	double ordinary = health_baseline_fast(b, s, signal);

	return ordinary > 0 ? raw / ordinary : 0;
}

void health_baseline_add(struct health_baseline *b, const struct health_baseline_settings *s,
	const double sample[HEALTH_SIGNAL_COUNT])
{
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		double v = isfinite(sample[i]) ? fmax(sample[i], 0) : 0;

		b->fast[i] += s->fast_alpha * (v - b->fast[i]);
		b->floor[i] += s->floor_alpha * (v - b->floor[i]);
	}
	b->samples++;
}

static struct health_part *part_of(struct health_baseline *b, uint64_t id)
{
	for (uint32_t i = 0; i < b->part_count; i++)
		if (b->parts[i].id == id)
			return &b->parts[i];
	if (b->part_count == HEALTH_PROGRAMS_MAX)
		return NULL;
	b->parts[b->part_count] = (struct health_part){.id = id};
	return &b->parts[b->part_count++];
}

static void share_out(struct health_baseline *b, const struct health_program *list, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += list[i].rate;
	for (size_t i = 0; i < count && sum > 0; i++) {
		struct health_part *p = part_of(b, list[i].id);

		if (!p)
			return;
		p->fast = b->fast[HEALTH_THROUGHPUT] * list[i].rate / sum;
		p->floor = b->floor[HEALTH_THROUGHPUT] * list[i].rate / sum;
	}
}

void health_baseline_keep(
	struct health_baseline *b, const struct health_program *list, size_t count)
{
	bool had_parts = b->part_count > 0;

	if (!had_parts)
		share_out(b, list, count);
	for (uint32_t i = b->part_count; i-- > 0;) {
		const struct health_part p = b->parts[i];

		if (EXISTS(k, count, list[k].id == p.id))
			continue;
		b->fast[HEALTH_THROUGHPUT] = fmax(b->fast[HEALTH_THROUGHPUT] - p.fast, 0);
		b->floor[HEALTH_THROUGHPUT] = fmax(b->floor[HEALTH_THROUGHPUT] - p.floor, 0);
		b->parts[i] = b->parts[--b->part_count];
	}
	if (had_parts && !b->part_count) /* exactly, not what rounding leaves */
		b->fast[HEALTH_THROUGHPUT] = b->floor[HEALTH_THROUGHPUT] = 0;
}

void health_baseline_add_programs(struct health_baseline *b,
	const struct health_baseline_settings *s, const struct health_program *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		part_of(b, list[i].id);
	for (uint32_t i = 0; i < b->part_count; i++) {
		struct health_part *p = &b->parts[i];
		double rate = 0;

		for (size_t j = 0; j < count; j++)
			rate += list[j].id == p->id ? list[j].rate : 0;
		p->fast += s->fast_alpha * (rate - p->fast);
		p->floor += s->floor_alpha * (rate - p->floor);
	}
}

bool health_baseline_degraded(
	const struct health_baseline *b, const struct health_baseline_settings *s)
{
	if (b->samples < s->warmup)
		return false;
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		double floor = health_baseline_floor(b, s, i);

		if (floor >= s->floor_warmth_min && floor > 0 &&
			health_baseline_fast(b, s, i) / floor < s->warning_ratio)
			return true;
	}
	return false;
}
