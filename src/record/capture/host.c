/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - parses /proc/stat, meminfo, loadavg, vmstat and pressure, once a second on the tracer's
 * thread. Time in iowait counts as idle: the CPU was free. CPUs, memory and load must be there;
 * what a kernel may be built without is -1 when it is missing. */
#include "record/capture/host.h"

#include <math.h>
#include <sys/utsname.h>

#define SLACK_NS                                                                                   \
	(100 * (int64_t)NS_PER_MS) /* samples come once a second, not to the nanosecond            \
				    */

static double swap_points(const struct host_sample *s)
{
	return s->mem_total_mb ? 100.0 * (double)s->swap_mb / (double)s->mem_total_mb : 0;
}

static bool differs(const struct deadband *d, const struct host_sample *s)
{
	return fabs(s->cpu_pct - d->last.cpu_pct) > d->points ||
	       fabs(s->mem_pct - d->last.mem_pct) > d->points ||
	       fabs(swap_points(s) - swap_points(&d->last)) > d->points;
}

bool deadband_admits(struct deadband *d, const struct host_sample *s)
{
	int64_t since = s->time.ns - d->last.time.ns;
	/* A clock that was set back does not stop the heart. */
	bool beat = d->beat_ns && (since < 0 || since + SLACK_NS >= (int64_t)d->beat_ns);
	bool change = d->points > 0 ? differs(d, s) : !d->beat_ns;

	if (d->has_last && !beat && !change)
		return false;
	d->last = *s;
	d->has_last = true;
	return true;
}

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

static FILE *open_under(const char *root, const char *path)
{
	return fopen(FORMATTED(512, "%s%s", root, path), "re");
}

void host_reader_init(struct host_reader *h, const char *root)
{
	*h = (struct host_reader){.root = root};
}

struct cpu_line {
	struct host_cpu busy, steal, iowait;
};

/* @line as "cpuN user nice system idle iowait irq softirq steal …"; *ret_cpu is -1 for the sum of all.
 */
static bool parse_cpu(const char *line, long *ret_cpu, struct cpu_line *ret)
{
	unsigned long long v[8] = {0};
	char *end = NULL;

	if (strncmp(line, "cpu", 3))
		return false;
	*ret_cpu = line[3] == ' ' ? -1 : strtol(line + 3, &end, 10);
	if (*ret_cpu >= 0 && *end != ' ')
		return false;
	if (sscanf(*ret_cpu < 0 ? line + 3 : end, "%llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
		    &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) < 4)
		return false;
	*ret = (struct cpu_line){0};
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		ret->busy.total += v[i];
	ret->busy.busy = ret->busy.total - v[3] - v[4];
	ret->iowait = (struct host_cpu){.busy = v[4], .total = ret->busy.total};
	ret->steal = (struct host_cpu){.busy = v[7], .total = ret->busy.total};
	return true;
}

/* The share since @then, which becomes @now; negative if there is no earlier reading. The kernel's
 * idle times may run backwards by a tick. */
static double busy_since(struct host_cpu *then, const struct host_cpu *now)
{
	double pct = -1;

	if (then->total && now->total > then->total)
		pct = now->busy > then->busy ? 100.0 * (double)(now->busy - then->busy) /
						       (double)(now->total - then->total)
					     : 0;
	then->busy = now->busy;
	then->total = now->total;
	return MIN(pct, 100.0);
}

static int read_cpu(struct host_reader *h, struct host_sample *s)
{
	_cleanup_(file_closep) FILE *f = open_under(h->root, "/proc/stat");
	char line[512];
	struct cpu_line now;
	bool has_sum = false;
	long cpu;

	if (!f)
		return -errno;
	s->busiest_cpu_pct = s->busiest_cpu = -1;
	while (fgets(line, sizeof(line), f) && parse_cpu(line, &cpu, &now)) {
		if (cpu < 0) {
			s->cpu_pct = MAX(busy_since(&h->all, &now.busy), 0.0);
			s->steal_pct = busy_since(&h->steal, &now.steal);
			s->iowait_pct = busy_since(&h->iowait, &now.iowait);
			has_sum = true;
		} else if (cpu < HOST_CPUS_MAX) {
			double pct = busy_since(&h->cpus[cpu], &now.busy);

			if (pct > s->busiest_cpu_pct) {
				s->busiest_cpu_pct = pct;
				s->busiest_cpu = cpu;
			}
		}
	}
	return has_sum ? 0 : -EBADMSG;
}

/* "some avg10=1.23 …" of /proc/pressure/@what; -1 where the kernel keeps none. */
static double read_pressure(const char *root, const char *what)
{
	_cleanup_(file_closep) FILE *f = NULL;
	double pct;

	f = open_under(root, FORMATTED(64, "/proc/pressure/%s", what));
	if (!f || fscanf(f, "some avg10=%lf", &pct) != 1)
		return -1;
	return pct;
}

/* Major faults per second since the last reading; -1 at the first, or where nothing tells. */
static double read_faults(struct host_reader *h, wall_time now)
{
	_cleanup_(file_closep) FILE *f = open_under(h->root, "/proc/vmstat");
	unsigned long long count = 0;
	char line[128];
	double rate = -1;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "pgmajfault %llu", &count) == 1;
	if (!found)
		return -1;
	if (h->faults_time.ns && now.ns > h->faults_time.ns && count >= h->faults)
		rate = (double)(count - h->faults) * 1e9 / (double)(now.ns - h->faults_time.ns);
	h->faults = count;
	h->faults_time = now;
	return rate;
}

static int read_memory(const char *root, struct host_sample *s)
{
	_cleanup_(file_closep) FILE *f = open_under(root, "/proc/meminfo");
	unsigned long long kb, total = 0, available = 0, swap_total = 0, swap_free = 0;
	char line[256];

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu", &kb) == 1)
			total = kb;
		else if (sscanf(line, "MemAvailable: %llu", &kb) == 1)
			available = kb;
		else if (sscanf(line, "SwapTotal: %llu", &kb) == 1)
			swap_total = kb;
		else if (sscanf(line, "SwapFree: %llu", &kb) == 1)
			swap_free = kb;
	}
	if (!total || available > total || swap_free > swap_total)
		return -EBADMSG;
	s->mem_total_mb = total / 1024;
	s->mem_avail_mb = available / 1024;
	s->mem_pct = 100.0 * (double)(total - available) / (double)total;
	s->swap_mb = (swap_total - swap_free) / 1024;
	s->swap_total_mb = (int64_t)(swap_total / 1024);
	return 0;
}

int host_read(struct host_reader *h, wall_time now, struct host_sample *ret)
{
	struct host_sample s = {.time = now};
	_cleanup_(file_closep) FILE *f = NULL;
	int r = read_cpu(h, &s);

	r = r ?: read_memory(h->root, &s);
	if (r < 0)
		return r;
	f = open_under(h->root, "/proc/loadavg");
	if (!f)
		return -errno;
	if (fscanf(f, "%lf %lf", &s.load1, &s.load5) != 2)
		return -EBADMSG;
	s.major_faults_per_s = read_faults(h, now);
	s.psi_cpu_pct = read_pressure(h->root, "cpu");
	s.psi_memory_pct = read_pressure(h->root, "memory");
	s.psi_io_pct = read_pressure(h->root, "io");
	*ret = s;
	return 0;
}

/* The value behind "key<spaces>:" or "key=" of the first line that begins with @key. */
static void read_field(const char *root, const char *path, const char *key, char *out, size_t size)
{
	_cleanup_(file_closep) FILE *f = open_under(root, path);
	size_t n = strlen(key);
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		char *v = line + n;

		if (strncmp(line, key, n))
			continue;
		v += strspn(v, " \t:=\"");
		v[strcspn(v, "\"\n")] = 0;
		snprintf(out, size, "%s", v);
		return;
	}
}

void host_describe(const char *root, struct session *s)
{
	struct host_sample sample = {0};
	struct utsname u;

	read_field(root, "/proc/cpuinfo", "model name", s->cpu_model, sizeof(s->cpu_model));
	read_field(root, "/etc/os-release", "PRETTY_NAME", s->os_release, sizeof(s->os_release));
	read_field(root, "/proc/driver/nvidia/version", "NVRM version", s->gpu_driver,
		sizeof(s->gpu_driver));
	if (!s->cpu_model[0] && uname(&u) == 0)
		snprintf(s->cpu_model, sizeof(s->cpu_model), "%s", u.machine);
	if (uname(&u) == 0)
		snprintf(s->kernel, sizeof(s->kernel), "%s", u.release);
	s->cpu_cores = (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	if (read_memory(root, &sample) == 0)
		s->mem_total_mb = sample.mem_total_mb;
}
