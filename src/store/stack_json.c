/* SPDX-License-Identifier: Apache-2.0 */
/* stack_json.c - see nodedb.h. What is read came from a file that anybody may have made: a
 * value of another type, a number out of range or a text that is not JSON refuses the whole stack,
 * so that a stack is never shown with holes. Unknown keys are passed over.
 *
 * The published agent stores functions by their linker's names ("_ZN…"). They are made readable
 * here, where every stack of a file comes through; those of our files are so already. */
#include "store/nodedb.h"

#include <jansson.h>

#include "base/text.h"
#include "demangle/demangle.h"
#include "json/tree.h"
#include "json/writer.h"

#define IP_TEXT    20   /* 0x and 16 digits */
#define NAME_MAX_1 4096 /* bytes of a name; less if the stack does not fit */
#define NAME_MAX_2 256
#define NAME_MAX_3 64
#define ELLIPSIS   "\xe2\x80\xa6"

/* ---- writing ---- */

static void put_name(struct json_writer *w, const char *key, const char *name, size_t max)
{
	char cut[NAME_MAX_1 + sizeof(ELLIPSIS)];
	size_t len;

	if (!name || !name[0])
		return;
	len = strnlen(name, max + 1);
	json_key(w, key);
	if (len <= max) {
		json_put_string_len(w, name, len);
		return;
	}
	len = text_cut(name, len, max);
	memcpy(cut, name, len);
	memcpy(cut + len, ELLIPSIS, sizeof(ELLIPSIS));
	json_put_string(w, cut);
}

static void put_ip(struct json_writer *w, uint64_t ip)
{
	json_put_string(w, FORMATTED(IP_TEXT, "0x%" PRIx64, ip));
}

static void put_frame(struct json_writer *w, const struct stack_frame *f, size_t name_max)
{
	json_begin_object(w);
	put_name(w, "s", f->symbol, name_max);
	put_name(w, "f", f->file, name_max);
	if (f->line)
		json_uint_member(w, "l", f->line);
	put_name(w, "pf", f->py_file, name_max);
	put_name(w, "pfn", f->py_func, name_max);
	if (f->py_line)
		json_uint_member(w, "pl", f->py_line);
	if (f->ip && !f->symbol) {
		json_key(w, "i");
		put_ip(w, f->ip);
	}
	json_end_object(w);
}

/* A column holds the array alone, without the newline that ends a document. */
static bool finish(struct json_writer *w, struct buf *b)
{
	json_end_array(w);
	if (json_finish(w) < 0)
		return false;
	b->data[--b->len] = 0;
	return true;
}

static bool write_frames(const struct stack *s, size_t count, size_t name_max, struct buf *b)
{
	struct json_writer w = json_writer_to_buf(b);

	json_begin_array(&w);
	for (size_t i = 0; i < count; i++)
		put_frame(&w, &s->frames[i], name_max);
	return finish(&w, b);
}

void stack_json_frames(const struct stack *s, struct buf *out, struct buf *stop)
{
	static const size_t limits[] = {NAME_MAX_1, NAME_MAX_2, NAME_MAX_3};
	_cleanup_buf_ struct buf b = BUF_INIT(STACK_JSON_MAX);
	size_t count = s->count, try = 0;

	while (!write_frames(s, count, limits[try], &b) && b.err == -ENOBUFS) {
		buf_done(&b);
		b = BUF_INIT(STACK_JSON_MAX);
		if (try + 1 < ARRAY_SIZE(limits))
			try++;
		else
			count = count * 3 / 4;
	}
	out->err = out->err ? out->err : b.err;
	buf_append(out, buf_str(&b), b.len);
	buf_puts(stop, s->stop ? s->stop : "");
	if (count < s->count)
		buf_printf(stop, "%s%zu outer frames omitted: names too long",
			stop->len ? "; " : "", s->count - count);
}

void stack_json_ips(const struct stack *s, struct buf *out)
{
	struct json_writer w = json_writer_to_buf(out);

	if (stack_has_names(s))
		return;
	json_begin_array(&w);
	for (size_t i = 0; i < s->count; i++)
		if (s->frames[i].ip)
			put_ip(&w, s->frames[i].ip);
	finish(&w, out);
}

/* ---- reading ---- */

struct block { /* one allocation: stack, frames, texts */
	struct stack *stack;
	struct stack_frame *frames;
	char *text;
};

static size_t text_bytes(const json_t *v)
{
	return json_is_string(v) ? json_string_length(v) + 1 : 0;
}

static size_t frame_bytes(const json_t *frame)
{
	return text_bytes(json_object_get(frame, "s")) + text_bytes(json_object_get(frame, "f")) +
	       text_bytes(json_object_get(frame, "pf")) + text_bytes(json_object_get(frame, "pfn"));
}

static int block_new(const struct stack_row *row, size_t frames, size_t text_len, struct block *ret)
{
	size_t head = sizeof(struct stack) + frames * sizeof(struct stack_frame);
	struct stack *s = calloc(1, head + text_len + row->stop_len + 1);
	struct block b = {.stack = s};

	if (!s)
		return -ENOMEM;
	b.frames = (struct stack_frame *)(s + 1);
	b.text = (char *)s + head;
	memcpy(b.text, row->stop, row->stop_len);
	*s = (struct stack){.hash = row->hash, .frames = b.frames, .count = frames, .stop = b.text};
	b.text += row->stop_len + 1;
	*ret = b;
	return 0;
}

/* Copies the text of @key; *ret stays NULL if there is none. */
static int read_text(struct block *b, const json_t *frame, const char *key, const char **ret)
{
	const json_t *v = json_object_get(frame, key);
	size_t bytes = text_bytes(v);

	if (!v)
		return 0;
	if (!bytes)
		return -EBADMSG;
	memcpy(b->text, json_string_value(v), bytes);
	*ret = b->text;
	b->text += bytes;
	return 0;
}

static int read_line(const json_t *frame, const char *key, uint32_t *ret)
{
	const json_t *v = json_object_get(frame, key);

	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > UINT32_MAX)
		return -EBADMSG;
	*ret = (uint32_t)json_integer_value(v);
	return 0;
}

static int read_ip(const json_t *v, uint64_t *ret)
{
	const char *text = json_string_value(v);
	char *end;

	if (!v)
		return 0;
	if (!text || strncmp(text, "0x", 2) || !text[2] || strlen(text) >= IP_TEXT - 1 ||
		strspn(text + 2, "0123456789abcdefABCDEF") != strlen(text + 2))
		return -EBADMSG;
	*ret = strtoull(text + 2, &end, 16);
	return 0;
}

static int read_frame(struct block *b, const json_t *frame, struct stack_frame *f)
{
	if (!json_is_object(frame) || read_text(b, frame, "s", &f->symbol) < 0 ||
		read_text(b, frame, "f", &f->file) < 0 || read_line(frame, "l", &f->line) < 0 ||
		read_text(b, frame, "pf", &f->py_file) < 0 ||
		read_text(b, frame, "pfn", &f->py_func) < 0 ||
		read_line(frame, "pl", &f->py_line) < 0 ||
		read_ip(json_object_get(frame, "i"), &f->ip) < 0)
		return -EBADMSG;
	if (f->py_file && !f->py_func)
		f->py_func = "";
	if (f->py_func && !f->py_file)
		f->py_file = "";
	return 0;
}

/* @name as people wrote it; "+0x…", where in the function, is no part of it and stays behind. */
static void put_readable(const char *name, struct buf *out)
{
	size_t len = strcspn(name, "+");
	_cleanup_free_ char *mangled = strndup(name, len);
	char text[NAME_MAX_1];

	buf_puts(out, mangled ? demangle(mangled, text, sizeof(text)) : name);
	if (mangled)
		buf_puts(out, name + len);
}

/* A name that cannot be replaced stays as it is. */
static void demangle_names(json_t *list)
{
	_cleanup_buf_ struct buf readable = BUF_INIT(STACK_JSON_MAX + NAME_MAX_1);
	json_t *frame;
	size_t i;

	json_array_foreach (list, i, frame) {
		const char *name = json_string_value(json_object_get(frame, "s"));

		if (!name || name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
			continue;
		buf_clear(&readable);
		put_readable(name, &readable);
		if (!readable.err)
			json_object_set_new(frame, "s", json_string(buf_str(&readable)));
	}
}

static int read_frames(const struct stack_row *row, json_t *list, struct stack **ret)
{
	size_t count = json_array_size(list), bytes = 0;
	struct block b;
	int r;

	demangle_names(list);
	for (size_t i = 0; i < count; i++)
		bytes += frame_bytes(json_array_get(list, i));
	r = block_new(row, count, bytes, &b);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *v = json_array_get(list, i);

		/* the addresses of a stack without names, or its frames */
		r = json_is_string(v) ? read_ip(v, &b.frames[i].ip)
				      : read_frame(&b, v, &b.frames[i]);
		if (r < 0)
			free(b.stack);
	}
	if (r == 0)
		*ret = b.stack;
	return r;
}

int stack_json_read(const struct stack_row *row, struct stack **ret)
{
	bool bare = row->frames_len == 0;
	const char *text = bare ? row->ips : row->frames;
	size_t len = bare ? row->ips_len : row->frames_len;
	json_t *list = NULL;
	int r = -EBADMSG;

	if (len > STACK_JSON_MAX || row->stop_len > STACK_JSON_MAX)
		return -EFBIG;
	if (!len) {
		struct block b;

		r = block_new(row, 0, 0, &b);
		if (r == 0)
			*ret = b.stack;
		return r;
	}
	if (json_tree_read(text, len, JSON_REJECT_DUPLICATES, &list, NULL) == -ENOMEM)
		return -ENOMEM;
	if (json_is_array(list) && json_array_size(list) > STACK_FRAMES_MAX)
		r = -EFBIG;
	else if (json_is_array(list))
		r = read_frames(row, list, ret);
	json_decref(list);
	return r;
}
