/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - see sample.h. The kernel's software clock (cpu-clock): a timer on each CPU, there on
 * virtual machines too, that fires at a fixed period and so bounds the samples of a CPU. It is not
 * taken while the CPU idles. Runs on the tracer's thread, before and after it gave up its rights.
 *
 * A clock ends with its CPU; a CPU that comes back gets a new one. */
#include "record/probe/sample/sample.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#define CPUS_MAX   4096
#define ONLINE     "/sys/devices/system/cpu/online"
#define ONLINE_MAX 4096

struct sample_clocks {
	int prog_fd;
	unsigned hz;
	char online[ONLINE_MAX]; /* as the kernel lists them: "0-3,5" */
	int links[CPUS_MAX];     /* by CPU; -1: none */
};

static int clock_open(unsigned hz, int cpu)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS_PER_S / hz,
		.exclude_idle = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The link keeps the clock: its descriptor is all that is left of both. */
static int link_clock(const struct sample_clocks *s, int cpu)
{
	_cleanup_fd_ int clock = clock_open(s->hz, cpu);
	int fd;

	if (clock < 0)
		return clock;
	fd = bpf_link_create(s->prog_fd, clock, BPF_PERF_EVENT, NULL);
	return fd < 0 ? -errno : fd;
}

static void close_clock(struct sample_clocks *s, int cpu)
{
	if (s->links[cpu] >= 0)
		close(s->links[cpu]);
	s->links[cpu] = -1;
}

/* "0-3,5" as one flag for each CPU. */
static void online_parse(const char *text, bool ret[CPUS_MAX])
{
	memset(ret, 0, CPUS_MAX * sizeof(*ret));
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i < CPUS_MAX; i++)
			ret[i] = true;
		text = *end == ',' ? end + 1 : end;
	}
}

/* Close what is not @online, open what is and has no clock. Returns the first failure. */
static int follow(struct sample_clocks *s, const bool online[CPUS_MAX])
{
	int r = 0;

	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!online[cpu]) {
			close_clock(s, cpu);
			continue;
		}
		if (s->links[cpu] >= 0)
			continue;
		s->links[cpu] = link_clock(s, cpu);
		if (s->links[cpu] < 0 && s->links[cpu] != -ENODEV && !r)
			r = s->links[cpu]; /* -ENODEV: it went meanwhile */
		s->links[cpu] = MAX(s->links[cpu], -1);
	}
	return r;
}

int sample_clocks_open(int prog_fd, unsigned hz, struct sample_clocks **ret, struct errinfo *reterr)
{
	_cleanup_(sample_clocks_closep) struct sample_clocks *s = calloc(1, sizeof(*s));
	bool online[CPUS_MAX];
	int r;

	if (!s)
		return -ENOMEM;
	s->prog_fd = prog_fd;
	s->hz = hz;
	memset(s->links, 0xff, sizeof(s->links));
	r = file_read_line("", ONLINE, s->online, sizeof(s->online));
	if (r < 0)
		return errinfo_set(reterr, r, "%s: %s", ONLINE, strerror(-r));
	online_parse(s->online, online);
	r = follow(s, online);
	if (r < 0)
		return errinfo_set(reterr, r, "the kernel gives no clock: %s", strerror(-r));
	*ret = TAKE(s);
	return 0;
}

void sample_clocks_close(struct sample_clocks *s)
{
	for (int cpu = 0; cpu < CPUS_MAX; cpu++)
		close_clock(s, cpu);
	free(s);
}

void sample_clocks_renew(struct sample_clocks *s)
{
	bool online[CPUS_MAX];
	char text[ONLINE_MAX];
	int r;

	if (file_read_line("", ONLINE, text, sizeof(text)) < 0 || !strcmp(text, s->online))
		return;
	memcpy(s->online, text, sizeof(text));
	online_parse(text, online);
	r = follow(s, online);
	if (r < 0)
		log_warning(
			"the CPUs have changed, and new ones are not sampled: %s", strerror(-r));
}

int sample_probe(void)
{
	_cleanup_fd_ int clock = clock_open(1, 0);

	return MIN(clock, 0);
}
