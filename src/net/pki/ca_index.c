/* SPDX-License-Identifier: Apache-2.0 */
/* ca_index.c - see ca_index.h. The file is ours, but may have been edited: each field is checked. */
#include "net/pki/ca_index.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD   "# ingero certificates 1"
#define FIELDS 8

void ca_index_done(struct ca_index *x)
{
	for (size_t i = 0; i < x->count; i++)
		free(x->rows[i].names);
	free(x->rows);
	*x = (struct ca_index){0};
}

bool ca_name_is_good(const char *name)
{
	return cert_is_name(name) && strlen(name) <= CERT_NAME_LEN &&
	       isalnum((unsigned char)name[0]);
}

static bool is_hex(const char *s, size_t min, size_t max)
{
	size_t len = strlen(s);

	return len >= min && len <= max && strspn(s, "0123456789abcdef") == len;
}

static bool read_number(const char *s, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)s[0]) || strlen(s) > 18)
		return false;
	*ret = strtoull(s, &end, 10);
	return !*end && *ret <= max;
}

/* names_are_good - a list with commas. */
static bool names_are_good(const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ",");
		char name[256];

		if (snprintf(name, sizeof(name), "%.*s", (int)len, list) >= (int)sizeof(name) ||
			(!cert_is_address(name) && !cert_is_name(name)))
			return false;
		list += len + (list[len] == ',');
	}
	return true;
}

/* parse_line - changes @line. */
static bool parse_line(char *line, struct ca_row *row)
{
	char *field[FIELDS + 1] = {NULL}, *save = NULL;
	uint64_t from, until, generation;
	size_t n = 0;

	for (char *s = strtok_r(line, " ", &save); s && n <= FIELDS; s = strtok_r(NULL, " ", &save))
		field[n++] = s;
	if (n != FIELDS || !is_hex(field[0], 2, 40) || !is_hex(field[1], 64, 64) ||
		!read_number(field[2], INT64_MAX, &from) ||
		!read_number(field[3], INT64_MAX, &until) ||
		!read_number(field[4], UINT32_MAX, &generation) || !ca_name_is_good(field[6]) ||
		!names_are_good(field[7]))
		return false;
	*row = (struct ca_row){.from_s = (int64_t)from,
		.until_s = (int64_t)until,
		.generation = (unsigned)generation,
		.client = !strcmp(field[5], "client"),
		.names = field[7]};
	snprintf(row->serial, sizeof(row->serial), "%s", field[0]);
	snprintf(row->fingerprint, sizeof(row->fingerprint), "%s", field[1]);
	snprintf(row->name, sizeof(row->name), "%s", field[6]);
	return row->client || !strcmp(field[5], "both");
}

int ca_index_parse(const char *path, const char *text, size_t len, struct ca_index *ret,
	struct errinfo *reterr)
{
	_cleanup_(ca_index_done) struct ca_index x = {0};
	const char *p = text, *end = text + len;

	for (size_t number = 1; p < end; number++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		_cleanup_free_ char *line = strndup(p, (size_t)((newline ? newline : end) - p));
		struct ca_row row;
		int r;

		if (!line)
			return errinfo_set(reterr, -ENOMEM, "not enough memory to read %s", path);
		p = newline ? newline + 1 : end;
		if (number == 1 ? strcmp(line, HEAD) != 0 : !newline || !parse_line(line, &row))
			return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
				"%s: line %zu is not a certificate's: restore the file from a backup",
				path, number);
		r = number == 1 ? 0 : ca_index_add(&x, &row);
		if (r < 0)
			return errinfo_set(reterr, r,
				r == -ENOMEM ? "not enough memory to read %s"
					     : "%s has too many lines",
				path);
	}
	*ret = x;
	x = (struct ca_index){0};
	return 0;
}

int ca_index_write(const struct ca_index *x, struct buf *b)
{
	buf_puts(b, HEAD "\n");
	for (size_t i = 0; i < x->count; i++) {
		const struct ca_row *r = &x->rows[i];

		buf_printf(b, "%s %s %" PRId64 " %" PRId64 " %u %s %s %s\n", r->serial,
			r->fingerprint, r->from_s, r->until_s, r->generation,
			r->client ? "client" : "both", r->name, r->names);
	}
	return b->err;
}

int ca_index_add(struct ca_index *x, const struct ca_row *row)
{
	struct ca_row *p;

	if (x->count == CA_INDEX_ROWS_MAX)
		return -E2BIG;
	p = realloc(x->rows, (x->count + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	x->rows = p;
	p[x->count] = *row;
	p[x->count].names = strdup(row->names);
	if (!p[x->count].names)
		return -ENOMEM;
	x->count++;
	return 0;
}

void ca_index_remove(struct ca_index *x, size_t at)
{
	free(x->rows[at].names);
	memmove(&x->rows[at], &x->rows[at + 1], (x->count - at - 1) * sizeof(*x->rows));
	x->count--;
}

const struct ca_row *ca_index_find(const struct ca_index *x, const char *name)
{
	for (size_t i = x->count; i-- > 0;)
		if (!strcmp(x->rows[i].name, name))
			return &x->rows[i];
	return NULL;
}

bool ca_index_is_current(const struct ca_index *x, size_t at)
{
	return ca_index_find(x, x->rows[at].name) == &x->rows[at];
}
