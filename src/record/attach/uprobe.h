/* SPDX-License-Identifier: Apache-2.0 */
/* uprobe.h - puts the call programs onto functions of one file.
 *
 * A uprobe sits on a file (an inode), so every process that maps the file is covered, now and
 * later, whatever path it uses. */
#pragma once

#include "base/errinfo.h"
#include "record/probe/probe.h"

#define UPROBE_POINTS_MAX 256

struct uprobe_point {
	uint64_t offset; /* in the file */
	uint64_t cookie;
	uint64_t semaphore; /* marks: file offset of the counter of a static probe; 0: none */
	bool at_return;     /* marks: when the function returns, not when it is entered */
};

struct uprobe;

/* uprobe_attach - probe all @points of the file @path with @p's method. All or nothing.
 * On success *ret is the caller's, released with uprobe_detach(). */
int uprobe_attach(struct probe *p, const char *path, const struct uprobe_point *points,
	size_t count, struct uprobe **ret, struct errinfo *reterr);

/* uprobe_attach_marks - likewise with the program of marks, which runs once at each point. */
int uprobe_attach_marks(struct probe *p, const char *path, const struct uprobe_point *points,
	size_t count, struct uprobe **ret, struct errinfo *reterr);

/* uprobe_detach_all - release several at once. Session and multi probes are gone on return; perf
 * probes go in the background, because the kernel takes about 0.1 s for each. A process is forked
 * for that: close what it should not hold open (locks, databases) before. */
void uprobe_detach_all(struct uprobe **u, size_t count);

/* uprobe_detach_wait - the same, and all are gone on return: for a thread that may wait. */
void uprobe_detach_wait(struct uprobe **u, size_t count);

#define UPROBE_DETACH_HERE 1 /* so few are detached on the spot: 10 to 130 ms for each link */

/* uprobe_detach_last - the same at the end of a trace, when nobody needs them to be gone on return:
 * session and multi probes, too, go in the background, unless there are few. They must be silent
 * already. */
void uprobe_detach_last(struct uprobe **u, size_t count);

/* uprobe_leave_all - every probe of this program goes after its end, which waits for none of them; nothing is closed
 * here, so that other threads may still use theirs. */
void uprobe_leave_all(void);

/* What one probe hit costs on this machine, measured. */

#define CALIBRATE_SOURCE 15 /* its hits are nobody's events */

/* calibrate_hit_ns - run a function some thousand times in a child, without and with the probes of
 * @p's method, and give the difference per call. Takes about 50 ms; the probes must be enabled and
 * nothing else attached. -EIO and the like if it cannot be measured, -ENODATA if no hit was counted. */
int calibrate_hit_ns(struct probe *p, double *ret);
