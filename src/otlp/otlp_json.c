/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_json.c - see otlp_read_private.h. Invariant: a text that is handed out is either bytes of the request
 * or a copy on the list of kept ones, which is a stack: who leaves a level releases what it kept. */

#include <math.h>

#include "otlp/otlp_read_private.h"

#define NUMBER_TEXT_MAX 64 /* bytes of a number in quotes */

struct otlp_kept {
	struct otlp_kept *older;
	char data[];
};

void otlp_json_init(struct otlp_json *j, const char *text, size_t len)
{
	json_reader_init(&j->r, text, len, len);
	j->kept = NULL;
}

void otlp_json_release(struct otlp_json *j, struct otlp_kept *mark)
{
	while (j->kept != mark) {
		struct otlp_kept *k = j->kept;

		j->kept = k->older;
		free(k);
	}
}

void otlp_json_done(struct otlp_json *j)
{
	otlp_json_release(j, NULL);
	json_reader_done(&j->r);
}

static void fail(struct otlp_json *j, int err)
{
	j->r.err = j->r.err ?: err;
}

/* A token that is not the wanted one: null stands for nothing, all else is an error. */
static bool is_token(struct otlp_json *j, enum json_read token, enum json_read wanted)
{
	if (token != wanted && token != JSON_READ_NULL)
		fail(j, -EBADMSG);
	return token == wanted;
}

bool otlp_json_object(struct otlp_json *j)
{
	return is_token(j, json_read(&j->r), JSON_READ_OBJECT);
}

bool otlp_json_array(struct otlp_json *j)
{
	return is_token(j, json_read(&j->r), JSON_READ_ARRAY);
}

bool otlp_json_member(struct otlp_json *j)
{
	return json_read(&j->r) == JSON_READ_KEY;
}

bool otlp_json_element(struct otlp_json *j)
{
	enum json_read token = json_read(&j->r);

	if (token == JSON_READ_OBJECT)
		return true;
	if (token != JSON_READ_ARRAY_END)
		fail(j, -EBADMSG);
	return false;
}

void otlp_json_skip(struct otlp_json *j)
{
	json_skip(&j->r, json_read(&j->r));
}

static char *keep(struct otlp_json *j, size_t len)
{
	struct otlp_kept *k = malloc(sizeof(*k) + len + 1);

	if (!k) {
		fail(j, -ENOMEM);
		return NULL;
	}
	k->older = j->kept;
	j->kept = k;
	return k->data;
}

/* The string just read. Most have no escapes: then its bytes stand in front of the closing quote. */
static const char *kept_text(struct otlp_json *j, size_t *ret_len)
{
	const struct json_reader *r = &j->r;
	size_t len = r->text.len;
	const char *raw = r->p - 1 - len;
	char *copy;

	*ret_len = len;
	if (!len)
		return "";
	if ((size_t)(r->p - r->start) > len && memcmp(raw, r->text.data, len) == 0)
		return raw;
	copy = keep(j, len);
	if (!copy) {
		*ret_len = 0;
		return "";
	}
	return memcpy(copy, r->text.data, len);
}

const char *otlp_json_text(struct otlp_json *j, size_t *ret_len)
{
	enum json_read token = json_read(&j->r);

	*ret_len = 0;
	return is_token(j, token, JSON_READ_STRING) ? kept_text(j, ret_len) : "";
}

/* The number in quotes that was just read, as a string in @out; false: it is none. */
static bool quoted_number(const struct json_reader *r, char out[NUMBER_TEXT_MAX])
{
	size_t len = r->text.len;

	if (!len || len >= NUMBER_TEXT_MAX || strspn(r->text.data, "+-.0123456789eE") != len)
		return false;
	memcpy(out, r->text.data, len + 1);
	return true;
}

uint64_t otlp_json_uint(struct otlp_json *j)
{
	enum json_read token = json_read(&j->r);
	char text[NUMBER_TEXT_MAX], *end;
	unsigned long long v;

	if (token == JSON_READ_INT)
		return j->r.i > 0 ? (uint64_t)j->r.i : 0;
	if (token == JSON_READ_REAL)
		return j->r.d >= 0 && j->r.d < 0x1p64 ? (uint64_t)j->r.d : 0;
	if (token != JSON_READ_STRING) {
		json_skip(&j->r, token);
		return 0;
	}
	if (!quoted_number(&j->r, text) || text[0] == '-')
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	return errno || *end ? 0 : v;
}

struct otlp_value otlp_json_int_value(struct otlp_json *j)
{
	enum json_read token = json_read(&j->r);
	struct otlp_value v = {.kind = OTLP_INT};
	char text[NUMBER_TEXT_MAX], *end;

	if (token == JSON_READ_INT) {
		v.i = j->r.i;
		return v;
	}
	if (token == JSON_READ_REAL && j->r.d >= -0x1p63 && j->r.d < 0x1p63 &&
		trunc(j->r.d) == j->r.d) {
		v.i = (int64_t)j->r.d;
		return v;
	}
	if (token == JSON_READ_STRING && quoted_number(&j->r, text)) {
		errno = 0;
		v.i = strtoll(text, &end, 10);
		if (errno == 0 && !*end)
			return v;
	}
	json_skip(&j->r, token);
	return (struct otlp_value){0};
}

struct otlp_value otlp_json_double_value(struct otlp_json *j)
{
	enum json_read token = json_read(&j->r);
	struct otlp_value v = {.kind = OTLP_DOUBLE};
	char text[NUMBER_TEXT_MAX], *end;

	if (token == JSON_READ_INT || token == JSON_READ_REAL) {
		v.d = j->r.d;
		return v;
	}
	if (token != JSON_READ_STRING) {
		json_skip(&j->r, token);
		return (struct otlp_value){0};
	}
	if (json_read_is(&j->r, "NaN")) {
		v.d = NAN;
	} else if (json_read_is(&j->r, "Infinity")) {
		v.d = INFINITY;
	} else if (json_read_is(&j->r, "-Infinity")) {
		v.d = -INFINITY;
	} else {
		if (!quoted_number(&j->r, text))
			return (struct otlp_value){0};
		v.d = strtod(text, &end);
		if (*end)
			return (struct otlp_value){0};
	}
	return v;
}

bool otlp_json_bool(struct otlp_json *j)
{
	enum json_read token = json_read(&j->r);

	json_skip(&j->r, token);
	return token == JSON_READ_BOOL && j->r.b;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	if (c == '/' || c == '_')
		return 63;
	return -1;
}

/* Of either alphabet, with or without padding, as the mapping allows. */
struct otlp_value otlp_json_bytes_value(struct otlp_json *j)
{
	enum json_read token = json_read(&j->r);
	const char *text = buf_str(&j->r.text);
	size_t len = j->r.text.len, out = 0;
	uint32_t bits = 0;
	char *data;

	if (token != JSON_READ_STRING) {
		json_skip(&j->r, token);
		return (struct otlp_value){0};
	}
	for (int i = 0; i < 2 && len && text[len - 1] == '='; i++)
		len--;
	data = len % 4 == 1 ? NULL : keep(j, len / 4 * 3 + 2);
	if (!data)
		return (struct otlp_value){0};
	for (size_t i = 0; i < len; i++) {
		int digit = base64_digit(text[i]);

		if (digit < 0)
			return (struct otlp_value){0};
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4)
			data[out++] = (char)(bits >> (6 - 2 * (i % 4)));
	}
	return (struct otlp_value){.kind = OTLP_BYTES, .text = data, .len = out};
}
