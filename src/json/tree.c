/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h. Small texts of known shape; large ones of strangers go through reader.h. */
#include "json/tree.h"

#include <errno.h>

int json_tree_read(const char *text, size_t len, size_t flags, json_t **ret, json_error_t *why)
{
	json_t *value;

	errno = 0;
	value = json_loadb(text, len, flags, why);
	if (!value)
		return errno == ENOMEM ? -ENOMEM : -EINVAL;
	*ret = value;
	return 0;
}

static int append(const char *text, size_t len, void *arg)
{
	buf_append(arg, text, len);
	return 0; /* the buffer keeps the error, which jansson does not always hand on */
}

int json_tree_write(const json_t *value, size_t flags, struct buf *out)
{
	if (json_dump_callback(value, append, out, flags) < 0 && !out->err)
		out->err = -ENOMEM;
	return out->err;
}
