/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - see annotate.h. Lines come from any process that may open the socket: every key is known or
 * refused, every value has a type, a range and a length, and labels are written anew, so that what
 * is stored is always a JSON object of strings. */
#include "record/annotate/annotate.h"

#include <jansson.h>

#include "base/text.h"
#include "json/tree.h"
#include "json/writer.h"

#define KEY_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

static int refuse(struct errinfo *reterr, const char *what, const char *key)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	text_escape_terminal_len(&b, key, MIN(strlen(key), (size_t)80));
	return errinfo_set(reterr, -EINVAL, "%s: %s", buf_str(&b), what);
}

static int check_key(const char *key, struct errinfo *reterr)
{
	size_t len = strlen(key);

	if (len == 0 || len > ANNOTATION_KEY_MAX || strspn(key, KEY_CHARACTERS) != len)
		return refuse(
			reterr, "a label name has 1 to 64 characters of A-Z a-z 0-9 _ . -", key);
	return 0;
}

static int check_value(const char *key, const char *value, size_t len, struct errinfo *reterr)
{
	uint32_t cp;
	int n;

	if (len > ANNOTATION_VALUE_MAX)
		return refuse(reterr, "the value is longer than 256 bytes", key);
	for (size_t i = 0; i < len; i += (size_t)n) {
		n = text_utf8_next(value + i, len - i, &cp);
		if (n < 0)
			return refuse(reterr, "the value is not UTF-8", key);
		if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
			return refuse(reterr, "the value contains a control character", key);
	}
	return 0;
}

static int put_label(
	struct json_writer *w, const char *key, const json_t *value, struct errinfo *reterr)
{
	char number[32];
	const char *text = number;
	size_t len;
	int r = check_key(key, reterr);

	if (r < 0)
		return r;
	if (json_is_string(value))
		text = json_string_value(value);
	else if (json_is_integer(value))
		snprintf(
			number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_boolean(value))
		snprintf(number, sizeof(number), "%s", json_is_true(value) ? "true" : "false");
	else
		return refuse(
			reterr, "a value must be a string, a whole number, true or false", key);
	len = text == number ? strlen(text) : json_string_length(value);
	r = check_value(key, text, len, reterr);
	if (r < 0)
		return r;
	json_key(w, key);
	json_put_string_len(w, text, len);
	return 0;
}

static int read_labels(const json_t *root, struct annotation *a, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(sizeof(a->labels) - 1);
	struct json_writer w = json_writer_to_buf(&b);
	json_t *labels = json_object_get(root, "labels"), *value;
	const char *key;
	int r;

	if (!json_is_object(labels) || json_object_size(labels) == 0)
		return errinfo_set(
			reterr, -EINVAL, "labels: must be an object with at least one label");
	if (json_object_size(labels) > ANNOTATION_LABELS_MAX)
		return errinfo_set(reterr, -EINVAL, "labels: more than %d", ANNOTATION_LABELS_MAX);
	json_begin_object(&w);
	json_object_foreach (labels, key, value) {
		r = put_label(&w, key, value, reterr);
		if (r < 0)
			return r;
	}
	json_end_object(&w);
	if (b.err == -ENOMEM)
		return errinfo_set(reterr, -ENOMEM, "out of memory");
	if (json_finish(&w) < 0 || b.err)
		return errinfo_set(reterr, -EINVAL, "labels: too long in total");
	while (b.len && b.data[b.len - 1] == '\n')
		b.len--;
	memcpy(a->labels, b.data, b.len);
	a->labels[b.len] = 0;
	return 0;
}

/* A whole number from @min to @max; *ret stays as it is if the key is absent. */
static int read_number(const json_t *root, const char *key, int64_t min, int64_t max, int64_t *ret,
	struct errinfo *reterr)
{
	json_t *v = json_object_get(root, key);

	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return errinfo_set(reterr, -EINVAL,
			"%s: must be a whole number from %" PRId64 " to %" PRId64, key, min, max);
	*ret = json_integer_value(v);
	return 0;
}

static int read_numbers(
	const json_t *root, wall_time now, struct annotation *a, struct errinfo *reterr)
{
	int64_t ts = now.ns, pid = 0, start = 0, from = 0, to = 0, version = 1;
	const struct {
		const char *key;
		int64_t min, max, *value;
	} numbers[] = {
		{"ts", 1, INT64_MAX, &ts},
		{"pid", 0, 4194304, &pid},
		{"start_time", 0, INT64_MAX, &start},
		{"span_start", 0, INT64_MAX, &from},
		{"span_end", 0, INT64_MAX, &to},
		{"v", 1, 1, &version},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int r = read_number(root, numbers[i].key, numbers[i].min, numbers[i].max,
			numbers[i].value, reterr);

		if (r < 0)
			return r;
	}
	if (to < from || (!from && to) || (from && !to))
		return errinfo_set(reterr, -EINVAL,
			"span_start and span_end must be given together, with the end not before the start");
	if (start && !pid)
		return errinfo_set(reterr, -EINVAL, "start_time requires pid");
	a->time.ns = ts;
	a->pid = (uint32_t)pid;
	a->start_time = (uint64_t)start;
	a->span_start_ns = from;
	a->span_end_ns = to;
	return 0;
}

static int check_keys(const json_t *root, struct errinfo *reterr)
{
	static const char *const known[] = {
		"ts", "labels", "pid", "start_time", "span_start", "span_end", "v"};
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)root, key, value) {
		size_t i = 0;

		while (i < ARRAY_SIZE(known) && strcmp(known[i], key) != 0)
			i++;
		if (i == ARRAY_SIZE(known))
			return refuse(reterr,
				"unknown key; valid keys are ts, labels, pid, start_time, span_start, "
				"span_end and v",
				key);
	}
	return 0;
}

int annotate_line_parse(
	const char *line, size_t len, wall_time now, struct annotation *ret, struct errinfo *reterr)
{
	_cleanup_(json_decrefp) json_t *root = NULL;
	struct annotation *a = ret;
	json_error_t error;
	int r;

	if (len >= ANNOTATION_LINE_MAX)
		return errinfo_set(reterr, -EINVAL, "the line is longer than %d bytes",
			ANNOTATION_LINE_MAX - 1);
	r = json_tree_read(line, len, JSON_REJECT_DUPLICATES, &root, &error);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "out of memory");
	if (!json_is_object(root)) {
		_cleanup_buf_ struct buf why = BUF_INIT(1024);

		text_escape_terminal(&why, root ? "it is not an object" : error.text);
		return errinfo_set(reterr, -EINVAL, "not a JSON object: %s", buf_str(&why));
	}
	r = check_keys(root, reterr);
	if (r < 0)
		return r;
	memset(a, 0, offsetof(struct annotation, labels));
	r = read_numbers(root, now, a, reterr);
	return r < 0 ? r : read_labels(root, a, reterr);
}

int annotate_line_compose(const char *const *labels, size_t count, uint32_t pid, wall_time now,
	struct buf *out, struct errinfo *reterr)
{
	struct json_writer w = json_writer_to_buf(out);

	json_begin_object(&w);
	json_int_member(&w, "ts", now.ns);
	if (pid) {
		json_int_member(&w, "pid", pid);
	}
	json_begin_object_member(&w, "labels");
	for (size_t i = 0; i < count; i++) {
		const char *eq = strchr(labels[i], '=');
		char key[ANNOTATION_KEY_MAX + 1];
		int r;

		if (!eq || (size_t)(eq - labels[i]) > ANNOTATION_KEY_MAX)
			return refuse(reterr, "write a label as key=value", labels[i]);
		snprintf(key, sizeof(key), "%.*s", (int)(eq - labels[i]), labels[i]);
		r = check_key(key, reterr);
		r = r ?: check_value(key, eq + 1, strlen(eq + 1), reterr);
		if (r < 0)
			return r;
		json_string_member(&w, key, eq + 1);
	}
	json_end_object(&w);
	json_end_object(&w);
	return json_finish(&w);
}

void annotate_line_answer(struct buf *out, int64_t id, const char *error)
{
	struct json_writer w = json_writer_to_buf(out);

	json_begin_object(&w);
	json_bool_member(&w, "ok", !error);
	json_key(&w, error ? "error" : "id");
	if (error)
		json_put_string(&w, error);
	else
		json_put_int(&w, id);
	json_end_object(&w);
	json_finish(&w);
}

int annotate_line_parse_answer(
	const char *line, size_t len, int64_t *ret_id, struct errinfo *reterr)
{
	_cleanup_(json_decrefp) json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *ok = json_object_get(root, "ok"), *id = json_object_get(root, "id");
	const char *error = json_string_value(json_object_get(root, "error"));

	if (json_is_true(ok) && json_is_integer(id)) {
		*ret_id = json_integer_value(id);
		return 0;
	}
	if (json_is_false(ok) && error && *error) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);

		text_escape_terminal(&b, error);
		return errinfo_set(reterr, -EREMOTEIO, "%.400s", buf_str(&b));
	}
	return errinfo_set(reterr, -EBADMSG, "invalid reply from the tracer");
}
