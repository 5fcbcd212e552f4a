/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tsc.c - see mcp_tsc.h. */
#include "serve/mcp/mcp_tsc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/mcp/mcp_clean.h"
#include "base/clock.h"
#include "base/macros.h"

#define DIGITS 3

static const struct {
	const char *full, *compact; /* "": left out */
} names[] = {
	/* as published */
	{"timestamp", "t"},
	{"pid", "p"},
	{"operation", "op"},
	{"duration_us", "d_us"},
	{"flags", "f"},
	{"count", "n"},
	{"p50_us", "p50"},
	{"p95_us", "p95"},
	{"p99_us", "p99"},
	{"time_fraction", "tf"},
	{"correlated", "cor"},
	{"sched_switch", "ss"},
	{"off_cpu_us", "off"},
	{"severity", "sev"},
	{"summary", "sum"},
	{"root_cause", "rc"},
	{"recommendations", "rec"},
	{"layer", "l"},
	{"detail", "det"},
	{"cpu_percent", "cpu"},
	{"mem_percent", "mem"},
	{"swap_mb", "swp"},
	{"load_avg", "la"},
	{"anomaly_count", "an"},
	{"wall_percent", "w%"},
	{"command", "cmd"},
	{"process_name", "pn"},
	{"timeline", "tl"},
	/* ours */
	{"confidence", "conf"},
	{"explained", "expl"},
	{"first_seen", "from"},
	{"last_seen", "to"},
	{"baseline_us", "base"},
	{"slow_p50_us", "slow"},
	{"excess_us", "lost_us"},
	{"culprit_pid", "by_p"},
	{"culprit", "by"},
	{"max_us", "max"},
	{"frames", "fr"},
	/* only when it is looked into */
	{"explanation", ""},
	{"evidence", ""},
	{"evidence_sql", ""},
	{"unit", ""},
	{"slow_calls", ""},
	{"culprit_share", ""},
	{"tail_ratio", ""},
	{"min_us", ""},
	{"meaning", ""},
};

static const char *compact_name(const char *full)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].full, full))
			return names[i].compact;
	return full;
}

/* ---- full ---- */

static const struct {
	const char *ours, *published;
} renamed[] = {{"comm", "process_name"}, {"op", "operation"}, {"fixes", "recommendations"},
	{"ns", "excess_us"}, {"dur_us", "duration_us"}, {"detected_at", "timestamp"}};

static const char *const moments[] = {"first_seen_ns", "last_seen_ns", "since_ns", "timestamp_ns",
	"detected_at", "first_ns", "last_ns", "slow_first_ns", "slow_last_ns", NULL};

static bool is_moment(const char *key)
{
	for (const char *const *m = moments; *m; m++)
		if (!strcmp(*m, key))
			return true;
	return false;
}

static json_t *moment(json_int_t ns)
{
	time_t s = (time_t)(ns / (json_int_t)NS_PER_S);
	char day[32], text[48];
	struct tm tm;

	if (!ns || !gmtime_r(&s, &tm) || !strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm))
		return json_null();
	snprintf(text, sizeof(text), "%s.%03lldZ", day,
		(long long)(ns % (json_int_t)NS_PER_S) / (long long)NS_PER_MS);
	return json_string(text);
}

static json_t *microseconds(const json_t *ns)
{
	double us = json_number_value(ns) / (double)NS_PER_US;

	return us < 10 && us > 0 ? json_real(round(us * 10) / 10)
				 : json_integer((json_int_t)round(us));
}

/* The published name: "p50_ns" is "p50_us", "first_seen_ns" is "first_seen". */
static void full_name(const char *key, char out[64])
{
	size_t len = strlen(key);

	snprintf(out, 64, "%s", key);
	if (is_moment(key) && len > 3 && !strcmp(key + len - 3, "_ns"))
		out[len - 3] = 0;
	else if (len > 3 && len < 64 && !strcmp(key + len - 3, "_ns"))
		out[len - 2] = 'u';
	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
		if (!strcmp(renamed[i].ours, key))
			snprintf(out, 64, "%s", renamed[i].published);
}

static json_t *full_member(const char *key, const json_t *v)
{
	size_t len = strlen(key);

	if (json_is_integer(v) && is_moment(key))
		return moment(json_integer_value(v));
	if (json_is_number(v) && ((len > 3 && !strcmp(key + len - 3, "_ns")) || !strcmp(key, "ns")))
		return microseconds(v);
	return mcp_tsc_full(v);
}

json_t *mcp_tsc_full(const json_t *v)
{
	char name[64];
	const char *key;
	json_t *out, *one;
	size_t i;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		out = json_object();
		json_object_foreach ((json_t *)v, key, one) {
			full_name(key, name);
			json_object_set_new(out, name, full_member(key, one));
		}
		return out;
	case JSON_ARRAY:
		out = json_array();
		json_array_foreach (v, i, one)
			json_array_append_new(out, mcp_tsc_full(one));
		return out;
	case JSON_STRING:
		return mcp_clean_string_len(
			json_string_value(v), json_string_length(v), MCP_CLEAN_TEXT);
	default: return json_deep_copy(v);
	}
}

/* ---- compact ---- */

static bool is_empty(const json_t *v)
{
	return json_is_null(v) || json_is_false(v) ||
	       (json_is_string(v) && !json_string_length(v)) ||
	       (json_is_array(v) && !json_array_size(v)) ||
	       (json_is_object(v) && !json_object_size(v));
}

/* The day is said once, by the answer's range. */
static json_t *clock_only(const json_t *v)
{
	const char *t = strchr(json_string_value(v), 'T');

	return json_stringn(t ? t + 1 : "", t ? strlen(t) - 2 : 0);
}

/* What is almost all of it does not become all of it. */
static double round_off(double v)
{
	char text[32];
	double short_v;

	snprintf(text, sizeof(text), "%.*g", DIGITS, v);
	short_v = strtod(text, NULL);
	return fabs(v) < 1 && fabs(short_v) == 1 ? v : short_v;
}

/* Members of which 0 says as much as nothing. */
static bool is_idle(const char *key, const json_t *v)
{
	static const char *const keys[] = {"culprit_pid", "baseline_us", "p50_us", "p95_us",
		"p99_us", "max_us", "wall_percent", "slow_p50_us", "duration_us", "anomaly_count",
		"return_code", "damaged_rows", "pruned_rows", "more_events", "lost"};

	for (size_t i = 0; json_is_number(v) && !json_number_value(v) && i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

static json_t *pack(const json_t *full, bool top);

static json_t *pack_member(const char *key, const json_t *v)
{
	bool moment_text = !strcmp(key, "timestamp") || !strcmp(key, "first_seen") ||
			   !strcmp(key, "last_seen");

	return moment_text && json_string_length(v) > 12 ? clock_only(v) : pack(v, false);
}

/* An answer that has nothing to list says so by an empty list. */
static bool is_told(const char *key, const json_t *v, bool top)
{
	if (!*compact_name(key) || is_idle(key, v))
		return false;
	return !is_empty(v) || (top && json_is_array(v));
}

static json_t *pack(const json_t *full, bool top)
{
	const char *key;
	json_t *out, *one;
	size_t i;

	switch (json_typeof(full)) {
	case JSON_OBJECT:
		out = json_object();
		json_object_foreach ((json_t *)full, key, one) {
			if (is_told(key, one, top))
				json_object_set_new(out, compact_name(key), pack_member(key, one));
		}
		return out;
	case JSON_ARRAY:
		out = json_array();
		json_array_foreach (full, i, one)
			json_array_append_new(out, pack(one, false));
		return out;
	case JSON_REAL: return json_real(round_off(json_real_value(full)));
	default: return json_deep_copy(full);
	}
}

json_t *mcp_tsc_pack(const json_t *full)
{
	return pack(full, true);
}
