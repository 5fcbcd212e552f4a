/* SPDX-License-Identifier: Apache-2.0 */
/* config_file.c - see config_file.h: what the tree of the file may hold is the table of keys below. */
#include "command/config_file.h"

#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "command/program.h"
#include "yaml/yaml_tree.h"

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

struct reading {
	const struct yaml_tree *tree;
	const char *path;
	struct config *config;
	struct errinfo *reterr;
};

static int fail(struct reading *p, const struct yaml_value *at, const char *fmt, ...)
	_printf_(3, 4);

static int fail(struct reading *p, const struct yaml_value *at, const char *fmt, ...)
{
	char what[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return errinfo_set_exit(p->reterr, EXIT_CONFIG, -EINVAL, "%s: line %zu, column %zu: %s",
		p->path, at->line, at->column, what);
}

/* ---- values ---- */

static int set_text(char **field, const char *value)
{
	*field = strdup(value);
	return *field ? 0 : -ENOMEM;
}

static int set_path(struct reading *p, const struct yaml_value *v, char **field)
{
	const char *slash = strrchr(p->path, '/'), *home = getenv("HOME");
	char out[PATH_MAX];
	int n;

	if (v->text[0] == '~' && v->text[1] == '/' && home)
		n = snprintf(out, sizeof(out), "%s%s", home, v->text + 1);
	else if (v->text[0] == '/' || !slash)
		n = snprintf(out, sizeof(out), "%s", v->text);
	else
		n = snprintf(
			out, sizeof(out), "%.*s%s", (int)(slash + 1 - p->path), p->path, v->text);
	return n >= (int)sizeof(out) ? fail(p, v, "this path is too long") : set_text(field, out);
}

/* A list of texts; one text alone is a list of one. */
static int set_list(struct reading *p, const struct row *row, const struct yaml_value *v)
{
	struct config_list *l = (struct config_list *)((char *)p->config + row->offset);

	if (v->kind == YAML_MAP)
		return fail(p, v, "%s.%s must be a list", row->section, row->key);
	if (v->count > CONFIG_LIST_MAX)
		return fail(p, v, "%s.%s has more than %d entries", row->section, row->key,
			CONFIG_LIST_MAX);
	l->items = calloc(v->count + 1, sizeof(*l->items));
	if (!l->items)
		return -ENOMEM;
	for (const struct yaml_value *m = v->kind == YAML_TEXT ? v : v->first; m; m = m->next) {
		if (m->kind != YAML_TEXT)
			return fail(
				p, m, "%s.%s must be a list of strings", row->section, row->key);
		l->items[l->count] = strdup(m->text);
		if (!l->items[l->count++])
			return -ENOMEM;
		if (m == v)
			break;
	}
	return 0;
}

static int set_value(struct reading *p, const struct row *row, const struct yaml_value *v)
{
	void *field = (char *)p->config + row->offset;

	if (v->kind == YAML_NOTHING)
		return 0;
	if (row->kind == LIST)
		return set_list(p, row, v);
	if (v->kind != YAML_TEXT)
		return fail(p, v, "%s.%s must be a single value", row->section, row->key);
	switch (row->kind) {
	case TEXT: return set_text(field, v->text);
	case FILE_PATH: return set_path(p, v, field);
	case BOOL:
		if (yaml_bool(v, field) < 0)
			return fail(p, v, "%s.%s must be true or false", row->section, row->key);
		return 0;
	case DURATION:
		if (text_parse_duration(v->text, field) < 0)
			return fail(p, v, "%s.%s must be a duration like 5s, 500ms or 1m30s",
				row->section, row->key);
		return 0;
	case LIST: break;
	}
	return -EINVAL;
}

/* ---- keys ---- */

static int unknown(struct reading *p, const char *section, const struct yaml_value *v)
{
	unsigned best = UINT_MAX, distance;
	const char *near = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *known = section ? rows[i].key : rows[i].section;

		if (section && strcmp(rows[i].section, section) != 0)
			continue;
		if (suggest_is_near(v->key, known, &distance) && distance < best) {
			best = distance;
			near = known;
		}
	}
	return fail(p, v, "unknown key '%.60s'%s%s%s%s%s", v->key, section ? " in " : "",
		section ? section : "", near ? ": did you mean " : "", near ? near : "",
		near ? "?" : "");
}

/* A member of @section; NULL: a section, of which this says only whether it is known. */
static int read_key(struct reading *p, const char *section, const struct yaml_value *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!section && !strcmp(rows[i].section, v->key))
			return 0;
		if (!section || strcmp(rows[i].section, section) || strcmp(rows[i].key, v->key))
			continue;
		p->config->lines[i] = v->line;
		return set_value(p, &rows[i], v);
	}
	return unknown(p, section, v);
}

static int read_root(struct reading *p)
{
	const struct yaml_value *root = yaml_tree_root(p->tree);
	int r = 0;

	if (root->kind != YAML_MAP && root->kind != YAML_NOTHING)
		return fail(p, root, "expected a section such as `fleet:` here");
	for (const struct yaml_value *s = root->first; r == 0 && s; s = s->next) {
		r = read_key(p, NULL, s);
		if (r == 0 && s->kind != YAML_MAP && s->kind != YAML_NOTHING)
			return fail(p, s, "%s must contain keys with values", s->key);
		for (const struct yaml_value *v = s->first; r == 0 && v; v = v->next)
			r = read_key(p, s->key, v);
	}
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

static struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof(*c));

	if (c)
		c->fleet_timeout_ns = c->fleet_clock_skew_ns = CONFIG_UNSET;
	return c;
}

int config_file_read(
	const char *path, const char *text, size_t len, struct config **ret, struct errinfo *reterr)
{
	_cleanup_(config_freep) struct config *c = config_new();
	_cleanup_(yaml_tree_freep) struct yaml_tree *tree = NULL;
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
	r = yaml_tree_read(path, text, len, &tree, reterr);
	r = r ?: read_root(&(struct reading){tree, path, c, reterr});
	r = r ?: set_text(&c->path, path);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

/* ---- which file is read, and which is left alone ---- */

static const char *chosen;

void config_file_choose(const char *path)
{
	chosen = path;
}

static bool is_owner(uid_t owner)
{
	const char *sudo = getenv("SUDO_UID");
	uid_t me = geteuid();

	return owner == 0 || owner == me ||
	       (me == 0 && sudo && *sudo && owner == (uid_t)strtoul(sudo, NULL, 10));
}

/* Whether a file that was found, not named, may be used. */
static bool is_trusted(const char *path, size_t place, const struct stat *st)
{
	const char *why = !is_owner(st->st_uid)   ? "another user owns it"
			  : st->st_mode & S_IWOTH ? "it is world-writable"
						  : NULL;

	static bool told[3]; /* of the places: it is looked for more than once */

	if (!why)
		return true;
	if (told[place])
		return false;
	told[place] = true;
	fprintf(stderr, "%s%s: %s is ignored: %s; use --config to read it anyway\n",
		log_mark(LOG_LEVEL_WARNING), program_running()->name, TEXT_SHOWN(path), why);
	return false;
}

static bool find(char *out, size_t size)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char own[PATH_MAX] = "";
	const char *const places[] = {"./ingero.yaml", "/etc/ingero/ingero.yaml", own};
	struct stat st;

	if (xdg && xdg[0] == '/')
		snprintf(own, sizeof(own), "%s/ingero/ingero.yaml", xdg);
	else if (home && home[0] == '/')
		snprintf(own, sizeof(own), "%s/.config/ingero/ingero.yaml", home);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!places[i][0] || stat(places[i], &st) < 0 || !is_trusted(places[i], i, &st))
			continue;
		snprintf(out, size, "%s", places[i]);
		return true;
	}
	return false;
}

int config_file_load(struct config **ret, struct errinfo *reterr)
{
	const char *named = chosen ? chosen : getenv("INGERO_CONFIG");
	char found[PATH_MAX];

	if (named && named[0])
		return config_file_read(named, NULL, 0, ret, reterr);
	if (find(found, sizeof(found)))
		return config_file_read(found, NULL, 0, ret, reterr);
	*ret = config_new();
	return *ret ? 0 : errinfo_set(reterr, -ENOMEM, "not enough memory");
}
