/* SPDX-License-Identifier: Apache-2.0 */
/* config_file.c - see config_file.h. Walks libyaml's events by a table of sections and keys: three
 * levels, no recursion. libcyaml would read the same table, but says line and column only of what
 * is wrong for YAML, not of a value such as a duration that is wrong for us.
 *
 * Anchors and aliases are refused (nothing here needs them, and they can make a small file large),
 * as is a key that occurs twice. */
#include "command/config_file.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/text.h"
#include "command/program.h"

enum kind { TEXT, FILE_PATH, DURATION, BOOL, LIST };

static const struct row {
	const char *section, *key;
	enum kind kind;
	size_t offset;
} rows[] = {
#define AT(field) offsetof(struct config, field)
	{"agent", "node", TEXT, AT(node)},
	{"agent", "notify", FILE_PATH, AT(notify)},
	{"fleet", "nodes", LIST, AT(fleet_nodes)},
	{"fleet", "timeout", DURATION, AT(fleet_timeout_ns)},
	{"fleet", "clock_skew_threshold", DURATION, AT(fleet_clock_skew_ns)},
	{"fleet", "ca_cert", FILE_PATH, AT(fleet_ca_cert)},
	{"fleet", "client_cert", FILE_PATH, AT(fleet_client_cert)},
	{"fleet", "client_key", FILE_PATH, AT(fleet_client_key)},
	{"fleet", "token_file", FILE_PATH, AT(fleet_token_file)},
	{"fleet", "fingerprint", LIST, AT(fleet_fingerprint)},
	{"fleet", "trust_on_first_use", BOOL, AT(fleet_trust_on_first_use)},
	{"fleet", "no_tls", BOOL, AT(fleet_no_tls)},
	{"fleet", "endpoint", TEXT, AT(fleet_endpoint)},
	{"fleet", "cluster_id", TEXT, AT(fleet_cluster_id)},
	{"fleet", "threshold_url", TEXT, AT(fleet_threshold_url)},
	{"rates", "url", TEXT, AT(rates_url)},
	{"rates", "ca_cert", FILE_PATH, AT(rates_ca_cert)},
	{"update", "check", BOOL, AT(update_check)},
	{"update", "url", TEXT, AT(update_url)},
	{"update", "ca_cert", FILE_PATH, AT(update_ca_cert)},
	{"dashboard", "addr", TEXT, AT(dashboard_addr)},
	{"dashboard", "tls_cert", FILE_PATH, AT(dashboard_tls_cert)},
	{"dashboard", "tls_key", FILE_PATH, AT(dashboard_tls_key)},
	{"dashboard", "client_ca", FILE_PATH, AT(dashboard_client_ca)},
	{"dashboard", "token_file", FILE_PATH, AT(dashboard_token_file)},
	{"dashboard", "names", LIST, AT(dashboard_names)},
#undef AT
};

_Static_assert(ARRAY_SIZE(rows) <= CONFIG_KEYS_MAX, "write each key on its own line");

struct walk {
	yaml_parser_t parser;
	yaml_event_t event; /* the last one; freed before the next */
	bool has_event;
	const char *path, *text;
	size_t text_len;
	struct config *config;
	bool seen[ARRAY_SIZE(rows)];
	struct errinfo *reterr;
};

static void walk_done(struct walk *w)
{
	if (w->has_event)
		yaml_event_delete(&w->event);
	yaml_parser_delete(&w->parser);
}

static int fail(struct walk *w, yaml_mark_t at, const char *fmt, ...) _printf_(3, 4);

static int fail(struct walk *w, yaml_mark_t at, const char *fmt, ...)
{
	char what[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return errinfo_set_exit(w->reterr, EXIT_CONFIG, -EINVAL, "%s: line %zu, column %zu: %s",
		w->path, at.line + 1, at.column + 1, what);
}

/* YAML takes tabs for no indentation and says so in words about tokens. */
static bool is_tabbed(const struct walk *w, size_t line)
{
	const char *p = w->text, *end = p + w->text_len;

	while (p && line--) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));

		p = newline ? newline + 1 : NULL;
	}
	while (p && p < end && *p == ' ')
		p++;
	return p && p < end && *p == '\t';
}

static int next(struct walk *w)
{
	yaml_char_t *anchor = NULL;

	if (w->has_event)
		yaml_event_delete(&w->event);
	w->has_event = false;
	if (!yaml_parser_parse(&w->parser, &w->event)) {
		if (w->parser.error == YAML_MEMORY_ERROR)
			return -ENOMEM;
		if (is_tabbed(w, w->parser.problem_mark.line))
			return fail(w, w->parser.problem_mark, "indent with spaces, not tabs");
		return fail(w, w->parser.problem_mark, "not valid YAML: %s",
			w->parser.problem ? w->parser.problem : "unreadable");
	}
	w->has_event = true;
	if (w->event.type == YAML_SCALAR_EVENT)
		anchor = w->event.data.scalar.anchor;
	else if (w->event.type == YAML_SEQUENCE_START_EVENT)
		anchor = w->event.data.sequence_start.anchor;
	else if (w->event.type == YAML_MAPPING_START_EVENT)
		anchor = w->event.data.mapping_start.anchor;
	if (anchor || w->event.type == YAML_ALIAS_EVENT)
		return fail(
			w, w->event.start_mark, "anchors and aliases (& and *) are not supported");
	return 0;
}

static const char *scalar(const struct walk *w)
{
	return w->event.type == YAML_SCALAR_EVENT ? (const char *)w->event.data.scalar.value : NULL;
}

/* "key:" with nothing behind it, or ~ or null. */
static bool is_nothing(const struct walk *w)
{
	const char *s = scalar(w);

	return s && w->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*s || !strcmp(s, "~") || !strcmp(s, "null"));
}

/* ---- values ---- */

static int set_text(char **field, const char *value)
{
	free(*field);
	*field = strdup(value);
	return *field ? 0 : -ENOMEM;
}

static int set_path(struct walk *w, char **field, const char *value)
{
	const char *slash = strrchr(w->path, '/'), *home = getenv("HOME");
	char out[PATH_MAX];
	int n;

	if (value[0] == '~' && value[1] == '/' && home)
		n = snprintf(out, sizeof(out), "%s%s", home, value + 1);
	else if (value[0] == '/' || !slash)
		n = snprintf(out, sizeof(out), "%s", value);
	else
		n = snprintf(
			out, sizeof(out), "%.*s%s", (int)(slash + 1 - w->path), w->path, value);
	if (n >= (int)sizeof(out))
		return fail(w, w->event.start_mark, "this path is too long");
	return set_text(field, out);
}

static int set_bool(struct walk *w, const struct row *row, bool *field, const char *value)
{
	bool yes = !strcmp(value, "true") || !strcmp(value, "yes") || !strcmp(value, "on");

	if (!yes && strcmp(value, "false") != 0 && strcmp(value, "no") != 0 &&
		strcmp(value, "off") != 0)
		return fail(w, w->event.start_mark, "%s.%s must be true or false", row->section,
			row->key);
	*field = yes;
	return 0;
}

static int set_scalar(struct walk *w, const struct row *row)
{
	char *field = (char *)w->config + row->offset;
	const char *value = scalar(w);

	if (!value)
		return fail(w, w->event.start_mark, "%s.%s must be a single value", row->section,
			row->key);
	if (strlen(value) != w->event.data.scalar.length)
		return fail(w, w->event.start_mark, "%s.%s contains a NUL byte", row->section,
			row->key);
	if (is_nothing(w))
		return 0;
	switch (row->kind) {
	case TEXT: return set_text((char **)field, value);
	case FILE_PATH: return set_path(w, (char **)field, value);
	case BOOL: return set_bool(w, row, (bool *)field, value);
	case DURATION:
		if (text_parse_duration(value, (uint64_t *)field) < 0)
			return fail(w, w->event.start_mark,
				"%s.%s must be a duration like 5s, 500ms or 1m30s", row->section,
				row->key);
		return 0;
	case LIST: break;
	}
	return -EINVAL;
}

static int list_add(struct walk *w, struct config_list *l, const char *value)
{
	char **p = realloc(l->items, (l->count + 1) * sizeof(*p));

	if (!p)
		return -ENOMEM;
	l->items = p;
	p[l->count] = strdup(value);
	if (!p[l->count])
		return -ENOMEM;
	l->count++;
	return 0;
}

/* A sequence of texts; one text alone is a list of one. */
static int set_list(struct walk *w, const struct row *row)
{
	struct config_list *l = (struct config_list *)((char *)w->config + row->offset);
	int r;

	if (is_nothing(w))
		return 0;
	if (scalar(w))
		return list_add(w, l, scalar(w));
	if (w->event.type != YAML_SEQUENCE_START_EVENT)
		return fail(w, w->event.start_mark, "%s.%s must be a list", row->section, row->key);
	while ((r = next(w)) == 0 && w->event.type != YAML_SEQUENCE_END_EVENT) {
		if (!scalar(w) || is_nothing(w) || strlen(scalar(w)) != w->event.data.scalar.length)
			return fail(w, w->event.start_mark, "%s.%s must be a list of strings",
				row->section, row->key);
		if (l->count == CONFIG_LIST_MAX)
			return fail(w, w->event.start_mark, "%s.%s has more than %d entries",
				row->section, row->key, CONFIG_LIST_MAX);
		r = list_add(w, l, scalar(w));
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- keys ---- */

static int unknown(struct walk *w, const char *section, const char *name)
{
	unsigned best = UINT_MAX, distance;
	const char *near = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *known = section ? rows[i].key : rows[i].section;

		if (section && strcmp(rows[i].section, section) != 0)
			continue;
		if (suggest_is_near(name, known, &distance) && distance < best) {
			best = distance;
			near = known;
		}
	}
	return fail(w, w->event.start_mark, "unknown key '%.60s'%s%s%s%s%s", name,
		section ? " in " : "", section ? section : "", near ? ": did you mean " : "",
		near ? near : "", near ? "?" : "");
}

static int walk_key(struct walk *w, const char *section)
{
	const char *name = scalar(w);
	int r;

	if (!name)
		return fail(w, w->event.start_mark, "expected a key of %s here", section);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(rows[i].section, section) != 0 || strcmp(rows[i].key, name) != 0)
			continue;
		if (w->seen[i])
			return fail(w, w->event.start_mark, "duplicate key %s.%s", section, name);
		w->seen[i] = true;
		w->config->lines[i] = w->event.start_mark.line + 1;
		r = next(w);
		if (r < 0)
			return r;
		return rows[i].kind == LIST ? set_list(w, &rows[i]) : set_scalar(w, &rows[i]);
	}
	return unknown(w, section, name);
}

static const char *find_section(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].section, name))
			return rows[i].section;
	return NULL;
}

static int walk_section(struct walk *w)
{
	const char *section = find_section(scalar(w));
	int r;

	if (!section)
		return unknown(w, NULL, scalar(w) ? scalar(w) : "");
	r = next(w);
	if (r < 0 || is_nothing(w))
		return r;
	if (w->event.type != YAML_MAPPING_START_EVENT)
		return fail(w, w->event.start_mark, "%s must contain keys with values", section);
	while ((r = next(w)) == 0 && w->event.type != YAML_MAPPING_END_EVENT) {
		r = walk_key(w, section);
		if (r < 0)
			return r;
	}
	return r;
}

static int walk_file(struct walk *w)
{
	int r = next(w); /* the stream begins */

	if (r == 0)
		r = next(w);
	if (r < 0 || w->event.type == YAML_STREAM_END_EVENT)
		return r;
	r = next(w); /* behind the begin of the document */
	if (r < 0 || is_nothing(w))
		return r;
	if (w->event.type != YAML_MAPPING_START_EVENT)
		return fail(w, w->event.start_mark, "expected a section such as `fleet:` here");
	while ((r = next(w)) == 0 && w->event.type != YAML_MAPPING_END_EVENT) {
		r = walk_section(w);
		if (r < 0)
			return r;
	}
	if (r == 0)
		r = next(w); /* the document ends */
	if (r == 0)
		r = next(w);
	if (r == 0 && w->event.type != YAML_STREAM_END_EVENT)
		return fail(w, w->event.start_mark, "only one YAML document is allowed");
	return r;
}

/* ---- files ---- */

static void free_list(struct config_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i]);
	free(l->items);
}

int config_file_blame(
	const struct config *c, const char *key, int err, const char *what, struct errinfo *reterr)
{
	size_t line = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].section);

		if (!strncmp(key, rows[i].section, len) && key[len] == '.' &&
			!strcmp(key + len + 1, rows[i].key))
			line = c->lines[i];
	}
	return errinfo_set_exit(
		reterr, EXIT_CONFIG, err, "%s: line %zu: %s: %s", c->path, line, key, what);
}

void config_free(struct config *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *field = (char *)c + rows[i].offset;

		if (rows[i].kind == TEXT || rows[i].kind == FILE_PATH)
			free(*(char **)field);
		else if (rows[i].kind == LIST)
			free_list((struct config_list *)field);
	}
	free(c->path);
	free(c);
}

struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof(*c));

	if (c)
		c->fleet_timeout_ns = c->fleet_clock_skew_ns = CONFIG_UNSET;
	return c;
}

static int parse(
	const char *path, const char *text, size_t len, struct config *c, struct errinfo *reterr)
{
	_cleanup_(walk_done) struct walk w = {
		.path = path, .text = text, .text_len = len, .config = c, .reterr = reterr};

	if (!yaml_parser_initialize(&w.parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&w.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&w.parser, (const unsigned char *)text, len);
	return walk_file(&w);
}

int config_file_read(
	const char *path, const char *text, size_t len, struct config **ret, struct errinfo *reterr)
{
	_cleanup_(config_freep) struct config *c = config_new();
	_cleanup_buf_ struct buf b = BUF_INIT(CONFIG_BYTES_MAX);
	int r = 0;

	if (!c)
		return errinfo_set(reterr, -ENOMEM, "not enough memory to read %s", path);
	if (!text) {
		r = file_read(path, CONFIG_BYTES_MAX, &b);
		text = buf_str(&b);
		len = b.len;
	}
	if (r < 0)
		return errinfo_set_exit(reterr, EXIT_CONFIG, r, "%s cannot be read: %s", path,
			r == -EFBIG    ? "it is over 256 KiB"
			: r == -EINVAL ? "it is not a regular file"
				       : strerror(-r));
	r = parse(path, text, len, c, reterr);
	if (r == 0)
		r = set_text(&c->path, path);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}
