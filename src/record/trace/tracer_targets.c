/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_targets.c - which processes are traced and which library files are probed, at the start
 * and as they come. Runs on the tracer's thread. */
#include <signal.h>
#include <time.h>

#include "base/bounded.h"
#include "base/file.h"
#include "record/trace/tracer_private.h"

/* The lives of traced processes: what the kernel half tells goes to the table
 * of processes, which tells the stages in the order given here. Runs on the tracer's thread. */

/* ---- the stages ---- */

static void admit(void *arg, struct process_entry *p, uint32_t parent, wall_time at)
{
	struct tracer *t = arg;

	t->admit_due = true;
	if (launch_watch_add(t->launches, p->pid) < 0)
		log_warning("launches of process %u are counted only, not estimated: no memory",
			p->pid);
}

static void end_aggregates(void *arg, struct process_entry *p)
{
	struct tracer *t = arg;

	if (t->metric_state)
		metric_state_process_gone(t->metric_state, p->pid);
	tracer_kernels_gone(t, p->pid);
	launch_watch_gone(t->launches, p->pid);
	if (totals_process_gone(t->totals, p->pid) < 0)
		log_warning("cannot read the aggregates of process %u from the kernel", p->pid);
}

/* Of processes that are not traced, and have used a disk, nobody tells the end. Their entries would stay,
 * here and in the kernel's table, until that has no room for new ones. */
void tracer_sweep_totals(struct tracer *t)
{
	struct discover_process p;
	const struct total *v;
	size_t cursor = 0;

	while ((v = totals_next(t->totals, &cursor)))
		if (v->key.pid && !v->gone && !process_table_get(t->processes, v->key.pid) &&
			discover_process_stat("", v->key.pid, &p) == -ESRCH)
			totals_process_gone(t->totals, v->key.pid);
}

static void enter_stacks(void *arg, struct process_entry *p, uint32_t parent, wall_time at)
{
	struct tracer *t = arg;

	if (!t->stacks)
		return;
	if (parent)
		stacks_fork(t->stacks, p->pid);
	else
		stacks_process(t->stacks, p->pid);
}

static void exec_stacks(void *arg, struct process_entry *p, wall_time at)
{
	enter_stacks(arg, p, 0, at);
}

static void end_stacks(void *arg, struct process_entry *p)
{
	struct tracer *t = arg;

	if (t->stacks)
		stacks_gone(t->stacks, p->pid);
}

static const struct process_stage counting = {.on_enter = admit, .on_exit = end_aggregates};
static const struct process_stage walking = {
	.on_enter = enter_stacks, .on_exec = exec_stacks, .on_exit = end_stacks, .is_slow = true};

int tracer_open_processes(struct tracer *t)
{
	int r = process_table_new("", &t->processes);

	if (r < 0)
		return r;
	r = roster_new(
		"", t->processes, t->settings.coverage_sink, t->settings.event_arg, &t->roster);
	if (r >= 0)
		r = group_folders_new("", &t->group_folders);
	if (r < 0)
		return r;
	process_table_add(t->processes, &roster_stage, t->roster); /* first: who it is */
	process_table_add(t->processes, &counting, t);
	process_table_add(t->processes, &walking, t); /* last: it reads all that is mapped */
	return 0;
}

void tracer_close_processes(struct tracer *t)
{
	if (t->processes)
		process_table_free(t->processes);
	if (t->roster)
		roster_free(t->roster);
	group_folders_free(t->group_folders);
}

/* ---- what happens to them ---- */

void tracer_follow(struct tracer *t, const struct event *e)
{
	switch (e->op) {
	case HOST_TARGET_FOUND:
		process_table_found(t->processes, e->pid, roster_found_start(e), e->start);
		roster_found(t->roster, e);
		tracer_enter_children(t, e->pid, e->start);
		break;
	case HOST_PROCESS_FORK:
		process_table_fork(t->processes, e->pid, e->peer_pid, e->start);
		break;
	case HOST_PROCESS_EXEC: process_table_exec(t->processes, e->pid, e->start); break;
	case HOST_PROCESS_EXIT: process_table_exit(t->processes, e->pid, e->start); break;
	}
}

/* Entered just as it ended: nobody reported its end. */
static void tracer_forget_dead(struct tracer *t)
{
	struct process_entry *p = NULL;

	while ((p = process_table_next(t->processes, p)))
		if (!p->ended && kill((pid_t)p->pid, 0) < 0 && errno == ESRCH) {
			probe_target_remove(t->probe, p->pid);
			process_table_exit(t->processes, p->pid, wall_now());
		}
}

#define DISK_WAIT_NS                                                                               \
	(5 * NS_PER_S) /* for a search that ends by itself after 3 s where file systems answer */

static bool is_wanted(const struct tracer *t, const struct target_process *p)
{
	if (tracer_is_own_program(t, p->pid))
		return false;
	switch (t->settings.filter) {
	case FILTER_PIDS: return process_table_has(t->processes, p->pid, 0);
	case FILTER_USER: return p->uid == t->settings.uid;
	default: return true;
	}
}

int tracer_target_add(struct tracer *t, uint32_t pid)
{
	uint32_t uid = 0;
	int r;

	(void)discover_uid("", pid, &uid); /* gone: it takes no place for long */
	r = probe_target_add(t->probe, pid, uid);
	if (r == -EDQUOT && !t->said_quota)
		log_warning("user %u has as many traced processes as one user may have: calls of "
			    "further ones are counted as lost",
			uid);
	t->said_quota |= r == -EDQUOT;
	return r;
}

/* The children that process @pid has already: the kernel half follows those that it starts from now on. */
void tracer_enter_children(struct tracer *t, uint32_t pid, wall_time at)
{
	_cleanup_free_ uint32_t *family = calloc(TARGETS_MAX, sizeof(*family));
	int n = family ? family_list("", pid, family, TARGETS_MAX) : 0;

	for (int i = 0; i < n; i++)
		if (family[i] != pid && !process_table_has(t->processes, family[i], 0) &&
			!tracer_is_own_program(t, family[i]) &&
			tracer_target_add(t, family[i]) == 0)
			process_table_found(t->processes, family[i], 0, at);
}

/* A process that uses a GPU itself and was not asked for: another rank of the job, for instance, which has a tracer
 * of its own or none. Its calls would be told as this node's. */
static bool is_left_out(const struct tracer *t, uint32_t pid)
{
	struct target_library found[DISCOVER_LIBRARIES_MAX];
	size_t dropped;
	int n = t->settings.filter != FILTER_PIDS
			? 0
			: discover_libraries("", pid, found, ARRAY_SIZE(found), &dropped);

	return n > 0 && discover_uses_cuda(found, (size_t)n);
}

/* Whoever ended @stay, a process that is not traced, if traced ones wait for it for long. */
void tracer_enter_waker(struct tracer *t, const struct ledger_row *stay)
{
	struct discover_process p;
	wall_time at = {ledger_end_ns(stay)};

	if (stay->waker != WAKER_TASK || stay->stay_line == LEDGER_STOPPED ||
		stay->waker_pid <= 1 || process_table_has(t->processes, stay->waker_pid, 0) ||
		!waited_for_add(
			&t->waited_for, stay->waker_pid, stay->stay_ns - stay->stay_wait_ns))
		return;
	if (discover_process("", stay->waker_pid, &p) < 0 || !p.vsize_bytes ||
		tracer_is_own_program(t, p.pid) ||
		(t->settings.filter == FILTER_USER && p.uid != t->settings.uid) ||
		is_left_out(t, p.pid) || tracer_target_add(t, p.pid) < 0)
		return;
	process_table_found(t->processes, p.pid, p.start_ticks, at);
	log_info("process %u (%s) is followed: traced threads wait for it", p.pid, p.comm);
}

/* Said when it has become more: a scan comes every second. */
static void say_dropped(struct tracer *t, const struct discover_result *found)
{
	if (found->dropped > t->said_dropped)
		log_warning("%zu processes were not examined: there are too many", found->dropped);
	if (found->libraries_dropped > t->said_libraries_dropped)
		log_warning(
			"%zu library files were not looked at: their processes have more than %d",
			found->libraries_dropped, DISCOVER_LIBRARIES_MAX);
	t->said_dropped = MAX(t->said_dropped, found->dropped);
	t->said_libraries_dropped = MAX(t->said_libraries_dropped, found->libraries_dropped);
}

/* Probe what running processes map, and follow the processes themselves from now on. */
int tracer_scan(struct tracer *t)
{
	const struct discover_result *found;
	wall_time now = wall_now(), before = t->scanned;
	int r = discover_scan(t->scanner, &found);

	if (r < 0)
		return r;
	t->scanned = now;
	say_dropped(t, found);
	t->files_changed |= coverage_drop_changed(t->coverage, true);
	coverage_scan_begin(t->coverage);
	if (t->metric_state)
		metric_state_nccl_begin(t->metric_state);
	for (size_t i = 0; i < found->count; i++) {
		const struct target_process *p = &found->processes[i];

		if (!is_wanted(t, p))
			continue;
		if (t->metric_state)
			metric_state_nccl_process(t->metric_state, p);
		coverage_assess(t->coverage, "", p);
		tracer_scan_gaps(t, p, before);
		if (!process_table_has(t->processes, p->pid, p->start_ticks) &&
			tracer_target_add(t, p->pid) == 0) {
			process_table_found(t->processes, p->pid, p->start_ticks, now);
			tracer_enter_children(t, p->pid, now);
		}
		tracer_judge(t, p);
	}
	coverage_scan_end(t->coverage);
	tracer_forget_dead(t);
	return 0;
}

/* Probe the file at @lib's path, open as @fd, whoever maps it. */
static int cover_known(
	struct tracer *t, const struct target_library *lib, int fd, struct errinfo *reterr)
{
	int r;

	if (fd < 0)
		return errinfo_set(reterr, fd, "%s: %s", lib->path,
			fd == -EREMOTE ? FILE_ORIGIN_WHY : strerror(-fd));
	r = coverage_add(t->coverage, lib, fd, reterr);
	coverage_keep(t->coverage, lib);
	return MIN(r, 0);
}

struct disk_job { /* beside: folders of users are looked into, any of which may keep its reader waiting */
	struct bounded_job job;
	const struct discover_command *command;
	struct target_library *files;
	int count, fds[DISCOVER_FILES_MAX];
};

static int run_disk(struct bounded_job *job)
{
	struct disk_job *j = (struct disk_job *)job;

	j->count = discover_library_files("", j->command, &j->files);
	for (int i = 0; i < j->count; i++)
		j->fds[i] = discover_file_open(j->files[i].path, &j->files[i]);
	return MIN(j->count, 0);
}

static void drop_disk(struct bounded_job *job)
{
	struct disk_job *j = (struct disk_job *)job;

	for (int i = 0; i < j->count; i++)
		if (j->fds[i] >= 0)
			close(j->fds[i]);
	free(j->files);
}

/* Copies on disk that nobody maps yet: a process that starts later is then seen from its first
 * call. */
int tracer_cover_disk(struct tracer *t)
{
	_cleanup_free_ struct disk_job *j = calloc(1, sizeof(*j));
	struct errinfo e = {0};
	int r;

	if (!j)
		return -ENOMEM;
	j->job = (struct bounded_job){.run = run_disk, .drop = drop_disk};
	j->command = t->settings.command;
	r = bounded_run(&j->job, DISK_WAIT_NS);
	if (r < 0) {
		(void)TAKE(j); /* it is gone */
		log_warning(
			"a file system does not answer: libraries that no process maps yet are probed when "
			"one does");
		return 0;
	}
	r = j->job.result;
	for (int i = 0; i < j->count; i++)
		if (cover_known(t, &j->files[i], j->fds[i], &e) < 0)
			log_info("%s", e.text);
	free(j->files);
	return r;
}

int tracer_cover_named(struct tracer *t, const char *path, struct errinfo *reterr)
{
	struct target_library lib;
	int r = discover_library_file(path, &lib, reterr);

	return r ?: cover_known(t, &lib, discover_file_open(lib.path, &lib), reterr);
}

int tracer_cover_nccl(struct tracer *t, struct errinfo *reterr)
{
	struct target_library lib;
	int r = discover_library_file(t->settings.nccl_lib, &lib, reterr);

	if (r == 0 && lib.kind != TARGET_NCCL)
		return errinfo_set(reterr, -EINVAL, "--nccl-lib %.300s is not a libnccl",
			t->settings.nccl_lib);
	r = r ?: cover_known(t, &lib, discover_file_open(lib.path, &lib), reterr);
	if (r == 0)
		coverage_close_kind(t->coverage, TARGET_NCCL);
	return r;
}

/* The processes of --pid with all their descendants; at least one of each family uses CUDA. */
int tracer_enter_pids(struct tracer *t, struct errinfo *reterr)
{
	_cleanup_free_ uint32_t *family = calloc(TARGETS_MAX, sizeof(*family));
	wall_time now = wall_now();

	if (!family)
		return -ENOMEM;
	for (size_t i = 0; i < t->settings.pid_count; i++) {
		int n = family_list("", t->settings.pids[i], family, TARGETS_MAX);

		if (n < 0)
			return n;
		for (int k = 0; k < n; k++) {
			int r = tracer_target_add(t, family[k]);

			if (r < 0)
				return errinfo_set(reterr, r, "cannot trace process %u: %s",
					family[k], strerror(-r));
			process_table_found(t->processes, family[k], 0, now);
		}
	}
	return 0;
}

int tracer_check_pids(const struct tracer_settings *s, struct errinfo *reterr)
{
	for (size_t i = 0; i < s->pid_count; i++) {
		int r = s->command && s->pids[i] == s->command_pid
				? 0 /* it will, or not: that is its own affair */
				: family_uses_cuda("", s->pids[i], reterr);

		if (r < 0)
			return r;
	}
	return 0;
}
