/* SPDX-License-Identifier: Apache-2.0 */
/* file_mark.h - how a recording's files look, to know later whether they have changed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct file_mark {
	uint64_t value[6]; /* inode, size and time of the file and of its log */
};

struct file_mark file_mark(const char *path);
bool file_mark_same(const struct file_mark *a, const struct file_mark *b);
/* file_mark_is_of - both are of one file, whatever was written into it meanwhile. */
bool file_mark_is_of(const struct file_mark *a, const struct file_mark *b);
