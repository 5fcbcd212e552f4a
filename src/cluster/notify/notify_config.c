/* SPDX-License-Identifier: Apache-2.0 */
/* notify_config.c - see notify_config.h. */
#include "cluster/notify/notify_config.h"

#define SPOOL_BYTES (1ULL << 30)
#define OF_FORWARD  1u

struct notify_config {
	struct alert_values values;
	struct alert_list alerts;
	struct forward_target targets[FORWARD_TARGETS_MAX];
	struct endpoint endpoints[FORWARD_TARGETS_MAX];
	struct endpoint_fields fields[FORWARD_TARGETS_MAX];
	size_t target_count;
};

static const struct alert_key rows[] = {
	{"ca_cert", OF_FORWARD, 0},
	{"insecure", OF_FORWARD, 0},
	{"endpoint", OF_FORWARD, 0},
	{"protocol", OF_FORWARD, 0},
	{"headers", OF_FORWARD, OF_FORWARD},
	{"client_cert", OF_FORWARD, 0},
	{"client_key", OF_FORWARD, 0},
	{"spool", OF_FORWARD, 0},
	{"spool_size", OF_FORWARD, 0},
};

void notify_config_free(struct notify_config *c)
{
	for (size_t i = 0; i < FORWARD_TARGETS_MAX; i++)
		endpoint_fields_done(&c->fields[i]);
	alert_values_done(&c->values);
	free(c);
}

/* ---- forwarding ---- */

static int take_endpoint(
	struct notify_config *c, const struct yaml_value *entry, struct forward_target *t)
{
	struct endpoint_options o = {.name = "endpoint"};
	const struct yaml_value *insecure = yaml_member(entry, "insecure");
	struct errinfo e = {0};
	int r = alert_get_text(&c->values, entry, "endpoint", &o.text);

	if (r == 0)
		r = alert_get_text(&c->values, entry, "protocol", &o.protocol);
	if (r == 0 && insecure)
		r = yaml_bool(c->values.tree, insecure, &t->insecure_far, c->values.reterr);
	if (r < 0)
		return r;
	if (!o.text)
		return yaml_fail(c->values.tree, entry, c->values.reterr,
			"a target of forward needs endpoint");
	o.insecure_far = t->insecure_far;
	r = endpoint_parse(&o, &c->endpoints[c->target_count], &e);
	if (r == -EPERM)
		return yaml_fail(c->values.tree, yaml_member(entry, "endpoint"), c->values.reterr,
			"the endpoint is not encrypted: use https, or add `insecure: true`");
	if (r < 0)
		return yaml_fail(c->values.tree, yaml_member(entry, "endpoint"), c->values.reterr,
			"%s", e.text);
	t->endpoint = &c->endpoints[c->target_count];
	return 0;
}

static int take_fields(
	struct notify_config *c, const struct yaml_value *entry, struct forward_target *t)
{
	const char *text = NULL;
	struct errinfo e = {0};
	int r = alert_get_secret(&c->values, entry, "headers", &text);

	if (r == 0 && endpoint_fields_parse(text, "headers", &c->fields[c->target_count], &e) < 0)
		r = yaml_fail(c->values.tree, entry, c->values.reterr, "%s", e.text);
	t->fields = &c->fields[c->target_count];
	return r;
}

static int take_target(void *arg, const struct yaml_value *entry)
{
	struct notify_config *c = arg;
	struct forward_target *t = &c->targets[c->target_count];
	const struct yaml_value *size = yaml_member(entry, "spool_size");
	int r = alert_check_keys(&c->values, entry, rows, ARRAY_SIZE(rows), OF_FORWARD);

	t->spool_bytes = SPOOL_BYTES;
	if (r == 0)
		r = take_endpoint(c, entry, t);
	if (r == 0)
		r = take_fields(c, entry, t);
	if (r == 0)
		r = alert_get_path(&c->values, entry, "spool", &t->spool);
	if (r == 0 && size)
		r = yaml_size(c->values.tree, size, &t->spool_bytes, c->values.reterr);
	if (r == 0 && size && t->spool_bytes < SPOOL_BYTES_MIN)
		r = yaml_fail(
			c->values.tree, size, c->values.reterr, "spool_size must be at least 1m");
	if (r == 0)
		r = alert_get_path(&c->values, entry, "ca_cert", &t->ca);
	if (r == 0)
		r = alert_get_path(&c->values, entry, "client_cert", &t->cert);
	if (r == 0)
		r = alert_get_path(&c->values, entry, "client_key", &t->key);
	if (r == 0 && !t->cert != !t->key)
		r = yaml_fail(c->values.tree, entry, c->values.reterr,
			"client_cert and client_key must be given together");
	c->target_count += r == 0;
	return r;
}

/* ---- the file ---- */

static int take_file(struct notify_config *c)
{
	const struct yaml_value *root = yaml_tree_root(c->values.tree);
	int r = 0;

	if (root->kind != YAML_MAP && root->kind != YAML_NOTHING)
		return yaml_fail(c->values.tree, root, c->values.reterr,
			"expected `alerts:` or `forward:` here");
	for (const struct yaml_value *v = root->first; r == 0 && v; v = v->next)
		if (!strcmp(v->key, "alerts"))
			r = alert_config_take(&c->alerts, v);
		else if (!strcmp(v->key, "forward"))
			r = alert_take_list(&c->values, v, FORWARD_TARGETS_MAX, take_target, c);
		else
			r = yaml_fail(c->values.tree, v, c->values.reterr,
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
	c->alerts.values = &c->values;
	r = alert_values_read(&c->values, path, text, len, reterr);
	if (r == 0)
		r = take_file(c);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	c->values.reterr = NULL;
	*ret = TAKE(c);
	return 0;
}

const struct alert_receiver *notify_config_alerts(const struct notify_config *c, size_t *ret_count)
{
	*ret_count = c->alerts.count;
	return c->alerts.receivers;
}

const struct forward_target *notify_config_forward(const struct notify_config *c, size_t *ret_count)
{
	*ret_count = c->target_count;
	return c->targets;
}
