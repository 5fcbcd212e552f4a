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
#include "record/discover/discover.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "record/discover/embedded.h"
#include "base/array.h"
#include "base/file.h"

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

static int compare_pid(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int discover_scanner_new(const char *root, struct discover_scanner **ret)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = file_join(s->root, sizeof(s->root), root, "");
	if (r == 0)
		r = embedded_new(&s->embedded);
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
	if (next.count)
		qsort(next.entries, next.count, sizeof(*next.entries), compare_pid);
	list_done(&s->known);
	s->known = next;
	next = (struct list){0};
	r = make_result(s);
	if (r < 0)
		return r;
	*ret = &s->result;
	return 0;
}
