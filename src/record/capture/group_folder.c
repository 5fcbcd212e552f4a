/* SPDX-License-Identifier: Apache-2.0 */
/* group_folder.c - see group_folder.h. Runs on the tracer's thread: a search opens as many folders
 * as there are groups, at most FOLDERS_MAX, once for a group.
 *
 * A traced process's own mount is a stranger's file system, which could be one that never answers:
 * it is looked at only where the kernel's list of its mounts says that it is one of control groups. */
#include "record/capture/group_folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/idmap.h"

DEFINE_CLEANUP(struct group_folders *, group_folders_free)

/* Parses the files of a control group, once a second on the tracer's thread. Every file
 * may be missing: a kernel is built without some, and a controller is switched on group by group. */

#define LINE_BYTES   256
#define KEYED_MAX    8192 /* of memory.stat: some thousand bytes */
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
	int64_t v1_ns;

	if (!read_keyed(g, "cpu.stat", &text))
		return false;
	v1_ns = keyed(&text, "throttled_time");
	s->throttled_us = v1_ns < 0 ? keyed(&text, "throttled_usec") : v1_ns / 1000;
	s->throttled_count = keyed(&text, "nr_throttled");
	return s->throttled_us >= 0;
}

/* "200000 100000" or "max 100000"; in v1 two files, with -1 for no limit. */
static bool read_quota(const struct group *g, int64_t *ret_quota, int64_t *ret_period)
{
	char line[LINE_BYTES];
	const char *space;

	if (!read_first_line(g, "cpu.max", line, sizeof(line))) {
		*ret_quota = read_count(g, "cpu.cfs_quota_us");
		*ret_period = read_count(g, "cpu.cfs_period_us");
		return *ret_period > 0;
	}
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
	if (read_keyed(g, "memory.stat", &text))
		s->memory_refaults = keyed(&text, "workingset_refault_file");
	buf_clear(&text);
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

#define V1_NO_LIMIT (INT64_C(1) << 62) /* and more: a number of pages for which there is no room */

static void read_memory_v1_of(const struct group *g, struct container_sample *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT(KEYED_MAX + 1);

	s->memory_bytes = read_count(g, "memory.usage_in_bytes");
	s->memory_max = read_count(g, "memory.failcnt");
	if (read_keyed(g, "memory.stat", &text))
		s->memory_refaults = keyed(&text, "total_workingset_refault_file");
	buf_clear(&text);
	if (read_keyed(g, "memory.oom_control", &text))
		s->oom_kills = keyed(&text, "oom_kill");
}

/* The lowest limit on the way up, with the use and events of the group that has it. */
static void read_memory_v1(struct group g, struct container_sample *s)
{
	do {
		int64_t limit = read_count(&g, "memory.limit_in_bytes");
		bool is_tighter = limit < V1_NO_LIMIT && take_lower(limit, &s->memory_limit_bytes);

		if (is_tighter || s->memory_bytes < 0)
			read_memory_v1_of(&g, s);
	} while (group_up(&g));
}

/* Every group of v2, or of v1 for CPUs or memory, has one of these files. */
static bool is_there(const struct group *g)
{
	static const char *const files[] = {
		"cgroup.controllers", "cpu.cfs_period_us", "memory.limit_in_bytes"};
	char line[LINE_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (read_first_line(g, files[i], line, sizeof(line)))
			return true;
	return false;
}

int container_read(const char *root, const struct group_folder *folder,
	const struct group_folder *memory, uint64_t cgroup_id, wall_time now,
	struct container_sample *ret)
{
	struct group g = {.root = root, .folder = *(folder ? folder : memory)};
	struct container_sample s;

	if (!is_there(&g))
		return -ENOENT;
	container_sample_init(&s, now, cgroup_id);
	if (memory)
		read_memory_v1((struct group){.root = root, .folder = *memory}, &s);
	if (!folder) {
		*ret = s;
		return 0;
	}
	read_cpu(g, &s);
	if (!memory)
		read_memory(g, &s);
	read_cpus(g, &s);
	s.psi_cpu_us = read_pressure(&g, "cpu.pressure");
	s.psi_memory_us = read_pressure(&g, "memory.pressure");
	s.psi_io_us = read_pressure(&g, "io.pressure");
	*ret = s;
	return 0;
}

#define MOUNT         "/sys/fs/cgroup"
#define FOLDERS_MAX   8192
#define DEPTH_MAX     16
#define KNOWN_MAX     256
#define MOUNTINFO_MAX (1 << 20)
#define AGAIN_CALLS   60 /* a call a second */

struct group_folders {
	char *root;
	struct idmap known; /* struct known by the group's number */
};

struct known {
	struct group_folder folder;
	bool found;
	unsigned calls; /* since it was looked for in vain */
};

struct walk {
	char full[PATH_MAX]; /* with the root prefix */
	size_t prefix;       /* length of that */
	uint64_t id;
	unsigned folders;
};

static void drop_known(struct group_folders *f)
{
	size_t cursor = 0;
	void *k;

	while ((k = idmap_next(&f->known, &cursor, NULL)))
		free(k);
	idmap_done(&f->known);
}

int group_folders_new(const char *root, struct group_folders **ret)
{
	_cleanup_(group_folders_freep) struct group_folders *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->known = IDMAP_INIT(KNOWN_MAX);
	f->root = strdup(root);
	if (!f->root)
		return -ENOMEM;
	*ret = TAKE(f);
	return 0;
}

void group_folders_free(struct group_folders *f)
{
	if (!f)
		return;
	drop_known(f);
	free(f->root);
	free(f);
}

/* A word of a line of mountinfo: the fourth is what of the file system is mounted, the fifth where; empty if there is none. */
static void mount_word(const char *line, size_t len, int number, char *out, size_t size)
{
	const char *end = line + len, *p = line;
	const char *space;

	out[0] = 0;
	for (int word = 1; word < number; word++) {
		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return;
		p++;
	}
	space = memchr(p, ' ', (size_t)(end - p));
	if (space && (size_t)(space - p) < size) {
		memcpy(out, p, (size_t)(space - p));
		out[space - p] = 0;
	}
}

/* Whether a line of mountinfo is of control groups: of v2, or of v1's hierarchy of @controller, by the options at its end. */
static bool is_of_groups(const char *line, size_t len, const char *controller)
{
	static const char v1[] = " - cgroup ", v2[] = " - cgroup2 ";
	const char *end = line + len, *p;

	if (!controller)
		return memmem(line, len, v2, strlen(v2));
	p = memmem(line, len, v1, strlen(v1)) ? (const char *)memrchr(line, ' ', len) + 1 : end;
	for (const char *word = p; word < end; word = p + 1) {
		p = memchr(word, ',', (size_t)(end - word));
		p = p ? p : end;
		if ((size_t)(p - word) == strlen(controller) &&
			!memcmp(word, controller, strlen(controller)))
			return true;
	}
	return false;
}

struct mount {
	char group[PATH_MAX]; /* of the hierarchy, that is seen at its top */
	char point[PATH_MAX];
};

/* Where @process ("self", "1") sees control groups: the last mount at MOUNT or below it that
 * nothing else was mounted over. */
static bool find_mount(
	const char *root, const char *process, const char *controller, struct mount *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT(MOUNTINFO_MAX + 1);
	char path[64], point[PATH_MAX];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
	if (file_read_at(root, path, MOUNTINFO_MAX, &text) < 0)
		return false;
	for (const char *line = buf_str(&text), *end; *line; line = *end ? end + 1 : end) {
		size_t len;

		end = strchrnul(line, '\n');
		len = (size_t)(end - line);
		mount_word(line, len, 5, point, sizeof(point));
		if (strncmp(point, MOUNT, strlen(MOUNT)) != 0)
			continue;
		if (is_of_groups(line, len, controller)) {
			memcpy(ret->point, point, sizeof(point));
			mount_word(line, len, 4, ret->group, sizeof(ret->group));
			found = true;
			continue;
		}
		if (found && !strncmp(ret->point, point, strlen(point)))
			found = false;
	}
	return found;
}

static bool is_group(const struct walk *w)
{
	struct stat st;

	return stat(w->full, &st) == 0 && S_ISDIR(st.st_mode) && st.st_ino == w->id;
}

/* Looks for the group below w->full, which is its folder if true is returned. */
static bool search(struct walk *w, int depth)
{
	size_t len = strlen(w->full);
	bool found = false;
	struct dirent *e;
	DIR *d;

	if (depth > DEPTH_MAX || ++w->folders > FOLDERS_MAX)
		return false;
	d = opendir(w->full);
	if (!d)
		return false;
	while (!found && (e = readdir(d))) {
		if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
			len + 1 + strlen(e->d_name) >= sizeof(w->full))
			continue;
		snprintf(w->full + len, sizeof(w->full) - len, "/%s", e->d_name);
		found = is_group(w) || search(w, depth + 1);
		if (!found)
			w->full[len] = 0;
	}
	closedir(d);
	return found;
}

/* @mount: of the groups, as a path below the root prefix. */
static bool find_below(
	struct walk *w, const char *mount, const char *told, struct group_folder *ret)
{
	size_t len = strlen(mount);
	bool found = false;

	w->folders = 0;
	if (w->prefix + len + strlen(told) >= sizeof(w->full))
		return false;
	if (told[0] == '/' && told[1] && !strstr(told, "/..")) {
		snprintf(w->full + w->prefix, sizeof(w->full) - w->prefix, "%s%s", mount, told);
		found = is_group(w);
	}
	if (!found) {
		memcpy(w->full + w->prefix, mount, len + 1);
		found = is_group(w) || search(w, 0);
	}
	if (found) {
		snprintf(ret->path, sizeof(ret->path), "%s", w->full + w->prefix);
		ret->top = len;
	}
	return found;
}

/* A group of v1: what of its name is below the group that is mounted leads to it. */
static bool find_named(struct walk *w, const char *point, const char *group, const char *told,
	struct group_folder *ret)
{
	size_t len = strcmp(group, "/") ? strlen(group) : 0;
	struct stat st;

	if (strncmp(told, group, len) != 0 || (told[len] && told[len] != '/') ||
		strstr(told + len, "/..") ||
		snprintf(w->full + w->prefix, sizeof(w->full) - w->prefix, "%s%s", point,
			told + len) >= (int)(sizeof(w->full) - w->prefix) ||
		stat(w->full, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	snprintf(ret->path, sizeof(ret->path), "%s", w->full + w->prefix);
	ret->top = strlen(point);
	return true;
}

static bool look(struct group_folders *f, const struct group_asked *asked, struct group_folder *ret)
{
	struct walk w = {.prefix = strlen(f->root), .id = asked->id};
	char pid[16], point[PATH_MAX];
	char below[PATH_MAX] = "";
	const char *const seen_by[] = {"self", "1", pid};
	struct mount m;

	if (w.prefix >= sizeof(w.full))
		return false;
	memcpy(w.full, f->root, w.prefix + 1);
	snprintf(pid, sizeof(pid), "%" PRIu32, asked->pid);
	for (size_t i = 0; i < ARRAY_SIZE(seen_by); i++) {
		if (i) /* as that process sees it */
			snprintf(below, sizeof(below), "/proc/%s/root", seen_by[i]);
		if (!find_mount(f->root, seen_by[i], asked->controller, &m) ||
			snprintf(point, sizeof(point), "%s%s", below, m.point) >=
				(int)sizeof(point))
			continue;
		if (asked->controller ? find_named(&w, point, m.group, asked->path, ret)
				      : find_below(&w, point, asked->path, ret))
			return true;
	}
	return false;
}

const struct group_folder *group_folders_find(
	struct group_folders *f, const struct group_asked *asked)
{
	struct known *k = idmap_get(&f->known, asked->id);

	if (!k) {
		if (f->known.used >= KNOWN_MAX)
			drop_known(f);
		k = calloc(1, sizeof(*k));
		if (!k || idmap_put(&f->known, asked->id, k) < 0) {
			free(k);
			return NULL;
		}
	} else if (k->found) {
		return &k->folder;
	} else if (++k->calls < AGAIN_CALLS) {
		return NULL;
	}
	k->calls = 0;
	k->found = look(f, asked, &k->folder);
	return k->found ? &k->folder : NULL;
}
