/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - memory of other processes, read without waiting for them.
 *
 * A page of another process may lie in a file whose contents a program of its user delivers (FUSE), or be
 * served by userfaultfd: reading it waits until that program pleases. So threads of their own read. One that is
 * kept waiting costs nobody else anything: another takes its place, up to REMOTE_USER_MAX for the processes of
 * a user and REMOTE_MAX in all. It ends by itself when its read returns.
 *
 * For one thread of the program, the tracer's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REMOTE_MAX      32
#define REMOTE_USER_MAX 4
#define REMOTE_WAIT_NS  (200 * 1000000ULL) /* of remote_run() */
#define REMOTE_SHARE    20                 /* of the time it waits a twentieth in vain at most */

/* Begins a struct on the heap that holds all that it works on, since nobody may be waiting for it any more. */
struct remote_job {
	int (*run)(struct remote_job *j);
	uint32_t uid; /* whose memory it is */
	int result;   /* what it returned */

	bool is_done, is_left; /* from here on: remote.c's */
	struct remote_job *next;
};

/* remote_post - has @j run by a thread. On failure it is gone: -EAGAIN there are too many that do not end; what
 * pthread_create() gave. */
int remote_post(struct remote_job *j);

/* remote_is_done - then it is the caller's again (free()). */
bool remote_is_done(struct remote_job *j);

/* remote_leave - nobody wants its result any more. */
void remote_leave(struct remote_job *j);

/* remote_run - the three of them, for who waits. On 0 it was run and is the caller's; else it is gone: -ETIMEDOUT;
 * -EAGAIN also for a while after that. */
int remote_run(struct remote_job *j);

/* remote_read - @len bytes of process @pid, by remote_run(). -EFAULT, or as process_vm_readv(2) and that one. */
int remote_read(uint32_t pid, uint32_t uid, uint64_t address, void *out, size_t len);

/* remote_read_now - the same, here: for what runs inside a job. */
int remote_read_now(uint32_t pid, uint64_t address, void *out, size_t len);

/* remote_end - lets threads go that have nothing to do. */
void remote_end(void);
