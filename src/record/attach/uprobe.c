/* SPDX-License-Identifier: Apache-2.0 */
/* uprobe.c - three ways to attach, one result: a set of links that are closed together.
 *
 * session: one link, the program sees entry and return. multi: a link for entry and one for return;
 * the return link is made first and closed last, so an entry without its return cannot happen while
 * both exist. perf: two perf events per function, each kept by a link (kernel 5.15). */
#include "record/attach/uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/file.h"
#include "base/search.h"
#include "record/probe/link.h"
#include "record/probe/mark/hook.h"

#define PERF_DETACH_HERE 4 /* so few are closed on the spot */
#define LINKS            3 /* of one file's points, at most */

struct uprobe {
	int link_fds[LINKS]; /* session, or return and entry */
	int *perf_fds;
	size_t perf_count;
};

struct link_points { /* as the kernel wants them */
	uint64_t offsets[UPROBE_POINTS_MAX], cookies[UPROBE_POINTS_MAX];
	uint64_t semaphores[UPROBE_POINTS_MAX];
	size_t count;
};

static void add_point(struct link_points *l, const struct uprobe_point *p)
{
	l->offsets[l->count] = p->offset;
	l->cookies[l->count] = p->cookie;
	l->semaphores[l->count++] = p->semaphore;
}

static int link_create(
	int prog_fd, uint32_t type, const char *path, const struct link_points *l, uint32_t flags)
{
	struct link_uprobe_multi attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = type,
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)l->offsets,
		.ref_ctr_offsets = (uint64_t)(uintptr_t)l->semaphores,
		.cookies = (uint64_t)(uintptr_t)l->cookies,
		.cnt = (uint32_t)l->count,
		.flags = flags,
	};
	int fd = (int)syscall(
		SYS_bpf, BPF_LINK_CREATE, &attr, offsetof(struct link_uprobe_multi, pad));

	return fd < 0 ? -errno : fd;
}

static int attach_links(struct uprobe *u, struct probe *p, const char *path,
	const struct uprobe_point *points, size_t count)
{
	struct link_points l = {0};

	for (size_t i = 0; i < count; i++)
		add_point(&l, &points[i]);
	if (probe_method(p) == PROBE_SESSION) {
		u->link_fds[0] = link_create(
			probe_program(p, "call_session"), LINK_UPROBE_SESSION, path, &l, 0);
		return MIN(u->link_fds[0], 0);
	}
	u->link_fds[0] = link_create(
		probe_program(p, "call_return"), LINK_UPROBE_MULTI, path, &l, LINK_MULTI_RETURN);
	if (u->link_fds[0] < 0)
		return u->link_fds[0];
	u->link_fds[1] =
		link_create(probe_program(p, "call_entry"), LINK_UPROBE_MULTI, path, &l, 0);
	return MIN(u->link_fds[1], 0);
}

static int mark_link(const struct probe *p, const struct uprobe_point *point);

enum mark_link { /* in the order in which they are made */
	MARK_RETURN,
	MARK_ENTRY,
	MARK_HANDLE, /* entry and return in one, where the kernel can */
};

/* Which link the point belongs to; -1: none. */
static int mark_link(const struct probe *p, const struct uprobe_point *point)
{
	enum mark_hook hook = point->cookie & 0xff;

	if (probe_method(p) == PROBE_SESSION && (hook == HOOK_HANDLE || hook == HOOK_ALIAS))
		return MARK_HANDLE;
	if (probe_method(p) == PROBE_SESSION && hook == HOOK_HANDLE_END)
		return -1;
	return point->at_return ? MARK_RETURN : MARK_ENTRY;
}

static int mark_link_create(
	struct probe *p, enum mark_link link, const char *path, const struct link_points *l)
{
	if (link == MARK_HANDLE)
		return link_create(
			probe_program(p, "handle_session"), LINK_UPROBE_SESSION, path, l, 0);
	return link_create(probe_program(p, "mark_hit"), LINK_UPROBE_MULTI, path, l,
		link == MARK_RETURN ? LINK_MULTI_RETURN : 0);
}

static int attach_mark_links(struct uprobe *u, struct probe *p, const char *path,
	const struct uprobe_point *points, size_t count)
{
	for (int k = MARK_RETURN; k <= MARK_HANDLE; k++) {
		struct link_points l = {0};

		for (size_t i = 0; i < count; i++)
			if (mark_link(p, &points[i]) == k)
				add_point(&l, &points[i]);
		if (!l.count)
			continue;
		u->link_fds[k] = mark_link_create(p, k, path, &l);
		if (u->link_fds[k] < 0)
			return u->link_fds[k];
	}
	return 0;
}

static int perf_type(uint32_t *ret)
{
	char text[16];
	int r = file_read_line("", "/sys/bus/event_source/devices/uprobe/type", text, sizeof(text));

	if (r < 0)
		return r;
	*ret = (uint32_t)strtoul(text, NULL, 10);
	return 0;
}

/* One perf event and a link that keeps it: the link's descriptor is all that is left of them. */
static int perf_link(
	int prog_fd, uint32_t type, const char *path, const struct uprobe_point *pt, bool is_return)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = is_return | pt->semaphore << 32, /* bit 0: at return */
		.config1 = (uint64_t)(uintptr_t)path,
		.config2 = pt->offset,
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = pt->cookie);
	_cleanup_fd_ int event =
		(int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int fd;

	if (event < 0)
		return -errno;
	fd = bpf_link_create(prog_fd, event, BPF_PERF_EVENT, &opts);
	return fd < 0 ? -errno : fd;
}

static int perf_begin(struct uprobe *u, size_t count, uint32_t *ret_type)
{
	u->perf_fds = calloc(count, sizeof(*u->perf_fds));
	return u->perf_fds ? perf_type(ret_type) : -ENOMEM;
}

static int attach_mark_perf(struct uprobe *u, struct probe *p, const char *path,
	const struct uprobe_point *points, size_t count)
{
	uint32_t type;
	int r = perf_begin(u, count, &type);

	for (size_t i = 0; r >= 0 && i < count; i++) {
		r = perf_link(
			probe_program(p, "mark_hit"), type, path, &points[i], points[i].at_return);
		if (r >= 0)
			u->perf_fds[u->perf_count++] = r;
	}
	return MIN(r, 0);
}

static int attach_perf(struct uprobe *u, struct probe *p, const char *path,
	const struct uprobe_point *points, size_t count)
{
	uint32_t type;
	int r = perf_begin(u, count * 2, &type);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count * 2; i++) {
		bool is_return = i < count;
		int prog = is_return ? probe_program(p, "call_return")
				     : probe_program(p, "call_entry");

		r = perf_link(prog, type, path, &points[i % count], is_return);
		if (r < 0)
			return r;
		u->perf_fds[u->perf_count++] = r;
	}
	return 0;
}

/* Closing a perf probe waits some 0.1 s in the kernel, one after the other whatever the number of
 * threads: a hundred of them take ten seconds. Nobody should wait for that: the descriptors are
 * left to a process of their own, which holds them until ours are closed (the end of the pipe
 * tells) and ends when the kernel is done. Returns the pipe's end to close, or -1. */
static int leave_behind(void)
{
	int ends[2];
	char none;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (fork() != 0)
			_exit(0);
		/* only the probes shall live on, not the caller's pipes */
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		close(ends[1]);
		while (read(ends[0], &none, 1) < 0 && errno == EINTR)
			continue;
		_exit(0); /* closes the probes, slowly */
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return -1;
	}
	waitpid(pid, NULL, 0);
	return ends[1];
}

static void close_links(struct uprobe **u, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int k = LINKS - 1; k >= 0; k--)
			if (u[i]->link_fds[k] >= 0)
				close(u[i]->link_fds[k]);
}

static void close_perf(struct uprobe **u, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < u[i]->perf_count; k++)
			close(u[i]->perf_fds[k]);
		free(u[i]->perf_fds);
		free(u[i]);
	}
}

static size_t perf_probes(struct uprobe **u, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += u[i]->perf_count;
	return n;
}

void uprobe_detach_all(struct uprobe **u, size_t count)
{
	_cleanup_fd_ int keeper = -1;

	close_links(u, count);
	if (perf_probes(u, count) > PERF_DETACH_HERE)
		keeper = leave_behind();
	close_perf(u, count);
}

void uprobe_detach_wait(struct uprobe **u, size_t count)
{
	close_links(u, count);
	close_perf(u, count);
}

void uprobe_detach_last(struct uprobe **u, size_t count)
{
	_cleanup_fd_ int keeper = -1;

	if (count > UPROBE_DETACH_HERE || perf_probes(u, count) > PERF_DETACH_HERE)
		keeper = leave_behind();
	close_links(u, count);
	close_perf(u, count);
}

void uprobe_leave_all(void)
{
	(void)leave_behind(); /* the pipe's end closes with the program */
}

typedef int attach_points(struct uprobe *u, struct probe *p, const char *path,
	const struct uprobe_point *points, size_t count);

static int attach(struct probe *p, const char *path, const struct uprobe_point *points,
	size_t count, attach_points *how, struct uprobe **ret, struct errinfo *reterr)
{
	struct uprobe *u;
	int r;

	if (!count || count > UPROBE_POINTS_MAX)
		return errinfo_set(reterr, -EINVAL, "%zu functions to probe in %s", count, path);
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	for (int k = 0; k < LINKS; k++)
		u->link_fds[k] = -1;
	r = how(u, p, path, points, count);
	if (r < 0) {
		uprobe_detach_all(&u, 1);
		return errinfo_set(reterr, r, "cannot probe %s (%s): %s", path,
			probe_method_name(probe_method(p)), strerror(-r));
	}
	*ret = u;
	return 0;
}

int uprobe_attach(struct probe *p, const char *path, const struct uprobe_point *points,
	size_t count, struct uprobe **ret, struct errinfo *reterr)
{
	return attach(p, path, points, count,
		probe_method(p) == PROBE_PERF ? attach_perf : attach_links, ret, reterr);
}

int uprobe_attach_marks(struct probe *p, const char *path, const struct uprobe_point *points,
	size_t count, struct uprobe **ret, struct errinfo *reterr)
{
	if (probe_program(p, "mark_hit") < 0)
		count = 0; /* the kernel refused it, which is said: PART_MARKS */
	return attach(p, path, points, count,
		probe_method(p) == PROBE_PERF ? attach_mark_perf : attach_mark_links, ret, reterr);
}

/* A child process calls a function of this very program; it is entered as a target, so its hits take the
 * whole path that a launch takes (but for the ring: most launches do not). Times are CPU time, and the middle one of many
 * short rounds: the least is that of caches which no program has. */

#define CALLS  500
#define ROUNDS 40

/* The function that is probed. It begins as the functions of the CUDA libraries do, by saving
 * registers: what lies under a probe decides most of its cost (on x86-64 a push is emulated by the
 * kernel, an endbr64 is single-stepped for four times as much in all). */
int calibrate_target(int n);

#if defined(__x86_64__)
#define BODY "push %rbp\n pop %rbp\n mov %edi, %eax\n ret\n"
#else
#define BODY "stp x29, x30, [sp, #-16]!\n ldp x29, x30, [sp], #16\n ret\n"
#endif
__asm__(".text\n .globl calibrate_target\n .type calibrate_target, %function\n"
	"calibrate_target:\n" BODY ".size calibrate_target, . - calibrate_target\n");

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

ORDER(compare_ns, uint64_t, COMPARE(*x, *y))

static uint64_t middle_round(void)
{
	uint64_t took[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t start = cpu_now_ns();

		for (int i = 0; i < CALLS; i++)
			calibrate_target(i);
		took[r] = cpu_now_ns() - start;
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare_ns);
	return took[ROUNDS / 2];
}

/* The child waits for a byte, runs, and answers with its time. */
static void child(int in, int out)
{
	uint64_t ns;
	char go;

	while (read(in, &go, 1) == 1) {
		ns = middle_round();
		if (write(out, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static int ask(int to, int from, uint64_t *ret)
{
	if (write(to, "g", 1) != 1 || read(from, ret, sizeof(*ret)) != sizeof(*ret))
		return -EIO;
	return 0;
}

/* Where the function lies in this program's file, by the segments that the kernel mapped. */
static int function_offset(uint64_t *ret)
{
	const Elf64_Phdr *first = (const void *)getauxval(AT_PHDR);
	size_t count = getauxval(AT_PHNUM);
	uint64_t at = (uintptr_t)calibrate_target, base = 0;

	for (size_t i = 0; first && i < count; i++)
		if (first[i].p_type == PT_PHDR)
			base = (uintptr_t)first - first[i].p_vaddr;
	for (size_t i = 0; first && i < count; i++) {
		const Elf64_Phdr *h = &first[i];

		if (h->p_type != PT_LOAD || at - base - h->p_vaddr >= h->p_filesz)
			continue;
		*ret = at - base - h->p_vaddr + h->p_offset;
		return 0;
	}
	return -ENOENT;
}

static int measure(struct probe *p, pid_t pid, int to, int from, double *ret)
{
	union wire_cookie k = {.source = CALIBRATE_SOURCE, .op = 1};
	struct uprobe_point point = {.cookie = k.word};
	struct uprobe *u = NULL;
	struct wire_tally tally;
	uint64_t bare, probed;
	int r = function_offset(&point.offset);

	probe_limit_set(p, CALIBRATE_SOURCE, 1, UINT64_MAX);
	r = r ?: ask(to, from, &bare);
	r = r ?: probe_target_add(p, (uint32_t)pid, geteuid());
	r = r ?: uprobe_attach(p, "/proc/self/exe", &point, 1, &u, NULL);
	if (r < 0)
		return r;
	r = ask(to, from, &probed);
	uprobe_detach_all(&u, 1);
	probe_target_remove(p, (uint32_t)pid); /* its end is nobody's event */
	if (r < 0)
		return r;
	probe_tally(p, CALIBRATE_SOURCE, &tally);
	if (tally.hits < CALLS)
		return -ENODATA;
	*ret = probed > bare ? (double)(probed - bare) / CALLS : 0;
	return 0;
}

int calibrate_hit_ns(struct probe *p, double *ret)
{
	int down[2] = {-1, -1}, up[2] = {-1, -1}, r;
	pid_t pid;

	if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(down[1]);
		close(up[0]);
		child(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	r = pid < 0 ? -errno : measure(p, pid, down[1], up[0], ret);
	close(down[1]);
	close(up[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return r;
}
