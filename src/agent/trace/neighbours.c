/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - see neighbours.h.
 *
 * A pid is read once, at most so many a second and so many in all: on a busy machine everybody has
 * the CPU at some time, and only who keeps a traced thread waiting for a while matters. A pid that
 * could not be read in one second is tried again when it is next met. */
#include "agent/trace/neighbours.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discover/cgroup.h"
#include "agent/discover/discover.h"
#include "base/idmap.h"

#define NEIGHBOURS_MAX 4096
#define READS_A_SECOND 32
#define WAIT_MIN_NS    NS_PER_MS /* a shorter wait is how a scheduler shares */

struct neighbours {
	const char *root;
	struct idmap known; /* pid -> itself */
	unsigned reads;     /* in this second */
};

int neighbours_new(const char *root, struct neighbours **ret)
{
	struct neighbours *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->root = root;
	n->known = IDMAP_INIT(NEIGHBOURS_MAX);
	*ret = n;
	return 0;
}

void neighbours_free(struct neighbours *n)
{
	idmap_done(&n->known);
	free(n);
}

/* The process that kept @e's from running, or that uses the disk beside it; 0: none. */
static uint32_t pid_of(const struct event *e)
{
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH)
		return e->wait_ns >= WAIT_MIN_NS && e->peer_pid != e->pid ? e->peer_pid : 0;
	return e->source == SOURCE_IO && !(e->flags & WIRE_TARGET) ? e->pid : 0;
}

static bool read_home(const struct neighbours *n, uint32_t pid, struct process *p)
{
	struct discover_process facts;
	struct cgroup group = {0};

	if (discover_process_stat(n->root, pid, &facts) < 0 || !facts.vsize_bytes ||
		cgroup_read(n->root, pid, &group) < 0)
		return false;
	*p = (struct process){.pid = pid, .start_ticks = facts.start_ticks};
	snprintf(p->comm, sizeof(p->comm), "%s", facts.comm);
	memcpy(p->identity.cgroup_path, group.path, sizeof(p->identity.cgroup_path));
	memcpy(p->identity.container_id, group.container_id, sizeof(p->identity.container_id));
	memcpy(p->identity.pod_uid, group.pod_uid, sizeof(p->identity.pod_uid));
	discover_program(n->root, pid, p->script, &p->cpus);
	return true;
}

void neighbours_see(struct neighbours *n, const struct event *e, const struct process_table *traced,
	struct store_writer *w)
{
	uint32_t pid = w ? pid_of(e) : 0;
	_cleanup_free_ struct process *p = NULL;

	if (!pid || n->reads >= READS_A_SECOND || idmap_get(&n->known, pid) ||
		process_table_has(traced, pid, 0))
		return;
	n->reads++;
	p = malloc(sizeof(*p));
	if (!p)
		return;
	if (read_home(n, pid, p)) {
		p->seen = e->start;
		if (!store_writer_push_process(w, p, NULL))
			return; /* no room now: at the next sight */
	}
	(void)idmap_put(&n->known, pid, n); /* full: whoever comes later stays unknown */
}

void neighbours_renew(struct neighbours *n)
{
	idmap_done(&n->known);
	n->known = IDMAP_INIT(NEIGHBOURS_MAX);
}

void neighbours_tick(struct neighbours *n)
{
	n->reads = 0;
}
