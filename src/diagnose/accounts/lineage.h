/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.h - which process was forked by which, from the rows that say so.
 *
 * Only forks of traced processes are recorded, and only while tracing: a process whose fork is not
 * there has no known parent. Ids are used again, so that every question names a time. */
#pragma once

#include "diagnose/rows/baseline.h"

struct fork_row {
	uint32_t child, parent;
	int64_t ns;
};

struct exec_row {
	uint32_t pid;
	int64_t ns;
};

struct lineage {
	struct fork_row *forks; /* by child, then time */
	struct exec_row *execs; /* by process, then time */
	size_t fork_count, exec_count;
};

/* lineage_build - fills @ret, released with lineage_done(), also after a failure. 0 or -ENOMEM. */
int lineage_build(const struct recording *rec, struct lineage *ret);
void lineage_done(struct lineage *l);

/* lineage_root - the oldest known ancestor of @pid as it was at @ns; @pid if it has none. */
uint32_t lineage_root(const struct lineage *l, uint32_t pid, int64_t ns);

/* lineage_forked_after_use - whether an ancestor of @pid had called CUDA before the fork that led to
 * @pid, without an exec since: CUDA cannot be used in such a process. *ret_ancestor is the nearest
 * one. @ops are the calls of the recording. */
bool lineage_forked_after_use(const struct lineage *l, const struct op_table *ops, uint32_t pid,
	int64_t ns, uint32_t *ret_ancestor);

/* lineage_is_from - whether @pid, as it was at @ns, was forked by @ancestor or by a process that was. @is_unchanged: and none of
 * them has become another program since. */
bool lineage_is_from(
	const struct lineage *l, uint32_t pid, uint32_t ancestor, int64_t ns, bool is_unchanged);
