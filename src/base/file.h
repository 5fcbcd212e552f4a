/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - whole small files: read with a ceiling, written so that a reader sees old or new.
 *
 * The _at forms take a root prefix ("" for the real machine), so that everything that reads /proc,
 * /sys or /etc can be tested against a tree in a temporary directory. */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"

/* file_join - writes root + path to @out. -ENAMETOOLONG if it does not fit @size. */
int file_join(char *out, size_t size, const char *root, const char *path);

/* file_open_regular - to be read; a link is followed. -EINVAL if it is not a regular file: neither a pipe, which would make
 * the caller wait, nor a device without an end is opened in its place. */
int file_open_regular(const char *path);

/* file_read - appends the content of the regular file @path to @b.
 * -EFBIG if it holds more than @max bytes (the first @max are in @b); -EINVAL if it is not a
 * regular file; b->err if @b could not hold it; else what open(2) or read(2) gave. Never blocks on
 * a pipe. */
int file_read(const char *path, size_t max, struct buf *b);
int file_read_at(const char *root, const char *path, size_t max, struct buf *b);

/* file_open_inside - open the regular file @path, for reading, as a process finds it whose / is the
 * folder @root ("/proc/7/root"). That file system is a stranger's: links, absolute ones too, do not
 * lead out of it, and what is no regular file is not opened (a pipe would block, a device might do
 * something), nor what a user's program delivers (space.h). The way there may lead through such a file system
 * all the same: see bounded_open_inside(). @flags: 0, or O_NOFOLLOW where others may write to the folder. @ret_st may
 * be NULL.
 * Returns a descriptor; -EINVAL if it is not a regular file (a link, with O_NOFOLLOW); -EREMOTE; else what
 * openat2(2) gave. */
int file_open_inside(const char *root, const char *path, int flags, struct stat *ret_st);

/* file_read_line - the first line of a file without its newline, cut to @size - 1 bytes. */
int file_read_line(const char *root, const char *path, char *out, size_t size);

/* file_is_beside_recording - whether @path has the name of what SQLite and the tracer keep beside an SQLite database
 * (log, journal, lock), or leads to one: nothing else is written there, whether such a file exists or not. */
bool file_is_beside_recording(const char *path);

/* file_is_recording - that, or a database itself, which is never written over by anything else. */
bool file_is_recording(const char *path);

/* file_write_atomic - replaces @path by @data with mode @mode: temporary file in the same
 * directory, fsync, rename, fsync of the directory. On failure the old file stands and nothing is
 * left over. -EEXIST: a database, a device or a pipe has the name; -EISDIR. */
int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode);

/* file_write_all - all of @data to @fd, however often that takes. 0 or a negative errno. */
int file_write_all(int fd, const void *data, size_t len);

/* file_sync - waits until the file or folder @path is on disk. */
int file_sync(const char *path);

/* Whether a file comes from a program of some user's (FUSE), told without asking that program.
 *
 * Such a program answers when it pleases: whoever opens its file, reads it or merely closes it may wait for ever, in
 * the kernel, where no signal helps; and a probe that is put onto it holds up every fork(2) of the machine meanwhile.
 * Root's own FUSE mounts (CVMFS, object stores) are as good as other network file systems. */

/* file_origin - what is known of the file @fd (O_PATH is enough) without asking its file system again; @mountinfo is
 * that file of a process that sees the mount, besides ours and that of process 1, or NULL.
 * Returns 0; -EREMOTE if it comes from a user's program, or from a mount that nobody can see; else of statx(2). */
int file_origin(int fd, const char *mountinfo, struct statx *ret);

enum file_origin {
	FILE_ORIGIN_UNKNOWN,
	FILE_ORIGIN_USERS,
	FILE_ORIGIN_TRUSTED,
};

/* file_origin_judge - what @text, a mountinfo (proc(5)), says of the mount with this number. @is_ours: it is of our
 * namespace or process 1's; in a user namespace of somebody's every user may be called 0. */
enum file_origin file_origin_judge(const char *text, uint64_t mount, bool is_ours);

#define FILE_ORIGIN_WHY "its file system is a user's program (FUSE), which could block the tracer"
