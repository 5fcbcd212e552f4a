/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - reads a process's mappings and opens the files behind them. Runs on the tracer's
 * thread.
 *
 * Files are opened while the process lives and kept by the symbol process, so that the stacks of
 * one that has ended still get names. Nothing but regular files is opened: opening a device may do
 * something. */
#include "record/stack/space.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "record/discover/discover.h"
#include "record/python/python.h"
#include "record/stack/remote.h"
#include "base/bounded.h"
#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/search.h"

#define VDSO_INODE         1 /* of device 0: where no file can be */
#define VDSO_BYTES         65536
#define KERNEL_HALF        (1ULL << 63)     /* addresses from here on are the kernel's */
#define PYTHON_AGAIN_NS    (50 * NS_PER_MS) /* until the interpreter has come up */
#define PYTHON_SHARE       20               /* trying again may take a twentieth of the time */
#define PYTHON_PATIENCE_NS (5 * NS_PER_S)   /* for one look at its memory */
#define GUESS_AGAIN_NS     NS_PER_S         /* until its layout is certain */
#define GENERATED_AGAIN_NS NS_PER_S
#define HANDLES_AGAIN_NS   (500 * NS_PER_MS)
#define HANDLES_WINDOW     65536 /* bytes of variables that are read at a time */
#define HANDLES_READS      1024  /* of these for one file: 64 MiB of it */

struct scan {
	struct stack_space *space;
	struct stack_files *files;
	struct space_mapping *mappings;
	size_t count, room;
	int err;
	uint64_t base, base_dev, base_inode; /* the file whose start was seen last, and where */
	struct stack_file *python_file;      /* that may hold an interpreter */
	uint64_t python_base;
};

/* The kernel's own code in every process is the same: ours is the copy that is read. */
static struct stack_file *vdso_file(struct stack_files *fs)
{
	struct stack_file *f = stack_files_find(fs, 0, VDSO_INODE);
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	long page = sysconf(_SC_PAGESIZE);
	int fd;

	if (f || !image)
		return f;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	for (size_t done = 0; fd >= 0 && done < VDSO_BYTES; done += (size_t)page)
		if (write(fd, image + done, (size_t)page) != page)
			break; /* behind its end: EFAULT */
	return stack_files_add(fs, 0, VDSO_INODE, "", "[vdso]", fd);
}

static int open_mapped(uint32_t pid, const struct maps_entry *e)
{
	struct target_library l = {.kind = TARGET_EXECUTABLE,
		.dev = e->dev,
		.inode = e->inode,
		.map_start = e->start,
		.map_end = e->end};

	if (!e->deleted && e->path_len < sizeof(l.path))
		memcpy(l.path, e->path, e->path_len);
	return discover_library_open("", pid, &l);
}

static struct stack_file *file_of(struct scan *s, const struct maps_entry *e)
{
	struct stack_file *f;
	char name[PATH_MAX], root[32];

	if (e->path_len == 6 && memcmp(e->path, "[vdso]", 6) == 0)
		return vdso_file(s->files);
	if (!e->inode || !e->path_len || e->path[0] != '/')
		return NULL;
	f = stack_files_find(s->files, e->dev, e->inode);
	if (f)
		return f;
	snprintf(name, sizeof(name), "%.*s", (int)MIN(e->path_len, sizeof(name) - 1), e->path);
	snprintf(root, sizeof(root), "/proc/%u/root", s->space->pid);
	return stack_files_add(
		s->files, e->dev, e->inode, root, name, open_mapped(s->space->pid, e));
}

bool space_is_code(const struct maps_entry *e)
{
	return e->executable && e->start < KERNEL_HALF;
}

static bool take_mapping(void *arg, const struct maps_entry *e)
{
	struct scan *s = arg;
	struct space_mapping m = {.start = e->start, .end = e->end, .offset = e->offset};

	if (e->inode && !e->offset) {
		s->base = e->start;
		s->base_dev = e->dev;
		s->base_inode = e->inode;
	}
	if (!space_is_code(e))
		return true;
	if (ARRAY_RESERVE(s->mappings, s->room, s->count + 1, 64 * STACK_MAPPINGS_MAX) < 0) {
		s->err = -ENOMEM;
		return false;
	}
	m.file = file_of(s, e);
	s->mappings[s->count++] = m;
	/* A program that is only a front of the library has its name, but no interpreter. */
	if (m.file && m.file->may_be_python && s->base_inode == e->inode && s->base_dev == e->dev &&
		(!s->python_file || !strncmp(m.file->name, "lib", 3))) {
		s->python_file = m.file;
		s->python_base = s->base;
	}
	return true;
}

/* A thread's id in its own namespace is the last of the list. */
static uint32_t own_tid(uint32_t pid, uint32_t tid)
{
	_cleanup_buf_ struct buf text = BUF_INIT(16384);
	const char *at, *end;

	if (file_read(FORMATTED(64, "/proc/%u/task/%u/status", pid, tid), 16384, &text) < 0)
		return tid;
	at = strstr(buf_str(&text), "\nNSpid:");
	if (!at)
		return tid;
	end = strchr(at + 1, '\n');
	while (end && end > at && end[-1] != '\t')
		end--;
	return end ? (uint32_t)strtoul(end, NULL, 10) : tid;
}

uint32_t space_tid(const struct stack_space *s, uint32_t tid)
{
	if (tid == s->pid)
		return s->main_tid;
	return s->main_tid == s->pid ? tid : own_tid(s->pid, tid);
}

static bool is_still_it(struct stack_space *s)
{
	struct discover_process p;

	if (discover_process_stat("", s->pid, &p) < 0)
		return false;
	if (s->start_ticks && s->start_ticks != p.start_ticks)
		return false;
	s->start_ticks = p.start_ticks;
	return true;
}

static void leave_job(struct stack_space *s);

void space_take_python(struct stack_space *s, struct stack_file *f, uint64_t base)
{
	if (s->python_state != SPACE_NO_PYTHON &&
		(f == s->python_file || s->python_state == SPACE_PYTHON_READY))
		return;
	leave_job(s);
	s->python_file = f;
	s->python_base = base;
	s->python_state = SPACE_PYTHON_WAITS;
	s->main_tid = own_tid(s->pid, s->pid);
}

int space_scan(struct stack_space *s, struct stack_files *fs)
{
	struct scan n = {.space = s, .files = fs};
	int r;

	if (!is_still_it(s))
		return -ESRCH;
	r = maps_read("", s->pid, take_mapping, &n);
	if (r >= 0 && n.err)
		r = n.err;
	/* Between the two looks it may have become another process. */
	if (r >= 0 && !is_still_it(s))
		r = -ESRCH;
	if (r < 0 || (s->count == n.count &&
			     (!n.count || memcmp(s->mappings, n.mappings,
						  n.count * sizeof(*n.mappings)) == 0))) {
		free(n.mappings);
		return r < 0 ? r : 0;
	}
	free(s->mappings);
	s->handle_count = 0; /* their files may be gone */
	s->handles_read = (mono_time){0};
	s->mappings = n.mappings;
	s->count = n.count;
	s->is_dirty = true;
	if (n.python_file)
		space_take_python(s, n.python_file, n.python_base);
	return 1;
}

void space_inherit(struct stack_space *s, const struct stack_space *parent)
{
	if (!parent || !parent->count || s->mappings)
		return;
	s->mappings = malloc(parent->count * sizeof(*s->mappings));
	if (!s->mappings)
		return;
	memcpy(s->mappings, parent->mappings, parent->count * sizeof(*s->mappings));
	s->count = parent->count;
}

const struct space_mapping *space_find(const struct stack_space *s, uint64_t address)
{
	size_t at = LOWER_BOUND(i, s->count, s->mappings[i].end <= address);

	return at < s->count && s->mappings[at].start <= address ? &s->mappings[at] : NULL;
}

bool space_is_known(const struct stack_space *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct stack_file *f = s->mappings[i].file;

		if (f && f->number && (!f->is_identified || f->table_state == TABLE_ASKED))
			return false;
	}
	return true;
}

void space_mappings(const struct stack_space *s, struct stack_mappings *ret)
{
	size_t n = MIN(s->count, (size_t)STACK_MAPPINGS_MAX);

	memset(ret, 0, sizeof(*ret));
	memset(ret->start, STACK_UNUSED_BYTE, sizeof(ret->start));
	ret->count = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct space_mapping *m = &s->mappings[i];
		const struct stack_file *f = m->file;

		ret->start[i] = m->start;
		ret->at[i].end = m->end;
		ret->at[i].offset = m->offset;
		if (!f)
			continue;
		ret->at[i].identity = f->identity;
		if (f->table_state == TABLE_READY) {
			ret->at[i].pool = f->table.pool;
			ret->at[i].base = f->table.base;
			ret->at[i].indexes = (uint16_t)f->table.indexes;
		}
	}
}

int space_read(void *arg, uint64_t address, void *out, size_t len)
{
	const struct stack_space *s = arg;

	return remote_read(s->pid, s->uid, address, out, len);
}

static uint64_t place_address(const struct stack_space *s, const struct symbol_place *p)
{
	return p->found ? s->python_base + p->vaddr - s->python_file->load_base : 0;
}

static bool python_is_due(const struct stack_space *s, mono_time now)
{
	uint64_t since_ns = (uint64_t)(now.ns - s->python_tried.ns);

	if (s->ended.ns)
		return false;
	if (s->python_state == SPACE_PYTHON_READY)
		return s->python_is_guess && since_ns >= GUESS_AGAIN_NS;
	return s->python_state == SPACE_PYTHON_WAITS &&
	       since_ns >= MAX(PYTHON_AGAIN_NS, s->python_took_ns * PYTHON_SHARE);
}

/* A layout that was found is kept until there is a better one. */
static bool take_layout(struct stack_space *s, const struct stack_python *found, bool is_guess)
{
	bool is_new = s->python_state != SPACE_PYTHON_READY ||
		      memcmp(&s->python, found, sizeof(*found)) != 0;

	s->python = *found;
	s->python_is_guess = is_guess;
	s->python_state = SPACE_PYTHON_READY;
	return is_new;
}

struct layout_job { /* beside this thread: whose memory it is may not want to be read */
	struct bounded_job job;
	uint32_t pid, tid;
	struct python_symbols symbols;
	char path[NAME_MAX + 1];
	struct stack_python found;
	uint64_t took_ns;
	struct errinfo e;
};

static int read_now(void *arg, uint64_t address, void *out, size_t len)
{
	const struct layout_job *j = arg;

	return remote_read_now(j->pid, address, out, len);
}

static int run_layout(struct bounded_job *job)
{
	struct layout_job *j = (struct layout_job *)job;
	const struct python_memory memory = {read_now, j};
	mono_time begun = mono_now();
	int r = python_layout(&memory, &j->symbols, j->tid, &j->found, &j->e);

	j->took_ns = mono_now().ns - begun.ns;
	return r;
}

static struct layout_job *layout_job_new(const struct stack_space *s)
{
	const struct stack_file *f = s->python_file;
	struct layout_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job.run = run_layout;
	j->job.uid = s->uid;
	j->pid = s->pid;
	j->tid = s->main_tid;
	snprintf(j->path, sizeof(j->path), "%s", f->name);
	j->symbols = (struct python_symbols){.runtime = place_address(s, &f->places[0]),
		.code_type = place_address(s, &f->places[1]),
		.unicode_type = place_address(s, &f->places[2]),
		.path = j->path};
	if (f->places[3].found && f->places[3].has_content)
		memcpy(&j->symbols.version, f->places[3].content, sizeof(j->symbols.version));
	return j;
}

static void refuse_python(struct stack_space *s, const char *why)
{
	if (s->python_state == SPACE_PYTHON_READY)
		return;
	s->python_state = SPACE_PYTHON_REFUSED;
	snprintf(s->python_reason, sizeof(s->python_reason), "%s", why);
	log_info("process %u: no Python frames: %s", s->pid, why);
}

static int post_layout(struct stack_space *s, mono_time now)
{
	struct layout_job *j;
	int r;

	s->python_tried = now;
	if (!place_address(s, &s->python_file->places[0])) {
		s->python_state = SPACE_NO_PYTHON; /* a front of the library, or something else */
		return -ENOENT;
	}
	j = layout_job_new(s);
	r = j ? bounded_post(&j->job) : -ENOMEM;
	if (r == 0)
		s->python_job = j;
	return r;
}

static void leave_job(struct stack_space *s)
{
	if (s->python_job)
		bounded_leave(&TAKE(s->python_job)->job);
}

bool space_python(struct stack_space *s, mono_time now)
{
	const struct stack_file *f = s->python_file;

	if (s->python_job && bounded_is_done(&s->python_job->job)) {
		_cleanup_free_ struct layout_job *j = TAKE(s->python_job);
		int r = j->job.result;

		s->python_took_ns = j->took_ns;
		if (r >= 0)
			return take_layout(s, &j->found, r > 0);
		if (r != -EAGAIN)
			refuse_python(s, j->e.text);
		return false;
	}
	if (s->python_job && now.ns - s->python_tried.ns > PYTHON_PATIENCE_NS) {
		leave_job(s);
		refuse_python(s, "its memory does not answer");
	}
	if (!s->python_job && python_is_due(s, now) && f->places_known && f->has_load_base)
		(void)post_layout(s, now);
	return false;
}

struct stack_file *space_generated(struct stack_space *s, struct stack_files *fs, mono_time now)
{
	struct stat st;
	int fd;

	if (s->ended.ns || now.ns - s->generated_tried.ns < GENERATED_AGAIN_NS)
		return s->generated;
	s->generated_tried = now;
	fd = foreign_open_perf_map(
		"", s->pid, s->main_tid ? s->main_tid : own_tid(s->pid, s->pid), &st);
	if (fd < 0)
		return s->generated;
	if (st.st_size == s->generated_size) {
		close(fd);
		return s->generated;
	}
	if (s->generated)
		stack_file_renew(fs, s->generated, fd);
	else
		s->generated = stack_files_generated(fs, fd);
	s->generated_size = st.st_size;
	return s->generated;
}

/* ---- handles of kernels ---- */

ORDER(compare_handle, struct space_handle, ASCENDING(value))

/* Those of @f from the @first on that lie in one window. Returns how many. */
static size_t read_window(
	struct stack_space *s, struct stack_file *f, uint64_t bias, size_t first, uint8_t *window)
{
	const uint64_t *vaddr = f->handles + first;
	size_t count = 1;

	while (first + count < f->handle_count &&
		vaddr[count] - vaddr[0] <= HANDLES_WINDOW - sizeof(uint64_t))
		count++;
	if (space_read(s, bias + vaddr[0], window, vaddr[count - 1] - vaddr[0] + sizeof(uint64_t)) <
		0)
		return count;
	for (size_t i = 0; i < count; i++) {
		struct space_handle h = {.vaddr = vaddr[i], .file = f};

		memcpy(&h.value, window + (vaddr[i] - vaddr[0]), sizeof(h.value));
		if (h.value && ARRAY_RESERVE(s->handles, s->handle_room, s->handle_count + 1,
				       STACK_HANDLES_MAX) == 0)
			s->handles[s->handle_count++] = h;
	}
	return count;
}

static void read_handles(struct stack_space *s)
{
	_cleanup_free_ uint8_t *window = malloc(HANDLES_WINDOW);

	s->handle_count = 0;
	for (size_t i = 0; window && i < s->count; i++) {
		const struct space_mapping *m = &s->mappings[i];
		struct stack_file *f = m->file;

		if (!f || !f->handle_count || f->text_offset < m->offset ||
			f->text_offset - m->offset >= m->end - m->start)
			continue;
		for (size_t at = 0, reads = 0; at < f->handle_count && reads < HANDLES_READS;
			reads++)
			at += read_window(s, f,
				m->start + (f->text_offset - m->offset) - f->text_vaddr, at,
				window);
	}
	SORT(s->handles, s->handle_count, compare_handle);
}

const struct space_handle *space_handle(struct stack_space *s, struct stack_files *fs,
	uint64_t value, mono_time now, bool *ret_is_waiting)
{
	const struct space_handle key = {.value = value}, *found = NULL;

	*ret_is_waiting = false;
	for (size_t i = 0; i < s->count; i++)
		if (s->mappings[i].file) {
			stack_file_want_handles(fs, s->mappings[i].file);
			*ret_is_waiting |= s->mappings[i].file->handles_state != HANDLES_KNOWN;
		}
	if (s->handle_count)
		found = bsearch(&key, s->handles, s->handle_count, sizeof(key), compare_handle);
	if (found || *ret_is_waiting || s->ended.ns ||
		now.ns - s->handles_read.ns < HANDLES_AGAIN_NS)
		return found;
	s->handles_read = now;
	read_handles(s);
	return s->handle_count
		       ? bsearch(&key, s->handles, s->handle_count, sizeof(key), compare_handle)
		       : NULL;
}

void space_done(struct stack_space *s)
{
	leave_job(s);
	free(s->handles);
	s->handles = NULL;
	s->handle_count = s->handle_room = 0;
	free(s->mappings);
	s->mappings = NULL;
	s->count = 0;
}
