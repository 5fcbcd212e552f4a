/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - parses /proc/stat, /proc/meminfo and /proc/loadavg, once a second on the tracer's
 * thread. Time in iowait counts as idle: the CPU was free. */
#include "agent/capture/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/macros.h"

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

static FILE *open_under(const char *root, const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return fopen(full, "re");
}

void host_reader_init(struct host_reader *h, const char *root)
{
	*h = (struct host_reader){.root = root};
}

static int read_cpu(struct host_reader *h, double *ret_pct)
{
	_cleanup_(file_closep) FILE *f = open_under(h->root, "/proc/stat");
	unsigned long long v[8] = {0};
	uint64_t total = 0, busy;

	if (!f)
		return -errno;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		    &v[4], &v[5], &v[6], &v[7]) < 4)
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		total += v[i];
	busy = total - v[3] - v[4];
	*ret_pct = h->total && total > h->total
			   ? 100.0 * (double)(busy - h->busy) / (double)(total - h->total)
			   : 0;
	h->busy = busy;
	h->total = total;
	return 0;
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
	return 0;
}

int host_read(struct host_reader *h, wall_time now, struct host_sample *ret)
{
	struct host_sample s = {.time = now};
	_cleanup_(file_closep) FILE *f = NULL;
	int r = read_cpu(h, &s.cpu_pct);

	if (r < 0)
		return r;
	r = read_memory(h->root, &s);
	if (r < 0)
		return r;
	f = open_under(h->root, "/proc/loadavg");
	if (!f)
		return -errno;
	if (fscanf(f, "%lf", &s.load1) != 1)
		return -EBADMSG;
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
