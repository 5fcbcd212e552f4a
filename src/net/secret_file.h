/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.h - files that only their owner may read: keys and tokens. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"

#define SECRET_FILE_LOOSE "INGERO_TLS_ALLOW_LOOSE_KEY_PERMS"

/* secret_file_read - appends the content of @path to @b. -EPERM with a sentence if others may read
 * it (unless that environment variable is "1"), or it is neither this user's nor root's. A group may read a
 * file of root's, if this process is not root. @what names it in sentences: "key file". */
int secret_file_read(
	const char *path, const char *what, size_t max, struct buf *b, struct errinfo *reterr);
