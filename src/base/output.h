/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - where a command writes what may be large: the standard output, a pipe, or a file that
 * is there whole or not at all. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/errinfo.h"

struct output {
	const char *path; /* for sentences */
	int fd;
	bool is_stdout, is_nameless;
	char temporary[PATH_MAX]; /* "": written directly, or without a name yet */
	uint64_t bytes;
};

#define OUTPUT_INIT ((struct output){.fd = -1})

/* output_open - "-" is the standard output. A regular or new file is written without a name, or where that is
 * not possible under another one, in its folder until output_commit(). -EEXIST: it is a recording. */
int output_open(struct output *o, const char *path, struct errinfo *reterr);

/* output_write - all of it. -EPIPE without a sentence if the reader went away. */
int output_write(struct output *o, const void *data, size_t len, struct errinfo *reterr);
int output_commit(struct output *o, struct errinfo *reterr);

/* output_done - closes; without output_commit() nothing of a file stays. */
void output_done(struct output *o);

/* A few small files as one (POSIX ustar), to be carried to another machine. */

/* tar_put - appends the file @name (at most 99 bytes, root's) to the archive @b. Errors stay in
 * b->err; -ENAMETOOLONG. */
int tar_put(struct buf *b, const char *name, mode_t mode, int64_t mtime_s, const void *data,
	size_t len);

/* tar_end - the archive is complete. */
int tar_end(struct buf *b);
