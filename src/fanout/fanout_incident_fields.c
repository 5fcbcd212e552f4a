/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_incident_fields.c - the struct of an incident from its JSON, by the table of its fields. */
#include "fanout/fanout_incident.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "json/reader.h"
#include "model/incident.h"

#define TEXT_BYTES_MAX (128 << 10)

/* ---- values ---- */

/* The field that a key names, also by the names of stored verdicts; NULL: what the struct has no room for. */
static const struct incident_field *find_field(const struct json_reader *r)
{
	if (json_read_is(r, "cuda_op"))
		return &incident_fields[INCIDENT_F_OP];
	if (json_read_is(r, "recommendations"))
		return &incident_fields[INCIDENT_F_FIXES];
	return incident_field_of_key(buf_str(&r->text));
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

static void set_scalar(const struct json_reader *r, enum json_read t,
	const struct incident_field *f, struct fanout_incident *i)
{
	struct incident_value v = {.type = INCIDENT_NOTHING};

	if (f == &incident_fields[INCIDENT_F_DETECTED])
		i->detected_ns = time_of(r, t);
	else if (f == &incident_fields[INCIDENT_F_OP] && t == JSON_READ_STRING)
		set_text(r, i->op, sizeof(i->op));
	else if (f == &incident_fields[INCIDENT_F_UNIT] && t == JSON_READ_STRING)
		set_text(r, i->unit, sizeof(i->unit));
	else if (f->form == INCIDENT_FORM_TIME || t == JSON_READ_INT)
		v = (struct incident_value){.type = INCIDENT_INT,
			.i = f->form == INCIDENT_FORM_TIME ? time_of(r, t) : r->i};
	else if (t == JSON_READ_REAL)
		v = (struct incident_value){.type = INCIDENT_REAL, .d = r->d};
	else if (t == JSON_READ_STRING)
		v = (struct incident_value){.type = INCIDENT_TEXT, .s = buf_str(&r->text)};
	incident_field_set(f, &i->incident, &v);
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

static void read_pids(struct json_reader *r, struct incident *i)
{
	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t == JSON_READ_INT && r->i > 0 && r->i <= UINT32_MAX &&
			i->pid_count < INCIDENT_PIDS)
			i->pids[i->pid_count++] = (uint32_t)r->i;
		json_skip(r, t);
	}
}

/* What is in @lists[FIELD], and nothing else, is read from an array. */
static void (*const lists[INCIDENT_FIELD_COUNT])(struct json_reader *r, struct incident *i) = {
	[INCIDENT_F_TIMELINE] = read_timeline,
	[INCIDENT_F_FIXES] = read_fixes,
	[INCIDENT_F_EVIDENCE] = read_evidence,
	[INCIDENT_F_PIDS] = read_pids,
};

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
		bool where = json_read_is(&r, "where");
		const struct incident_field *f = find_field(&r);
		enum json_read t = json_read(&r);

		if (where && t == JSON_READ_OBJECT)
			read_where(&r, i);
		else if (f && t == JSON_READ_ARRAY && lists[f - incident_fields])
			lists[f - incident_fields](&r, &i->incident);
		else if (!json_skip(&r, t))
			return;
		else if (f)
			set_scalar(&r, t, f, i);
	}
}
