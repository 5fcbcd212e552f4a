// SPDX-License-Identifier: Apache-2.0
/* published_agent.c - the published method on a running process, to be compared with ours on a real
 * GPU: pairs of perf-event probes on the functions that agent probes, in both libraries, stacks, a
 * record and a wake-up for each call, and a thread that reads them. Runs until SIGTERM.
 *
 *   published_agent PID LIBCUDART LIBCUDA */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "record/discover/elfsym.h"
#include "published.skel.h"

static const char *const runtime[] = {"cudaMalloc", "cudaFree", "cudaLaunchKernel", "cudaMemcpy",
	"cudaMemcpyAsync", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMallocManaged",
	"cudaMemcpy2D", "cudaMemcpy2DAsync", "cudaMemcpyPeer", "cudaMemcpyPeerAsync",
	"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphLaunch",
	NULL};
static const char *const driver[] = {"cuLaunchKernel", "cuMemcpy", "cuMemcpyAsync",
	"cuCtxSynchronize", "cuMemAlloc_v2", "cuMemAllocManaged", NULL};

static volatile sig_atomic_t stopping;
static unsigned long long records;

static void stop(int number)
{
	stopping = 1;
}

static int take(void *arg, void *data, size_t len)
{
	records++;
	return 0;
}

static int attach(const char *path, const char *const *names, struct bpf_program *entry,
	struct bpf_program *ret)
{
	_cleanup_(elfsym_closep) struct elfsym *elf = NULL;
	int n = 0;

	if (elfsym_open(path, &elf, NULL) < 0)
		return -ENOENT;
	for (; *names; names++) {
		uint64_t offset;

		if (elfsym_offset(elf, *names, &offset) < 0)
			continue;
		if (!bpf_program__attach_uprobe(entry, false, -1, path, offset) ||
			!bpf_program__attach_uprobe(ret, true, -1, path, offset))
			return -errno;
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	struct published_bpf *k = published_bpf__open_and_load();
	struct ring_buffer *rings;
	unsigned pid, zero = 0;
	unsigned char one = 1, settings[12] = {1};
	int a, b;

	if (argc != 4 || !k)
		return fprintf(stderr, "usage: published_agent PID LIBCUDART LIBCUDA\n"), 64;
	pid = (unsigned)strtoul(argv[1], NULL, 10);
	signal(SIGTERM, stop);
	bpf_map_update_elem(bpf_map__fd(k->maps.pids), &pid, &one, BPF_ANY);
	bpf_map_update_elem(bpf_map__fd(k->maps.config), &zero, settings, BPF_ANY);
	rings = ring_buffer__new(bpf_map__fd(k->maps.runtime_events), take, NULL, NULL);
	if (!rings || ring_buffer__add(rings, bpf_map__fd(k->maps.driver_events), take, NULL) < 0)
		return perror("rings"), 1;
	a = attach(argv[2], runtime, k->progs.runtime_entry, k->progs.runtime_return);
	b = attach(argv[3], driver, k->progs.driver_entry, k->progs.driver_return);
	if (a < 0 || b < 0)
		return fprintf(stderr, "attach: %s\n", strerror(a < 0 ? -a : -b)), 1;
	printf("attached %d runtime and %d driver functions\n", a, b);
	fflush(stdout);
	while (!stopping)
		ring_buffer__poll(rings, 100);
	printf("%llu records, %llu lost\n", records, (unsigned long long)k->bss->lost);
	fflush(stdout);
	_exit(0);
}
