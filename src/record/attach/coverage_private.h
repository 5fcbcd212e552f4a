/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_private.h - what the files of coverage share: the list of places (coverage.c), probes that come
 * (coverage_arrive.c), launches that turn and probes that go beside (coverage_arrive.c), users' shares
 * (coverage_arrive.c). */
#pragma once

#include <stdatomic.h>

#include "base/errinfo.h"
#include "base/pool.h"
#include "model/identity.h"
#include "record/attach/coverage.h"
#include "record/attach/uprobe.h"
#include "record/discover/elfsym.h"
#include "record/probe/mark/mark.h"

/* What is to be probed in a library file, and where in it that is. Files are looked at through a
 * descriptor that stays the caller's. */

struct library_points {
	struct uprobe_point points[UPROBE_POINTS_MAX];
	size_t count;
	struct wire_nccl_layout layout; /* of TARGET_NCCL */
};

/* library_points_known - are there functions to probe in files of @kind? */
bool library_points_known(enum target_library_kind kind);
/* library_points_are_marks - whether what is found there are marks, for uprobe_attach_marks(). */
bool library_points_are_marks(enum target_library_kind kind);

/* library_points_are_alike - whether the same functions are probed in files of both kinds. */
bool library_points_are_alike(enum target_library_kind a, enum target_library_kind b);

/* library_points_find - of the file @fd, which sentences call @name and cookies @number. -ENOENT: it has none of them. */
int library_points_find(enum target_library_kind kind, int fd, const char *name, unsigned number,
	struct library_points *ret, struct errinfo *reterr);

/* library_points_names - the places at which kernels get their names. -ENOENT: it has none. */
int library_points_names(enum target_library_kind kind, int fd, const char *name,
	struct library_points *ret, struct errinfo *reterr);

/* Where in a function's first bytes a probe costs least and is still right.
 *
 * The kernel emulates a few instructions under a probe (push, nop, jumps); any other it runs out of
 * line by single steps, which costs several microseconds in a virtual machine. Some functions begin
 * with one that changes neither stack nor arguments and is followed by one that is emulated: there
 * the probe may sit behind it. Only exact matches of bytes are moved; everything else stays at the
 * start, because a return probe behind the first change of the stack overwrites a wrong slot. */

#define PROLOGUE_BYTES 16 /* as many first bytes are looked at */

/* prologue_skip - bytes to move the probe by: 0, or the length of the harmless first instruction.
 */
unsigned prologue_skip(unsigned machine, const uint8_t code[PROLOGUE_BYTES]);

#define COVERAGE_MAX WIRE_LIBRARY_MAX /* library files on one node */

struct turn { /* launch probes of one file come or go */
	struct pool_job job;
	struct coverage *coverage;
	size_t at;
	bool on;
	struct uprobe *uprobe; /* to take away; or what came */
	int error;
	atomic_bool is_done;
};

struct arrival { /* probes of a new file come */
	struct pool_job job;
	struct coverage *coverage;
	size_t at;
	bool with_launches;
	struct library_points found;
	struct uprobe_point *points; /* of launches, to bring them back */
	size_t point_count;
	struct uprobe *steady, *names, *launches;
	wall_time since;
	struct errinfo why;
	int error;
	atomic_bool is_done;
};

struct leaving { /* probes of a file that was written to go, for good before others come */
	struct pool_job job;
	struct uprobe *list[3];
	size_t count;
	atomic_bool is_done;
};

struct file_stamp { /* what is known of a file without waiting for a file system that may not answer */
	dev_t dev;
	ino_t inode;
	int64_t born_ns; /* 0: the file system does not tell */
	int64_t changed_ns, modified_ns, size;
	bool is_overlay; /* then all but the device is of the file below */
};

struct alias { /* the file of a place, as another overlay shows it; pinned, so that its number stays its own */
	bool used;
	size_t at;
	dev_t dev;
	ino_t inode;
	int fd, watch;
	uid_t owner;
	uint64_t mapped; /* the last scan in which a process mapped it */
	bool is_past;    /* it was so; since then it is a file of its own */
};
#define ALIASES_MAX 256 /* containers of a node; as many files stay open */

struct probed {                      /* what belongs to one file */
	bool used;                   /* the place is taken */
	bool kept;                   /* known by name or from disk: given back last */
	uint64_t mapped;             /* the last scan in which a process mapped it */
	uint64_t freed;              /* when the place was last given back, in order; 0: never */
	struct uprobe *steady;       /* probes that are always there */
	struct uprobe *names;        /* places at which kernels get their names */
	struct uprobe *launches;     /* those the governor may take away; NULL while away */
	struct turn *turn;           /* they are coming or going; NULL: neither */
	struct leaving *leaving;     /* all of them are going; NULL: they are not */
	struct arrival *arrival;     /* all of them are coming; NULL: they have, or failed */
	bool has_no_launches;        /* they could not be brought back: not tried again */
	uid_t owner;                 /* of the file */
	struct uprobe_point *points; /* to bring them back */
	size_t point_count;
	/* The file, also of one that could not be probed: its number is nobody else's meanwhile, whatever becomes of
	 * its path. */
	int fd;
	int watch;               /* for changes of it; -1: none */
	struct file_stamp stamp; /* as it was when it was opened */
	bool is_replaced; /* another file is there by its name: the probes are for who mapped it before */
};

/* How many files of a user, but root, may be attached now: as many as a job maps at once, then a few each second.
 * Each takes a thread some 20 ms, and a user with hundreds would keep others' waiting. */
struct intake {
	uid_t owner;
	double files;
	mono_time since;
	bool has_waited; /* which was said */
};
#define INTAKES 16 /* users; of more, the one that came longest ago is forgotten */

struct coverage {
	struct probe *probe;
	struct intake intakes[INTAKES];
	struct coverage_file *files;
	struct probed *probed; /* parallel to files */
	struct alias *aliases; /* ALIASES_MAX */
	uint64_t scan;         /* number of the latest scan of all processes */
	bool scanning;         /* it is still under way */
	uint64_t given_back;   /* files so far */
	bool launches_off;
	int changes; /* where the kernel tells of files that are written to; -1: nowhere */
	bool is_look_due;
	bool is_beside;          /* see coverage_beside() */
	struct pool *pool;       /* NULL: nothing was done beside yet */
	atomic_bool is_stopping; /* what waits in it is left */
	unsigned closed_kinds;   /* see coverage_close_kind() */
};

/* coverage_is_hidden - the name, device and number of the place @at are those of the file that was put in its place. */
bool coverage_is_hidden(const struct coverage *c, size_t at);

/* coverage_watch - the kernel shall tell of changes of @fd; -1: it cannot. */
int coverage_watch(const struct coverage *c, int fd);

/* ---- coverage_alias.c ---- */

void coverage_stamp(int fd, struct file_stamp *ret);

enum file_change { FILE_AS_IT_WAS, FILE_WRITTEN, FILE_COPIED_UP };
enum file_change coverage_change(int fd, const struct file_stamp *was);

/* coverage_alias_place - the place of the file with @s under another device; -1: there is none. */
int coverage_alias_place(
	const struct coverage *c, const struct file_stamp *s, enum target_library_kind kind);
/* coverage_alias_add - @lib, open as @fd, is the file of the place @at. As coverage_add(). */
int coverage_alias_add(struct coverage *c, size_t at, const struct target_library *lib, int fd,
	uid_t owner, struct errinfo *reterr);
struct alias *coverage_alias_find(const struct coverage *c, const struct target_library *lib);
/* coverage_alias_is_past - whether @lib was seen to be copied up: it is nobody else's file. */
bool coverage_alias_is_past(const struct coverage *c, const struct target_library *lib);
/* coverage_alias_drop - those of the place @at that are another file now. True: there were some. */
bool coverage_alias_drop(struct coverage *c, size_t at);
void coverage_alias_release(const struct coverage *c, size_t at);
/* coverage_replaced - where the file of the place @at was, another one is now. Its probes stay; it goes on under another
 * overlay's name, if there is one. */
void coverage_replaced(struct coverage *c, size_t at);

/* ---- coverage_arrive.c ---- */

/* coverage_arrive - probes the file that has the place @at: here, or beside. As coverage_add(). */
int coverage_arrive(struct coverage *c, size_t at, struct errinfo *reterr);
/* coverage_arrived - what came of an arrival that has ended. As coverage_add(). */
int coverage_arrived(struct coverage *c, size_t at);

/* coverage_turned - what came of a turn that has ended. */
void coverage_turned(struct probed *p);
/* coverage_leave - the probes of @p begin to go: p->leaving. Here, where there is no thread. */
void coverage_leave(struct coverage *c, struct probed *p);
/* coverage_retire - nobody waits until they are gone. Perf probes go in the background by themselves. */
void coverage_retire(struct coverage *c, struct uprobe **list, size_t count);

#define COVERAGE_USER_MAX (COVERAGE_MAX / 2) /* places for the files of one user, but root */

/* coverage_may_take - whether one more file of @owner's may be attached now; said once if not. */
bool coverage_may_take(struct coverage *c, uid_t owner);
/* coverage_has_share - whether @owner has as many places as one may have. */
bool coverage_has_share(const struct coverage *c, uid_t owner);

/* uprobe_move - what is in @slot, if anything is, goes to the end of @list. */
static inline void uprobe_move(struct uprobe **slot, struct uprobe **list, size_t *n)
{
	if (*slot)
		list[(*n)++] = TAKE(*slot);
}
