/* SPDX-License-Identifier: Apache-2.0 */
/* tar.h - a few small files as one (POSIX ustar), to be carried to another machine. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* tar_put - appends the file @name (at most 99 bytes, root's) to the archive @b. Errors stay in
 * b->err; -ENAMETOOLONG. */
int tar_put(struct buf *b, const char *name, mode_t mode, int64_t mtime_s, const void *data,
	size_t len);

/* tar_end - the archive is complete. */
int tar_end(struct buf *b);
