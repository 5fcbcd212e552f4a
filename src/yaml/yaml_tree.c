/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_tree.c - see yaml_tree.h. Built from libyaml's events with a stack of open lists and maps, so
 * that depth is a number and not a recursion. All values and texts lie in chunks of memory that go
 * with the tree. */
#include "yaml/yaml_tree.h"

#include <math.h>
#include <yaml.h>

#include "base/file.h"
#include "base/path_user.h"
#include "base/search.h"
#include "base/text.h"

struct chunk { /* one value or text; freed with the tree */
	struct chunk *next;
	char data[] __attribute__((aligned(16)));
};

struct yaml_tree {
	char *path;
	struct chunk *chunks;
	struct yaml_value *root, nothing; /* nothing: the root of an empty file */
	size_t values;
	struct errinfo *reterr;
};

struct builder {
	struct yaml_tree *tree;
	yaml_parser_t parser;
	const char *text, *end;
	struct yaml_value *open[YAML_DEPTH_MAX], *last[YAML_DEPTH_MAX]; /* last: their members */
	size_t depth;
	const char *key; /* that waits for its value; NULL: none */
	yaml_mark_t key_mark;
};

void yaml_tree_free(struct yaml_tree *t)
{
	for (struct chunk *c = t->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(t->path);
	free(t);
}

static void *tree_alloc(struct yaml_tree *t, size_t size)
{
	struct chunk *c = calloc(1, sizeof(*c) + size);

	if (!c)
		return NULL;
	c->next = t->chunks;
	t->chunks = c;
	return c->data;
}

static int fail_at(struct builder *b, size_t line, const char *what)
{
	return errinfo_set_exit(b->tree->reterr, EXIT_CONFIG, -EINVAL, "%s: line %zu: %s",
		b->tree->path, line, what);
}

/* ---- building ---- */

static int add(struct builder *b, yaml_mark_t at, enum yaml_kind kind, const char *text)
{
	struct yaml_value *parent = b->depth ? b->open[b->depth - 1] : NULL, *v;

	if (b->key)
		at = b->key_mark;
	if (++b->tree->values > YAML_VALUES_MAX)
		return fail_at(b, at.line + 1, "too many values");
	v = tree_alloc(b->tree, sizeof(*v));
	if (!v)
		return -ENOMEM;
	*v = (struct yaml_value){.kind = kind,
		.key = b->key,
		.text = text,
		.line = at.line + 1,
		.column = at.column + 1,
		.tree = b->tree};
	b->key = NULL;
	if (!parent) {
		b->tree->root = v;
	} else {
		struct yaml_value **last = &b->last[b->depth - 1];

		if (*last)
			(*last)->next = v;
		else
			parent->first = v;
		*last = v;
		parent->count++;
	}
	if (kind != YAML_LIST && kind != YAML_MAP)
		return 0;
	if (b->depth == YAML_DEPTH_MAX)
		return fail_at(b, at.line + 1, "nested too deeply");
	b->open[b->depth] = v;
	b->last[b->depth++] = NULL;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct yaml_value *x = *(const struct yaml_value *const *)a;
	const struct yaml_value *y = *(const struct yaml_value *const *)b;
	int r = strcmp(x->key, y->key);

	r = r ?: (x->line > y->line) - (x->line < y->line);
	return r ? r : (x->column > y->column) - (x->column < y->column);
}

/* No key of a map twice: by sorting, since a stranger's file has thousands. */
static int check_keys(struct builder *b, const struct yaml_value *map)
{
	_cleanup_free_ const struct yaml_value **keys = calloc(map->count + 1, sizeof(*keys));
	const struct yaml_value *first = NULL, *again = NULL;
	size_t n = 0;

	if (!keys)
		return -ENOMEM;
	for (const struct yaml_value *v = map->first; v; v = v->next)
		keys[n++] = v;
	SORT(keys, n, compare_keys);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(keys[i - 1]->key, keys[i]->key) &&
			(!again || keys[i]->line < again->line)) {
			first = keys[i - 1];
			again = keys[i];
		}
	if (!again)
		return 0;
	return fail_at(b, again->line,
		FORMATTED(
			120, "duplicate key '%.60s', first on line %zu", again->key, first->line));
}

static int take_scalar(struct builder *b, const yaml_event_t *e)
{
	const char *value = (const char *)e->data.scalar.value;
	size_t len = e->data.scalar.length;
	bool is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	char *text;

	if (strlen(value) != len)
		return fail_at(b, e->start_mark.line + 1, "a NUL byte");
	text = tree_alloc(b->tree, len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, value, len + 1);
	if (b->depth && b->open[b->depth - 1]->kind == YAML_MAP && !b->key) {
		b->key = text;
		b->key_mark = e->start_mark;
		return 0;
	}
	if (is_plain && (!len || !strcmp(text, "~") || !strcmp(text, "null")))
		return add(b, e->start_mark, YAML_NOTHING, NULL);
	return add(b, e->start_mark, YAML_TEXT, text);
}

static bool is_marked(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_ALIAS_EVENT: return true;
	case YAML_SCALAR_EVENT: return e->data.scalar.anchor || e->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.anchor || e->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.anchor || e->data.mapping_start.tag;
	default: return false;
	}
}

static int take_event(struct builder *b, const yaml_event_t *e)
{
	size_t line = e->start_mark.line + 1;
	bool is_open = e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;

	if (is_marked(e))
		return fail_at(b, line, "anchors, aliases and tags (&, * and !) are not supported");
	if (is_open && b->depth && b->open[b->depth - 1]->kind == YAML_MAP && !b->key)
		return fail_at(b, line, "a key must be a text");
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		return b->tree->root ? fail_at(b, line, "only one YAML document is allowed") : 0;
	case YAML_SCALAR_EVENT: return take_scalar(b, e);
	case YAML_SEQUENCE_START_EVENT: return add(b, e->start_mark, YAML_LIST, NULL);
	case YAML_MAPPING_START_EVENT: return add(b, e->start_mark, YAML_MAP, NULL);
	case YAML_SEQUENCE_END_EVENT: b->depth--; return 0;
	case YAML_MAPPING_END_EVENT: return check_keys(b, b->open[--b->depth]);
	default: return 0;
	}
}

/* YAML takes tabs for no indentation and says so in words about tokens. */
static bool is_tabbed(const struct builder *b, size_t line)
{
	const char *p = b->text;

	while (p && line--) {
		const char *newline = memchr(p, '\n', (size_t)(b->end - p));

		p = newline ? newline + 1 : NULL;
	}
	while (p && p < b->end && *p == ' ')
		p++;
	return p && p < b->end && *p == '\t';
}

static int build(struct builder *b)
{
	yaml_event_t e;
	bool at_end = false;
	int r = 0;

	while (r == 0 && !at_end) {
		if (!yaml_parser_parse(&b->parser, &e)) {
			if (b->parser.error == YAML_MEMORY_ERROR)
				return -ENOMEM;
			return fail_at(b, b->parser.problem_mark.line + 1,
				FORMATTED(200, "not valid YAML: %s",
					is_tabbed(b, b->parser.problem_mark.line)
						? "indent with spaces, not tabs"
					: b->parser.problem ? b->parser.problem
							    : "unreadable"));
		}
		at_end = e.type == YAML_STREAM_END_EVENT;
		r = take_event(b, &e);
		yaml_event_delete(&e);
	}
	return r;
}

static int parse(struct yaml_tree *t, const char *text, size_t len)
{
	struct builder b = {.tree = t, .text = text, .end = text + len};
	int r;

	if (!yaml_parser_initialize(&b.parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
	r = build(&b);
	yaml_parser_delete(&b.parser);
	return r;
}

int yaml_tree_read(const char *path, const char *text, size_t len, struct yaml_tree **ret,
	struct errinfo *reterr)
{
	_cleanup_(yaml_tree_freep) struct yaml_tree *t = calloc(1, sizeof(*t));
	_cleanup_buf_ struct buf b = BUF_INIT(YAML_BYTES_MAX);
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = 0;

	if (t)
		t->path = strdup(path);
	if (!t || !t->path)
		return errinfo_set(reterr, -ENOMEM, "not enough memory to read %s", path);
	t->reterr = reterr;
	t->nothing = (struct yaml_value){.line = 1, .column = 1, .tree = t};
	if (!text) {
		r = path_user_enter(path, &before, reterr);
		if (r < 0)
			return r;
		r = file_read(path, YAML_BYTES_MAX, &b);
		text = buf_str(&b);
		len = b.len;
	}
	if (r < 0)
		return errinfo_set_exit(reterr, EXIT_CONFIG, r, "%s cannot be read: %s", path,
			r == -EFBIG    ? "it is over 1 MiB"
			: r == -EINVAL ? "it is not a regular file"
				       : strerror(-r));
	r = parse(t, text, len);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

/* ---- using ---- */

const struct yaml_value *yaml_tree_root(const struct yaml_tree *t)
{
	return t->root ? t->root : &t->nothing;
}

const struct yaml_value *yaml_member(const struct yaml_value *v, const char *key)
{
	const struct yaml_value *m = v->kind == YAML_MAP ? v->first : NULL;

	while (m && strcmp(m->key, key) != 0)
		m = m->next;
	return m;
}

int yaml_fail(const struct yaml_value *v, const char *fmt, ...)
{
	char what[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return errinfo_set_exit(v->tree->reterr, EXIT_CONFIG, -EINVAL, "%s: line %zu: %s",
		v->tree->path, v->line, what);
}

static const char *name_of(const struct yaml_value *v)
{
	return v->key ? v->key : "an entry";
}

int yaml_text(const struct yaml_value *v, const char **ret)
{
	if (v->kind != YAML_TEXT)
		return yaml_fail(v, "%s must be a single value", name_of(v));
	*ret = v->text;
	return 0;
}

int yaml_bool(const struct yaml_value *v, bool *ret)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

	for (size_t i = 0; v->kind == YAML_TEXT && i < ARRAY_SIZE(words); i++)
		if (!strcmp(v->text, words[i])) {
			*ret = i & 1;
			return 0;
		}
	return yaml_fail(v, "%s must be true or false", name_of(v));
}

int yaml_number(const struct yaml_value *v, double low, double high, double *ret)
{
	char *end = NULL;
	double n = v->kind == YAML_TEXT && *v->text ? strtod(v->text, &end) : NAN;

	if (!end || *end || !(n >= low && n <= high))
		return yaml_fail(v, "%s must be a number from %g to %g", name_of(v), low, high);
	*ret = n;
	return 0;
}

int yaml_duration(const struct yaml_value *v, uint64_t *ret_ns)
{
	if (v->kind != YAML_TEXT || text_parse_duration(v->text, ret_ns) < 0)
		return yaml_fail(v, "%s must be a duration like 5s, 500ms or 1m30s", name_of(v));
	return 0;
}

int yaml_size(const struct yaml_value *v, uint64_t *ret_bytes)
{
	if (v->kind != YAML_TEXT || text_parse_size(v->text, ret_bytes) < 0)
		return yaml_fail(v, "%s must be a size like 64m or 1g", name_of(v));
	return 0;
}
