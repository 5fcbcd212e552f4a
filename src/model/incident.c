/* SPDX-License-Identifier: Apache-2.0 */
/* incident.c - names of severities and causes, and words for confidence. */
#include "model/incident.h"

#include <math.h>

#include "base/text.h"
#include "model/problem.h"
#include "wire/names.h"

#define FIELD(form_, member, column_, key_, renew_, show_, absent_, unit_, meaning_, added)        \
	{.column = column_,                                                                        \
		.key = key_,                                                                       \
		.form = INCIDENT_FORM_##form_,                                                     \
		.renew = INCIDENT_##renew_,                                                        \
		.show = INCIDENT_##show_,                                                          \
		.absent = INCIDENT_##absent_,                                                      \
		.offset = offsetof(struct incident, member),                                       \
		.size = sizeof(((struct incident *)0)->member),                                    \
		.is_added = added,                                                                 \
		.unit = unit_,                                                                     \
		.meaning = meaning_},
#define FIRST_FIELD(NAME, ...) FIELD(__VA_ARGS__, false)
#define ADDED_FIELD(NAME, ...) FIELD(__VA_ARGS__, true)

const struct incident_field incident_fields[INCIDENT_FIELD_COUNT] = {
	INCIDENT_FIRST(FIRST_FIELD) INCIDENT_ADDED(ADDED_FIELD)};

const struct incident_field *incident_field_of_key(const char *key)
{
	return FIND(x, incident_fields, INCIDENT_FIELD_COUNT, x->key && !strcmp(x->key, key));
}

const struct incident_field *incident_field_of_column(const char *column)
{
	return FIND(
		x, incident_fields, INCIDENT_FIELD_COUNT, x->column && !strcmp(x->column, column));
}

/* ---- reading ---- */

static bool is_absent(const struct incident_field *f, const struct incident_value *v)
{
	double number = v->type == INCIDENT_REAL  ? v->d
			: v->type == INCIDENT_INT ? (double)v->i
						  : (double)v->u;

	switch (f->absent) {
	case INCIDENT_NEVER: return false;
	case INCIDENT_ZERO: return v->type == INCIDENT_TEXT ? !v->s[0] : number == 0;
	case INCIDENT_BELOW_0:
	case INCIDENT_NULL_BELOW_0: break;
	}
	return number < 0;
}

static void set_text(struct incident_value *v, const char *text)
{
	v->type = INCIDENT_TEXT;
	v->s = text;
}

static void set_uint(struct incident_value *v, uint64_t u)
{
	v->type = INCIDENT_UINT;
	v->u = u;
}

static void get_member(const struct incident_field *f, const struct incident *i, bool named,
	struct incident_value *v)
{
	const void *m = (const char *)i + f->offset;
	double d;

	switch (f->form) {
	case INCIDENT_FORM_TEXT: set_text(v, m); break;
	case INCIDENT_FORM_U32: set_uint(v, *(const uint32_t *)m); break;
	case INCIDENT_FORM_U64: set_uint(v, *(const uint64_t *)m); break;
	case INCIDENT_FORM_COUNT: set_uint(v, i->unit ? i->count : i->slow_calls); break;
	case INCIDENT_FORM_UNIT: set_text(v, i->unit ? i->unit : "slow calls"); break;
	case INCIDENT_FORM_SEVERITY: set_text(v, severity_name(i->severity)); break;
	case INCIDENT_FORM_PROBLEM: set_text(v, problem_row(i->problem)->id); break;
	case INCIDENT_FORM_I32:
		v->type = INCIDENT_INT;
		v->i = *(const int32_t *)m;
		break;
	case INCIDENT_FORM_TIME:
		v->type = INCIDENT_INT;
		v->i = ((const wall_time *)m)->ns;
		break;
	case INCIDENT_FORM_REAL:
	case INCIDENT_FORM_SHARE:
		d = *(const double *)m;
		v->type = INCIDENT_REAL;
		v->d = isfinite(d) ? d : 0.0;
		break;
	case INCIDENT_FORM_SOURCE:
		if (named)
			set_text(v, wire_source_name(i->source));
		else
			set_uint(v, i->source);
		break;
	case INCIDENT_FORM_OP:
		if (named)
			set_text(v, wire_op_name(i->source, i->op, v->scratch));
		else
			set_uint(v, i->op);
		break;
	case INCIDENT_FORM_LIST:
	case INCIDENT_FORM_GIVEN: break;
	}
}

void incident_field_get(const struct incident_field *f, const struct incident *i, bool named,
	struct incident_value *ret)
{
	ret->type = INCIDENT_NOTHING;
	get_member(f, i, named, ret);
	if (ret->type != INCIDENT_NOTHING && is_absent(f, ret) && (named || f->is_added))
		ret->type = INCIDENT_NOTHING;
}

/* ---- writing ---- */

static void copy_severity(struct incident *i, const char *name)
{
	for (int s = SEVERITY_LOW; s < SEVERITY_COUNT; s++)
		if (!strcmp(name, severity_name((enum severity)s)))
			i->severity = (enum severity)s;
}

static void copy_problem(struct incident *i, const char *id)
{
	for (int p = 0; p < PROBLEM_COUNT; p++)
		if (!strcmp(id, problem_row((enum problem)p)->id))
			i->problem = (uint8_t)p;
}

static void set_named(const struct incident_field *f, struct incident *i, const char *s)
{
	if (f->form == INCIDENT_FORM_TEXT)
		text_copy((char *)i + f->offset, f->size, s, strlen(s));
	else if (f->form == INCIDENT_FORM_SEVERITY)
		copy_severity(i, s);
	else if (f->form == INCIDENT_FORM_PROBLEM)
		copy_problem(i, s);
}

static void set_real(const struct incident_field *f, void *m, double d)
{
	d = isfinite(d) ? d : 0;
	if (f->form == INCIDENT_FORM_REAL)
		*(double *)m = d;
	else if (f->form == INCIDENT_FORM_SHARE)
		*(double *)m = MIN(MAX(d, -1.0), 1.0);
}

static void set_int(const struct incident_field *f, void *m, int64_t n)
{
	if (f->form == INCIDENT_FORM_TIME)
		((wall_time *)m)->ns = n;
	else if (f->form == INCIDENT_FORM_I32 && n >= -1 && n <= INT32_MAX)
		*(int32_t *)m = (int32_t)n;
	else if (f->form == INCIDENT_FORM_U32 && n >= 0 && n <= UINT32_MAX)
		*(uint32_t *)m = (uint32_t)n;
	else if ((f->form == INCIDENT_FORM_U64 || f->form == INCIDENT_FORM_COUNT) && n >= 0)
		*(uint64_t *)m = (uint64_t)n;
	else
		set_real(f, m, (double)n);
}

void incident_field_set(
	const struct incident_field *f, struct incident *i, const struct incident_value *v)
{
	void *m = (char *)i + f->offset;

	switch (v->type) {
	case INCIDENT_NOTHING: break;
	case INCIDENT_TEXT: set_named(f, i, v->s); break;
	case INCIDENT_REAL: set_real(f, m, v->d); break;
	case INCIDENT_INT: set_int(f, m, v->i); break;
	case INCIDENT_UINT:
		if (v->u <= INT64_MAX)
			set_int(f, m, (int64_t)v->u);
		break;
	}
}

const char *severity_name(enum severity s)
{
	static const char *const names[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};

	return names[s];
}

const char *confidence_word(double confidence)
{
	return confidence >= 0.9   ? "very likely"
	       : confidence >= 0.7 ? "likely"
	       : confidence >= 0.5 ? "probable"
	       : confidence >= 0.3 ? "possible"
				   : "uncertain";
}

const char *cause_name(enum cause c)
{
	static const char *const names[] = {
#define X(NAME, name, ...) name,
		CAUSES(X)
#undef X
	};

	return names[c];
}

const char *cause_layer(enum cause c)
{
	static const char *const layers[] = {
#define X(NAME, name, layer, ...) layer,
		CAUSES(X)
#undef X
	};

	return layers[c];
}
