// SPDX-License-Identifier: Apache-2.0
/* workload.c - the small things that every program of the stand-in needs. No CUDA call is made
 * here, so that a program can wait at its gate before its first one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "knob.h"
#include "workload.h"

#define GATE_POLL_NS 5000000

volatile int workload_stopped;

static void stop(int sig)
{
	workload_stopped = 1;
}

void workload_catch_signals(void)
{
	struct sigaction a = {.sa_handler = stop};

	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGINT, &a, NULL);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t workload_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void workload_sleep_until(uint64_t mono_ns)
{
	struct timespec t = {(time_t)(mono_ns / 1000000000), (long)(mono_ns % 1000000000)};

	while (!workload_stopped &&
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

void workload_burn(uint64_t cpu_ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
	volatile uint64_t x = 1;

	while (cpu_ns && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 500; i++)
			x = x * 6364136223846793005ULL + 1;
}

void workload_gate(const char *file)
{
	char ready[4096];
	int fd;

	if (!file)
		return;
	snprintf(ready, sizeof(ready), "%s.ready", file);
	fd = open(ready, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0) {
		fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, ready,
			strerror(errno));
		exit(73);
	}
	close(fd);
	while (access(file, F_OK) < 0 && !workload_stopped)
		workload_sleep_until(workload_now_ns() + GATE_POLL_NS);
}

uint64_t workload_number(const char *option, const char *text, double least, double most)
{
	uint64_t v;

	if (knob_parse(text, least, most, &v) < 0) {
		fprintf(stderr, "%s: --%s must be a number from %.0f to %.0f\n",
			program_invocation_short_name, option, least, most);
		exit(64);
	}
	return v;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t workload_percentile(uint64_t *values, size_t count, double percent)
{
	size_t rank;

	if (count == 0)
		return 0;
	qsort(values, count, sizeof(*values), compare);
	rank = (size_t)(percent / 100 * (double)count);
	return values[rank < count ? rank : count - 1];
}
