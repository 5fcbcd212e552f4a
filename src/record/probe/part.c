/* SPDX-License-Identifier: Apache-2.0 */
/* part.c - the table of part.h, what is missing of it, and the programs at the kernel's own hooks, which are most of it. */
#include "record/probe/part.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "record/probe/function.h"
#include "record/probe/probe.h"

/* Names of the probe methods. */

const char *probe_method_name(enum probe_method m)
{
	static const char *const names[] = {
		[PROBE_SESSION] = "session",
		[PROBE_MULTI] = "multi",
		[PROBE_PERF] = "perf",
	};

	return names[m];
}

/* Lets the probes load without CAP_SYS_ADMIN.
 *
 * A kernel's variable that vmlinux does not describe (x86-64 kernels have either __preempt_count or pcpu_hot) is
 * looked for by libbpf in the BTF of modules. Listing those needs CAP_SYS_ADMIN, and libbpf before 1.3 takes the
 * refusal for a failure of the whole load instead of for "not found". No variable of ours is a module's: a list
 * that may not be read is as good as an empty one. Linked in place of libbpf's by --wrap (meson.build). */

int __real_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);
int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);

int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id)
{
	int r = __real_bpf_btf_get_next_id(start_id, next_id);

	if (r == -EPERM || (r < 0 && errno == EPERM)) {
		errno = ENOENT;
		return -ENOENT;
	}
	return r;
}

const struct probe_part_row probe_parts[PART_COUNT] = {
#define X(id, ...) [PART_##id] = {__VA_ARGS__},
	PROBE_PARTS(X)
#undef X
};

void part_miss(struct parts_missing *m, enum probe_part part, const char *why)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->rows[i].part == part)
			return;
	m->rows[m->count].part = part;
	snprintf(m->rows[m->count].why, sizeof(m->rows[m->count].why), "%s", why);
	m->count++;
}

/* The kernel's own hooks, group by group, and what is missing without one; NEEDED: tracing is. */
enum group {
	GROUP_CORE,
	GROUP_WAKING,
	GROUP_PLAIN_WAKING, /* where the kernel's variables cannot be read */
	GROUP_BLOCK,
	GROUP_MEMORY,
	GROUP_SOCKET,
	GROUP_OLD_SOCKET /* where sockets have no tracepoints of their own (before 6.3) */
};

#define NEEDED PART_COUNT

struct hook {
	const char *program;
	enum group group;
	enum probe_part part;
	const char *tracepoint; /* BTF name that must exist; NULL: not asked */
};

static const struct hook hooks[] = {
	{"process_exit", GROUP_CORE, NEEDED, NULL},
	{"process_exec", GROUP_CORE, NEEDED, NULL},
	{"process_fork", GROUP_CORE, NEEDED, NULL},
	{"sched_switch", GROUP_CORE, NEEDED, NULL},
	{"sched_waking", GROUP_WAKING, PART_WAKERS, NULL},
	{"sched_waking_plain", GROUP_PLAIN_WAKING, NEEDED, NULL},
	{"sched_wakeup", GROUP_CORE, NEEDED, NULL},
	{"threads_admit", GROUP_CORE, NEEDED, NULL},
	{"calls_sweep", GROUP_CORE, NEEDED, NULL},
	{"oom_kill", GROUP_CORE, PART_OOM, NULL},
	{"block_rq_complete", GROUP_BLOCK, PART_BLOCK, "block_rq_complete"},
	{"block_rq_insert", GROUP_BLOCK, PART_BLOCK, "block_rq_insert"},
	{"block_rq_issue", GROUP_BLOCK, PART_BLOCK, "block_rq_issue"},
	{"page_alloc", GROUP_MEMORY, PART_MEMORY, "mm_page_alloc"},
	{"file_fault", GROUP_MEMORY, PART_FAULTS, "mm_filemap_fault"},
	{"reclaim_begin", GROUP_MEMORY, PART_RECLAIM, "mm_vmscan_direct_reclaim_begin"},
	{"reclaim_end", GROUP_MEMORY, PART_RECLAIM, "mm_vmscan_direct_reclaim_end"},
	{"compaction_begin", GROUP_MEMORY, PART_RECLAIM, "mm_compaction_begin"},
	{"compaction_end", GROUP_MEMORY, PART_RECLAIM, "mm_compaction_end"},
	{"socket_send", GROUP_SOCKET, PART_SOCKETS, "sock_send_length"},
	{"socket_recv", GROUP_SOCKET, PART_SOCKETS, "sock_recv_length"},
	{"tcp_retransmit", GROUP_SOCKET, PART_RETRANSMITS, "tcp_retransmit_skb"},
	{"syscall_enter", GROUP_SOCKET, PART_SOCKETS, NULL},
	{"syscall_exit", GROUP_OLD_SOCKET, PART_SOCKETS, NULL},
};
_Static_assert(ARRAY_SIZE(hooks) <= 64, "left_out has a bit for each");

static bool has_tracepoint(const struct btf *btf, const char *name)
{
	return btf && btf__find_by_name_kind(
			      btf, FORMATTED(64, "btf_trace_%s", name), BTF_KIND_TYPEDEF) > 0;
}

static bool is_group_wanted(
	const struct parts *t, const struct probe_settings *s, enum group g, bool has_sockets)
{
	switch (g) {
	case GROUP_CORE: return true;
	case GROUP_WAKING: return !t->plain;
	case GROUP_PLAIN_WAKING: return t->plain;
	case GROUP_BLOCK: return !s->no_block;
	case GROUP_MEMORY: return !s->no_memory;
	case GROUP_SOCKET: return !s->no_net;
	case GROUP_OLD_SOCKET: return !s->no_net && !has_sockets;
	}
	return false;
}

/* Can programs read the kernel's variable @name (one of each CPU)? Kernels may describe it and yet not
 * tell where it is, which only loading a program shows. */
static bool has_variable(const struct btf *btf, const char *name)
{
	int id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_VAR) : -ENOENT;
	const struct bpf_insn program[] = {
		{.code = BPF_LD | BPF_DW | BPF_IMM,
			.dst_reg = BPF_REG_1,
			.src_reg = BPF_PSEUDO_BTF_ID,
			.imm = id},
		{0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	_cleanup_fd_ int fd = -1;

	if (id <= 0)
		return true; /* programs do without it */
	fd = bpf_prog_load(
		BPF_PROG_TYPE_SOCKET_FILTER, NULL, "GPL", program, ARRAY_SIZE(program), NULL);
	return fd >= 0;
}

/* Is the tracepoint of @h there? The lengths of sockets have a substitute, which is not worse. */
static bool is_there(struct parts *t, const struct hook *h, const struct btf *btf, bool has_sockets)
{
	if (!h->tracepoint)
		return true;
	if (strstr(h->tracepoint, "_length"))
		return has_sockets;
	if (has_tracepoint(btf, h->tracepoint))
		return true;
	part_miss(&t->missing, h->part,
		FORMATTED(96, "this kernel has no tracepoint %s", h->tracepoint));
	return false;
}

void parts_choose(struct parts *t, const struct probe_settings *s, struct bpf_object *o)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has_sockets = has_tracepoint(btf, "sock_send_length") && !s->old_kernel;

	if (!t->plain && (s->old_kernel || !(has_variable(btf, "__preempt_count") &&
						   has_variable(btf, "pcpu_hot") &&
						   has_variable(btf, "hrtimer_bases")))) {
		t->plain = true;
		part_miss(&t->missing, PART_WAKERS,
			"this kernel does not export the addresses of its variables");
	}
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		const struct hook *h = &hooks[i];
		bool wanted = is_group_wanted(t, s, h->group, has_sockets) &&
			      !(t->left_out >> i & 1) && is_there(t, h, btf, has_sockets);

		bpf_program__set_autoload(bpf_object__find_program_by_name(o, h->program), wanted);
	}
	btf__free(btf);
}

static const struct hook *hook_of(const char *program)
{
	return FIND(x, hooks, ARRAY_SIZE(hooks), !strcmp(x->program, program));
}

bool parts_leave_out(struct parts *t, const char *program, const char *why)
{
	const struct hook *h = hook_of(program);

	if (!h || h->part == NEEDED)
		return false;
	part_miss(&t->missing, h->part, why);
	if (h->part == PART_WAKERS)
		t->plain = true;
	else
		t->left_out |= 1ull << (h - hooks);
	return true;
}

int parts_attach(const struct bpf_object_skeleton *k, struct errinfo *reterr)
{
	for (int i = 0; i < k->prog_cnt; i++) {
		const struct bpf_prog_skeleton *p = &k->progs[i];

		if (!hook_of(p->name) || !bpf_program__autoload(*p->prog))
			continue;
		*p->link = bpf_program__attach(*p->prog);
		if (!*p->link)
			return errinfo_set(reterr, -errno, "cannot attach the probe %s: %s",
				p->name, strerror(errno));
	}
	return 0;
}

/* Completes the attach cookie of a table row, and finds rows by what they record. */

const struct probe_function *probe_function_find(unsigned source, unsigned op)
{
	static const struct probe_library *const libraries[] = {&probe_cuda_rt, &probe_cuda_drv};

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		for (const struct probe_function *f = libraries[i]->functions; f->symbols[0]; f++)
			if (f->cookie.source == source && f->cookie.op == op &&
				!(f->cookie.flags & COOKIE_DEVICE))
				return f;
	return NULL;
}

union wire_cookie probe_cookie(const struct probe_library *lib, int row, unsigned library)
{
	union wire_cookie k = lib->functions[row].cookie;

	k.function = (uint8_t)row;
	k.library = (uint8_t)library;
	return k;
}
