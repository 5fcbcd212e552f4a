/* SPDX-License-Identifier: Apache-2.0 */
/* part.c - the table of part.h, and what is missing of it. */
#include "record/probe/part.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>

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
