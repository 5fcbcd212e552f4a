/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.h - what a stranger can keep waiting, done without waiting for it.
 *
 * A page of another process may lie in a file whose contents a program of its user delivers (FUSE), or be
 * served by userfaultfd, and so may a folder on the way to a file: whoever reads it waits until that program
 * pleases. So threads of their own read. One that is kept waiting costs nobody else anything: another takes its
 * place, up to BOUNDED_USER_MAX for what is one user's and BOUNDED_MAX in all. It ends by itself when its read
 * returns.
 *
 * For one thread of the program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define BOUNDED_MAX      32
#define BOUNDED_USER_MAX 4
#define BOUNDED_WAIT_NS  (200 * 1000000ULL) /* of bounded_run() */
#define BOUNDED_SHARE    20 /* for a user it waits a twentieth of the time in vain at most */

/* Begins a struct on the heap that holds all that it works on, since nobody may be waiting for it any more. */
struct bounded_job {
	int (*run)(struct bounded_job *j);
	void (*drop)(struct bounded_job
			*j); /* what came of it is not wanted any more; NULL: it holds nothing */
	uint32_t uid;        /* whose memory or files it reads */
	int result;          /* what it returned */

	bool is_done, is_left; /* from here on: bounded.c's */
	struct bounded_job *next;
};

/* bounded_post - has @j run by a thread. On failure it is gone: -EAGAIN there are too many that do not end; what
 * pthread_create() gave. */
int bounded_post(struct bounded_job *j);

/* bounded_is_done - then it is the caller's again (free()). */
bool bounded_is_done(struct bounded_job *j);

/* bounded_leave - nobody wants its result any more. */
void bounded_leave(struct bounded_job *j);

/* bounded_run - the three of them, for who waits, at most @wait_ns. On 0 it was run and is the caller's; else it is
 * gone: -ETIMEDOUT; -EAGAIN also for a while after that, for jobs of the same user. */
int bounded_run(struct bounded_job *j, uint64_t wait_ns);

/* bounded_open_inside - file_open_inside() of what is @uid's, by bounded_run(). */
int bounded_open_inside(
	uint32_t uid, const char *root, const char *path, int flags, struct stat *ret_st);

/* bounded_read - the first bytes of the file @path, at most @size, by bounded_run(). Returns their number; or what
 * open(2) and read(2) gave. */
int bounded_read(uint32_t uid, const char *path, void *out, size_t size);

/* bounded_end - lets threads go that have nothing to do. */
void bounded_end(void);
