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

static const char *alert_keep(struct alert_values *c, const char *text);

int alert_values_read(struct alert_values *c, const char *path, const char *text, size_t len,
	struct errinfo *reterr)
{
	int r = yaml_tree_read(path, text, len, &c->tree, reterr);

	c->reterr = reterr;
	if (r < 0)
		return r;
	c->path = alert_keep(c, path);
	return c->path ? 0 : -ENOMEM;
}

/* alert_keep - a copy of @text that lives as long as the values; NULL: no memory. */
static const char *alert_keep(struct alert_values *c, const char *text)
{
	char *copy = c->kept_count < ALERT_KEPT_MAX ? strdup(text) : NULL;

	if (copy)
		c->kept[c->kept_count++] = copy;
	return copy;
}

int alert_get_text(
	struct alert_values *c, const struct yaml_value *entry, const char *key, const char **ret)
{
	const struct yaml_value *v = yaml_member(entry, key);

	return v ? yaml_text(c->tree, v, ret, c->reterr) : 0;
}

int alert_get_path(
	struct alert_values *c, const struct yaml_value *entry, const char *key, const char **ret)
{
	const char *slash = strrchr(c->path, '/'), *value = NULL;
	char out[PATH_MAX];
	int r = alert_get_text(c, entry, key, &value);

	if (r < 0 || !value)
		return r;
	if (value[0] == '/' || !slash)
		snprintf(out, sizeof(out), "%s", value);
	else
		snprintf(out, sizeof(out), "%.*s%s", (int)(slash + 1 - c->path), c->path, value);
	*ret = alert_keep(c, out);
	return *ret ? 0 : -ENOMEM;
}

static int read_secret(struct alert_values *c, const struct yaml_value *file, const char *path,
	const struct yaml_value *env, struct buf *b)
{
	struct errinfo e = {0};
	const char *value;
	int r;

	if (file) {
		r = secret_file_read(path, "secret file", SECRET_MAX, b, &e);
		return r < 0 ? yaml_fail(c->tree, file, c->reterr, "%s", e.text) : 0;
	}
	value = env->kind == YAML_TEXT ? getenv(env->text) : NULL;
	if (!value)
		return yaml_fail(c->tree, env, c->reterr,
			"%s: the environment variable %.60s is not set", env->key,
			env->kind == YAML_TEXT ? env->text : "");
	buf_puts(b, value);
	return 0;
}

int alert_get_secret(
	struct alert_values *c, const struct yaml_value *entry, const char *key, const char **ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SECRET_MAX + 1);
	const struct yaml_value *file, *env;
	const char *path = NULL;
	char name[64];
	int r;

	snprintf(name, sizeof(name), "%s_env", key);
	env = yaml_member(entry, name);
	snprintf(name, sizeof(name), "%s_file", key);
	file = yaml_member(entry, name);
	if (!file && !env)
		return 0;
	if (file && env)
		return yaml_fail(
			c->tree, env, c->reterr, "give either %s_file or %s_env", key, key);
	r = alert_get_path(c, entry, name, &path);
	r = r ?: read_secret(c, file, path, env, &b);
	if (r < 0)
		return r;
	while (b.len && strchr(" \t\r\n", b.data[b.len - 1]))
		b.data[--b.len] = 0;
	for (size_t i = 0; i < b.len; i++)
		if ((unsigned char)b.data[i] < ' ' || b.data[i] == 0x7f)
			b.len = 0;
	if (!b.len || b.err)
		return yaml_fail(c->tree, file ? file : env, c->reterr,
			"%s must hold one line of printable characters", (file ? file : env)->key);
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

int alert_check_keys(struct alert_values *c, const struct yaml_value *entry,
	const struct alert_key *rows, size_t count, unsigned of)
{
	for (const struct yaml_value *v = entry->first; v; v = v->next) {
		const struct alert_key *row = NULL;

		for (size_t i = 0; i < count && !row; i++)
			if (key_is(v->key, &rows[i], of))
				row = &rows[i];
		if (!row)
			return yaml_fail(c->tree, v, c->reterr, "unknown key '%.60s'", v->key);
		if (!strcmp(v->key, row->key) && row->secret_of & of)
			return yaml_fail(c->tree, v, c->reterr,
				"%s is a secret and must not be in this file: name a file that only you can read with %s_file, or an environment variable with %s_env",
				row->key, row->key, row->key);
	}
	return 0;
}

int alert_take_list(struct alert_values *c, const struct yaml_value *list, size_t max,
	alert_take_fn *take, void *arg)
{
	int r = 0;

	if (list->kind == YAML_NOTHING)
		return 0;
	if (list->kind != YAML_LIST)
		return yaml_fail(c->tree, list, c->reterr, "%s must be a list", list->key);
	if (list->count > max)
		return yaml_fail(
			c->tree, list, c->reterr, "%s has more than %zu entries", list->key, max);
	for (const struct yaml_value *v = list->first; r == 0 && v; v = v->next)
		r = v->kind == YAML_MAP ? take(arg, v)
					: yaml_fail(c->tree, v, c->reterr,
						  "an entry of %s must have keys", list->key);
	return r;
}

enum {
	OF_SLACK = 1 << ALERT_SLACK,
	OF_PAGERDUTY = 1 << ALERT_PAGERDUTY,
	OF_ALERTMANAGER = 1 << ALERT_ALERTMANAGER,
	OF_WEBHOOK = 1 << ALERT_WEBHOOK,
	OF_ALL = (1 << ALERT_TYPE_COUNT) - 1,
};

static const struct alert_key rows[] = {
	{"type", OF_ALL, 0},
	{"url", OF_ALL, OF_SLACK},
	{"per_minute", OF_ALL, 0},
	{"ca_cert", OF_ALL, 0},
	{"insecure", OF_ALL, 0},
	{"channel", OF_SLACK, 0},
	{"username", OF_SLACK, 0},
	{"routing_key", OF_PAGERDUTY, OF_PAGERDUTY},
	{"severity", OF_PAGERDUTY | OF_ALERTMANAGER, 0},
	{"repeat", OF_ALERTMANAGER, 0},
	{"bearer", OF_ALERTMANAGER | OF_WEBHOOK, OF_ALERTMANAGER | OF_WEBHOOK},
	{"secret", OF_WEBHOOK, OF_WEBHOOK},
};

/* https://host[:port][/path]: no sentence tells it, because it may be a secret. */
static int set_url(struct alert_values *c, const struct yaml_value *at, struct alert_receiver *a,
	const char *url)
{
	bool tls = !strncasecmp(url, "https://", 8);
	const char *rest = url + (tls ? 8 : 7), *path;
	char authority[300];

	if (!tls && strncasecmp(url, "http://", 7) != 0)
		return yaml_fail(
			c->tree, at, c->reterr, "the URL must begin with https:// or http://");
	path = rest + strcspn(rest, "/?");
	for (const char *p = path; *p; p++)
		if (*p <= ' ' || *p > '~')
			return yaml_fail(c->tree, at, c->reterr,
				"the URL has characters that must be escaped as %%XX");
	snprintf(authority, sizeof(authority), "%.*s", (int)MIN(path - rest, (ptrdiff_t)299), rest);
	if (http_endpoint_parse(authority, tls, tls ? 443 : 80, &a->endpoint, NULL) < 0)
		return yaml_fail(c->tree, at, c->reterr, "the URL has no valid host and port");
	if (!tls && !a->insecure_far && !endpoint_is_near(&a->endpoint))
		return yaml_fail(c->tree, at, c->reterr,
			"the URL is not encrypted: use https, or add `insecure: true`");
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

static int take_place(
	struct alert_values *c, const struct yaml_value *entry, struct alert_receiver *a)
{
	const char *url = places[a->type].url, *add = places[a->type].path;
	char path[1024];
	size_t len;
	int r = a->type == ALERT_SLACK ? alert_get_secret(c, entry, "url", &url)
				       : alert_get_text(c, entry, "url", &url);

	if (r == 0 && !url)
		r = yaml_fail(c->tree, entry, c->reterr, "%s needs %s", alert_type_id(a->type),
			a->type == ALERT_SLACK ? "url_file or url_env" : "url");
	r = r ?: set_url(c, entry, a, url);
	if (r < 0 || !add)
		return r;
	for (len = strlen(a->path); len && a->path[len - 1] == '/';)
		len--;
	if (len >= strlen(add) && !strncmp(a->path + len - strlen(add), add, strlen(add)))
		return 0; /* it was there already */
	snprintf(path, sizeof(path), "%.*s%s", (int)len, a->path, add);
	a->path = alert_keep(c, path);
	return a->path ? 0 : -ENOMEM;
}

static int take_severity(
	struct alert_values *c, const struct yaml_value *entry, struct alert_receiver *a)
{
	static const char *const words[] = {"info", "warning", "error", "critical"};
	int r = alert_get_text(c, entry, "severity", &a->look.severity);

	if (r < 0 || !a->look.severity)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(a->look.severity, words[i]))
			return 0;
	return yaml_fail(c->tree, yaml_member(entry, "severity"), c->reterr,
		"severity must be info, warning, error or critical");
}

static int take_numbers(
	struct alert_values *c, const struct yaml_value *entry, struct alert_receiver *a)
{
	const struct yaml_value *v = yaml_member(entry, "per_minute");
	double n = 0;
	int r = v ? yaml_number(c->tree, v, 1, 1000, &n, c->reterr) : 0;

	a->per_minute = (unsigned)n;
	v = yaml_member(entry, "repeat");
	if (r == 0 && v)
		r = yaml_duration(c->tree, v, &a->repeat_ns, c->reterr);
	if (r == 0 && v && a->repeat_ns < NS_PER_S)
		r = yaml_fail(c->tree, v, c->reterr, "repeat must be at least 1s");
	v = yaml_member(entry, "insecure");
	if (r == 0 && v)
		r = yaml_bool(c->tree, v, &a->insecure_far, c->reterr);
	return r;
}

static int take_type(struct alert_values *c, const struct yaml_value *entry, enum alert_type *ret)
{
	const char *word = "";
	int r = alert_get_text(c, entry, "type", &word);

	for (unsigned t = 0; r == 0 && t < ALERT_TYPE_COUNT; t++)
		if (!strcmp(word, alert_type_id((enum alert_type)t))) {
			*ret = (enum alert_type)t;
			return 0;
		}
	return r < 0 ? r
		     : yaml_fail(c->tree, entry, c->reterr,
			       "type must be slack, pagerduty, alertmanager or webhook");
}

static int take_alert(void *arg, const struct yaml_value *entry)
{
	struct alert_list *l = arg;
	struct alert_values *c = l->values;
	struct alert_receiver *a = &l->receivers[l->count];
	int r = take_type(c, entry, &a->type);

	r = r ?: alert_check_keys(c, entry, rows, ARRAY_SIZE(rows), 1u << a->type);
	r = r ?: take_numbers(c, entry, a);
	r = r ?: take_place(c, entry, a);
	r = r ?: take_severity(c, entry, a);
	r = r ?: alert_get_text(c, entry, "channel", &a->look.channel);
	r = r ?: alert_get_text(c, entry, "username", &a->look.username);
	r = r ?: alert_get_secret(c, entry, "routing_key", &a->look.routing_key);
	if (r == 0 && a->type == ALERT_PAGERDUTY && !a->look.routing_key)
		r = yaml_fail(c->tree, entry, c->reterr,
			"pagerduty needs routing_key_file or routing_key_env");
	r = r ?: alert_get_secret(c, entry, "bearer", &a->bearer);
	r = r ?: alert_get_secret(c, entry, "secret", &a->sign_secret);
	r = r ?: alert_get_path(c, entry, "ca_cert", &a->ca);
	l->count += r == 0;
	return r;
}

int alert_config_take(struct alert_list *l, const struct yaml_value *list)
{
	return alert_take_list(l->values, list, ALERT_RECEIVERS_MAX, take_alert, l);
}
