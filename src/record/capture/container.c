/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - parses the files of a control group, once a second on the tracer's thread. Every file
 * may be missing: a kernel is built without some, and a controller is switched on group by group. */
#include "record/capture/container.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/macros.h"

#define LINE_BYTES   256
#define KEYED_MAX    8192 /* of cpu.stat, memory.events: some hundred bytes */
#define CPU_LIST_MAX 4096

struct group { /* one on the way up */
	const char *root;
	struct group_folder folder;
};

/* Cuts the last component off; false at the top of the mount: its files are those of the group that
 * a container is in, and at the machine's top none of these exist. */
static bool group_up(struct group *g)
{
	char *slash = strrchr(g->folder.path, '/');

	if (!slash || (size_t)(slash - g->folder.path) < g->folder.top)
		return false;
	*slash = 0;
	return true;
}

static int file_path(const struct group *g, const char *file, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/%s", g->folder.path, file);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool read_first_line(const struct group *g, const char *file, char *out, size_t size)
{
	char path[PATH_MAX];

	return file_path(g, file, path) == 0 && file_read_line(g->root, path, out, size) >= 0;
}

/* A count at the beginning of @text; CONTAINER_UNKNOWN for anything else ("max"). */
static int64_t count_of(const char *text)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	return end == text || errno || v < 0 ? CONTAINER_UNKNOWN : v;
}

static int64_t read_count(const struct group *g, const char *file)
{
	char line[LINE_BYTES];

	return read_first_line(g, file, line, sizeof(line)) ? count_of(line) : CONTAINER_UNKNOWN;
}

/* The number behind @key in lines of "key number". */
static int64_t keyed(const struct buf *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = buf_str(text); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len) && line[len] == ' ')
			return count_of(line + len);
	}
	return CONTAINER_UNKNOWN;
}

static bool read_keyed(const struct group *g, const char *file, struct buf *text)
{
	char path[PATH_MAX];

	return file_path(g, file, path) == 0 && file_read_at(g->root, path, KEYED_MAX, text) >= 0;
}

/* "some avg10=… total=123": microseconds. */
static int64_t read_pressure(const struct group *g, const char *file)
{
	char line[LINE_BYTES];
	const char *total;

	if (!read_first_line(g, file, line, sizeof(line)) || strncmp(line, "some ", 5))
		return CONTAINER_UNKNOWN;
	total = strstr(line, " total=");
	return total ? count_of(total + strlen(" total=")) : CONTAINER_UNKNOWN;
}

/* How many CPUs "0-3,8" names. */
static int64_t count_cpus(const char *list)
{
	int64_t cpus = 0;

	while (*list) {
		unsigned first, last;
		int used = 0;

		if (sscanf(list, "%u-%u%n", &first, &last, &used) < 2 || !used) {
			if (sscanf(list, "%u%n", &first, &used) < 1)
				return CONTAINER_UNKNOWN;
			last = first;
		}
		if (last < first)
			return CONTAINER_UNKNOWN;
		cpus += (int64_t)last - first + 1;
		list += used;
		list += *list == ',';
	}
	return cpus ? cpus : CONTAINER_UNKNOWN;
}

static void read_cpus(struct group g, struct container_sample *s)
{
	char list[CPU_LIST_MAX];

	do {
		if (read_first_line(&g, "cpuset.cpus.effective", list, sizeof(list)))
			s->cpus = count_cpus(list);
	} while (s->cpus < 0 && group_up(&g));
}

static bool read_throttling(const struct group *g, struct container_sample *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT(KEYED_MAX + 1);

	if (!read_keyed(g, "cpu.stat", &text))
		return false;
	s->throttled_us = keyed(&text, "throttled_usec");
	s->throttled_count = keyed(&text, "nr_throttled");
	return s->throttled_us >= 0;
}

/* "200000 100000" or "max 100000". */
static bool read_quota(const struct group *g, int64_t *ret_quota, int64_t *ret_period)
{
	char line[LINE_BYTES];
	const char *space;

	if (!read_first_line(g, "cpu.max", line, sizeof(line)))
		return false;
	space = strchr(line, ' ');
	*ret_quota = count_of(line);
	*ret_period = space ? count_of(space) : CONTAINER_UNKNOWN;
	return *ret_period > 0;
}

static void read_cpu(struct group g, struct container_sample *s)
{
	bool has_throttling = false;
	double tightest = 0;

	do {
		int64_t quota, period;
		bool is_tighter = false;

		if (read_quota(&g, &quota, &period)) {
			double cpus = quota < 0 ? 0 : (double)quota / (double)period;

			is_tighter = quota >= 0 && (s->quota_us < 0 || cpus < tightest);
			if (is_tighter || s->period_us < 0) {
				s->quota_us = quota;
				s->period_us = period;
				tightest = cpus;
			}
		}
		if (is_tighter || !has_throttling)
			has_throttling = read_throttling(&g, s) || has_throttling;
	} while (group_up(&g));
}

static void read_memory_of(const struct group *g, struct container_sample *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT(KEYED_MAX + 1);

	s->memory_bytes = read_count(g, "memory.current");
	if (!read_keyed(g, "memory.events", &text))
		return;
	s->memory_high = keyed(&text, "high");
	s->memory_max = keyed(&text, "max");
	s->oom_kills = keyed(&text, "oom_kill");
}

/* Whether @limit is one, and lower than *@lowest, which it then becomes. */
static bool take_lower(int64_t limit, int64_t *lowest)
{
	if (limit < 0 || (*lowest >= 0 && limit >= *lowest))
		return false;
	*lowest = limit;
	return true;
}

/* Of both limits the lowest on the way up; use and events are those of the group that has the lower one. */
static void read_memory(struct group g, struct container_sample *s)
{
	int64_t lowest = CONTAINER_UNKNOWN;

	do {
		int64_t limit = read_count(&g, "memory.max");
		int64_t high = read_count(&g, "memory.high");
		bool is_tighter = take_lower(limit, &lowest) | take_lower(high, &lowest);

		(void)take_lower(limit, &s->memory_limit_bytes);
		(void)take_lower(high, &s->memory_high_bytes);
		if (is_tighter || s->memory_bytes < 0)
			read_memory_of(&g, s);
	} while (group_up(&g));
}

int container_read(const char *root, const struct group_folder *folder, uint64_t cgroup_id,
	wall_time now, struct container_sample *ret)
{
	struct group g = {.root = root, .folder = *folder};
	struct container_sample s;
	char line[LINE_BYTES];

	if (!read_first_line(&g, "cgroup.controllers", line, sizeof(line)))
		return -ENOENT; /* every group of v2 has it */
	container_sample_init(&s, now, cgroup_id);
	read_cpu(g, &s);
	read_memory(g, &s);
	read_cpus(g, &s);
	s.psi_cpu_us = read_pressure(&g, "cpu.pressure");
	s.psi_memory_us = read_pressure(&g, "memory.pressure");
	s.psi_io_us = read_pressure(&g, "io.pressure");
	*ret = s;
	return 0;
}
