/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_maps.c - new mappings of CUDA libraries, as the kernel tells of them: the process is known
 * and the file probed before its first call where that is possible, and where it is not, the time
 * that went by is written down. Runs on the tracer's thread.
 *
 * Order, because a short process is soon gone: first who it is, then the probes, then the rest. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/confine.h"
#include "record/probe/stack/stack.h"
#include "record/trace/tracer_private.h"

/* The stacks of calls in a run: from the kernel's walks to the store and the
 * event's line. Runs on the tracer's thread. */

#define FINISH_MS      2000  /* at the end, names are waited for this long */
#define HURRY_MS       300   /* if somebody waits for it */
#define LIMITED_STACKS 65536 /* whose rows are counted for --stack-samples */

static void take_stack(void *arg, const struct stack *s)
{
	struct tracer *t = arg;

	if (tracer_take_symbol(t, s))
		return;
	if (t->settings.stack_sink)
		t->settings.stack_sink(t->settings.event_arg, s);
	if (t->explainer)
		explainer_stack(t->explainer, s);
	if (t->store && !store_writer_push_stack(t->store, s))
		t->stacks_unstored++;
}

int tracer_open_stacks(struct tracer *t)
{
	bool in_kernel = t->settings.py_walker != TRACER_PY_USERSPACE;

	if (t->settings.no_stacks)
		return 0;
	t->stack_rows = IDMAP_INIT(LIMITED_STACKS);
	return stacks_new(t->probe, in_kernel, take_stack, t, &t->stacks);
}

void tracer_close_stacks(struct tracer *t)
{
	if (t->stacks)
		stacks_free(t->stacks);
	t->stacks = NULL;
	idmap_done(&t->stack_rows);
}

void tracer_poll_stacks(struct tracer *t)
{
	if (t->stacks)
		stacks_poll(t->stacks);
}

void tracer_finish_stacks(struct tracer *t, bool at_once)
{
	if (!t->stacks)
		return;
	stacks_finish(t->stacks, at_once ? HURRY_MS : FINISH_MS);
	stacks_report(t->stacks, &t->stack_report);
}

uint64_t tracer_stacks_ns(const struct tracer *t)
{
	struct stack_tally tally = {0};

	if (t->stacks)
		probe_stack_tally(t->probe, &tally);
	return tally.taken_ns;
}

void tracer_view_stacks(const struct tracer *t, struct tracer_view *v)
{
	v->has_stacks = t->stacks != NULL;
	if (t->stopped)
		v->stacks = t->stack_report;
	else if (t->stacks)
		stacks_report(t->stacks, &v->stacks);
	v->stacks.dropped += t->stacks_unstored;
}

/* Rows of a stack beyond the limit are ordinary repetitions: they are in the aggregates. */
static bool is_one_too_many(struct tracer *t, const struct event *e)
{
	uintptr_t rows;

	if (!t->settings.stack_samples || e->flags & WIRE_SLOW || e->ret ||
		(e->source == SOURCE_HOST && e->op == HOST_CPU_SAMPLE))
		return false;
	rows = (uintptr_t)idmap_get(&t->stack_rows, e->stack_hash);
	if (rows >= t->settings.stack_samples)
		return true;
	(void)idmap_put(&t->stack_rows, e->stack_hash, (void *)(rows + 1)); /* full: no limit */
	return false;
}

bool tracer_take_stack(struct tracer *t, struct event *e, const struct stack **ret)
{
	*ret = NULL;
	if (!t->stacks || !e->stack_hash)
		return true;
	if (t->settings.py_walker == TRACER_PY_USERSPACE)
		e->stack_hash = stacks_userspace(t->stacks, e->pid, e->tid, e->stack_hash);
	*ret = stacks_find(t->stacks, e->stack_hash);
	return !is_one_too_many(t, e);
}

#define WAKES_MAX 600 /* a second; more mappings than that are looked at with the records */
#define LOOKS_MAX 16  /* at the rings, before the records have their turn */
#define RESCAN_NS (100 * NS_PER_MS) /* between scans for want of room */

void tracer_open_maps(struct tracer *t)
{
	struct errinfo e = {0};

	if (t->settings.cuda_lib)
		return; /* one file, probed from the start */
	if (map_watch_open(&t->maps, &e) < 0)
		log_warning("%s: new libraries are probed up to a second late", e.text);
}

int tracer_maps_fd(struct tracer *t)
{
	return t->maps && t->map_wakes < WAKES_MAX ? map_watch_fd(t->maps) : -1;
}

static void take_mapping(void *arg, const struct map_watch_mapping *m)
{
	struct tracer *t = arg;

	if (t->mapping_count < ARRAY_SIZE(t->mappings))
		t->mappings[t->mapping_count++] = *m;
	else
		t->maps_lost = true;
}

/* ---- gaps ---- */

/* Calls of @pid through the file at @path were not seen from @from until @to. */
static void note_gap(struct tracer *t, uint32_t pid, const char *path, wall_time from, wall_time to,
	enum call_gap_reason reason)
{
	struct call_gap g = {
		.pid = pid, .from = {MAX(from.ns, t->enabled.ns)}, .to = to, .reason = reason};
	struct discover_process p;
	bool is_new_process;

	if (!call_gap_ns(&g))
		return;
	call_gap_set_file(&g, path);
	if (discover_process_stat("", pid, &p) == 0) {
		g.start_ticks = p.start_ticks;
		memcpy(g.comm, p.comm, sizeof(g.comm));
	}
	if (!gap_log_add(&t->gaps, &g, &is_new_process))
		return;
	call_gap_sum_add(&t->own.unseen, &g, is_new_process);
	if (t->store && !store_writer_push_call_gap(t->store, &g))
		log_warning("the store's queue is full: a row about untraced calls is lost");
}

/* Until its probes are there, which is known later if they are coming. */
static void note_if_late(
	struct tracer *t, uint32_t pid, const struct coverage_file *f, wall_time mapped)
{
	if (!f || !target_kind_is_cuda(f->library.kind))
		return;
	if (f->is_coming && t->late_count < ARRAY_SIZE(t->late))
		t->late[t->late_count++] = (struct late_file){pid, f->library, mapped};
	else if (f->is_coming)
		note_gap(t, pid, f->library.path, mapped, wall_now(), CALL_GAP_FIRST_SEEN);
	else if (f->probes && f->since.ns > mapped.ns)
		note_gap(t, pid, f->library.path, mapped, f->since, CALL_GAP_FIRST_SEEN);
}

static wall_time tracer_process_start(uint64_t start_ticks)
{
	int64_t per_s = sysconf(_SC_CLK_TCK);
	struct timespec up;

	clock_gettime(CLOCK_BOOTTIME, &up);
	return (wall_time){wall_now().ns - up.tv_sec * (int64_t)NS_PER_S - up.tv_nsec +
			   (int64_t)start_ticks / per_s * (int64_t)NS_PER_S +
			   (int64_t)start_ticks % per_s * (int64_t)NS_PER_S / per_s};
}

void tracer_scan_gaps(struct tracer *t, const struct target_process *p, wall_time from)
{
	bool is_told = t->maps && !t->maps_lost; /* by the kernel, to the microsecond */

	from.ns = MAX(from.ns, tracer_process_start(p->start_ticks).ns);
	for (size_t i = 0; i < p->library_count; i++)
		if (!is_told || p->libraries[i].embedded)
			note_if_late(t, p->pid, coverage_find(t->coverage, &p->libraries[i]), from);
	if (!is_told)
		note_if_late(t, p->pid, coverage_assess_program(t->coverage, "", p), from);
}

/* ---- processes ---- */

/* As is_own_program() of the kernel half. By what the kernel knows: the program's file system is not asked, which may be a user's program that answers
 * nobody. */
bool tracer_is_own_program(const struct tracer *t, uint32_t pid)
{
	struct statx st;
	char path[32];
	uint32_t uid;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	return t->own_inode && statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st) == 0 &&
	       st.stx_ino == t->own_inode &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == t->own_dev &&
	       discover_uid("", pid, &uid) == 0 && (uid == geteuid() || uid == CONFINE_NOBODY);
}

/* What makes no target of a process is looked at in those that are. */
static bool is_wanted(struct tracer *t, const struct map_watch_mapping *m)
{
	struct discover_process p;
	uint32_t pid = m->pid;

	if (tracer_is_own_program(t, pid))
		return false;
	if (!target_kind_is_cuda(m->library.kind))
		return process_table_has(t->processes, pid, 0);
	switch (t->settings.filter) {
	case FILTER_PIDS: return process_table_has(t->processes, pid, 0);
	case FILTER_USER: return discover_process("", pid, &p) == 0 && p.uid == t->settings.uid;
	default: return true;
	}
}

/* A process that ended before it was entered tells nobody of its end: it would stay for whoever
 * gets its number. */
static bool is_alive(uint32_t pid)
{
	struct discover_process p;

	return discover_process_stat("", pid, &p) == 0 && p.vsize_bytes;
}

static bool enter(struct tracer *t, const struct map_watch_mapping *m)
{
	int r;

	if (process_table_has(t->processes, m->pid, 0) || !is_alive(m->pid))
		return false;
	r = tracer_target_add(t, m->pid);
	if (r == -EDQUOT)
		return false;
	process_table_enter(t->processes, m->pid, clock_map_wall(&t->clock, m->at));
	if (r < 0)
		return true; /* its first call tries again and counts */
	if (!is_alive(m->pid)) {
		probe_target_remove(t->probe, m->pid);
		process_table_exit(t->processes, m->pid, wall_now());
	} else {
		tracer_enter_children(t, m->pid, wall_now());
	}
	return true;
}

/* Room for another file: what nobody maps any more can go, once it is known who maps what. */
static bool make_room(struct tracer *t)
{
	mono_time now = mono_now();

	if (now.ns - t->rescanned.ns < RESCAN_NS)
		return false;
	t->rescanned = now;
	return tracer_scan(t) == 0;
}

static int cover(struct tracer *t, const struct map_watch_mapping *m)
{
	struct errinfo e = {0};
	int fd, r = -ENOBUFS;

	for (int try = 0; r == -ENOBUFS && try < 2; try++) {
		if (try && !make_room(t))
			break;
		fd = discover_library_open("", m->pid, &m->library);
		if (fd < 0)
			return fd;
		r = coverage_add(t->coverage, &m->library, fd, &e);
	}
	if (r < 0 && r != -EAGAIN && (r != -ENOENT || target_kind_is_cuda(m->library.kind)))
		log_warning("process %u: %s", m->pid, e.text);
	return r;
}

static void cover_mapping(struct tracer *t, const struct map_watch_mapping *m)
{
	const struct coverage_file *f = coverage_find(t->coverage, &m->library);
	wall_time mapped = clock_map_wall(&t->clock, m->at);

	if (!f && coverage_knows(m->library.kind)) {
		if (cover(t, m) < 0 && target_kind_is_cuda(m->library.kind) && !is_alive(m->pid))
			note_gap(t, m->pid, m->library.path, mapped, wall_now(), CALL_GAP_ENDED);
		f = coverage_find(t->coverage, &m->library);
	}
	note_if_late(t, m->pid, f, mapped);
}

static bool has_coming(const struct tracer *t, const struct target_process *p)
{
	for (size_t i = 0; i < p->library_count; i++) {
		const struct coverage_file *f = coverage_find(t->coverage, &p->libraries[i]);

		if (f && f->is_coming)
			return true;
	}
	return false;
}

/* Says what is seen of a process, once that is known. */
void tracer_judge(struct tracer *t, const struct target_process *p)
{
	struct process_layers layers = {0};

	if (has_coming(t, p))
		return; /* tracer_settle(), or the next scan */
	coverage_assess_process(t->coverage, "", p, &layers);
	roster_judged(t->roster, p->pid, &layers);
}

/* What is seen of a process that has mapped something new. Its maps may show what the record does
 * not: a file under another device number (overlay), a runtime inside the program or a library. */
static void judge(struct tracer *t, const struct map_watch_mapping *first)
{
	const struct map_watch_mapping *m, *end = t->mappings + t->mapping_count;
	struct target_library found[DISCOVER_LIBRARIES_MAX];
	struct target_process p = {.pid = first->pid, .libraries = found};
	wall_time mapped = clock_map_wall(&t->clock, first->at);
	size_t dropped;
	int n = discover_scanner_libraries(
		t->scanner, first->pid, found, ARRAY_SIZE(found), &dropped);

	if (n <= 0)
		return;
	p.library_count = (size_t)n;
	coverage_assess(t->coverage, "", &p);
	for (int i = 0; i < n; i++) {
		const struct coverage_file *f = coverage_find(t->coverage, &found[i]);

		for (m = first; m < end; m++)
			if (m->pid == p.pid && !strcmp(found[i].path, m->library.path))
				break;
		if (m < end)
			note_if_late(t, p.pid, f, clock_map_wall(&t->clock, m->at));
		else if (found[i].embedded)
			note_if_late(t, p.pid, f, mapped);
	}
	note_if_late(t, p.pid, coverage_assess_program(t->coverage, "", &p), mapped);
	tracer_judge(t, &p);
}

/* is_first - whether none of the mappings before it is of its process: a program that maps hundreds of libraries is
 * looked at once for all of them. */
static bool is_first(const struct tracer *t, const bool *wanted, size_t at)
{
	return !EXISTS(i, at, wanted[i] && t->mappings[i].pid == t->mappings[at].pid);
}

static void judge_again(struct tracer *t, uint32_t pid)
{
	struct target_library found[DISCOVER_LIBRARIES_MAX];
	struct target_process p = {.pid = pid, .libraries = found};
	size_t dropped;
	int n = discover_scanner_libraries(t->scanner, pid, found, ARRAY_SIZE(found), &dropped);

	p.library_count = (size_t)MAX(n, 0);
	if (n > 0)
		tracer_judge(t, &p);
}

/* What the threads beside have done: gaps end, and processes are judged. */
void tracer_settle(struct tracer *t, bool is_last)
{
	uint32_t settled[ARRAY_SIZE(t->late)];
	size_t kept = 0, settled_count = 0;

	if (!coverage_settle(t->coverage) && !is_last)
		return;
	for (size_t i = 0; i < t->late_count; i++) {
		const struct late_file *l = &t->late[i];
		const struct coverage_file *f = coverage_find(t->coverage, &l->library);

		if (f && f->is_coming && is_last) {
			note_gap(t, l->pid, l->library.path, l->mapped, wall_now(),
				CALL_GAP_FIRST_SEEN);
		} else if (f && f->is_coming) {
			t->late[kept++] = *l;
		} else {
			note_if_late(t, l->pid, f, l->mapped);
			settled[settled_count++] = l->pid;
		}
	}
	t->late_count = kept;
	for (size_t i = 0; i < settled_count; i++) {
		size_t before = 0;

		while (settled[before] != settled[i])
			before++;
		if (before == i) /* once for all files of a process */
			judge_again(t, settled[i]);
	}
}

static void take_mappings(struct tracer *t)
{
	bool entered[MAPPINGS_MAX] = {0}, wanted[MAPPINGS_MAX] = {0};

	for (size_t i = 0; i < t->mapping_count; i++) {
		wanted[i] = is_wanted(t, &t->mappings[i]);
		if (!wanted[i])
			continue;
		entered[i] = enter(t, &t->mappings[i]);
		cover_mapping(t, &t->mappings[i]);
	}
	for (size_t i = 0; i < t->mapping_count; i++) {
		if (wanted[i] && is_first(t, wanted, i))
			judge(t, &t->mappings[i]);
		if (entered[i])
			process_table_complete(t->processes, t->mappings[i].pid,
				clock_map_wall(&t->clock, t->mappings[i].at));
	}
}

/* Whoever maps a file whose probes have gone is looked at again, as if the kernel had not told of it. */
static void look_again(struct tracer *t)
{
	mono_time now = mono_now();

	t->files_changed |= coverage_drop_changed(t->coverage, false);
	if (!t->files_changed || now.ns - t->rescanned.ns < RESCAN_NS)
		return;
	t->rescanned = now;
	t->files_changed = false;
	t->maps_lost = true;
}

int tracer_poll_maps(struct tracer *t)
{
	int r;

	look_again(t);
	if (!t->maps)
		return 0;
	t->map_wakes++;
	for (int i = 0; i < LOOKS_MAX; i++) { /* programs map one library after the other */
		t->mapping_count = 0;
		if (map_watch_read(t->maps, take_mapping, t))
			t->maps_lost = true;
		if (!t->mapping_count)
			break;
		if (t->settings.filter == FILTER_PIDS)
			reader_consume(t->reader); /* children that were forked a moment ago */
		take_mappings(t);
	}
	if (!t->maps_lost)
		return 0;
	r = tracer_scan(t);
	t->maps_lost = false;
	return r;
}
