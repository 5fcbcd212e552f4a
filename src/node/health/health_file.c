/* SPDX-License-Identifier: Apache-2.0 */
/* health_file.c - see health_file.h. A file that cannot be used never stops the agent: it calibrates
 * again. Nothing that a newer version or another setting wrote is destroyed. */
#include "node/health/health_file.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "json/reader.h"
#include "json/writer.h"

#define ALPHA_TOLERANCE 1e-9
#define SUFFIXES_MAX    1000

const char *health_load_id(enum health_load l)
{
	static const char *const ids[] = {
#define X(NAME, id) [HEALTH_LOAD_##NAME] = id,
		HEALTH_LOADS(X)
#undef X
	};

	return ids[l];
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
	if (r < 0 && r != -EFBIG)
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

static void put_time(struct json_writer *w, wall_time now)
{
	time_t seconds = now.ns / (int64_t)NS_PER_S;
	char date[32], text[64];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%09dZ", date, (int)(now.ns % (int64_t)NS_PER_S));
	json_string_member(w, "saved_at", text);
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
	int r;

	if (b->samples < s->warmup)
		return errinfo_set(reterr, -EAGAIN,
			"the baseline is not saved: it has %" PRIu64 " of the %u samples it needs",
			b->samples, s->warmup);
	w.indent = true;
	json_begin_object(&w);
	json_int_member(&w, "schema_version", HEALTH_FILE_SCHEMA);
	put_time(&w, now);
	json_uint_member(&w, "sample_count", b->samples);
	json_double_member(&w, "fast_alpha", s->fast_alpha);
	json_double_member(&w, "floor_alpha", s->floor_alpha);
	put_signals(&w, "fast_ema", b->fast);
	put_signals(&w, "hard_floor", b->floor);
	json_end_object(&w);
	r = json_finish(&w);
	if (r == 0)
		r = make_folder(path, reterr);
	if (r < 0)
		return r;
	r = file_write_atomic(path, text.data, text.len, 0644);
	return r == 0 ? 0 : errinfo_set(reterr, r, "cannot write %.300s: %s", path, strerror(-r));
}
