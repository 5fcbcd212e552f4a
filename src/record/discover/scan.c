/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - all CUDA processes, again and again.
 *
 * A scan reads one small file per process (stat) and the maps only of processes that are new or
 * have changed: another start time, name, size of address space or number of threads. A dlopen
 * changes the size; that an munmap of exactly as much hides it is possible, so each process's maps
 * are also read every SCAN_REREAD scans, a different share of the processes each time.
 *
 * Invariants: entries are sorted by pid and unique; an entry not seen in the latest scan is
 * dropped, so memory follows the number of live processes, up to SCAN_PROCESSES_MAX. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>

#include "base/search.h"
#include "base/array.h"
#include "base/bounded.h"
#include "base/file.h"
#include "record/discover/discover.h"
#include "record/discover/embedded.h"

/* The facts of one process from /proc/PID/{stat,status,cmdline,cgroup}.
 * The name in stat is any bytes, parentheses and newlines included: it ends at the last ')'. The command line lies in the
 * process's own memory, which may keep its reader waiting: it is read beside (base/bounded.h). */

static int read_proc(const char *root, uint32_t pid, const char *file, struct buf *b)
{
	int r = file_read_at(root, FORMATTED(64, "/proc/%" PRIu32 "/%s", pid, file), b->max, b);

	return r == -ENOENT ? -ESRCH : r == -EFBIG ? 0 : r;
}

int discover_open_file(const char *root, uint32_t pid, const char *name)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/%s", root, pid, name) >=
		(int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EPERM ? -EACCES : -errno;
	return fd;
}

/* Fields behind the name, numbered as in proc(5): 3 state, 4 ppid, 20 threads, 22 start, 23 vsize.
 */
static int parse_stat_tail(const char *p, struct discover_process *d)
{
	char *end;

	for (int field = 3; field <= 23; field++) {
		unsigned long long v = 0;

		while (*p == ' ')
			p++;
		if (!*p)
			return -EBADMSG;
		if (field == 4 || field == 20 || field >= 22) {
			errno = 0;
			v = strtoull(p, &end, 10);
			if (errno || end == p || (*end && *end != ' ' && *end != '\n'))
				return -EBADMSG;
		}
		switch (field) {
		case 4: d->ppid = (uint32_t)v; break;
		case 20: d->threads = (uint32_t)v; break;
		case 22: d->start_ticks = v; break;
		case 23: d->vsize_bytes = v; break;
		}
		p += strcspn(p, " ");
	}
	return 0;
}

int discover_process_stat(const char *root, uint32_t pid, struct discover_process *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct discover_process d = {.pid = pid};
	const char *open, *close;
	int r = read_proc(root, pid, "stat", &b);

	if (r < 0)
		return r;
	open = memchr(buf_str(&b), '(', b.len);
	close = memrchr(buf_str(&b), ')', b.len);
	if (!open || !close || close < open)
		return -EBADMSG;
	snprintf(d.comm, sizeof(d.comm), "%.*s", (int)(close - open - 1), open + 1);
	r = parse_stat_tail(close + 1, &d);
	if (r < 0)
		return r;
	*ret = d;
	return 0;
}

int discover_uid(const char *root, uint32_t pid, uint32_t *ret_uid)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	const char *line;
	int r = read_proc(root, pid, "status", &b);

	if (r < 0)
		return r;
	/* "Name:" comes first and has its newlines escaped, so no name can forge this line. */
	line = strstr(buf_str(&b), "\nUid:\t");
	if (!line)
		return -EBADMSG;
	*ret_uid = (uint32_t)strtoul(line + 6, NULL, 10);
	return 0;
}

/* The arguments as they are, at most TARGET_CMDLINE_MAX - 1 bytes and a NUL; "" if they may not be read. */
static size_t read_arguments(
	const char *root, uint32_t pid, uint32_t uid, char out[TARGET_CMDLINE_MAX])
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/cmdline", root, pid);

	n = n < (int)sizeof(path) ? bounded_read(uid, path, out, TARGET_CMDLINE_MAX - 1) : 0;
	out[MAX(n, 0)] = 0;
	return (size_t)MAX(n, 0);
}

static void read_cmdline(const char *root, uint32_t pid, uint32_t uid, char out[TARGET_CMDLINE_MAX])
{
	size_t len = read_arguments(root, pid, uid, out);

	while (len > 0 && out[len - 1] == 0)
		len--;
	for (size_t i = 0; i < len; i++)
		out[i] = out[i] ? out[i] : ' ';
}

/* "Cpus_allowed:\tff,ffffffff" */
uint32_t discover_cpus(const char *root, uint32_t pid)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *at = read_proc(root, pid, "status", &b) < 0
				 ? NULL
				 : strstr(buf_str(&b), "\nCpus_allowed:\t");
	uint32_t cpus = 0;

	for (at = at ? strchr(at, '\t') + 1 : ""; *at && *at != '\n'; at++) {
		const char digit[] = {*at, 0};

		cpus += (uint32_t)__builtin_popcountl(strtoul(digit, NULL, 16));
	}
	return *at ? cpus : 0; /* cut: it is of a user of many groups */
}

void discover_program(
	const char *root, uint32_t pid, char ret_script[SCRIPT_MAX], uint32_t *ret_cpus)
{
	char arguments[TARGET_CMDLINE_MAX];
	uint32_t uid = 0;

	ret_script[0] = 0;
	(void)discover_uid(root, pid, &uid); /* gone: there is nothing to read either */
	script_of(arguments, read_arguments(root, pid, uid, arguments), ret_script);
	*ret_cpus = discover_cpus(root, pid);
}

static void read_cgroup(const char *root, uint32_t pid, char out[TARGET_PATH_MAX])
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *path, *unified;

	out[0] = 0;
	if (read_proc(root, pid, "cgroup", &b) < 0)
		return;
	unified = strncmp(buf_str(&b), "0::", 3) == 0 ? buf_str(&b) : strstr(buf_str(&b), "\n0::");
	path = strchr(unified ? unified : buf_str(&b), '/');
	if (path)
		snprintf(out, TARGET_PATH_MAX, "%.*s", (int)strcspn(path, "\n"), path);
}

int discover_process(const char *root, uint32_t pid, struct discover_process *ret)
{
	struct discover_process d;
	int r = discover_process_stat(root, pid, &d);

	if (r < 0)
		return r;
	r = discover_uid(root, pid, &d.uid);
	if (r < 0)
		return r;
	read_cmdline(root, pid, d.uid, d.cmdline);
	read_cgroup(root, pid, d.cgroup);
	*ret = d;
	return 0;
}

#define SCAN_PROCESSES_MAX 65536
#define SCAN_REREAD        16

struct entry {
	uint32_t pid;
	uint32_t threads;
	uint64_t start_ticks;
	uint64_t vsize_bytes;
	char comm[TARGET_COMM_MAX];
	uint32_t uid; /* known if it has libraries */
	bool unreadable;
	bool partial;   /* not all its files were looked at for libraries inside */
	size_t dropped; /* mappings beyond DISCOVER_LIBRARIES_MAX */
	struct target_library *libraries;
	size_t library_count;
};

struct list {
	struct entry *entries;
	size_t count, room;
};

struct discover_scanner {
	char root[PATH_MAX];
	struct list known;
	struct embedded *embedded;
	unsigned round;
	struct discover_result result;
};

static void list_done(struct list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->entries[i].libraries);
	free(l->entries);
	*l = (struct list){0};
}

static int list_add(struct list *l, const struct entry *e)
{
	int r = ARRAY_RESERVE(l->entries, l->room, l->count + 1, SCAN_PROCESSES_MAX);

	if (r < 0)
		return r;
	l->entries[l->count++] = *e;
	return 0;
}

ORDER(compare_pid, struct entry, ASCENDING(pid))

int discover_scanner_new(const char *root, struct discover_scanner **ret)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = file_join(s->root, sizeof(s->root), root, "");
	r = r ?: embedded_new(&s->embedded);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void discover_scanner_free(struct discover_scanner *s)
{
	list_done(&s->known);
	embedded_freep(&s->embedded);
	free(s->result.processes);
	free(s);
}

static bool is_unchanged(const struct discover_scanner *s, const struct entry *old,
	const struct discover_process *now)
{
	return old && !old->partial && old->start_ticks == now->start_ticks &&
	       old->vsize_bytes == now->vsize_bytes && old->threads == now->threads &&
	       strcmp(old->comm, now->comm) == 0 && (now->pid + s->round) % SCAN_REREAD != 0;
}

static int find_libraries(struct discover_scanner *s, uint32_t pid, struct target_library *ret,
	size_t max, size_t *ret_dropped, bool *ret_is_partial)
{
	int n = discover_libraries(s->root, pid, ret, max, ret_dropped);

	if (n < 0 || !discover_uses_cuda(ret, (size_t)n))
		return n;
	return embedded_find(
		s->embedded, s->root, pid, ret, (size_t)n, max, ret_dropped, ret_is_partial);
}

int discover_scanner_libraries(struct discover_scanner *s, uint32_t pid, struct target_library *ret,
	size_t max, size_t *ret_dropped)
{
	bool is_partial;

	return find_libraries(s, pid, ret, max, ret_dropped, &is_partial);
}

/* Reads the maps of @e's process. A process that ended meanwhile is -ESRCH. */
static int read_libraries(struct discover_scanner *s, struct entry *e)
{
	struct target_library found[DISCOVER_LIBRARIES_MAX];
	struct discover_process facts;
	int n = find_libraries(s, e->pid, found, ARRAY_SIZE(found), &e->dropped, &e->partial);
	int r;

	s->result.maps_read++;
	if (n == -EACCES) {
		e->unreadable = true;
		return 0;
	}
	if (n < 0)
		return n;
	if (!discover_uses_cuda(found, (size_t)n))
		return 0;
	r = discover_process(s->root, e->pid, &facts);
	if (r < 0)
		return r;
	e->libraries = reallocarray(NULL, (size_t)n, sizeof(*found));
	if (!e->libraries)
		return -ENOMEM;
	memcpy(e->libraries, found, (size_t)n * sizeof(*found));
	e->library_count = (size_t)n;
	e->uid = facts.uid;
	return 0;
}

/* Looks at one process and adds it to @next; one that has gone is no error. */
static int scan_process(struct discover_scanner *s, uint32_t pid, struct list *next)
{
	struct entry key = {.pid = pid}, e = {.pid = pid};
	struct discover_process now;
	struct entry *old;
	int r = discover_process_stat(s->root, pid, &now);

	if (r < 0)
		return 0;
	s->result.seen++;
	if (now.vsize_bytes == 0)
		return 0;
	if (next->count >= SCAN_PROCESSES_MAX) {
		s->result.dropped++;
		return 0;
	}
	old = s->known.count
		      ? bsearch(&key, s->known.entries, s->known.count, sizeof(key), compare_pid)
		      : NULL;
	if (is_unchanged(s, old, &now)) {
		e = *old;
		old->libraries = NULL; /* moved */
	} else {
		e.start_ticks = now.start_ticks;
		e.vsize_bytes = now.vsize_bytes;
		e.threads = now.threads;
		memcpy(e.comm, now.comm, sizeof(e.comm));
		r = read_libraries(s, &e);
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			return 0;
	}
	s->result.unreadable += e.unreadable;
	s->result.libraries_dropped += e.dropped;
	r = list_add(next, &e);
	if (r < 0)
		free(e.libraries);
	return r;
}

static int make_result(struct discover_scanner *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->known.count; i++)
		n += s->known.entries[i].library_count > 0;
	if (n == 0)
		return 0;
	s->result.processes = calloc(n, sizeof(*s->result.processes));
	if (!s->result.processes)
		return -ENOMEM;
	for (size_t i = 0; i < s->known.count; i++) {
		const struct entry *e = &s->known.entries[i];
		struct target_process *p = &s->result.processes[s->result.count];

		if (e->library_count == 0)
			continue;
		*p = (struct target_process){.pid = e->pid,
			.uid = e->uid,
			.start_ticks = e->start_ticks,
			.libraries = e->libraries,
			.library_count = e->library_count};
		memcpy(p->comm, e->comm, sizeof(p->comm));
		s->result.count++;
	}
	return 0;
}

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

int discover_scan(struct discover_scanner *s, const struct discover_result **ret)
{
	_cleanup_(list_done) struct list next = {0};
	_cleanup_(dir_closep) DIR *dir = NULL;
	char path[PATH_MAX];
	struct dirent *d;
	int r = file_join(path, sizeof(path), s->root, "/proc");

	if (r < 0)
		return r;
	dir = opendir(path);
	if (!dir)
		return -errno;
	free(s->result.processes);
	s->result = (struct discover_result){0};
	s->round++;
	while ((d = readdir(dir))) {
		char *end;
		unsigned long pid = strtoul(d->d_name, &end, 10);

		if (*end || d->d_name[0] < '1' || d->d_name[0] > '9' || pid > INT32_MAX)
			continue;
		r = scan_process(s, (uint32_t)pid, &next);
		if (r < 0)
			return r;
	}
	SORT(next.entries, next.count, compare_pid);
	list_done(&s->known);
	s->known = next;
	next = (struct list){0};
	r = make_result(s);
	if (r < 0)
		return r;
	*ret = &s->result;
	return 0;
}
