/* SPDX-License-Identifier: Apache-2.0 */
/* alert_value.c - see alert_value.h. No sentence tells a secret. */
#include "alert/alert_value.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "net/secret_file.h"

#define SECRET_MAX 8192

void alert_values_done(struct alert_values *c)
{
	for (size_t i = 0; i < c->kept_count; i++) {
		explicit_bzero(c->kept[i], strlen(c->kept[i]));
		free(c->kept[i]);
	}
	if (c->tree)
		yaml_tree_free(c->tree);
}

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

const char *alert_keep(struct alert_values *c, const char *text)
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
	if (r == 0)
		r = read_secret(c, file, path, env, &b);
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
