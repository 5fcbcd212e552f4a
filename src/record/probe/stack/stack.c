/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c - fills the kernel half's tables of stacks. Unwind tables lie in pools, maps that an
 * array of maps points to: few, because entering one takes the kernel long. */
#include "record/probe/stack/stack.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

struct kernel_stack_process { /* as in stack.bpf.h */
	uint32_t set, generation;
	struct stack_python python;
};

int probe_unwind_rule(struct probe *p, uint32_t id, const struct unwind_rule *r)
{
	return bpf_map_update_elem(probe_map(p, "unwind_rules"), &id, r, BPF_ANY) < 0 ? -errno : 0;
}

int probe_unwind_pool(struct probe *p, uint32_t id, uint32_t count, int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_pool", sizeof(uint32_t),
		sizeof(struct unwind_chunk), count, &opts);

	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(probe_map(p, "unwind_pools"), &id, &fd, BPF_ANY) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

int probe_unwind_fill(
	int pool_fd, uint32_t first, const struct unwind_chunk *chunks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = first + i;

		if (bpf_map_update_elem(pool_fd, &at, &chunks[i], BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

int probe_mappings(struct probe *p, uint32_t id, const struct stack_mappings *m)
{
	return bpf_map_update_elem(probe_map(p, "stack_sets"), &id, m, BPF_ANY) < 0 ? -errno : 0;
}

void probe_mappings_drop(struct probe *p, uint32_t id)
{
	bpf_map_delete_elem(probe_map(p, "stack_sets"), &id);
}

int probe_stack_process(struct probe *p, uint32_t pid, uint32_t set, uint32_t generation,
	const struct stack_python *python)
{
	struct kernel_stack_process v = {.set = set, .generation = generation};

	if (python)
		v.python = *python;
	return bpf_map_update_elem(probe_map(p, "stack_processes"), &pid, &v, BPF_ANY) < 0 ? -errno
											   : 0;
}

uint32_t probe_stack_set_of(const struct probe *p, uint32_t pid)
{
	struct kernel_stack_process v;

	return bpf_map_lookup_elem(probe_map(p, "stack_processes"), &pid, &v) < 0 ? 0 : v.set;
}

void probe_stack_tally(const struct probe *p, struct stack_tally *ret)
{
	struct stack_tally *cpus = calloc((size_t)libbpf_num_possible_cpus(), sizeof(*cpus));
	uint32_t zero = 0;

	memset(ret, 0, sizeof(*ret));
	if (cpus && bpf_map_lookup_elem(probe_map(p, "stack_tallies"), &zero, cpus) == 0)
		for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
			ret->taken += cpus[cpu].taken;
			ret->taken_ns += cpus[cpu].taken_ns;
			ret->complete += cpus[cpu].complete;
			ret->repeated += cpus[cpu].repeated;
			ret->sent += cpus[cpu].sent;
			for (int i = 0; i < STACK_LOSS_COUNT; i++)
				ret->lost[i] += cpus[cpu].lost[i];
		}
	free(cpus);
}
