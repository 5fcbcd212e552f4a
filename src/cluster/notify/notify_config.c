/* SPDX-License-Identifier: Apache-2.0 */
/* notify_config.c - see notify_config.h. A table says which keys belong to which kind of entry;
 * texts that outlive the tree (secrets, joined paths) are kept in a list and wiped at the end. */
#include "cluster/notify/notify_config_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SPOOL_BYTES (1ULL << 30)

void notify_config_free(struct notify_config *c)
{
	for (size_t i = 0; i < c->kept_count; i++) {
		explicit_bzero(c->kept[i], strlen(c->kept[i]));
		free(c->kept[i]);
	}
	for (size_t i = 0; i < FORWARD_TARGETS_MAX; i++)
		endpoint_fields_done(&c->fields[i]);
	if (c->tree)
		yaml_tree_free(c->tree);
	free(c);
}

/* ---- keys ---- */

enum {
	OF_SLACK = 1 << ALERT_SLACK,
	OF_PAGERDUTY = 1 << ALERT_PAGERDUTY,
	OF_ALERTMANAGER = 1 << ALERT_ALERTMANAGER,
	OF_WEBHOOK = 1 << ALERT_WEBHOOK,
	OF_ALERTS = (1 << ALERT_TYPE_COUNT) - 1,
	OF_FORWARD = 1 << ALERT_TYPE_COUNT,
};

static const struct row {
	const char *key;
	unsigned of;
	unsigned secret_of; /* where it may only be given as key_file or key_env */
} rows[] = {
	{"type", OF_ALERTS, 0},
	{"url", OF_ALERTS, OF_SLACK},
	{"per_minute", OF_ALERTS, 0},
	{"ca_cert", OF_ALERTS | OF_FORWARD, 0},
	{"insecure", OF_ALERTS | OF_FORWARD, 0},
	{"channel", OF_SLACK, 0},
	{"username", OF_SLACK, 0},
	{"routing_key", OF_PAGERDUTY, OF_PAGERDUTY},
	{"severity", OF_PAGERDUTY | OF_ALERTMANAGER, 0},
	{"repeat", OF_ALERTMANAGER, 0},
	{"bearer", OF_ALERTMANAGER | OF_WEBHOOK, OF_ALERTMANAGER | OF_WEBHOOK},
	{"secret", OF_WEBHOOK, OF_WEBHOOK},
	{"endpoint", OF_FORWARD, 0},
	{"protocol", OF_FORWARD, 0},
	{"headers", OF_FORWARD, OF_FORWARD},
	{"client_cert", OF_FORWARD, 0},
	{"client_key", OF_FORWARD, 0},
	{"spool", OF_FORWARD, 0},
	{"spool_size", OF_FORWARD, 0},
};

/* "bearer_file" is "bearer" where that is a secret. */
static bool key_is(const char *key, const struct row *row, unsigned of)
{
	size_t len = strlen(row->key);

	if (!(row->of & of) || strncmp(key, row->key, len) != 0)
		return false;
	return !key[len] ||
	       (row->secret_of & of && (!strcmp(key + len, "_file") || !strcmp(key + len, "_env")));
}

static int check_keys(struct notify_config *c, const struct yaml_value *entry, unsigned of)
{
	for (const struct yaml_value *v = entry->first; v; v = v->next) {
		const struct row *row = NULL;

		for (size_t i = 0; i < ARRAY_SIZE(rows) && !row; i++)
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

/* ---- alerts ---- */

/* https://host[:port][/path]: no sentence tells it, because it may be a secret. */
static int set_url(struct notify_config *c, const struct yaml_value *at, struct alert_receiver *a,
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
	a->path = *path == '/' ? notify_keep(c, path) : "/";
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
	struct notify_config *c, const struct yaml_value *entry, struct alert_receiver *a)
{
	const char *url = places[a->type].url, *add = places[a->type].path;
	char path[1024];
	size_t len;
	int r = a->type == ALERT_SLACK ? notify_get_secret(c, entry, "url", &url)
				       : notify_get_text(c, entry, "url", &url);

	if (r == 0 && !url)
		r = yaml_fail(c->tree, entry, c->reterr, "%s needs %s", alert_type_id(a->type),
			a->type == ALERT_SLACK ? "url_file or url_env" : "url");
	if (r == 0)
		r = set_url(c, entry, a, url);
	if (r < 0 || !add)
		return r;
	for (len = strlen(a->path); len && a->path[len - 1] == '/';)
		len--;
	if (len >= strlen(add) && !strncmp(a->path + len - strlen(add), add, strlen(add)))
		return 0; /* it was there already */
	snprintf(path, sizeof(path), "%.*s%s", (int)len, a->path, add);
	a->path = notify_keep(c, path);
	return a->path ? 0 : -ENOMEM;
}

static int take_severity(
	struct notify_config *c, const struct yaml_value *entry, struct alert_receiver *a)
{
	static const char *const words[] = {"info", "warning", "error", "critical"};
	int r = notify_get_text(c, entry, "severity", &a->look.severity);

	if (r < 0 || !a->look.severity)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(a->look.severity, words[i]))
			return 0;
	return yaml_fail(c->tree, yaml_member(entry, "severity"), c->reterr,
		"severity must be info, warning, error or critical");
}

static int take_numbers(
	struct notify_config *c, const struct yaml_value *entry, struct alert_receiver *a)
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

static int take_type(struct notify_config *c, const struct yaml_value *entry, enum alert_type *ret)
{
	const char *word = "";
	int r = notify_get_text(c, entry, "type", &word);

	for (unsigned t = 0; r == 0 && t < ALERT_TYPE_COUNT; t++)
		if (!strcmp(word, alert_type_id((enum alert_type)t))) {
			*ret = (enum alert_type)t;
			return 0;
		}
	return r < 0 ? r
		     : yaml_fail(c->tree, entry, c->reterr,
			       "type must be slack, pagerduty, alertmanager or webhook");
}

static int take_alert(struct notify_config *c, const struct yaml_value *entry)
{
	struct alert_receiver *a = &c->alerts[c->alert_count];
	int r = take_type(c, entry, &a->type);

	if (r == 0)
		r = check_keys(c, entry, 1u << a->type);
	if (r == 0)
		r = take_numbers(c, entry, a);
	if (r == 0)
		r = take_place(c, entry, a);
	if (r == 0)
		r = take_severity(c, entry, a);
	if (r == 0)
		r = notify_get_text(c, entry, "channel", &a->look.channel);
	if (r == 0)
		r = notify_get_text(c, entry, "username", &a->look.username);
	if (r == 0)
		r = notify_get_secret(c, entry, "routing_key", &a->look.routing_key);
	if (r == 0 && a->type == ALERT_PAGERDUTY && !a->look.routing_key)
		r = yaml_fail(c->tree, entry, c->reterr,
			"pagerduty needs routing_key_file or routing_key_env");
	if (r == 0)
		r = notify_get_secret(c, entry, "bearer", &a->bearer);
	if (r == 0)
		r = notify_get_secret(c, entry, "secret", &a->sign_secret);
	if (r == 0)
		r = notify_get_path(c, entry, "ca_cert", &a->ca);
	c->alert_count += r == 0;
	return r;
}

/* ---- forwarding ---- */

static int take_endpoint(
	struct notify_config *c, const struct yaml_value *entry, struct forward_target *t)
{
	struct endpoint_options o = {.name = "endpoint"};
	const struct yaml_value *insecure = yaml_member(entry, "insecure");
	struct errinfo e = {0};
	int r = notify_get_text(c, entry, "endpoint", &o.text);

	if (r == 0)
		r = notify_get_text(c, entry, "protocol", &o.protocol);
	if (r == 0 && insecure)
		r = yaml_bool(c->tree, insecure, &t->insecure_far, c->reterr);
	if (r < 0)
		return r;
	if (!o.text)
		return yaml_fail(c->tree, entry, c->reterr, "a target of forward needs endpoint");
	o.insecure_far = t->insecure_far;
	r = endpoint_parse(&o, &c->endpoints[c->target_count], &e);
	if (r == -EPERM)
		return yaml_fail(c->tree, yaml_member(entry, "endpoint"), c->reterr,
			"the endpoint is not encrypted: use https, or add `insecure: true`");
	if (r < 0)
		return yaml_fail(c->tree, yaml_member(entry, "endpoint"), c->reterr, "%s", e.text);
	t->endpoint = &c->endpoints[c->target_count];
	return 0;
}

static int take_fields(
	struct notify_config *c, const struct yaml_value *entry, struct forward_target *t)
{
	const char *text = NULL;
	struct errinfo e = {0};
	int r = notify_get_secret(c, entry, "headers", &text);

	if (r == 0 && endpoint_fields_parse(text, "headers", &c->fields[c->target_count], &e) < 0)
		r = yaml_fail(c->tree, entry, c->reterr, "%s", e.text);
	t->fields = &c->fields[c->target_count];
	return r;
}

static int take_target(struct notify_config *c, const struct yaml_value *entry)
{
	struct forward_target *t = &c->targets[c->target_count];
	const struct yaml_value *size = yaml_member(entry, "spool_size");
	int r = check_keys(c, entry, OF_FORWARD);

	t->spool_bytes = SPOOL_BYTES;
	if (r == 0)
		r = take_endpoint(c, entry, t);
	if (r == 0)
		r = take_fields(c, entry, t);
	if (r == 0)
		r = notify_get_path(c, entry, "spool", &t->spool);
	if (r == 0 && size)
		r = yaml_size(c->tree, size, &t->spool_bytes, c->reterr);
	if (r == 0 && size && t->spool_bytes < SPOOL_BYTES_MIN)
		r = yaml_fail(c->tree, size, c->reterr, "spool_size must be at least 1m");
	if (r == 0)
		r = notify_get_path(c, entry, "ca_cert", &t->ca);
	if (r == 0)
		r = notify_get_path(c, entry, "client_cert", &t->cert);
	if (r == 0)
		r = notify_get_path(c, entry, "client_key", &t->key);
	if (r == 0 && !t->cert != !t->key)
		r = yaml_fail(c->tree, entry, c->reterr,
			"client_cert and client_key must be given together");
	c->target_count += r == 0;
	return r;
}

/* ---- the file ---- */

static int take_list(struct notify_config *c, const struct yaml_value *list, size_t max,
	int (*take)(struct notify_config *c, const struct yaml_value *entry))
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
		r = v->kind == YAML_MAP ? take(c, v)
					: yaml_fail(c->tree, v, c->reterr,
						  "an entry of %s must have keys", list->key);
	return r;
}

static int take_file(struct notify_config *c)
{
	const struct yaml_value *root = yaml_tree_root(c->tree);
	int r = 0;

	if (root->kind != YAML_MAP && root->kind != YAML_NOTHING)
		return yaml_fail(c->tree, root, c->reterr, "expected `alerts:` or `forward:` here");
	for (const struct yaml_value *v = root->first; r == 0 && v; v = v->next)
		if (!strcmp(v->key, "alerts"))
			r = take_list(c, v, ALERT_RECEIVERS_MAX, take_alert);
		else if (!strcmp(v->key, "forward"))
			r = take_list(c, v, FORWARD_TARGETS_MAX, take_target);
		else
			r = yaml_fail(c->tree, v, c->reterr,
				"unknown key '%.60s': expected alerts or forward", v->key);
	return r;
}

int notify_config_read(const char *path, const char *text, size_t len, struct notify_config **ret,
	struct errinfo *reterr)
{
	_cleanup_(notify_config_freep) struct notify_config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->reterr = reterr;
	r = yaml_tree_read(path, text, len, &c->tree, reterr);
	if (r < 0)
		return r;
	c->path = notify_keep(c, path);
	r = c->path ? take_file(c) : -ENOMEM;
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	c->reterr = NULL;
	*ret = TAKE(c);
	return 0;
}

const struct alert_receiver *notify_config_alerts(const struct notify_config *c, size_t *ret_count)
{
	*ret_count = c->alert_count;
	return c->alerts;
}

const struct forward_target *notify_config_forward(const struct notify_config *c, size_t *ret_count)
{
	*ret_count = c->target_count;
	return c->targets;
}
