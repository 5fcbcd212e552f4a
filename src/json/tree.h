/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - jansson's values from and to text, with want of memory told from bad text.
 *
 * jansson itself calls it an invalid token where memory runs out inside a string, and leaves out a
 * key, without a word, where it runs out while one is written. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* json_tree_read - as json_loadb(). *ret is the caller's (json_decref()). -EINVAL: not JSON, and
 * @why says why (NULL: not wanted); -ENOMEM. */
int json_tree_read(const char *text, size_t len, size_t flags, json_t **ret, json_error_t *why);

/* json_tree_write - appends @value to @out, whose first failure sticks as ever. 0 or out->err. */
int json_tree_write(const json_t *value, size_t flags, struct buf *out);
