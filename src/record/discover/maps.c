/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - reads /proc/PID/maps in pieces, line by line in a fixed buffer: a process may have
 * 65,530 mappings with names of 4 KiB each. A line that does not fit is skipped to its end. */
#include "record/discover/maps.h"

#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "record/discover/discover.h"

#define MAPS_BYTES_MAX (64 << 20) /* of one process's maps that are read */
DEFINE_CLEANUP(struct map_watch *, map_watch_close)

/* One dummy software event per CPU, which counts nothing and only
 * makes the kernel write PERF_RECORD_MMAP2 into its ring. Runs on the tracer's thread.
 *
 * A ring holds some 250 records of a long path: as many as 50 programs that start on one CPU
 * between two looks. */

#define RING_BYTES   (64 << 10) /* of records, per CPU; a power of two, a multiple of any page */
#define RECORD_BYTES 8192       /* more than a record with the longest path */
#define CPUS_MAX     4096

struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *page; /* followed by the records */
	size_t bytes;                      /* mapped */
};

struct map_watch {
	int epoll_fd;
	struct cpu_ring *cpus;
	size_t count;
};

/* As in perf_event_open(2), with what sample_type adds behind the name. */
struct mmap2_record {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char name[];
};

struct lost_record {
	struct perf_event_header h;
	uint64_t id, lost;
};

void map_watch_close(struct map_watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		munmap(w->cpus[i].page, w->cpus[i].bytes);
		close(w->cpus[i].fd);
	}
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	free(w->cpus);
	free(w);
}

static int watch_cpu(struct map_watch *w, int cpu)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.sample_id_all = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1};
	struct cpu_ring *c = &w->cpus[w->count];
	struct epoll_event e = {.events = EPOLLIN};
	int r;

	c->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (c->fd < 0)
		return errno == ENODEV ? 0 : -errno; /* offline */
	c->bytes = (size_t)sysconf(_SC_PAGESIZE) + RING_BYTES;
	c->page = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	r = c->page == MAP_FAILED ? -errno : 0;
	if (r == 0 && epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, c->fd, &e) < 0) {
		r = -errno;
		munmap(c->page, c->bytes);
	}
	if (r < 0)
		close(c->fd);
	else
		w->count++;
	return r;
}

int map_watch_open(struct map_watch **ret, struct errinfo *reterr)
{
	_cleanup_(map_watch_closep) struct map_watch *w = calloc(1, sizeof(*w));
	long cpus = MIN(sysconf(_SC_NPROCESSORS_CONF), (long)CPUS_MAX);
	int r;

	if (!w)
		return -ENOMEM;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->cpus = calloc((size_t)MAX(cpus, 1L), sizeof(*w->cpus));
	if (w->epoll_fd < 0 || !w->cpus)
		return -ENOMEM;
	for (int i = 0; i < cpus; i++) {
		r = watch_cpu(w, i);
		if (r < 0)
			return errinfo_set(
				reterr, r, "cannot watch mappings on CPU %d: %s", i, strerror(-r));
	}
	if (!w->count)
		return errinfo_set(reterr, -ENODEV, "cannot watch mappings on any CPU");
	*ret = TAKE(w);
	return 0;
}

int map_watch_fd(const struct map_watch *w)
{
	return w->epoll_fd;
}

bool map_watch_parse(const void *record, size_t len, struct map_watch_mapping *ret)
{
	const struct mmap2_record *m = record;
	struct map_watch_mapping v = {0};
	size_t room, name_len;
	const char *base;

	if (len < sizeof(*m) + sizeof(v.at.ns) || m->h.type != PERF_RECORD_MMAP2 ||
		m->h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID || !(m->prot & PROT_EXEC) || !m->inode ||
		!m->pid || m->pid > INT32_MAX) /* of a process outside our namespace */
		return false;
	room = len - sizeof(*m) - sizeof(v.at.ns);
	name_len = strnlen(m->name, room);
	base = memrchr(m->name, '/', name_len);
	if (name_len == room || !base ||
		discover_library_kind(
			base + 1, (size_t)(m->name + name_len - base - 1), &v.library.kind) < 0)
		return false;
	if (name_len < sizeof(v.library.path))
		memcpy(v.library.path, m->name, name_len);
	v.pid = m->pid;
	v.library.dev = makedev(m->maj, m->min);
	v.library.inode = m->inode;
	v.library.map_start = m->addr;
	v.library.map_end = m->addr + m->len;
	memcpy(&v.at.ns, (const char *)record + len - sizeof(v.at.ns), sizeof(v.at.ns));
	*ret = v;
	return true;
}

/* Bytes of the ring from @at on, which may go round its end. */
static void copy_out(const struct cpu_ring *c, uint64_t at, void *out, size_t len)
{
	const char *data = (const char *)c->page + (c->bytes - RING_BYTES);
	size_t from = at & (RING_BYTES - 1), first = MIN(len, RING_BYTES - from);

	memcpy(out, data + from, first);
	memcpy((char *)out + first, data, len - first);
}

static uint64_t read_ring(struct cpu_ring *c, map_watch_take *take, void *arg)
{
	uint64_t head = __atomic_load_n(&c->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = c->page->data_tail, lost = 0;
	uint64_t words[RECORD_BYTES / sizeof(uint64_t)];

	while (tail + sizeof(struct perf_event_header) <= head) {
		struct perf_event_header *h = (void *)words;
		struct map_watch_mapping m;

		copy_out(c, tail, h, sizeof(*h));
		if (h->size < sizeof(*h) || tail + h->size > head) {
			tail = head;
			lost++;
			break;
		}
		copy_out(c, tail, words, MIN((size_t)h->size, sizeof(words)));
		tail += h->size;
		if (h->type == PERF_RECORD_LOST && h->size >= sizeof(struct lost_record))
			lost += ((const struct lost_record *)(const void *)words)->lost;
		else if (h->size <= sizeof(words) && map_watch_parse(words, h->size, &m))
			take(arg, &m);
	}
	__atomic_store_n(&c->page->data_tail, tail, __ATOMIC_RELEASE);
	return lost;
}

uint64_t map_watch_read(struct map_watch *w, map_watch_take *take, void *arg)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < w->count; i++)
		lost += read_ring(&w->cpus[i], take, arg);
	return lost;
}

#define DELETED " (deleted)"

/* A hexadecimal or decimal number up to @stop, which is consumed. */
static bool take_number(const char **p, const char *end, unsigned base, char stop, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end && *s != stop; s++) {
		unsigned digit = *s >= '0' && *s <= '9'   ? (unsigned)(*s - '0')
				 : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a') + 10
							  : 99;

		if (digit >= base || v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	if (s == *p || s == end)
		return false;
	*p = s + 1;
	*ret = v;
	return true;
}

bool maps_parse(const char *line, size_t len, struct maps_entry *ret)
{
	const char *p = line, *end = line + len;
	struct maps_entry e = {0};
	uint64_t major, minor;

	if (!take_number(&p, end, 16, '-', &e.start) || !take_number(&p, end, 16, ' ', &e.end))
		return false;
	if (end - p < 5 || p[4] != ' ')
		return false;
	e.executable = p[2] == 'x';
	p += 5;
	if (!take_number(&p, end, 16, ' ', &e.offset) || !take_number(&p, end, 16, ':', &major) ||
		!take_number(&p, end, 16, ' ', &minor) || !take_number(&p, end, 10, ' ', &e.inode))
		return false;
	e.dev = makedev((unsigned)major, (unsigned)minor);
	while (p < end && *p == ' ')
		p++;
	if (e.inode && (size_t)(end - p) > strlen(DELETED) &&
		memcmp(end - strlen(DELETED), DELETED, strlen(DELETED)) == 0) {
		e.deleted = true;
		end -= strlen(DELETED);
	}
	e.path = p;
	e.path_len = (size_t)(end - p);
	*ret = e;
	return true;
}

struct line_reader {
	char data[16384];
	size_t len;
	bool skipping; /* inside a line that was too long */
	bool done;
	maps_take *take;
	void *arg;
};

/* Looks at the complete lines in @r and keeps the rest of the last one. */
static void take_lines(struct line_reader *r)
{
	char *p = r->data, *end = r->data + r->len, *nl;
	struct maps_entry e;

	while (!r->done && (nl = memchr(p, '\n', (size_t)(end - p)))) {
		if (!r->skipping && maps_parse(p, (size_t)(nl - p), &e))
			r->done = !r->take(r->arg, &e);
		r->skipping = false;
		p = nl + 1;
	}
	r->len = (size_t)(end - p);
	memmove(r->data, p, r->len);
	if (r->len == sizeof(r->data)) {
		r->skipping = true;
		r->len = 0;
	}
}

int maps_read(const char *root, uint32_t pid, maps_take *take, void *arg)
{
	struct line_reader r = {.len = 0, .take = take, .arg = arg};
	_cleanup_fd_ int fd = -1;
	size_t total = 0;

	fd = discover_open_file(root, pid, "maps");
	if (fd < 0)
		return fd;
	while (!r.done) {
		ssize_t got = read(fd, r.data + r.len, sizeof(r.data) - r.len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EPERM ? -EACCES : -errno;
		if (got == 0)
			break;
		r.len += (size_t)got;
		total += (size_t)got;
		take_lines(&r);
		if (total >= MAPS_BYTES_MAX)
			return 1;
	}
	return 0;
}
