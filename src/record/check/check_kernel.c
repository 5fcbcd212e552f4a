/* SPDX-License-Identifier: Apache-2.0 */
/* check_kernel.c - what the kernel can do: tried on it, then judged. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "record/attach/feature.h"
#include "record/check/check_private.h"
#include "base/file.h"
#include "base/text.h"

static const struct {
	const char *name;
	bool needed;
} tracepoints[CHECK_TRACEPOINTS] = {
	{"sched_switch", true},
	{"sched_wakeup", true},
	{"sched_process_exec", true},
	{"sched_process_exit", true},
	{"sched_process_fork", true},
	{"block_rq_issue", false},
	{"block_rq_complete", false},
	{"mm_page_alloc", false},
	{"mark_victim", false},
	{"tcp_retransmit_skb", false},
};

static int try_confinement(struct confine_report *ret)
{
	static const uint16_t calls[] = {__NR_write};
	static const struct confine_thread plan = {.paths = true,
		.calls = {.calls = calls,
			.call_count = ARRAY_SIZE(calls),
			.opens = true,
			.strict = true}};

	return confine_thread_try(&plan, ret);
}

void check_probe(struct check_probes *ret)
{
	const char *names[CHECK_TRACEPOINTS];
	struct utsname u;

	*ret = (struct check_probes){0};
	uname(&u);
	snprintf(ret->release, sizeof(ret->release), "%s", u.release);
	ret->bpf_load = feature_bpf_load();
	ret->session = feature_uprobe_session();
	ret->multi = feature_uprobe_multi();
	ret->perf = feature_uprobe_perf();
	ret->cpu_clock = feature_cpu_clock();
	for (size_t i = 0; i < CHECK_TRACEPOINTS; i++)
		names[i] = tracepoints[i].name;
	ret->caps = confine_thread_permitted();
	ret->confine_tried = try_confinement(&ret->confine);
	ret->btf = feature_tracepoints(names, CHECK_TRACEPOINTS, ret->tracepoints);
}

void check_kernel(const struct check_context *c, struct check_row *row)
{
	const struct check_trial *t = &c->probes->trial;
	unsigned major = 0, minor = 0;

	VALUE(row, "Linux %s", c->probes->release);
	if (t->is_done && t->load == 0 && t->fire == 0)
		return; /* some distributions keep an old number and take in what is new (RHEL 9: 5.14) */
	if (sscanf(c->probes->release, "%u.%u", &major, &minor) == 2 &&
		(major > 5 || (major == 5 && minor >= 15)))
		return;
	row->state = CHECK_NO_FEATURE;
	ADVICE(row, "use kernel 5.15 or newer");
}

void check_btf(const struct check_context *c, struct check_row *row)
{
	char path[PATH_MAX], size[TEXT_MAX];
	struct stat st;

	if (file_join(path, sizeof(path), c->root, "/sys/kernel/btf/vmlinux") == 0 &&
		stat(path, &st) == 0) {
		VALUE(row, "/sys/kernel/btf/vmlinux, %s",
			text_format_bytes(size, (uint64_t)st.st_size));
		return;
	}
	row->state = CHECK_NO_FEATURE;
	VALUE(row, "no /sys/kernel/btf/vmlinux");
	ADVICE(row, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (every current distribution's "
		    "is), or mount /sys in this container");
}

void check_bpf(const struct check_context *c, struct check_row *row)
{
	int r = c->probes->bpf_load;
	char why[OBSTACLE_MAX];

	if (r == 0) {
		VALUE(row, "a program was loaded");
		return;
	}
	VALUE(row, "%s", r == -EPERM ? "not permitted" : "the kernel rejected a trivial program");
	row->state = r == -EPERM ? CHECK_NO_PRIVILEGE : CHECK_NO_FEATURE;
	if (r != -EPERM)
		ADVICE(row, "use a kernel built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_EVENTS=y and "
			    "CONFIG_UPROBE_EVENTS=y; a sandbox with a kernel of its own (gVisor) "
			    "has no eBPF");
	else if (obstacle_to_load(&c->view, why))
		ADVICE(row, "%s", why);
	else if (!has_cap(c, CAP_SYS_ADMIN_BIT) &&
		 !(has_cap(c, CAP_BPF_BIT) && has_cap(c, CAP_PERFMON_BIT)))
		ADVICE(row, "see capabilities below");
	else
		ADVICE(row, "the capabilities are there but the kernel still refuses: look for a "
			    "denial by its security module (SELinux, AppArmor) in dmesg");
}

void check_uprobes(const struct check_context *c, struct check_row *row)
{
	const int results[] = {
		[PROBE_SESSION] = c->probes->session,
		[PROBE_MULTI] = c->probes->multi,
		[PROBE_PERF] = c->probes->perf,
	};
	bool refused = false;

	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		refused |= results[i] == -EPERM;
		if (results[i] == 0)
			VALUE(row, "%s%s", row->value[0] ? ", " : "",
				probe_method_name((enum probe_method)i));
	}
	if (row->value[0])
		return;
	if (c->probes->bpf_load == -EPERM) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown: needs the privilege to load eBPF");
	} else if (refused) {
		row->state = CHECK_NO_PRIVILEGE;
		VALUE(row, "not permitted");
		ADVICE(row, "give CAP_SYS_ADMIN: kernels before 6.6 have only uprobes through perf "
			    "events, which need it");
	} else {
		row->state = CHECK_NO_FEATURE;
		VALUE(row, "none");
		ADVICE(row, "use a kernel built with CONFIG_UPROBE_EVENTS=y");
	}
}

void check_cpu_clock(const struct check_context *c, struct check_row *row)
{
	int r = c->probes->cpu_clock;
	const struct parts_missing *m = &c->probes->trial.missing;
	const char *refused = NULL;
	char why[OBSTACLE_MAX];

	for (size_t i = 0; i < m->count; i++)
		if (m->rows[i].part == PART_SAMPLES)
			refused = m->rows[i].why;
	if (r == 0 && !refused) {
		VALUE(row, "cpu-clock");
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "%s", refused ? refused : r == -EPERM ? "not permitted" : "the kernel has none");
	if (refused)
		ADVICE(row, "use another kernel");
	else if (r != -EPERM)
		ADVICE(row, "use a kernel built with CONFIG_PERF_EVENTS=y");
	else
		ADVICE(row, "%s", obstacle_to_sample(&c->view, why) ? why : "give CAP_PERFMON");
	ADVICE(row, "; tracing works, but what runs between calls is not sampled");
}

void check_tracepoints(const struct check_context *c, struct check_row *row)
{
	size_t present = 0;

	if (c->probes->btf < 0) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown without BTF");
		return;
	}
	for (size_t i = 0; i < CHECK_TRACEPOINTS; i++) {
		present += c->probes->tracepoints[i];
		if (c->probes->tracepoints[i])
			continue;
		DETAIL(row, "%s%s is missing", row->detail[0] ? "\n" : "", tracepoints[i].name);
		if (tracepoints[i].needed)
			row->state = CHECK_NO_FEATURE;
		else if (row->state == CHECK_PASS)
			row->state = CHECK_OPTIONAL;
	}
	VALUE(row, "%zu of %d (scheduler, processes, block I/O, memory, TCP)", present,
		CHECK_TRACEPOINTS);
	if (row->state == CHECK_NO_FEATURE)
		ADVICE(row,
			"use a kernel built with CONFIG_TRACEPOINTS=y and CONFIG_SCHED_DEBUG=y");
	else if (row->state == CHECK_OPTIONAL)
		ADVICE(row, "explanations will not cover these (disk, memory, network)");
}
