/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_overhead.c - writes down what tracing itself costs. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/trace/tracer_private.h"
#include "base/file.h"

static uint64_t cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

static uint64_t rss_bytes(void)
{
	unsigned long long pages = 0;
	char line[128];

	if (file_read_line("", "/proc/self/statm", line, sizeof(line)) < 0 ||
		sscanf(line, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void tracer_overhead(struct tracer *t, wall_time now)
{
	mono_time mono = mono_now();
	uint64_t cpu = cpu_ns(), passed = mono.ns - t->overhead_at.ns;
	struct overhead o = {.time = now,
		.share = t->governor.overhead,
		.budget = t->governor.budget,
		.hit_ns = t->governor.hit_ns,
		.launch_weight = t->governor.weight,
		.rss_bytes = rss_bytes(),
		.cpu_pct =
			passed ? 100.0 * (double)(cpu - t->overhead_cpu_ns) / (double)passed : 0};
	bool first = !t->overhead_at.ns;

	t->overhead_at = mono;
	t->overhead_cpu_ns = cpu;
	if (!t->store || first)
		return;
	o.db_bytes = store_writer_size(t->store);
	if (!store_writer_push_overhead(t->store, &o))
		log_warning("the store's queue is full: a row about tracing overhead is lost");
}
