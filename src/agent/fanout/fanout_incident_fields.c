/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_incident_fields.c - the struct of an incident from its JSON, by a table of keys. */
#include "agent/fanout/fanout_incident.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/when.h"
#include "json/reader.h"

#define TEXT_BYTES_MAX (128 << 10)

/* ---- values ---- */

enum kind { TEXT, UINT, TIME, REAL, SHARE, SEVERITY, TIMELINE, FIXES, EVIDENCE, WHERE, INT32, PID };

struct key {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct fanout_incident */
	size_t size;   /* TEXT */
};

#define AT(field)                                                                                  \
	offsetof(struct fanout_incident, field), sizeof(((struct fanout_incident *)0)->field)

static const struct key keys[] = {
	{"id", TEXT, AT(incident.id)},
	{"node", TEXT, AT(node)},
	{"severity", SEVERITY, AT(incident.severity)},
	{"summary", TEXT, AT(incident.summary)},
	{"root_cause", TEXT, AT(incident.root_cause)},
	{"explanation", TEXT, AT(incident.explanation)},
	{"pid", PID, AT(incident.pid)},
	{"comm", TEXT, AT(incident.comm)},
	{"op", TEXT, AT(op)},
	{"cuda_op", TEXT, AT(op)},
	{"unit", TEXT, AT(unit)},
	{"evidence_sql", TEXT, AT(incident.evidence_sql)},
	{"detected_at", TIME, AT(detected_ns)},
	{"first_seen_ns", TIME, AT(incident.first.ns)},
	{"last_seen_ns", TIME, AT(incident.last.ns)},
	{"calls", UINT, AT(incident.calls)},
	{"slow_calls", UINT, AT(incident.slow_calls)},
	{"baseline_ns", UINT, AT(incident.baseline_ns)},
	{"p50_ns", UINT, AT(incident.p50_ns)},
	{"p99_ns", UINT, AT(incident.p99_ns)},
	{"slow_p50_ns", UINT, AT(incident.slow_p50_ns)},
	{"excess_ns", UINT, AT(incident.excess_ns)},
	{"count", UINT, AT(incident.count)},
	{"tail_ratio", REAL, AT(incident.tail_ratio)},
	{"explained", SHARE, AT(incident.explained)},
	{"confidence", SHARE, AT(incident.confidence)},
	{"completeness", SHARE, AT(incident.completeness)},
	{"culprit_rank", INT32, AT(incident.culprit_rank)},
	{"timeline", TIMELINE, 0, 0},
	{"fixes", FIXES, 0, 0},
	{"recommendations", FIXES, 0, 0},
	{"evidence", EVIDENCE, 0, 0},
	{"where", WHERE, 0, 0},
};

static const struct key *find_key(const struct json_reader *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (json_read_is(r, keys[i].name))
			return &keys[i];
	return NULL;
}

/* Cut at a whole character. */
static void set_text(const struct json_reader *r, char *out, size_t size)
{
	size_t len = MIN(r->text.len, size - 1);
	const char *s = buf_str(&r->text);

	while (len && len < r->text.len && ((unsigned char)s[len] & 0xc0) == 0x80)
		len--;
	memcpy(out, s, len);
	out[len] = 0;
}

static double finite_or(double v, double other)
{
	return isfinite(v) ? v : other;
}

/* A share of something, or -1: not known. */
static double share_of(double v)
{
	return MIN(MAX(finite_or(v, 0), -1.0), 1.0);
}

/* Published agents write their times as text. */
static int64_t time_of(const struct json_reader *r, enum json_read t)
{
	static const struct when_span none;
	int64_t ns = 0;

	if (t == JSON_READ_INT)
		return r->i;
	if (t != JSON_READ_STRING || when_parse(buf_str(&r->text), &none, false, &ns) < 0)
		return 0;
	return ns;
}

static enum severity severity_of(const struct json_reader *r)
{
	for (int s = SEVERITY_COUNT - 1; s > SEVERITY_LOW; s--)
		if (json_read_is(r, severity_name((enum severity)s)))
			return (enum severity)s;
	return SEVERITY_LOW;
}

static void set_scalar(const struct json_reader *r, enum json_read t, const struct key *k,
	struct fanout_incident *i)
{
	char *field = (char *)i + k->offset;
	bool number = t == JSON_READ_INT || t == JSON_READ_REAL;

	if (k->kind == TEXT && t == JSON_READ_STRING)
		set_text(r, field, k->size);
	else if (k->kind == UINT && t == JSON_READ_INT && r->i >= 0)
		*(uint64_t *)field = (uint64_t)r->i;
	else if (k->kind == REAL && number)
		*(double *)field = finite_or(r->d, 0);
	else if (k->kind == SHARE && number)
		*(double *)field = share_of(r->d);
	else if (k->kind == TIME)
		*(int64_t *)field = time_of(r, t);
	else if (k->kind == SEVERITY && t == JSON_READ_STRING)
		*(enum severity *)field = severity_of(r);
	else if (k->kind == INT32 && t == JSON_READ_INT && r->i >= -1 && r->i <= INT32_MAX)
		*(int32_t *)field = (int32_t)r->i;
	else if (k->kind == PID && t == JSON_READ_INT && r->i >= 0 && r->i <= UINT32_MAX)
		*(uint32_t *)field = (uint32_t)r->i;
}

/* ---- lists ---- */

static void read_step(struct json_reader *r, struct incident_step *s)
{
	while (json_read(r) == JSON_READ_KEY) {
		bool layer = json_read_is(r, "layer"), op = json_read_is(r, "op"),
		     detail = json_read_is(r, "detail"), dur = json_read_is(r, "duration_ns"),
		     us = json_read_is(r, "dur_us"),
		     when = json_read_is(r, "timestamp_ns") || json_read_is(r, "timestamp");
		enum json_read t = json_read(r);

		if (t == JSON_READ_STRING && layer)
			set_text(r, s->layer, sizeof(s->layer));
		else if (t == JSON_READ_STRING && op)
			set_text(r, s->op, sizeof(s->op));
		else if (t == JSON_READ_STRING && detail)
			set_text(r, s->detail, sizeof(s->detail));
		else if (t == JSON_READ_INT && dur && r->i > 0)
			s->dur_ns = (uint64_t)r->i;
		else if (t == JSON_READ_INT && us && r->i > 0 &&
			 r->i < INT64_MAX / (int64_t)NS_PER_US)
			s->dur_ns = (uint64_t)r->i * NS_PER_US;
		else if (when)
			s->time.ns = time_of(r, t);
		json_skip(r, t);
	}
}

static void read_timeline(struct json_reader *r, struct incident *i)
{
	struct incident_step step;

	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t != JSON_READ_OBJECT) {
			json_skip(r, t);
			continue;
		}
		step = (struct incident_step){0};
		read_step(r, &step);
		if (i->step_count < INCIDENT_TIMELINE)
			i->timeline[i->step_count++] = step;
	}
}

static void read_fixes(struct json_reader *r, struct incident *i)
{
	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t == JSON_READ_STRING && i->fix_count < INCIDENT_FIXES)
			set_text(r, i->fixes[i->fix_count++], sizeof(i->fixes[0]));
		json_skip(r, t);
	}
}

static void read_evidence(struct json_reader *r, struct incident *i)
{
	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t == JSON_READ_INT && r->i >= 0 && i->evidence_count < INCIDENT_EVIDENCE)
			i->evidence[i->evidence_count++] = (uint64_t)r->i;
		json_skip(r, t);
	}
}

struct place {
	char function[200], file[200];
	int64_t line;
};

static void read_where(struct json_reader *r, struct fanout_incident *i)
{
	struct place p = {0};

	while (json_read(r) == JSON_READ_KEY) {
		bool function = json_read_is(r, "py_func") || json_read_is(r, "symbol"),
		     file = json_read_is(r, "py_file") || json_read_is(r, "file"),
		     line = json_read_is(r, "py_line") || json_read_is(r, "line"),
		     share = json_read_is(r, "share");
		enum json_read t = json_read(r);

		if (t == JSON_READ_STRING && function)
			set_text(r, p.function, sizeof(p.function));
		else if (t == JSON_READ_STRING && file)
			set_text(r, p.file, sizeof(p.file));
		else if (t == JSON_READ_INT && line)
			p.line = r->i;
		else if ((t == JSON_READ_INT || t == JSON_READ_REAL) && share)
			i->where_share = MAX(share_of(r->d), 0.0);
		json_skip(r, t);
	}
	if (p.function[0] && p.file[0] && p.line > 0)
		snprintf(i->where, sizeof(i->where), "%s() at %s:%lld", p.function, p.file,
			(long long)p.line);
	else if (p.function[0])
		snprintf(i->where, sizeof(i->where), "%s()%s%s", p.function,
			p.file[0] ? " in " : "", p.file);
}

void fanout_incident_fields(struct fanout_incident *i, const char *json, size_t len)
{
	_cleanup_(json_reader_done) struct json_reader r;

	json_reader_init(&r, json, len, TEXT_BYTES_MAX);
	json_read(&r);
	while (json_read(&r) == JSON_READ_KEY) {
		const struct key *k = find_key(&r);
		enum json_read t = json_read(&r);
		bool list = t == JSON_READ_ARRAY;

		if (k && k->kind == TIMELINE && list)
			read_timeline(&r, &i->incident);
		else if (k && k->kind == FIXES && list)
			read_fixes(&r, &i->incident);
		else if (k && k->kind == EVIDENCE && list)
			read_evidence(&r, &i->incident);
		else if (k && k->kind == WHERE && t == JSON_READ_OBJECT)
			read_where(&r, i);
		else if (!json_skip(&r, t))
			return;
		else if (k)
			set_scalar(&r, t, k, i);
	}
}
