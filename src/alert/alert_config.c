/* SPDX-License-Identifier: Apache-2.0 */
/* alert_config.c - see alert_config.h. */
#include "alert/alert_config.h"

#include <limits.h>
#include <strings.h>

#include "deliver/endpoint.h"
#include "net/secret_file.h"

/* No sentence tells a secret. */

#define SECRET_MAX 8192

void alert_values_done(struct alert_values *c)
{
	for (size_t i = 0; i < c->kept_count; i++) {
		explicit_bzero(c->kept[i], strlen(c->kept[i]));
		free(c->kept[i]);
	}
	yaml_tree_freep(&c->tree);
}

/* alert_keep - a copy of @text that lives as long as the values; NULL: no memory. */
static const char *alert_keep(struct alert_values *c, const char *text)
{
	char *copy = c->kept_count < ALERT_KEPT_MAX ? strdup(text) : NULL;

	if (copy)
		c->kept[c->kept_count++] = copy;
	return copy;
}

int alert_values_read(struct alert_values *c, const char *path, const char *text, size_t len,
	struct errinfo *reterr)
{
	int r = yaml_tree_read(path, text, len, &c->tree, reterr);

	if (r < 0)
		return r;
	c->path = alert_keep(c, path);
	return c->path ? 0 : -ENOMEM;
}

/* A relative path begins at the folder of the file. */
static int read_path(struct alert_values *c, const struct yaml_value *v, const char **ret)
{
	const char *slash = strrchr(c->path, '/'), *value = NULL;
	char out[PATH_MAX];
	int r = yaml_text(v, &value);

	if (r < 0)
		return r;
	if (value[0] == '/' || !slash)
		snprintf(out, sizeof(out), "%s", value);
	else
		snprintf(out, sizeof(out), "%.*s%s", (int)(slash + 1 - c->path), c->path, value);
	*ret = alert_keep(c, out);
	return *ret ? 0 : -ENOMEM;
}

/* The one of @file and @env that is there says where the secret is. */
static int read_secret_from(struct alert_values *c, const struct yaml_value *file,
	const struct yaml_value *env, struct buf *b)
{
	const char *text = NULL;
	struct errinfo e = {0};
	int r;

	if (file) {
		r = read_path(c, file, &text);
		if (r == 0 && secret_file_read(text, "secret file", SECRET_MAX, b, &e) < 0)
			r = yaml_fail(file, "%s", e.text);
		return r;
	}
	text = env->kind == YAML_TEXT ? getenv(env->text) : NULL;
	if (!text)
		return yaml_fail(env, "%s: the environment variable %.60s is not set", env->key,
			env->kind == YAML_TEXT ? env->text : "");
	buf_puts(b, text);
	return 0;
}

/* The secret @key is in the file that @key_file names, or the variable that @key_env names. */
static int read_secret(
	struct alert_values *c, const struct yaml_value *entry, const char *key, const char **ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SECRET_MAX + 1);
	const struct yaml_value *env = yaml_member(entry, FORMATTED(64, "%s_env", key));
	const struct yaml_value *file = yaml_member(entry, FORMATTED(64, "%s_file", key));
	int r;

	if (!file && !env)
		return 0;
	if (file && env)
		return yaml_fail(env, "give either %s_file or %s_env", key, key);
	r = read_secret_from(c, file, env, &b);
	if (r < 0)
		return r;
	while (b.len && strchr(" \t\r\n", b.data[b.len - 1]))
		b.data[--b.len] = 0;
	for (size_t i = 0; i < b.len; i++)
		if ((unsigned char)b.data[i] < ' ' || b.data[i] == 0x7f)
			b.len = 0;
	if (!b.len || b.err)
		return yaml_fail(file ? file : env, "%s must hold one line of printable characters",
			(file ? file : env)->key);
	*ret = alert_keep(c, b.data);
	explicit_bzero(b.data, b.len);
	return *ret ? 0 : -ENOMEM;
}

/* "bearer_file" is "bearer" where that is a secret. */
static bool key_is(const char *key, const struct alert_key *row, unsigned of)
{
	size_t len = strlen(row->key);

	if (!(row->of & of) || strncmp(key, row->key, len) != 0)
		return false;
	return !key[len] ||
	       (row->secret_of & of && (!strcmp(key + len, "_file") || !strcmp(key + len, "_env")));
}

static int check_keys(
	const struct yaml_value *entry, const struct alert_key *rows, size_t count, unsigned of)
{
	for (const struct yaml_value *v = entry->first; v; v = v->next) {
		const struct alert_key *row = NULL;

		for (size_t i = 0; i < count && !row; i++)
			if (key_is(v->key, &rows[i], of))
				row = &rows[i];
		if (!row)
			return yaml_fail(v, "unknown key '%.60s'", v->key);
		if (!strcmp(v->key, row->key) && row->secret_of & of)
			return yaml_fail(v,
				"%s is a secret and must not be in this file: name a file that only you can read with %s_file, or an environment variable with %s_env",
				row->key, row->key, row->key);
	}
	return 0;
}

static int read_value(struct alert_values *c, const struct yaml_value *entry,
	const struct alert_key *row, bool is_secret, void *field)
{
	const struct yaml_value *v = yaml_member(entry, row->key);
	double n = 0;
	int r;

	if (is_secret)
		return read_secret(c, entry, row->key, field);
	if (!v)
		return 0;
	switch (row->form) {
	case ALERT_TEXT: return yaml_text(v, field);
	case ALERT_PATH: return read_path(c, v, field);
	case ALERT_BOOL: return yaml_bool(v, field);
	case ALERT_SIZE: return yaml_size(v, field);
	case ALERT_DURATION: return yaml_duration(v, field);
	case ALERT_NUMBER:
		r = yaml_number(v, 1, ALERT_NUMBER_MAX, &n);
		*(unsigned *)field = (unsigned)n;
		return r;
	case ALERT_ELSEWHERE: break;
	}
	return 0;
}

int alert_read_entry(struct alert_values *c, const struct yaml_value *entry,
	const struct alert_key *rows, size_t count, unsigned of, void *ret)
{
	int r = check_keys(entry, rows, count, of);

	for (size_t i = 0; r == 0 && i < count; i++)
		if (rows[i].of & of)
			r = read_value(c, entry, &rows[i], rows[i].secret_of & of,
				(char *)ret + rows[i].offset);
	return r;
}

int alert_take_list(const struct yaml_value *list, size_t max, alert_take_fn *take, void *arg)
{
	int r = 0;

	if (list->kind == YAML_NOTHING)
		return 0;
	if (list->kind != YAML_LIST)
		return yaml_fail(list, "%s must be a list", list->key);
	if (list->count > max)
		return yaml_fail(list, "%s has more than %zu entries", list->key, max);
	for (const struct yaml_value *v = list->first; r == 0 && v; v = v->next)
		r = v->kind == YAML_MAP ? take(arg, v)
					: yaml_fail(v, "an entry of %s must have keys", list->key);
	return r;
}

enum {
	OF_SLACK = 1 << ALERT_SLACK,
	OF_PAGERDUTY = 1 << ALERT_PAGERDUTY,
	OF_ALERTMANAGER = 1 << ALERT_ALERTMANAGER,
	OF_WEBHOOK = 1 << ALERT_WEBHOOK,
	OF_ALL = (1 << ALERT_TYPE_COUNT) - 1,
};

struct taken { /* from an entry */
	struct alert_receiver a;
	const char *url;
};

#define AT(field) offsetof(struct taken, field)
static const struct alert_key rows[] = {
	{"type", OF_ALL, 0, ALERT_ELSEWHERE, 0},
	{"per_minute", OF_ALL, 0, ALERT_NUMBER, AT(a.per_minute)},
	{"repeat", OF_ALERTMANAGER, 0, ALERT_DURATION, AT(a.repeat_ns)},
	{"insecure", OF_ALL, 0, ALERT_BOOL, AT(a.insecure_far)},
	{"url", OF_ALL, OF_SLACK, ALERT_TEXT, AT(url)},
	{"severity", OF_PAGERDUTY | OF_ALERTMANAGER, 0, ALERT_TEXT, AT(a.look.severity)},
	{"channel", OF_SLACK, 0, ALERT_TEXT, AT(a.look.channel)},
	{"username", OF_SLACK, 0, ALERT_TEXT, AT(a.look.username)},
	{"routing_key", OF_PAGERDUTY, OF_PAGERDUTY, ALERT_TEXT, AT(a.look.routing_key)},
	{"bearer", OF_ALERTMANAGER | OF_WEBHOOK, OF_ALERTMANAGER | OF_WEBHOOK, ALERT_TEXT,
		AT(a.bearer)},
	{"secret", OF_WEBHOOK, OF_WEBHOOK, ALERT_TEXT, AT(a.sign_secret)},
	{"ca_cert", OF_ALL, 0, ALERT_PATH, AT(a.ca)},
};
#undef AT

/* https://host[:port][/path]: no sentence tells it, because it may be a secret. */
static int set_url(struct alert_values *c, const struct yaml_value *at, struct alert_receiver *a,
	const char *url)
{
	bool tls = !strncasecmp(url, "https://", 8);
	const char *rest = url + (tls ? 8 : 7), *path;
	char authority[300];

	if (!tls && strncasecmp(url, "http://", 7) != 0)
		return yaml_fail(at, "the URL must begin with https:// or http://");
	path = rest + strcspn(rest, "/?");
	for (const char *p = path; *p; p++)
		if (*p <= ' ' || *p > '~')
			return yaml_fail(at, "the URL has characters that must be escaped as %%XX");
	snprintf(authority, sizeof(authority), "%.*s", (int)MIN(path - rest, (ptrdiff_t)299), rest);
	if (http_endpoint_parse(authority, tls, tls ? 443 : 80, &a->endpoint, NULL) < 0)
		return yaml_fail(at, "the URL has no valid host and port");
	if (!tls && !a->insecure_far && !endpoint_is_near(&a->endpoint))
		return yaml_fail(
			at, "the URL is not encrypted: use https, or add `insecure: true`");
	a->path = *path == '/' ? alert_keep(c, path) : "/";
	return a->path ? 0 : -ENOMEM;
}

/* What each type adds to the path, and where it is unless a URL says otherwise. */
static const struct {
	const char *url, *path;
} places[] = {[ALERT_PAGERDUTY] = {"https://events.pagerduty.com", "/v2/enqueue"},
	[ALERT_ALERTMANAGER] = {NULL, "/api/v2/alerts"},
	[ALERT_SLACK] = {NULL, NULL},
	[ALERT_WEBHOOK] = {NULL, NULL}};

static int set_place(struct alert_values *c, const struct yaml_value *entry,
	struct alert_receiver *a, const char *url)
{
	const char *add = places[a->type].path;
	size_t len;
	int r;

	url = url ?: places[a->type].url;
	if (!url)
		return yaml_fail(entry, "%s needs %s", alert_type_id(a->type),
			a->type == ALERT_SLACK ? "url_file or url_env" : "url");
	r = set_url(c, entry, a, url);
	if (r < 0 || !add)
		return r;
	for (len = strlen(a->path); len && a->path[len - 1] == '/';)
		len--;
	if (len >= strlen(add) && !strncmp(a->path + len - strlen(add), add, strlen(add)))
		return 0; /* it was there already */
	a->path = alert_keep(c, FORMATTED(1024, "%.*s%s", (int)len, a->path, add));
	return a->path ? 0 : -ENOMEM;
}

/* What the rows do not say of values. */
static int check_values(const struct yaml_value *entry, const struct alert_receiver *a)
{
	static const char *const words[] = {"info", "warning", "error", "critical"};
	size_t i = 0;

	if (a->repeat_ns < NS_PER_S && yaml_member(entry, "repeat"))
		return yaml_fail(yaml_member(entry, "repeat"), "repeat must be at least 1s");
	while (a->look.severity && i < ARRAY_SIZE(words) && strcmp(a->look.severity, words[i]) != 0)
		i++;
	if (i == ARRAY_SIZE(words))
		return yaml_fail(yaml_member(entry, "severity"),
			"severity must be info, warning, error or critical");
	if (a->type == ALERT_PAGERDUTY && !a->look.routing_key)
		return yaml_fail(entry, "pagerduty needs routing_key_file or routing_key_env");
	return 0;
}

static int take_type(const struct yaml_value *entry, enum alert_type *ret)
{
	const struct yaml_value *v = yaml_member(entry, "type");
	const char *word = "";
	int r = v ? yaml_text(v, &word) : 0;

	for (unsigned t = 0; r == 0 && t < ALERT_TYPE_COUNT; t++)
		if (!strcmp(word, alert_type_id((enum alert_type)t))) {
			*ret = (enum alert_type)t;
			return 0;
		}
	return r ?: yaml_fail(entry, "type must be slack, pagerduty, alertmanager or webhook");
}

static int take_alert(void *arg, const struct yaml_value *entry)
{
	struct alert_list *l = arg;
	struct taken t = {0};
	int r = take_type(entry, &t.a.type);

	r = r ?: alert_read_entry(l->values, entry, rows, ARRAY_SIZE(rows), 1u << t.a.type, &t);
	r = r ?: check_values(entry, &t.a);
	r = r ?: set_place(l->values, entry, &t.a, t.url);
	if (r == 0)
		l->receivers[l->count++] = t.a;
	return r;
}

int alert_config_take(struct alert_list *l, const struct yaml_value *list)
{
	return alert_take_list(list, ALERT_RECEIVERS_MAX, take_alert, l);
}
