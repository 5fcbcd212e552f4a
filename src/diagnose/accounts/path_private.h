/* SPDX-License-Identifier: Apache-2.0 */
/* path_private.h - shared by the files that put a path's time on lines. */
#pragma once

#include "diagnose/accounts/path.h"

#define PATH_DEPTH_MAX 8

struct waker {
	uint32_t pid, tid;
	const char *comm;
	uint8_t kind; /* enum wire_waker */
};

struct span {
	int64_t from_ns, to_ns;
};

struct calls_seen { /* recorded calls of a thread within [from, to), by the line of the ledger they are on */
	uint32_t tid; /* 0: none were looked at */
	int64_t from_ns, to_ns;
	struct {
		uint64_t sum_ns;
		const struct event *longest; /* that has a stack; NULL: none */
	} lines[LEDGER_LINES];
};

struct walk {
	struct path *path;
	const struct timeline *t;
	struct tally *out;
	int64_t from_ns, to_ns;         /* the unit */
	uint32_t above[PATH_DEPTH_MAX]; /* threads whose wait is being followed */
	int depth;
	uint64_t waited; /* stack of the outermost of these waits; 0: not known */
	uint64_t
		asked; /* of the innermost in the process's own threads that has a line of the user's */
	bool over_socket; /* one of them is for an answer: who gives it may sleep, that is its own affair */
	struct calls_seen
		calls; /* the last ones that were looked at: each line of a row asks for the same */
};

/* path_part - a part of @ns on @line, of the thread and time of @r. */
struct tally_part path_part(
	const struct walk *w, const struct ledger_row *r, enum account_line line, uint64_t ns);

/* path_add - adds one without a culprit or a place. 0 or -ENOMEM, as the others. */
int path_add(struct walk *w, const struct ledger_row *r, enum account_line line, uint64_t ns);

/* path_stack - NULL: there is none. */
const struct stack *path_stack(const struct walk *w, uint64_t hash);

/* path_may_follow - whether what @waker did meanwhile says more than that @line was waited on. */
bool path_may_follow(const struct walk *w, enum wire_ledger_line line, const struct waker *waker);

/* path_follow - @ns of waiting within [from, to) that thread @tid ended: shared out as its own time in
 * [from, to) was, its waiting for others left out. 1: done, 0: it did nothing else, or -ENOMEM. */
int path_follow(struct walk *w, uint32_t tid, uint64_t ns, int64_t from_ns, int64_t to_ns);

/* path_is_poll - whether @r's sleeps are between looks at whether the GPU is done. */
bool path_is_poll(const struct walk *w, const struct ledger_row *r);

/* path_line_plain - the line of the account that a line of @r's ledger is on without further knowledge. */
enum account_line path_line_plain(const struct ledger_row *r, enum wire_ledger_line line);

/* path_line_add - @ns of @line, within the active part [from, to) of @r. */
int path_line_add(struct walk *w, const struct ledger_row *r, enum wire_ledger_line line,
	uint64_t ns, int64_t from_ns, int64_t to_ns);

/* path_copy_add - @ns of a stay in a copy, which ends @r. What it moves is counted when it returns; whether such ones
 * wait for the GPU or for their bytes is known of those that are recorded. */
int path_copy_add(struct walk *w, const struct ledger_row *r, uint64_t ns);

/* path_lock_is - whether the stay of @r was for Python's interpreter lock: by its stack or, where none was
 * taken, by the interpreter's habit of waking every 5 ms to ask for it, or because that is what else the
 * same thread kept this one waiting for in that second. */
bool path_lock_is(const struct walk *w, const struct ledger_row *r);

/* path_lock_add - @ns of such a wait within [from, to): the culprit is who held the lock, the place what
 * it ran meanwhile. @waker ended the wait; of no kind: not known. */
int path_lock_add(struct walk *w, const struct ledger_row *r, const struct waker *waker,
	uint64_t ns, int64_t from_ns, int64_t to_ns);

/* path_lock_held - @ns of waiting for that lock within [from, to), which @holder, a thread of the same
 * process, held; what it ran is looked for in [seen_from, seen_to). In a process that the job waits for it
 * is no matter which of its threads had the lock: the time is the holder's. */
int path_lock_held(struct walk *w, const struct ledger_row *r, const struct waker *holder,
	uint64_t ns, const struct span *in, const struct span *seen);

/* path_rival_stack - what the thread ran, in and around @stay, that had the CPU for which @r's waited; 0: it
 * was not seen, or is not followed. */
uint64_t path_rival_stack(const struct walk *w, const struct ledger_row *r,
	const struct event *stay, uint64_t *ret_place);

/* path_short_add - @ns of stays on @line within [from, to) that have no rows of their own: whose they are,
 * as the thread's sums of them say. */
int path_short_add(struct walk *w, const struct ledger_row *r, enum wire_ledger_line line,
	uint64_t ns, int64_t from_ns, int64_t to_ns);

/* path_short_is_lock - whether the summed stays on locks of @r's thread around [from, to) that @by_tid
 * ended (0: anybody), were nearly all for the interpreter's. */
bool path_short_is_lock(const struct walk *w, const struct ledger_row *r, uint32_t by_tid,
	int64_t from_ns, int64_t to_ns);
