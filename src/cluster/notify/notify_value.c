/* SPDX-License-Identifier: Apache-2.0 */
/* notify_value.c - texts, paths and secrets of the configuration. No sentence tells a secret. */
#include "cluster/notify/notify_config_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "net/secret_file.h"

#define SECRET_MAX 8192

const char *notify_keep(struct notify_config *c, const char *text)
{
	char *copy = c->kept_count < KEPT_MAX ? strdup(text) : NULL;

	if (copy)
		c->kept[c->kept_count++] = copy;
	return copy;
}

int notify_get_text(
	struct notify_config *c, const struct yaml_value *entry, const char *key, const char **ret)
{
	const struct yaml_value *v = yaml_member(entry, key);

	return v ? yaml_text(c->tree, v, ret, c->reterr) : 0;
}

int notify_get_path(
	struct notify_config *c, const struct yaml_value *entry, const char *key, const char **ret)
{
	const char *slash = strrchr(c->path, '/'), *value = NULL;
	char out[PATH_MAX];
	int r = notify_get_text(c, entry, key, &value);

	if (r < 0 || !value)
		return r;
	if (value[0] == '/' || !slash)
		snprintf(out, sizeof(out), "%s", value);
	else
		snprintf(out, sizeof(out), "%.*s%s", (int)(slash + 1 - c->path), c->path, value);
	*ret = notify_keep(c, out);
	return *ret ? 0 : -ENOMEM;
}

static int read_secret(struct notify_config *c, const struct yaml_value *file, const char *path,
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

int notify_get_secret(
	struct notify_config *c, const struct yaml_value *entry, const char *key, const char **ret)
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
	r = notify_get_path(c, entry, name, &path);
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
	*ret = notify_keep(c, b.data);
	explicit_bzero(b.data, b.len);
	return *ret ? 0 : -ENOMEM;
}
