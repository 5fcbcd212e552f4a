// SPDX-License-Identifier: Apache-2.0
/* hog_cpu.c - sim-cpu-hog: threads that do nothing but use the CPU, as a neighbour would. Ends
 * after
 * --duration or at SIGTERM, and prints the CPU time it got. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "options.h"
#include "workload.h"

#define SLICE_NS    2000000 /* how often a thread looks at the clock */
#define MAX_THREADS 256
#define FOR_A_CPU   8 /* threads, where none are said: enough beside whoever else is busy */

static struct settings {
	uint64_t threads, duration_s;
	const char *nice;
	const char *cpus;
	const char *wait_start;
} settings = {.threads = 1, .duration_s = 10};

static const struct option_row rows[] = {
	{"threads", OPTION_NUMBER, offsetof(struct settings, threads),
		"busy threads (1; 0: eight for each CPU that it may use)", 0, MAX_THREADS, 0},
	{"duration", OPTION_NUMBER, offsetof(struct settings, duration_s), "seconds (10)", 0, 86400,
		0},
	{"nice", OPTION_TEXT, offsetof(struct settings, nice), "nice value, -20 to 19", 0, 0, 0},
	{"cpus", OPTION_TEXT, offsetof(struct settings, cpus), "only on these CPUs: 0,2-3", 0, 0,
		0},
	{"wait-start", OPTION_TEXT, offsetof(struct settings, wait_start),
		"create FILE.ready, wait for FILE", 0, 0, 0},
	{NULL, 0, 0, NULL, 0, 0, 0},
};

static uint64_t end_ns;

static int cpus_parse(const char *text, cpu_set_t *ret)
{
	char *end;

	CPU_ZERO(ret);
	for (const char *p = text; *p; p = *end ? end + 1 : end) {
		unsigned long from = strtoul(p, &end, 10), to = from;

		if (end == p)
			return -EINVAL;
		if (*end == '-') {
			p = end + 1;
			to = strtoul(p, &end, 10);
			if (end == p)
				return -EINVAL;
		}
		if ((*end && *end != ',') || from > to || to >= CPU_SETSIZE)
			return -EINVAL;
		for (unsigned long cpu = from; cpu <= to; cpu++)
			CPU_SET(cpu, ret);
	}
	return CPU_COUNT(ret) ? 0 : -EINVAL;
}

static void place(void)
{
	cpu_set_t set;

	if (settings.cpus) {
		if (cpus_parse(settings.cpus, &set) < 0) {
			fprintf(stderr, "sim-cpu-hog: --cpus must be a list such as 0,2-3\n");
			exit(64);
		}
		if (sched_setaffinity(0, sizeof(set), &set) < 0) {
			fprintf(stderr, "sim-cpu-hog: --cpus: %s\n", strerror(errno));
			exit(1);
		}
	}
	if (settings.nice && setpriority(PRIO_PROCESS, 0, atoi(settings.nice)) < 0) {
		fprintf(stderr, "sim-cpu-hog: --nice: %s\n", strerror(errno));
		exit(77);
	}
}

static uint64_t threads_wanted(void)
{
	cpu_set_t set;

	if (settings.threads)
		return settings.threads;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return FOR_A_CPU;
	return (uint64_t)CPU_COUNT(&set) * FOR_A_CPU < MAX_THREADS
		       ? (uint64_t)CPU_COUNT(&set) * FOR_A_CPU
		       : MAX_THREADS;
}

static void *burn(void *arg)
{
	while (!workload_stopped && workload_now_ns() < end_ns)
		workload_burn(SLICE_NS);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	uint64_t n = 0;
	struct rusage u;

	options_parse(rows, argc, argv, "threads that do nothing but use the CPU", &settings);
	place();
	settings.threads = threads_wanted();
	workload_catch_signals();
	workload_gate(settings.wait_start);
	end_ns = workload_now_ns() + settings.duration_s * 1000000000;
	while (n < settings.threads && pthread_create(&threads[n], NULL, burn, NULL) == 0)
		n++;
	if (n < settings.threads)
		fprintf(stderr, "sim-cpu-hog: only %d threads could be made\n", (int)n);
	for (uint64_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	getrusage(RUSAGE_SELF, &u);
	printf("{\"threads\":%d,\"cpu_seconds\":%.3f}\n", (int)n,
		(double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6 +
			(double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6);
	return n == settings.threads ? 0 : 1;
}
