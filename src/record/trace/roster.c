/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c - see roster.h.
 *
 * Invariants:
 *  1. What is known of a process hangs on its entry in the table; of what was read only what events
 *     need is kept, the rest went to the store.
 *  2. An event gets the placement that held at its start: `before` up to `since`, then `place`.
 *  3. What the store had no room for is marked and read again at the next tick.
 *  4. The session has a place as long as all processes with a rank have the same one. */
#include "record/trace/roster.h"

#include "base/hash.h"
#include "record/discover/discover.h"
#include "record/discover/identity.h"
#include "wire/op_kind.h"

#define GROUPS_MAX 16384
#define ROOT_GROUP 1                   /* everybody's */
#define V1_GROUP   (UINT64_C(1) << 52) /* whoever reads JSON has 53 bits */

struct entry {
	struct process_entry *process;
	bool is_known;      /* from /proc, or by the kernel's word */
	uint64_t kernel_id; /* of its group, by its records; 0 until the first */
	uint64_t cgroup_id; /* of its group as it is stored (roster_groups()); likewise */
	wall_time seen;     /* when it was last read */
	wall_time since;
	struct placement place, before;
	char comm[COMM_LEN];
	char container_id[IDENTITY_CONTAINER_MAX];
	char *cgroup_path, *pod, *namespace;               /* NULL: unknown; for the group's row */
	char *cpu_group, *memory_group;                    /* of v1; NULL: none */
	char *pod_uid, *job, *exe, *script, *visible_gpus; /* likewise; for its own */
	uint32_t cpus;
	const char *launcher;
	bool environ_unreadable, environ_cut;
	bool unsaved;                  /* the store had no room */
	bool told;                     /* layers were told as they stand */
	struct process_layers *layers; /* NULL until judged */
};

enum session_place { SESSION_NOBODY, SESSION_ONE, SESSION_MANY };

struct roster {
	const char *root;
	roster_coverage_sink *sink;
	void *sink_arg;
	struct store_writer *store;
	struct process_table *table;
	struct idmap groups; /* cgroup id -> what of it is stored, GROUP_* */
	uint32_t ticks;
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

int roster_new(const char *root, struct process_table *table, roster_coverage_sink *sink, void *arg,
	struct roster **ret)
{
	struct roster *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->root = root;
	r->table = table;
	r->sink = sink;
	r->sink_arg = arg;
	r->groups = IDMAP_INIT(GROUPS_MAX);
	*ret = r;
	return 0;
}

void roster_free(struct roster *r)
{
	idmap_done(&r->groups);
	free(r);
}

static struct entry *entry_of(const struct process_entry *p)
{
	return p ? p->slots[PROCESS_ROSTER] : NULL;
}

static void drop(void *arg, struct process_entry *p)
{
	struct entry *e = TAKE(p->slots[PROCESS_ROSTER]);

	if (!e)
		return;
	free(e->cgroup_path);
	free(e->cpu_group);
	free(e->memory_group);
	free(e->pod);
	free(e->namespace);
	free(e->pod_uid);
	free(e->job);
	free(e->exe);
	free(e->script);
	free(e->visible_gpus);
	free(e->layers);
	free(e);
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

static uint64_t number_of(const char *path)
{
	return path ? hash_bytes(path, strlen(path)) : 0;
}

static bool is_of_v1(const struct entry *e)
{
	return e->kernel_id && (e->cpu_group || (e->memory_group && e->kernel_id <= ROOT_GROUP));
}

static void number_group(struct entry *e)
{
	uint64_t cpu = number_of(e->cpu_group), memory = number_of(e->memory_group);
	/* Most have the same group of both, which is known by its name alone. */
	uint64_t v1 = cpu == memory || !memory ? cpu : cpu * 31 + memory;

	e->cgroup_id = is_of_v1(e) ? V1_GROUP | v1 % V1_GROUP : e->kernel_id;
}

/* A group's row is written once its number is known, which the first call brings, and again when a
 * process of it says more. */
static void save_group(struct roster *r, struct entry *e)
{
	uintptr_t had, has = GROUP_KNOWN | (e->container_id[0] ? GROUP_CONTAINER : 0) |
			     (e->pod ? GROUP_POD : 0) | (e->namespace ? GROUP_NAMESPACE : 0);
	struct cgroup_row row = {.id = e->cgroup_id};

	if (!r->store || e->cgroup_id <= ROOT_GROUP || !e->cgroup_path)
		return;
	had = (uintptr_t)idmap_get(&r->groups, e->cgroup_id);
	if ((had | has) == had)
		return;
	copy_text(row.container_id, sizeof(row.container_id), e->container_id);
	copy_text(row.path, sizeof(row.path), e->cgroup_path);
	copy_text(row.pod, sizeof(row.pod), e->pod);
	copy_text(row.namespace, sizeof(row.namespace), e->namespace);
	if (!store_writer_push_row(r->store, &row))
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
	has_facts = discover_process(r->root, e->process->pid, &facts) == 0;
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

/* The process has passed to another program, or is read for the first time. */
static void entry_take(struct entry *e, const struct process *p)
{
	if (!e->is_known) /* what it did before it was read, it did as the same */
		e->place = p->identity.place;
	if (!same_place(&e->place, &p->identity.place)) {
		e->before = e->place;
		e->since = p->seen;
		e->place = p->identity.place;
	}
	e->seen = p->seen;
	e->is_known = true;
	e->process->start_ticks = p->start_ticks;
	e->environ_unreadable = p->identity.environ_unreadable;
	e->environ_cut = p->identity.environ_cut;
	memcpy(e->comm, p->comm, sizeof(e->comm));
	memcpy(e->container_id, p->identity.container_id, sizeof(e->container_id));
	set_text(&e->cgroup_path, p->identity.cgroup_path);
	set_text(&e->cpu_group, p->identity.cpu_group);
	set_text(&e->memory_group, p->identity.memory_group);
	number_group(e);
	set_text(&e->pod, p->identity.pod);
	set_text(&e->namespace, p->identity.namespace);
	set_text(&e->pod_uid, p->identity.pod_uid);
	set_text(&e->job, p->identity.job);
	set_text(&e->exe, p->identity.exe);
	set_text(&e->script, p->script);
	set_text(&e->visible_gpus, p->identity.visible_gpus);
	e->cpus = p->cpus;
	e->launcher = p->identity.launcher;
}

/* A child that ended before it could be read was what its parent was. */
static void entry_inherit(const struct roster *r, struct entry *e, uint32_t parent)
{
	const struct entry *p = parent ? entry_of(process_table_get(r->table, parent)) : NULL;

	if (!p || e->is_known)
		return;
	e->place = p->place;
	memcpy(e->container_id, p->container_id, sizeof(e->container_id));
	memcpy(e->comm, p->comm, sizeof(e->comm));
}

/* Reads who has the pid now, unless that is another process already. */
static bool read_process(const struct roster *r, const struct process_entry *e, struct process *ret)
{
	return identity_read(r->root, e->pid, ret) == 0 &&
	       (!e->start_ticks || e->start_ticks == ret->start_ticks);
}

/* False: there is nobody to be read any more. */
static bool entry_read(struct roster *r, struct entry *e, uint32_t parent, wall_time now)
{
	_cleanup_free_ struct process *p = malloc(sizeof(*p));

	if (!p || !read_process(r, e->process, p)) {
		entry_inherit(r, e, parent);
		e->unsaved = false; /* there is nobody left to ask */
		return false;
	}
	p->seen = now;
	entry_take(e, p);
	save(r, e, p);
	session_add(r, &e->place);
	session_save(r);
	return true;
}

static void enter(void *arg, struct process_entry *p, uint32_t parent, wall_time at)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return; /* as if nothing could be read of it */
	e->process = p;
	p->slots[PROCESS_ROSTER] = e;
	entry_read(arg, e, parent, at);
}

static void exec(void *arg, struct process_entry *p, wall_time at)
{
	struct entry *e = entry_of(p);

	/* Ended before it could be read again: who it was before says nothing of the new program. */
	if (e && !entry_read(arg, e, 0, at))
		e->is_known = false;
}

uint64_t roster_found_start(const struct event *e)
{
	return e->arg0 / (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* The first call, or the process was moved: then its group has to be read again, and if it has
 * ended nobody knows it. */
static void group_change(struct roster *r, struct entry *x, const struct event *e)
{
	bool moved = x->kernel_id != 0;

	x->kernel_id = e->cgroup_id;
	number_group(x);
	if (!moved)
		save_group(r, x);
	else if (!x->process->ended)
		entry_read(r, x, 0, e->start);
}

/* ---- what is seen of them ---- */

static bool is_gap_of(const struct roster_gap *g, const struct entry *e)
{
	return g->pid == e->process->pid && g->start_ticks == e->process->start_ticks;
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
	r->gaps[i] = (struct roster_gap){.pid = e->process->pid,
		.start_ticks = e->process->start_ticks,
		.ended = e->process->ended != 0,
		.layers = *e->layers};
	memcpy(r->gaps[i].comm, e->comm, sizeof(e->comm));
}

static bool store_layers(const struct roster *r, const struct entry *e)
{
	return !r->store || store_writer_push_layers(
				    r->store, e->process->pid, e->process->start_ticks, e->layers);
}

static void tell(struct roster *r, struct entry *e)
{
	if (e->told || !e->layers)
		return;
	e->told = store_layers(r, e);
	if (!e->told)
		return; /* again at the next judgement */
	gap_set(r, e);
	if (r->sink)
		r->sink(r->sink_arg, e->process->pid, e->comm, e->layers);
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

static void judge(struct roster *r, struct entry *e, const struct process_layers *l)
{
	struct process_layers now = *l;

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

void roster_judged(struct roster *r, uint32_t pid, const struct process_layers *l)
{
	struct entry *e = entry_of(process_table_get(r->table, pid));

	if (e && !e->process->ended)
		judge(r, e, l);
}

/* It ended before it could be read: what the kernel says of it in @e is kept, and that the rest is
 * not known is told. */
static void take_word(
	struct roster *r, struct entry *x, const struct event *e, uint64_t start_ticks)
{
	_cleanup_free_ struct process *p = calloc(1, sizeof(*p));
	struct process_layers none = {0};

	if (!p)
		return;
	p->pid = e->pid;
	p->start_ticks = start_ticks;
	p->seen = e->start;
	p->identity.launcher = "";
	p->identity.place = x->place; /* its parent's, if that is known */
	p->identity.environ_unreadable = true;
	memcpy(p->comm, e->comm, sizeof(p->comm));
	entry_take(x, p);
	save(r, x, p);
	judge(r, x, &none);
	if (x->process->ended)
		tell(r, x); /* its end, at which that is done, came before */
}

void roster_found(struct roster *r, const struct event *e)
{
	struct entry *x = entry_of(process_table_at(r->table, e->pid, e->start));

	if (x && !x->is_known)
		take_word(r, x, e, roster_found_start(e));
}

const char *roster_place(struct roster *r, struct event *e)
{
	struct entry *x = entry_of(op_kind_is_gpu(e->source)
					   ? process_table_called(r->table, e->pid, e->start)
					   : process_table_at(r->table, e->pid, e->start));

	if (!x)
		return ""; /* only calls are made by nobody but traced processes */
	if (op_kind_is_gpu(e->source) && !x->is_known && x->process->start_ticks)
		take_word(r, x, e, x->process->start_ticks);
	e->place = e->start.ns < x->since.ns ? x->before : x->place;
	if (op_kind_is_gpu(e->source) && e->cgroup_id && e->cgroup_id != x->kernel_id)
		group_change(r, x, e);
	if (x->cgroup_id && (!e->cgroup_id || is_of_v1(x)))
		e->cgroup_id = x->cgroup_id;
	return x->container_id;
}

struct roster_home roster_home(const struct roster *r, uint32_t pid)
{
	const struct entry *x = entry_of(process_table_get(r->table, pid));

	return (struct roster_home){.pod = x && x->pod ? x->pod : "",
		.namespace = x && x->namespace ? x->namespace : "",
		.container_id = x ? x->container_id : ""};
}

static void leave(void *arg, struct process_entry *p)
{
	struct entry *e = entry_of(p);
	struct roster *r = arg;

	if (!e)
		return;
	tell(r, e);
	for (size_t i = 0; i < r->gap_count; i++)
		r->gaps[i].ended |= is_gap_of(&r->gaps[i], e);
}

const struct process_stage roster_stage = {
	.on_enter = enter, .on_exec = exec, .on_exit = leave, .on_drop = drop};

size_t roster_groups(const struct roster *r, struct roster_group *ret, size_t max)
{
	struct process_entry *p = NULL;
	size_t count = 0;

	while (count < max && (p = process_table_next(r->table, p))) {
		const struct entry *e = entry_of(p);

		if (e && !p->ended && e->cgroup_id > ROOT_GROUP && e->cgroup_path &&
			!EXISTS(i, count, ret[i].cgroup_id == e->cgroup_id))
			ret[count++] = (struct roster_group){
				.cgroup_id = e->cgroup_id,
				.path = is_of_v1(e) ? e->cpu_group : e->cgroup_path,
				.is_v1 = is_of_v1(e),
				.memory_path = e->memory_group,
				.pid = p->pid,
			};
	}
	return count;
}

static bool was_moved(const struct roster *r, const struct entry *e)
{
	struct cgroup c;

	return e->kernel_id && cgroup_read(r->root, e->process->pid, &c) == 0 &&
	       (strcmp(c.cpu_path, e->cpu_group ? e->cpu_group : "") != 0 ||
		       strcmp(c.memory_path, e->memory_group ? e->memory_group : "") != 0);
}

#define MASK_TICKS 4 /* between looks at the CPUs that processes may use */

static bool was_pinned(const struct roster *r, const struct entry *e)
{
	uint32_t cpus = r->ticks % MASK_TICKS ? 0 : discover_cpus(r->root, e->process->pid);

	return cpus && e->is_known && cpus != e->cpus;
}

void roster_tick(struct roster *r)
{
	struct process_entry *p = NULL;

	while ((p = process_table_next(r->table, p))) {
		struct entry *e = entry_of(p);

		if (e && !p->ended && (e->unsaved || was_moved(r, e) || was_pinned(r, e)))
			entry_read(r, e, 0, e->seen);
	}
	r->ticks++;
	session_save(r);
}

/* Of those that have ended, records may still come: their row is made of what is kept, which is all
 * but the command line. */
static void save_ended(struct roster *r, struct entry *e)
{
	_cleanup_free_ struct process *p = calloc(1, sizeof(*p));
	struct identity *i;

	if (!p || !e->is_known || !r->store)
		return;
	i = &p->identity;
	p->pid = e->process->pid;
	p->start_ticks = e->process->start_ticks;
	p->seen = e->seen;
	memcpy(p->comm, e->comm, sizeof(p->comm));
	i->place = e->place;
	i->launcher = e->launcher;
	copy_text(i->job, sizeof(i->job), e->job);
	copy_text(i->container_id, sizeof(i->container_id), e->container_id);
	copy_text(i->pod_uid, sizeof(i->pod_uid), e->pod_uid);
	copy_text(i->pod, sizeof(i->pod), e->pod);
	copy_text(i->namespace, sizeof(i->namespace), e->namespace);
	copy_text(i->cgroup_path, sizeof(i->cgroup_path), e->cgroup_path);
	copy_text(i->exe, sizeof(i->exe), e->exe);
	copy_text(p->script, sizeof(p->script), e->script);
	copy_text(i->visible_gpus, sizeof(i->visible_gpus), e->visible_gpus);
	p->cpus = e->cpus;
	(void)store_writer_push_process(r->store, p, NULL); /* no room: nobody can be asked again */
	save_group(r, e);
}

void roster_renew(struct roster *r, wall_time now)
{
	struct process_entry *p = NULL;

	idmap_done(&r->groups);
	r->groups = IDMAP_INIT(GROUPS_MAX);
	r->place_unsaved = r->session != SESSION_NOBODY;
	while ((p = process_table_next(r->table, p))) {
		struct entry *e = entry_of(p);

		if (!e)
			continue;
		if (p->ended || !entry_read(r, e, 0, now))
			save_ended(r, e);
		if (e->told && e->layers)
			e->told = store_layers(r, e);
	}
	session_save(r);
}

void roster_finish(struct roster *r)
{
	struct process_entry *p = NULL;

	while ((p = process_table_next(r->table, p))) {
		struct entry *e = entry_of(p);

		if (!e)
			continue;
		if (e->unsaved && !p->ended)
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
