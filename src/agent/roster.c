/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c - see roster.h.
 *
 * Invariants:
 *  1. An entry per pid; of what was read only what events need is kept, the rest went to the store.
 *  2. An event gets the placement that held at its start: `before` up to `since`, then `place`.
 *  3. An entry leaves the map two ticks after its process ended, when its records have been read.
 *  4. What the store had no room for is marked and read again at the next tick.
 *  5. The session has a place as long as all processes with a rank have the same one. */
#include "agent/roster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/discover/discover.h"
#include "agent/discover/identity.h"
#include "base/idmap.h"
#include "base/log.h"

#define GROUPS_MAX 16384
#define GRACE      2 /* ticks an ended process is remembered */

struct entry {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t cgroup_id; /* by its records; 0 until the first */
	wall_time seen;     /* when it was last read */
	wall_time since;
	struct placement place, before;
	char comm[COMM_LEN];
	char container_id[IDENTITY_CONTAINER_MAX];
	char *cgroup_path, *pod, *namespace; /* NULL: unknown; for the group's row */
	bool environ_unreadable, environ_cut;
	bool unsaved;                  /* the store had no room */
	bool told;                     /* layers were told as they stand */
	unsigned ended;                /* ticks since it ended, counted from 1; 0: alive */
	struct process_layers *layers; /* NULL until judged */
};

enum session_place { SESSION_NOBODY, SESSION_ONE, SESSION_MANY };

struct roster {
	const char *root;
	roster_coverage_sink *sink;
	void *sink_arg;
	struct store_writer *store;
	struct idmap entries; /* pid -> struct entry, owned */
	struct idmap groups;  /* cgroup id -> what of it is stored, GROUP_* */
	size_t ended;         /* entries that wait for removal */
	bool is_full;
	enum session_place session;
	struct placement place;
	bool place_unsaved;
	struct roster_gap gaps[ROSTER_GAPS_MAX];
	size_t gap_count;
	uint64_t gaps_more;
};

#define GROUP_KNOWN     1
#define GROUP_CONTAINER 2
#define GROUP_POD       4
#define GROUP_NAMESPACE 8

int roster_new(const char *root, roster_coverage_sink *sink, void *arg, struct roster **ret)
{
	struct roster *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->root = root;
	r->sink = sink;
	r->sink_arg = arg;
	r->entries = IDMAP_INIT(ROSTER_MAX);
	r->groups = IDMAP_INIT(GROUPS_MAX);
	*ret = r;
	return 0;
}

static void entry_free(struct entry *e)
{
	free(e->cgroup_path);
	free(e->pod);
	free(e->namespace);
	free(e->layers);
	free(e);
}

void roster_free(struct roster *r)
{
	struct entry *e;
	size_t cursor = 0;
	uint64_t pid;

	while ((e = idmap_next(&r->entries, &cursor, &pid)))
		entry_free(e);
	idmap_done(&r->entries);
	idmap_done(&r->groups);
	free(r);
}

void roster_store(struct roster *r, struct store_writer *w)
{
	r->store = w;
}

/* ---- who they are ---- */

static void set_text(char **at, const char *text)
{
	free(*at);
	*at = text[0] ? strdup(text) : NULL; /* without memory it is as if it were unknown */
}

static void copy_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
}

/* A group's row is written once its number is known, which the first call brings, and again when a
 * process of it says more. */
static void save_group(struct roster *r, struct entry *e)
{
	uintptr_t had, has = GROUP_KNOWN | (e->container_id[0] ? GROUP_CONTAINER : 0) |
			     (e->pod ? GROUP_POD : 0) | (e->namespace ? GROUP_NAMESPACE : 0);
	struct cgroup_row row = {.id = e->cgroup_id};

	if (!r->store || e->cgroup_id <= 1 || !e->cgroup_path) /* 1 is the root: everybody's */
		return;
	had = (uintptr_t)idmap_get(&r->groups, e->cgroup_id);
	if ((had | has) == had)
		return;
	copy_text(row.container_id, sizeof(row.container_id), e->container_id);
	copy_text(row.path, sizeof(row.path), e->cgroup_path);
	copy_text(row.pod, sizeof(row.pod), e->pod);
	copy_text(row.namespace, sizeof(row.namespace), e->namespace);
	if (!store_writer_push_cgroup(r->store, &row))
		e->unsaved = true;
	else
		(void)idmap_put(&r->groups, e->cgroup_id, (void *)(had | has)); /* full: again */
}

static void save(struct roster *r, struct entry *e, const struct process *p)
{
	struct discover_process facts;
	bool has_facts;

	e->unsaved = false;
	if (!r->store)
		return;
	has_facts = discover_process(r->root, e->pid, &facts) == 0;
	if (!store_writer_push_process(r->store, p, has_facts ? facts.cmdline : NULL))
		e->unsaved = true;
	save_group(r, e);
}

static bool same_place(const struct placement *a, const struct placement *b)
{
	return a->known == b->known && a->rank == b->rank && a->local_rank == b->local_rank &&
	       a->world_size == b->world_size;
}

static void session_add(struct roster *r, const struct placement *p)
{
	const struct placement none = {0};

	if (!(p->known & PLACEMENT_RANK) || r->session == SESSION_MANY ||
		(r->session == SESSION_ONE && same_place(&r->place, p)))
		return;
	r->session = r->session == SESSION_NOBODY ? SESSION_ONE : SESSION_MANY;
	r->place = r->session == SESSION_ONE ? *p : none;
	r->place_unsaved = true;
}

static void session_save(struct roster *r)
{
	if (r->place_unsaved && r->store)
		r->place_unsaved = !store_writer_push_place(r->store, r->place);
}

static struct entry *entry_get(struct roster *r, uint32_t pid)
{
	struct entry *e = idmap_get(&r->entries, pid);

	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e || idmap_put(&r->entries, pid, e) < 0) {
		if (!r->is_full)
			log_warning(
				"more than %d traced processes: rank and coverage of some are unknown",
				ROSTER_MAX);
		r->is_full = true;
		free(e);
		return NULL;
	}
	e->pid = pid;
	return e;
}

/* The pid has passed to another process, or its process to another program. */
static void entry_take(struct roster *r, struct entry *e, const struct process *p)
{
	if (e->start_ticks != p->start_ticks) {
		free(e->layers);
		e->layers = NULL;
		e->told = false;
		e->cgroup_id = 0;
		r->ended -= e->ended != 0;
		e->ended = 0;
	}
	if (!same_place(&e->place, &p->identity.place)) {
		e->before = e->place;
		e->since = p->seen;
		e->place = p->identity.place;
	}
	e->seen = p->seen;
	e->start_ticks = p->start_ticks;
	e->environ_unreadable = p->identity.environ_unreadable;
	e->environ_cut = p->identity.environ_cut;
	memcpy(e->comm, p->comm, sizeof(e->comm));
	memcpy(e->container_id, p->identity.container_id, sizeof(e->container_id));
	set_text(&e->cgroup_path, p->identity.cgroup_path);
	set_text(&e->pod, p->identity.pod);
	set_text(&e->namespace, p->identity.namespace);
}

/* A child that ended before it could be read was what its parent was. */
static void entry_inherit(struct roster *r, struct entry *e, uint32_t parent)
{
	const struct entry *p = parent ? idmap_get(&r->entries, parent) : NULL;

	if (!p || e->start_ticks)
		return;
	e->place = p->place;
	memcpy(e->container_id, p->container_id, sizeof(e->container_id));
	memcpy(e->comm, p->comm, sizeof(e->comm));
}

static void entry_read(struct roster *r, struct entry *e, uint32_t parent, wall_time now)
{
	_cleanup_free_ struct process *p = malloc(sizeof(*p));

	if (!p || identity_read(r->root, e->pid, p) < 0) {
		entry_inherit(r, e, parent);
		e->unsaved = false; /* there is nobody left to ask */
		return;
	}
	p->seen = now;
	if (!e->start_ticks) /* what it did before it was read, it did as the same */
		e->place = p->identity.place;
	entry_take(r, e, p);
	save(r, e, p);
	session_add(r, &e->place);
	session_save(r);
}

void roster_enter(struct roster *r, uint32_t pid, uint32_t parent, wall_time now)
{
	struct entry *e = entry_get(r, pid);

	if (e)
		entry_read(r, e, parent, now);
}

void roster_found(struct roster *r, const struct event *e)
{
	struct entry *x = idmap_get(&r->entries, e->pid);
	_cleanup_free_ struct process *p = calloc(1, sizeof(*p));
	struct process_layers none = {0};

	if (!x || !p || x->start_ticks)
		return;
	p->pid = e->pid;
	p->start_ticks = e->arg0 / (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	p->seen = e->start;
	p->identity.launcher = "";
	p->identity.place = x->place; /* its parent's, if that is known */
	p->identity.environ_unreadable = true;
	memcpy(p->comm, e->comm, sizeof(p->comm));
	entry_take(r, x, p);
	save(r, x, p);
	roster_judged(r, e->pid, &none);
}

static void entry_end(struct roster *r, struct entry *e)
{
	if (!e->ended)
		r->ended++;
	e->ended = 1;
}

static bool is_call(const struct event *e)
{
	return e->source == SOURCE_CUDA || e->source == SOURCE_DRIVER ||
	       e->source == SOURCE_GRAPH || e->source == SOURCE_NCCL;
}

/* The first call, or the process was moved: then its group has to be read again, and if it has
 * ended nobody knows it. */
static void group_change(struct roster *r, struct entry *x, const struct event *e)
{
	bool moved = x->cgroup_id != 0;

	x->cgroup_id = e->cgroup_id;
	if (!moved)
		save_group(r, x);
	else if (!x->ended)
		entry_read(r, x, 0, e->start);
}

const char *roster_place(struct roster *r, struct event *e)
{
	struct entry *x = idmap_get(&r->entries, e->pid);

	if (!x) {
		if (!is_call(e)) /* only calls are made by nobody but traced processes */
			return "";
		x = entry_get(r, e->pid);
		if (!x)
			return "";
		entry_read(r, x, 0, e->start);
		if (!x->start_ticks)
			entry_end(r, x); /* its end may have been told before */
	}
	e->place = e->start.ns < x->since.ns ? x->before : x->place;
	if (is_call(e) && e->cgroup_id && e->cgroup_id != x->cgroup_id)
		group_change(r, x, e);
	else if (!e->cgroup_id)
		e->cgroup_id = x->cgroup_id;
	return x->container_id;
}

/* ---- what is seen of them ---- */

static bool is_gap_of(const struct roster_gap *g, const struct entry *e)
{
	return g->pid == e->pid && g->start_ticks == e->start_ticks;
}

static void gap_set(struct roster *r, const struct entry *e)
{
	size_t i = 0;

	while (i < r->gap_count && !is_gap_of(&r->gaps[i], e))
		i++;
	if (!layer_has_gap(e->layers)) {
		if (i < r->gap_count)
			memmove(&r->gaps[i], &r->gaps[i + 1],
				(--r->gap_count - i) * sizeof(r->gaps[0]));
		return;
	}
	if (i == ROSTER_GAPS_MAX) {
		r->gaps_more++;
		return;
	}
	r->gap_count = MAX(r->gap_count, i + 1);
	r->gaps[i] = (struct roster_gap){.pid = e->pid,
		.start_ticks = e->start_ticks,
		.ended = e->ended != 0,
		.layers = *e->layers};
	memcpy(r->gaps[i].comm, e->comm, sizeof(e->comm));
}

static void tell(struct roster *r, struct entry *e)
{
	if (e->told || !e->layers)
		return;
	e->told =
		!r->store || store_writer_push_layers(r->store, e->pid, e->start_ticks, e->layers);
	if (!e->told)
		return; /* again at the next judgement */
	gap_set(r, e);
	if (r->sink)
		r->sink(r->sink_arg, e->pid, e->comm, e->layers);
}

static void judge_identity(const struct entry *e, struct layer_row *row)
{
	*row = (struct layer_row){.state = LAYER_COVERED};
	if (e->environ_unreadable)
		*row = (struct layer_row){.state = LAYER_FAILED,
			.detail = "cannot read the environment of the process, or it had exited"};
	else if (e->environ_cut)
		*row = (struct layer_row){.state = LAYER_UNCOVERED,
			.detail =
				"the environment of the process is longer than 1 MiB and was read only in part"};
}

void roster_judged(struct roster *r, uint32_t pid, const struct process_layers *l)
{
	struct entry *e = idmap_get(&r->entries, pid);
	struct process_layers now = *l;

	if (!e || e->ended)
		return;
	judge_identity(e, &now.rows[LAYER_IDENTITY]);
	if (!e->layers) {
		e->layers = calloc(1, sizeof(*e->layers));
		if (!e->layers)
			return; /* again at the next judgement */
	} else if (layer_same(e->layers, &now)) {
		tell(r, e);
		return;
	}
	*e->layers = now;
	e->told = false;
	if (!layer_has_gap(&now))
		tell(r, e);
}

void roster_leave(struct roster *r, uint32_t pid)
{
	struct entry *e = idmap_get(&r->entries, pid);

	if (!e || e->ended)
		return;
	entry_end(r, e);
	tell(r, e);
	for (size_t i = 0; i < r->gap_count; i++)
		r->gaps[i].ended |= is_gap_of(&r->gaps[i], e);
}

/* In portions, because a map must not change while it is walked. */
static void forget_ended(struct roster *r)
{
	struct entry *dead[256], *e;
	size_t n, cursor;
	uint64_t pid;

	do {
		n = cursor = 0;
		while (r->ended && n < ARRAY_SIZE(dead) &&
			(e = idmap_next(&r->entries, &cursor, &pid)))
			if (e->ended > GRACE)
				dead[n++] = e;
		for (size_t i = 0; i < n; i++) {
			idmap_remove(&r->entries, dead[i]->pid);
			entry_free(dead[i]);
			r->ended--;
			r->is_full = false;
		}
	} while (n == ARRAY_SIZE(dead));
}

void roster_tick(struct roster *r)
{
	struct entry *e;
	size_t cursor = 0;
	uint64_t pid;

	while ((e = idmap_next(&r->entries, &cursor, &pid))) {
		if (e->ended)
			e->ended++;
		else if (e->unsaved)
			entry_read(r, e, 0, e->seen);
	}
	forget_ended(r);
	session_save(r);
}

/* Those that ended have no row any more where their records may still come; their group has. */
void roster_renew(struct roster *r, wall_time now)
{
	struct entry *e;
	size_t cursor = 0;
	uint64_t pid;

	idmap_done(&r->groups);
	r->groups = IDMAP_INIT(GROUPS_MAX);
	r->place_unsaved = r->session != SESSION_NOBODY;
	while ((e = idmap_next(&r->entries, &cursor, &pid))) {
		if (e->ended)
			save_group(r, e);
		else
			entry_read(r, e, 0, now);
		if (e->told && e->layers && r->store)
			e->told = store_writer_push_layers(
				r->store, e->pid, e->start_ticks, e->layers);
	}
	session_save(r);
}

void roster_finish(struct roster *r)
{
	struct entry *e;
	size_t cursor = 0;
	uint64_t pid;

	while ((e = idmap_next(&r->entries, &cursor, &pid))) {
		if (e->unsaved && !e->ended)
			entry_read(r, e, 0, e->seen);
		tell(r, e);
	}
	session_save(r);
}

const struct roster_gap *roster_gaps(const struct roster *r, size_t *ret_count, uint64_t *ret_more)
{
	*ret_count = r->gap_count;
	*ret_more = r->gaps_more;
	return r->gaps;
}
