/* SPDX-License-Identifier: Apache-2.0 */
/* file_origin.h - whether a file comes from a program of some user's (FUSE), told without asking that program.
 *
 * Such a program answers when it pleases: whoever opens its file, reads it or merely closes it may wait for ever, in
 * the kernel, where no signal helps; and a probe that is put onto it holds up every fork(2) of the machine meanwhile.
 * Root's own FUSE mounts (CVMFS, object stores) are as good as other network file systems. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

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

#define FILE_ORIGIN_WHY                                                                            \
	"its file system is a user's program (FUSE), which could keep the tracer waiting"
