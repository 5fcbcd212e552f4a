/* SPDX-License-Identifier: Apache-2.0 */
/* param.h - the parameters of questions, described once for a server: what assistants are told (JSON Schema),
 * what OpenAPI says, what is accepted and how it is called in errors derive from one table of them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

enum param_type {
	PARAM_TEXT,
	PARAM_INTEGER,
	PARAM_NUMBER,
	PARAM_FLAG,
	PARAM_INTEGERS, /* one, or a list; in a URL separated by commas */
};

struct param {
	unsigned bit;      /* questions take parameters by their bits; several may share one */
	const char *name;  /* NULL ends a table */
	const char *alias; /* accepted too; NULL: none */
	enum param_type type;
	double least, most;  /* of numbers, if most is not 0; most of a text: in bytes */
	const char *choices; /* "cuda driver nccl"; NULL: any */
	const char *about;
	bool is_extra; /* accepted, but assistants are not told: every word in a list costs them */
};

/* param_type_name - of JSON Schema; an INTEGERS is a string in a URL. */
const char *param_type_name(const struct param *p, bool in_url);

/* param_schema - appends the JSON Schema of an object with those of @table that @takes has; of @needs the first of each bit is
 * required.
 * @listed: for a list, without what is_extra and without limits, which errors tell. */
void param_schema(
	struct buf *b, const struct param *table, unsigned takes, unsigned needs, bool listed);

/* param_arguments - a copy of @given with aliases replaced by names; NULL: no memory. */
json_t *param_arguments(const struct param *table, unsigned takes, const json_t *given);
