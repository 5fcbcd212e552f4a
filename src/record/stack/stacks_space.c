/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_space.c - which processes there are, and what the kernel half is told of them: sets of
 * mappings, and Python. Children share their parent's set until they are looked at themselves. */
#include "record/stack/stacks_private.h"
#include "record/stack/remote.h"

#include "base/log.h"

#define LINGER_NS       (10 * NS_PER_S) /* an ended process's mappings are kept */
#define RESCAN_FIRST_NS (20 * NS_PER_MS)
#define RESCAN_LAST_NS  NS_PER_S
#define ROUTINE_RATIO   16 /* without a reason mappings are read again at this part of their age */
#define SEND_LATEST_NS  (300 * NS_PER_MS)

/* ---- sets of mappings ---- */

static uint32_t set_take(struct stacks *s)
{
	for (uint32_t i = 1; i < PROBE_SETS_MAX; i++) {
		uint32_t set = 1 + (s->next_set + i) % (PROBE_SETS_MAX - 1);

		if (!s->set_users[set]) {
			s->next_set = set;
			s->set_users[set] = 1;
			return set;
		}
	}
	return 0;
}

static void set_leave(struct stacks *s, uint32_t set)
{
	if (set && set < PROBE_SETS_MAX && s->set_users[set] && --s->set_users[set] == 0)
		probe_mappings_drop(s->probe, set);
}

static void inherited_leave(struct stacks *s, uint32_t pid)
{
	void *set = idmap_remove(&s->inherited, pid);

	if (set)
		set_leave(s, (uint32_t)(uintptr_t)set);
}

/* ---- processes ---- */

static void space_free(struct stacks *s, struct stack_space *p)
{
	set_leave(s, p->set);
	space_done(p);
	free(p);
}

static void space_send(struct stacks *s, struct stack_space *p)
{
	struct stack_mappings *m = malloc(sizeof(*m));
	int r = -ENOMEM;

	p->is_dirty = false;
	p->set = p->set ?: set_take(s);
	if (m && p->set) {
		space_mappings(p, m);
		r = probe_mappings(s->probe, p->set, m);
	}
	free(m);
	if (r == 0 && !p->ended.ns)
		r = probe_stack_process(s->probe, p->pid, p->set, ++s->generation,
			s->with_python && p->python_state == SPACE_PYTHON_READY ? &p->python
										: NULL);
	if (r == 0)
		inherited_leave(s, p->pid);
	else
		log_warning("the stacks of process %u end early: %s", p->pid, strerror(-r));
}

void stacks_rescan(struct stacks *s, struct stack_space *p, mono_time now)
{
	int r = space_scan(p, s->files);

	p->rescan = false;
	p->scanned = now;
	if (r == -ESRCH && !p->ended.ns)
		p->ended = now;
	p->patience_ns = r == 1 ? RESCAN_FIRST_NS : MIN(2 * p->patience_ns, RESCAN_LAST_NS);
}

/* Libraries that were loaded since are then known before the first call from them. That nothing
 * came says nothing about the next look that has a reason. */
static void routine_rescan(struct stacks *s, struct stack_space *p, mono_time now)
{
	uint64_t age = now.ns - p->made.ns, patience = p->patience_ns;

	if (now.ns - p->scanned.ns < MIN(RESCAN_FIRST_NS + age / ROUTINE_RATIO, RESCAN_LAST_NS))
		return;
	stacks_rescan(s, p, now);
	p->patience_ns = MIN(p->patience_ns, patience);
}

static struct stack_space *space_new(struct stacks *s, uint32_t pid)
{
	struct stack_space *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	(void)foreign_user("", pid, &p->uid); /* gone: nothing is read of it either */
	p->made = p->told = mono_now();
	p->patience_ns = RESCAN_FIRST_NS;
	if (idmap_put(&s->spaces, pid, p) < 0) {
		free(p);
		return NULL;
	}
	stacks_rescan(s, p, p->made);
	return p;
}

void stacks_process(struct stacks *s, uint32_t pid)
{
	struct stack_space *old = idmap_remove(&s->spaces, pid);

	if (old)
		space_free(s, old);
	space_new(s, pid);
}

void stacks_fork(struct stacks *s, uint32_t child)
{
	uint32_t set = probe_stack_set_of(s->probe, child);

	if (set && set < PROBE_SETS_MAX && s->set_users[set] &&
		idmap_put(&s->inherited, child, (void *)(uintptr_t)set) == 0)
		s->set_users[set]++;
}

void stacks_gone(struct stacks *s, uint32_t pid)
{
	struct stack_space *p = idmap_get(&s->spaces, pid);

	inherited_leave(s, pid);
	if (p && !p->ended.ns)
		p->ended = mono_now();
}

struct stack_space *stacks_space_of_set(struct stacks *s, uint32_t set)
{
	struct stack_space *p;
	size_t cursor = 0;

	while (set && (p = idmap_next(&s->spaces, &cursor, NULL)))
		if (p->set == set)
			return p;
	return NULL;
}

/* The process of a record: a child that was never looked at is looked at now. One that has ended
 * already is what it was born as: its parent. */
struct stack_space *stacks_space_of(struct stacks *s, const struct stack_record_stack *r)
{
	struct stack_space *p = idmap_get(&s->spaces, r->h.pid);

	p = p ?: space_new(s, r->h.pid);
	if (p && !p->count)
		space_inherit(p, stacks_space_of_set(s, r->set));
	return p;
}

void stacks_file_changed(void *arg, struct stack_file *f)
{
	struct stacks *s = arg;
	struct stack_space *p;
	size_t cursor = 0;

	while ((p = idmap_next(&s->spaces, &cursor, NULL)))
		for (size_t i = 0; i < p->count && !p->is_dirty; i++)
			p->is_dirty = p->mappings[i].file == f;
}

/* When files or tables have reached their ceiling: those that no known process maps go. */
void stacks_make_room(struct stacks *s)
{
	struct stack_space *p;
	size_t cursor = 0;

	if (!stack_files_is_full(s->files) || s->waiting_count)
		return;
	while ((p = idmap_next(&s->spaces, &cursor, NULL))) {
		for (size_t i = 0; i < p->count; i++)
			if (p->mappings[i].file)
				stack_file_mark(p->mappings[i].file);
		if (p->generated)
			stack_file_mark(p->generated);
		if (p->python_file)
			stack_file_mark(p->python_file);
		p->rescan = true; /* what found no room may find some now */
	}
	stack_files_sweep(s->files);
}

void stacks_look_after(struct stacks *s, mono_time now)
{
	uint32_t gone[64];
	size_t gone_count = 0, cursor = 0;
	struct stack_space *p;

	while ((p = idmap_next(&s->spaces, &cursor, NULL))) {
		if (p->ended.ns && now.ns - p->ended.ns > LINGER_NS) {
			if (gone_count < ARRAY_SIZE(gone))
				gone[gone_count++] = p->pid;
			continue;
		}
		if (p->ended.ns)
			continue;
		if (p->rescan && now.ns - p->scanned.ns >= p->patience_ns)
			stacks_rescan(s, p, now);
		else if (!p->rescan)
			routine_rescan(s, p, now);
		if (space_python(p, now))
			p->is_dirty = true;
		/* Files come by the hundred when a process is met: they are told together. */
		if (p->is_dirty && (space_is_known(p) || now.ns - p->told.ns > SEND_LATEST_NS)) {
			space_send(s, p);
			p->told = now;
		}
	}
	for (size_t i = 0; i < gone_count; i++)
		space_free(s, idmap_remove(&s->spaces, gone[i]));
}
