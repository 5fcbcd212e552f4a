/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.c - see lineage.h. Forks and execs of a recording are two sorted lists: a look at one
 * process costs a binary search for each generation. Chains of forks are followed for
 * GENERATIONS_MAX; each step goes to an earlier time or ends, so that rows of any content do. */
#include "diagnose/accounts/lineage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/search.h"

#define GENERATIONS_MAX 64

ORDER(by_child, struct fork_row, ASCENDING(child) ?: ASCENDING(ns) ?: ASCENDING(parent))

ORDER(by_process, struct exec_row, ASCENDING(pid) ?: ASCENDING(ns))

static int add_row(struct lineage *l, const struct event *e, size_t *fork_room, size_t *exec_room)
{
	bool is_fork = e->op == HOST_PROCESS_FORK && e->peer_pid && e->peer_pid != e->pid &&
		       !(e->flags & WIRE_THREAD);

	if (is_fork) {
		if (ARRAY_RESERVE(l->forks, *fork_room, l->fork_count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		l->forks[l->fork_count++] = (struct fork_row){e->peer_pid, e->pid, e->start.ns};
	} else if (e->op == HOST_PROCESS_EXEC) {
		if (ARRAY_RESERVE(l->execs, *exec_room, l->exec_count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		l->execs[l->exec_count++] = (struct exec_row){e->pid, e->start.ns};
	}
	return 0;
}

int lineage_build(const struct recording *rec, struct lineage *ret)
{
	size_t fork_room = 0, exec_room = 0;
	int r = 0;

	*ret = (struct lineage){0};
	for (size_t i = 0; r == 0 && i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->source == SOURCE_HOST && baseline_is_sane(e))
			r = add_row(ret, e, &fork_room, &exec_room);
	}
	if (ret->fork_count)
		qsort(ret->forks, ret->fork_count, sizeof(*ret->forks), by_child);
	if (ret->exec_count)
		qsort(ret->execs, ret->exec_count, sizeof(*ret->execs), by_process);
	return r;
}

void lineage_done(struct lineage *l)
{
	free(l->forks);
	free(l->execs);
	*l = (struct lineage){0};
}

/* The last fork of @pid up to @ns; NULL: not known. */
static const struct fork_row *fork_of(const struct lineage *l, uint32_t pid, int64_t ns)
{
	const struct fork_row key = {pid, UINT32_MAX, ns};
	size_t after = LOWER_BOUND(i, l->fork_count, by_child(&l->forks[i], &key) <= 0);

	return after && l->forks[after - 1].child == pid ? &l->forks[after - 1] : NULL;
}

static bool has_exec(const struct lineage *l, uint32_t pid, int64_t from_ns, int64_t to_ns)
{
	const struct exec_row key = {pid, from_ns};
	size_t at = LOWER_BOUND(i, l->exec_count, by_process(&l->execs[i], &key) < 0);

	return at < l->exec_count && l->execs[at].pid == pid && l->execs[at].ns <= to_ns;
}

/* The fork that made @pid what it still is at @ns; NULL: it is not known, or has become another program since. */
static const struct fork_row *fork_kept(const struct lineage *l, uint32_t pid, int64_t ns)
{
	const struct fork_row *f = fork_of(l, pid, ns);

	return f && !has_exec(l, pid, f->ns, ns) ? f : NULL;
}

uint32_t lineage_root(const struct lineage *l, uint32_t pid, int64_t ns)
{
	const struct fork_row *f;

	for (int i = 0; i < GENERATIONS_MAX && (f = fork_of(l, pid, ns)); i++) {
		pid = f->parent;
		ns = f->ns;
	}
	return pid;
}

static bool has_used_cuda(const struct op_table *ops, uint32_t pid, int64_t before_ns)
{
	uint32_t at;

	return baseline_lookup(ops, pid, 0, 0, 0, &at) && ops->groups[at].first_ns < before_ns;
}

bool lineage_forked_after_use(const struct lineage *l, const struct op_table *ops, uint32_t pid,
	int64_t ns, uint32_t *ret_ancestor)
{
	const struct fork_row *f;

	for (int i = 0; i < GENERATIONS_MAX && (f = fork_kept(l, pid, ns)); i++) {
		if (has_used_cuda(ops, f->parent, f->ns)) {
			*ret_ancestor = f->parent;
			return true;
		}
		pid = f->parent;
		ns = f->ns;
	}
	return false;
}

bool lineage_is_from(
	const struct lineage *l, uint32_t pid, uint32_t ancestor, int64_t ns, bool is_unchanged)
{
	const struct fork_row *f;

	for (int i = 0; i < GENERATIONS_MAX && pid != ancestor; i++) {
		f = is_unchanged ? fork_kept(l, pid, ns) : fork_of(l, pid, ns);
		if (!f)
			return false;
		pid = f->parent;
		ns = f->ns;
	}
	return pid == ancestor;
}
