/* SPDX-License-Identifier: Apache-2.0 */
/* corpus_text.c - tables to text and back (corpus.h). */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/macros.h"
#include "corpus.h"

#define HEADER    "ingero-corpus 1"
#define ROWS_MAX  (1u << 20)
#define TEXTS_MAX (64u << 10)

void *corpus_add(struct corpus *c, enum corpus_table_id id)
{
	struct corpus_list *l = &c->tables[id];
	size_t size = corpus_table(id).row_size;

	if (l->count >= l->room && array_grow(&l->rows, &l->room, l->count + 1, size, ROWS_MAX) < 0)
		return NULL;
	return memset((char *)l->rows + size * l->count++, 0, size);
}

int64_t corpus_text(struct corpus *c, const char *text)
{
	char *copy;

	if (!text)
		return 0;
	for (size_t i = 0; i < c->text_count; i++)
		if (!strcmp(c->texts[i], text))
			return (int64_t)i + 1;
	copy = strdup(text);
	if (!copy || ARRAY_RESERVE(c->texts, c->text_room, c->text_count + 1, TEXTS_MAX) < 0) {
		free(copy);
		return -1;
	}
	for (char *p = copy; *p; p++)
		if (iscntrl((unsigned char)*p)) /* a text is a line */
			*p = ' ';
	c->texts[c->text_count++] = copy;
	return (int64_t)c->text_count;
}

/* Two digits: what follows them no verdict rests on. */
static uint64_t rounded(uint64_t ns)
{
	uint64_t unit = 1;

	while (ns / unit >= 100)
		unit *= 10;
	return (ns + unit / 2) / unit * unit;
}

static int64_t get_int(const void *field, size_t size, bool is_signed)
{
	switch (size) {
	case 1: return *(const uint8_t *)field;
	case 2: return *(const uint16_t *)field;
	case 4: return is_signed ? *(const int32_t *)field : (int64_t) * (const uint32_t *)field;
	default: return *(const int64_t *)field;
	}
}

static void put_int(void *field, size_t size, int64_t v)
{
	switch (size) {
	case 1: *(uint8_t *)field = (uint8_t)v; return;
	case 2: *(uint16_t *)field = (uint16_t)v; return;
	case 4: *(uint32_t *)field = (uint32_t)v; return;
	default: *(int64_t *)field = v; return;
	}
}

/* An address is no text: '#' and two digits a byte. */
static int64_t peer_number(struct corpus *c, const struct event *e)
{
	char text[2 + 2 * COMM_LEN] = "#";

	if (!e->family)
		return corpus_text(c, e->peer_comm);
	for (int i = 0; i < COMM_LEN; i++)
		snprintf(text + 1 + 2 * i, 3, "%02x", e->peer_addr[i]);
	return corpus_text(c, text);
}

static void set_peer(uint8_t field[COMM_LEN], const char *text)
{
	if (text[0] != '#' || strlen(text) != 1 + 2 * COMM_LEN) {
		snprintf((char *)field, COMM_LEN, "%s", text);
		return;
	}
	for (int i = 0; i < COMM_LEN; i++) {
		char digits[3] = {text[1 + 2 * i], text[2 + 2 * i], 0};

		field[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

/* The number that stands for a field in the file; doubles are not numbers. */
static int64_t number_of(struct corpus *c, const struct corpus_column *col, const char *row)
{
	const void *field = row + col->offset;

	switch (col->kind) {
	case KIND_NS: return (int64_t)rounded(*(const uint64_t *)field);
	case KIND_TIME: {
		int64_t ns = *(const int64_t *)field;

		return ns ? (ns - c->base_ns) / NS_PER_US + 1 : 0;
	}
	case KIND_CHARS: return corpus_text(c, field);
	case KIND_TEXT: return corpus_text(c, *(const char *const *)field);
	case KIND_PEER: return peer_number(c, (const struct event *)(const void *)row);
	default: return get_int(field, col->size, col->kind == KIND_INT);
	}
}

static int set_number(const struct corpus *c, const struct corpus_column *col, char *row, int64_t v)
{
	void *field = row + col->offset;
	bool is_text = col->kind >= KIND_CHARS;

	if (is_text && (v < 0 || (uint64_t)v > c->text_count))
		return -EBADMSG;
	if (col->kind == KIND_TIME)
		*(int64_t *)field = v ? (v - 1) * NS_PER_US + c->base_ns : 0;
	else if (col->kind == KIND_CHARS)
		snprintf(field, col->size, "%s", v ? c->texts[v - 1] : "");
	else if (col->kind == KIND_PEER)
		set_peer(field, v ? c->texts[v - 1] : "");
	else if (col->kind == KIND_TEXT)
		*(const char **)field = v ? c->texts[v - 1] : NULL;
	else
		put_int(field, col->size, v);
	return 0;
}

/* Writes a value, or how often the last one came: one call more than there are values, the last NULL. */
static void put_token(FILE *out, const char *token, char last[64], size_t *run)
{
	if (token && *run && !strcmp(token, last)) {
		++*run;
		return;
	}
	if (*run == 1)
		fprintf(out, " %s", last);
	else if (*run)
		fprintf(out, " %s*%zu", last, *run);
	if (token)
		snprintf(last, 64, "%s", token);
	*run = 1;
}

static void write_doubles(
	const struct corpus_list *l, size_t row_size, const struct corpus_column *col, FILE *out)
{
	char last[64] = "", token[64];
	size_t run = 0;

	fprintf(out, "%s =", col->name);
	for (size_t i = 0; i < l->count; i++) {
		const void *field = (const char *)l->rows + i * row_size + col->offset;

		snprintf(token, sizeof(token), "%.6g", *(const double *)field);
		put_token(out, token, last, &run);
	}
	put_token(out, NULL, last, &run);
	fputc('\n', out);
}

static size_t digits_of(int64_t v)
{
	char text[32];

	return (size_t)snprintf(text, sizeof(text), "%" PRId64, v);
}

/* As they are or as differences, whichever is shorter. */
static void write_numbers(
	const int64_t *values, size_t n, const struct corpus_column *col, FILE *out)
{
	char last[64] = "", token[64];
	size_t run = 0, plain = 0, differences = 0;
	int64_t before = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t was = i ? values[i - 1] : 0;

		plain += i && values[i] == was ? 0 : digits_of(values[i]);
		differences += digits_of((int64_t)((uint64_t)values[i] - (uint64_t)was));
	}
	fprintf(out, "%s %s", col->name, differences < plain ? "+" : "=");
	for (size_t i = 0; i < n; i++) {
		snprintf(token, sizeof(token), "%" PRId64,
			differences < plain ? (int64_t)((uint64_t)values[i] - (uint64_t)before)
					    : values[i]);
		before = values[i];
		put_token(out, token, last, &run);
	}
	put_token(out, NULL, last, &run);
	fputc('\n', out);
}

static int write_table(struct corpus *c, enum corpus_table_id id, FILE *out)
{
	const struct corpus_table t = corpus_table(id);
	const struct corpus_list *l = &c->tables[id];
	_cleanup_free_ int64_t *values = calloc(l->count + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	if (!l->count)
		return 0;
	fprintf(out, "table %s %zu\n", t.name, l->count);
	for (const struct corpus_column *col = t.columns; col->name; col++) {
		bool is_empty = true;

		if (col->kind == KIND_DOUBLE) {
			write_doubles(l, t.row_size, col, out);
			continue;
		}
		for (size_t i = 0; i < l->count; i++) {
			values[i] = number_of(c, col, (const char *)l->rows + i * t.row_size);
			is_empty = is_empty && !values[i];
		}
		if (!is_empty)
			write_numbers(values, l->count, col, out);
	}
	return 0;
}

int corpus_write(struct corpus *c, FILE *out)
{
	_cleanup_free_ char *tables = NULL;
	size_t size = 0;
	FILE *body = open_memstream(&tables, &size);
	int r = 0;

	if (!body)
		return -ENOMEM;
	for (int i = 0; r == 0 && i < CORPUS_COUNT; i++)
		r = write_table(c, (enum corpus_table_id)i, body);
	if (fclose(body) != 0)
		return -ENOMEM;
	fprintf(out, "%s\nbase %" PRId64 "\ntext %zu\n", HEADER, c->base_ns, c->text_count);
	for (size_t i = 0; i < c->text_count; i++)
		fprintf(out, "%s\n", c->texts[i]);
	fwrite(tables, 1, size, out);
	fputs("end\n", out);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}

struct reader {
	FILE *in;
	char *line;
	size_t room;
	struct corpus *c;
};

/* The next line without its end; false: there is none. */
static bool next_line(struct reader *r)
{
	ssize_t n = getline(&r->line, &r->room, r->in);

	if (n > 0 && r->line[n - 1] == '\n')
		r->line[n - 1] = 0;
	return n > 0;
}

static int bad(const struct reader *r, const char *what)
{
	fprintf(stderr, "corpus: %s: %.60s\n", what, r->line ? r->line : "");
	return -EBADMSG;
}

static const struct corpus_column *find_column(const struct corpus_table *t, const char *name)
{
	for (const struct corpus_column *col = t->columns; col->name; col++)
		if (!strcmp(col->name, name))
			return col;
	return NULL;
}

static int read_values(struct reader *r, const struct corpus_table *t, struct corpus_list *l,
	const struct corpus_column *col, bool differences, char *text)
{
	int64_t before = 0;
	size_t i = 0;

	for (char *token = strtok(text, " "); token; token = strtok(NULL, " ")) {
		const char *star = strchr(token, '*');
		size_t times = star ? strtoull(star + 1, NULL, 10) : 1;

		if (times > l->count - i)
			return bad(r, "too many values");
		for (; times; times--, i++) {
			char *row = (char *)l->rows + i * t->row_size;
			int64_t v = col->kind == KIND_DOUBLE ? 0 : strtoll(token, NULL, 10);

			if (col->kind == KIND_DOUBLE) {
				*(double *)(void *)(row + col->offset) = strtod(token, NULL);
				continue;
			}
			before = differences ? (int64_t)((uint64_t)before + (uint64_t)v) : v;
			if (set_number(r->c, col, row, before) < 0)
				return bad(r, "a text that is not there");
		}
	}
	return i == l->count ? 0 : bad(r, "too few values");
}

static int read_column(struct reader *r, const struct corpus_table *t, struct corpus_list *l)
{
	char *mode = strchr(r->line, ' ');
	const struct corpus_column *col;

	if (!mode || (mode[1] != '=' && mode[1] != '+'))
		return bad(r, "no column");
	*mode = 0;
	col = find_column(t, r->line);
	return col ? read_values(r, t, l, col, mode[1] == '+', mode + 2)
		   : bad(r, "an unknown column");
}

static int read_texts(struct reader *r)
{
	unsigned long n;

	if (!next_line(r) || sscanf(r->line, "text %lu", &n) != 1 || n > TEXTS_MAX)
		return bad(r, "no texts");
	r->c->texts = calloc(n + 1, sizeof(*r->c->texts));
	if (!r->c->texts)
		return -ENOMEM;
	r->c->text_room = n + 1;
	for (unsigned long i = 0; i < n; i++) {
		if (!next_line(r))
			return bad(r, "the end of the file among texts");
		r->c->texts[i] = strdup(r->line);
		if (!r->c->texts[i])
			return -ENOMEM;
		r->c->text_count++;
	}
	return 0;
}

static int begin_table(struct reader *r, enum corpus_table_id *ret)
{
	char name[32];
	unsigned long rows;

	if (sscanf(r->line, "table %31s %lu", name, &rows) != 2 || rows > ROWS_MAX)
		return bad(r, "no table");
	for (int i = 0; i < CORPUS_COUNT; i++) {
		const struct corpus_table t = corpus_table((enum corpus_table_id)i);
		struct corpus_list *l = &r->c->tables[i];

		if (strcmp(t.name, name) != 0)
			continue;
		if (l->rows)
			return bad(r, "the table is there twice");
		l->rows = calloc(rows + 1, t.row_size);
		l->count = rows;
		*ret = (enum corpus_table_id)i;
		return l->rows ? 0 : -ENOMEM;
	}
	return bad(r, "an unknown table");
}

static int read_tables(struct reader *r)
{
	enum corpus_table_id id = CORPUS_COUNT;
	int ret = 0;

	while (ret == 0 && next_line(r) && strcmp(r->line, "end") != 0) {
		struct corpus_table t;

		if (!strncmp(r->line, "table ", 6)) {
			ret = begin_table(r, &id);
			continue;
		}
		if (id == CORPUS_COUNT)
			return bad(r, "no table");
		t = corpus_table(id);
		ret = read_column(r, &t, &r->c->tables[id]);
	}
	if (ret == 0 && strcmp(r->line, "end") != 0)
		return bad(r, "the file is cut");
	return ret;
}

int corpus_read(FILE *in, struct corpus *ret)
{
	struct reader r = {.in = in, .c = ret};
	int result;

	if (!next_line(&r)) {
		free(r.line);
		return 0;
	}
	if (strcmp(r.line, HEADER) != 0 || !next_line(&r) ||
		sscanf(r.line, "base %" SCNd64, &ret->base_ns) != 1)
		result = bad(&r, "not a corpus file");
	else
		result = read_texts(&r);
	if (result == 0)
		result = read_tables(&r);
	free(r.line);
	return result < 0 ? result : 1;
}
