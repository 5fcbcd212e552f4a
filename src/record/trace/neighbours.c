/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - see neighbours.h.
 *
 * A pid is read once, at most so many a second and so many in all: on a busy machine everybody has
 * the CPU at some time, and only who keeps a traced thread waiting for a while matters. A pid that
 * could not be read in one second is tried again when it is next met, and so is one that has just begun: until it calls
 * exec() it is its parent's program. */
#include "record/trace/neighbours.h"

#include <limits.h>
#include <time.h>

#include "base/socket_path.h"
#include "record/discover/identity.h"
#include "record/discover/discover.h"

/* /sys/dev/block/8:0 is a link that ends in "/sda". */

static void read_name(const char *root, uint32_t dev, char out[COMM_LEN])
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t n = -1;

	out[0] = 0;
	if (snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u", root, dev >> 20, dev & 0xfffff) <
		(int)sizeof(path))
		n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = 0;
	snprintf(out, COMM_LEN, "%s", basename(target));
}

void disks_name(struct disks *d, const char *root, struct event *e)
{
	int k = 0;

	if (e->source != SOURCE_IO)
		return;
	while (k < d->count && d->items[k].dev != e->dev)
		k++;
	if (k == DISKS_MAX)
		return;
	if (k == d->count) {
		d->items[k].dev = e->dev;
		read_name(root, e->dev, d->items[k].name);
		d->count++;
	}
	memcpy(e->peer_comm, d->items[k].name, COMM_LEN);
}

#define ENOUGH_NS    (200 * NS_PER_MS)
#define ENOUGH_STAYS 3 /* one stay may be anything: a start, a shutdown */

/* The item of @pid; of a new one, a free place or that of whom least was waited for. */
static struct waited_process *item_of(struct waited_for *w, uint32_t pid)
{
	struct waited_process *least = &w->items[0];

	for (size_t i = 0; i < ARRAY_SIZE(w->items); i++) {
		struct waited_process *p = &w->items[i];

		if (p->pid == pid)
			return p;
		if (p->ns < least->ns)
			least = p;
	}
	*least = (struct waited_process){.pid = pid};
	return least;
}

bool waited_for_add(struct waited_for *w, uint32_t pid, uint64_t ns)
{
	struct waited_process *p;

	if (w->followed >= WAITED_FOR_MAX)
		return false;
	p = item_of(w, pid);
	p->ns += ns;
	p->stays++;
	if (p->ns < ENOUGH_NS || p->stays < ENOUGH_STAYS)
		return false;
	*p = (struct waited_process){0};
	w->followed++;
	return true;
}

#define NEIGHBOURS_MAX 4096
#define READS_A_SECOND 32
#define YOUNG_S        2 /* and a fork's exec() is behind it */
#define KNOWN          UINTPTR_MAX
#define WAIT_MIN_NS    NS_PER_MS /* a shorter wait is how a scheduler shares */
#define PORTS_MAX      64

struct port { /* of this machine, as a traced process sees it */
	uint32_t inside;
	uint16_t number;
	uint32_t holder; /* 0: nobody was found */
};

struct neighbours {
	const char *root;
	struct port ports[PORTS_MAX];
	int port_count;
	bool has_looked;    /* for a port in this second */
	struct idmap known; /* pid -> the second it was read in; KNOWN: once and for all */
	uintptr_t second;
	unsigned reads; /* in it */
};

int neighbours_new(const char *root, struct neighbours **ret)
{
	struct neighbours *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->root = root;
	n->second = 1;
	n->known = IDMAP_INIT(NEIGHBOURS_MAX);
	*ret = n;
	return 0;
}

void neighbours_free(struct neighbours *n)
{
	idmap_done(&n->known);
	free(n);
}

/* The process that listens on the port of this machine that @e waited for; 0: none. All processes are looked into for
 * that, so once for a port, and for one port a second. */
static uint32_t port_holder_of(struct neighbours *n, const struct event *e)
{
	struct port_holder holder = {0};
	struct port *p;
	int k = 0;

	while (k < n->port_count && (n->ports[k].inside != e->pid || n->ports[k].number != e->dev))
		k++;
	if (k < n->port_count)
		return n->ports[k].holder;
	if (n->has_looked || k == PORTS_MAX)
		return 0;
	n->has_looked = true;
	p = &n->ports[n->port_count++];
	*p = (struct port){.inside = e->pid, .number = (uint16_t)e->dev};
	if (port_holder_find(n->root, e->pid, p->number, &holder) == 0 && holder.pid != e->pid)
		p->holder = holder.pid;
	return p->holder;
}

static bool waits_here(const struct event *e)
{
	return e->source == SOURCE_NET && e->family && e->wait_ns >= WAIT_MIN_NS &&
	       event_peer_is_here(e);
}

/* The process that kept @e's from running, that uses the disk beside it, or that it waited for; 0: none. */
static uint32_t pid_of(const struct event *e)
{
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH)
		return e->wait_ns >= WAIT_MIN_NS && e->peer_pid != e->pid ? e->peer_pid : 0;
	if (e->source == SOURCE_NET)
		return e->peer_pid;
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

static bool is_young(const struct process *p)
{
	struct timespec up = {0};
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &up);
	return p->start_ticks + YOUNG_S * hz > (uint64_t)up.tv_sec * hz;
}

static void meet(struct neighbours *n, uint32_t pid, wall_time when,
	const struct process_table *traced, struct store_writer *w)
{
	_cleanup_free_ struct process *p = NULL;
	uintptr_t read_in = (uintptr_t)idmap_get(&n->known, pid), until = KNOWN;

	if (!pid || !w || n->reads >= READS_A_SECOND || read_in == KNOWN || read_in == n->second ||
		process_table_has(traced, pid, 0))
		return;
	n->reads++;
	p = malloc(sizeof(*p));
	if (!p)
		return;
	if (read_home(n, pid, p)) {
		p->seen = when;
		if (!store_writer_push_process(w, p, NULL))
			return; /* no room now: at the next sight */
		until = is_young(p) ? n->second : KNOWN;
	}
	(void)idmap_put(
		&n->known, pid, (void *)until); /* full: whoever comes later stays unknown */
}

void neighbours_see(struct neighbours *n, struct event *e, const struct process_table *traced,
	struct store_writer *w)
{
	if (waits_here(e))
		e->peer_pid = port_holder_of(n, e);
	meet(n, pid_of(e), e->start, traced, w);
}

void neighbours_share(struct neighbours *n, const struct gpu_sample *s,
	const struct process_table *traced, struct store_writer *w)
{
	for (int i = 0; i < GPU_PROCESSES_NAMED; i++)
		meet(n, gpu_sample_process(s, i), s->time, traced, w);
}

void neighbours_renew(struct neighbours *n)
{
	idmap_done(&n->known);
	n->known = IDMAP_INIT(NEIGHBOURS_MAX);
}

void neighbours_tick(struct neighbours *n)
{
	n->reads = 0;
	n->second++;
	n->has_looked = false;
}
