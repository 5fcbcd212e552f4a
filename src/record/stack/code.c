/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - see code.h. */
#include "record/stack/code.h"

#include "base/hash.h"

DEFINE_CLEANUP(struct stack_codes *, stack_codes_free)

/* The interpreter's loop: one function, its clones, and one per instruction in builds that jump
 * from one to the next. */
static bool is_loop(const struct merge_native *n)
{
	const char *s = n->frame.symbol;

	return s && !n->is_inlined &&
	       (!strncmp(s, "_PyEval_EvalFrameDefault", 24) || !strncmp(s, "_TAIL_CALL_", 11));
}

struct output {
	struct stack_frame *out;
	size_t count, max;
};

static void put(struct output *o, const struct stack_frame *f)
{
	if (o->count < o->max)
		o->out[o->count++] = *f;
}

/* The functions of one loop: up to the one that C called. Returns the next one's number. */
static size_t put_python(
	struct output *o, const struct merge_python *python, size_t count, size_t at)
{
	while (at < count) {
		put(o, &python[at].frame);
		if (python[at++].is_entry)
			break;
	}
	return at;
}

static size_t put_all(struct output *o, const struct merge_python *python, size_t count, size_t at)
{
	while (at < count)
		put(o, &python[at++].frame);
	return at;
}

size_t merge_frames(const struct merge_native *native, size_t native_count,
	const struct merge_python *python, size_t python_count, struct stack_frame *out, size_t max)
{
	struct output o = {.out = out, .max = max};
	bool has_loop = false;
	size_t at = 0;

	for (size_t i = 0; i < native_count; i++)
		has_loop |= is_loop(&native[i]);
	for (size_t i = 0; i < native_count; i++) {
		if (is_loop(&native[i]) && at < python_count) {
			at = put_python(&o, python, python_count, at);
			continue;
		}
		if (!has_loop && native[i].is_interpreter)
			at = put_all(&o, python, python_count, at);
		put(&o, &native[i].frame);
	}
	put_all(&o, python, python_count, at);
	return o.count;
}

#define CODES_MAX    16384
#define FILLED_BYTES (16u << 20) /* of long line tables */

struct stack_codes {
	struct intern *texts;
	struct idmap by_key;
	uint64_t keys[CODES_MAX]; /* a ring: the oldest is at next once it is full */
	size_t next;
	size_t filled_bytes;
};

static uint64_t key_of(uint32_t pid, uint64_t code, uint64_t lines)
{
	return hash_number(code ^ (lines << 13 | lines >> 51) ^ ((uint64_t)pid << 40));
}

int stack_codes_new(struct intern *texts, struct stack_codes **ret)
{
	struct stack_codes *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->texts = texts;
	c->by_key = IDMAP_INIT(CODES_MAX + 1);
	*ret = c;
	return 0;
}

void stack_codes_free(struct stack_codes *c)
{
	struct stack_code *code;
	size_t cursor = 0;

	while ((code = idmap_next(&c->by_key, &cursor, NULL)))
		free(code);
	idmap_done(&c->by_key);
	free(c);
}

static void code_free(struct stack_codes *c, struct stack_code *code)
{
	if (code && code->is_filled)
		c->filled_bytes -= code->lines_bytes;
	free(code);
}

static const char *text_of(
	struct stack_codes *c, const uint8_t *data, uint16_t bytes, uint8_t kind, uint8_t cut)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4 * STACK_TEXT_BYTES);

	if (python_text(data, bytes, kind, &text) < 0 || !text.len)
		return NULL;
	if (cut)
		buf_puts(&text, "…");
	return intern(c->texts, buf_str(&text));
}

int stack_codes_take(struct stack_codes *c, const void *record, size_t len)
{
	const struct stack_record_code *r = record;
	struct stack_code *code, *old;
	uint64_t key;

	if (len < sizeof(*r) || r->file_bytes > STACK_TEXT_BYTES ||
		r->name_bytes > STACK_TEXT_BYTES || r->lines_bytes > len - sizeof(*r))
		return -EBADMSG;
	code = calloc(1, sizeof(*code) + r->lines_bytes);
	if (!code)
		return -ENOMEM;
	code->file = text_of(c, r->file, r->file_bytes, r->file_kind, r->file_cut);
	code->name = text_of(c, r->name, r->name_bytes, r->name_kind, r->name_cut);
	code->first_line = r->first_line;
	code->minor = r->minor;
	code->lines_at = r->lines_at;
	code->lines_size = r->lines_size;
	code->lines_bytes = r->lines_bytes;
	memcpy(code->lines, r->line_table, r->lines_bytes);
	key = key_of(r->h.pid, r->code, r->lines);
	old = idmap_get(&c->by_key, key);
	if (!old) {
		code_free(c, idmap_remove(&c->by_key, c->keys[c->next]));
		c->keys[c->next] = key;
		c->next = (c->next + 1) % CODES_MAX;
	}
	if (idmap_put(&c->by_key, key, code) < 0) {
		free(code);
		return -ENOMEM;
	}
	code_free(c, old);
	return 0;
}

const struct stack_code *stack_codes_fill(
	struct stack_codes *c, uint32_t pid, uint64_t code, uint64_t lines, const uint8_t *table)
{
	uint64_t key = key_of(pid, code, lines);
	const struct stack_code *old = idmap_get(&c->by_key, key);
	struct stack_code *whole;

	if (!old || old->is_filled || old->lines_size > FILLED_BYTES - c->filled_bytes)
		return NULL;
	whole = malloc(sizeof(*whole) + old->lines_size);
	if (!whole)
		return NULL;
	*whole = *old;
	whole->is_filled = true;
	whole->lines_bytes = old->lines_size;
	memcpy(whole->lines, table, old->lines_size);
	free(idmap_remove(&c->by_key, key));
	if (idmap_put(&c->by_key, key, whole) < 0) {
		free(whole);
		return NULL;
	}
	c->filled_bytes += whole->lines_bytes;
	return whole;
}

const struct stack_code *stack_codes_find(
	const struct stack_codes *c, uint32_t pid, uint64_t code, uint64_t lines)
{
	return idmap_get(&c->by_key, key_of(pid, code, lines));
}
