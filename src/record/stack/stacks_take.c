/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_take.c - records of the kernel half become stacks that wait for their names.
 *
 * Addresses are turned into files and offsets here, by the mappings as they are then: a stack may
 * wait for names as long as it takes, and its process may end. */
#include "record/stack/stacks_private.h"
#include "base/bounded.h"
#include "record/stack/remote.h"

#define RESCAN_ROUTINE_NS (2 * NS_PER_S) /* of processes whose stacks come */
#define LINES_BYTES_MAX   (1u << 20)     /* of a line table that is read from a process */

static void place_frame(struct stacks *s, struct stack_space *p, uint64_t ip, bool is_return,
	struct native_frame *out)
{
	const struct space_mapping *m = p ? space_find(p, ip - is_return) : NULL;
	struct native_frame f = {.ip = ip, .is_return = is_return, .is_mapped = m};

	if (m) {
		f.file = m->file;
		f.offset = ip - m->start + m->offset;
		if (!f.file && p) {
			f.file = space_generated(p, s->files, mono_now());
			f.offset = ip;
		}
	}
	if (f.file)
		f.name = stack_file_name(s->files, f.file, f.offset, is_return);
	*out = f;
}

/* Reads the whole table from @p (NULL: nobody), whose memory may have changed since: what was sent of
 * the table must still be there. */
static bool table_read(
	struct stack_space *p, const struct stack_code *code, uint64_t lines, uint8_t *out)
{
	return p && space_read(p, lines + code->lines_at, out, code->lines_size) == 0 &&
	       memcmp(out, code->lines, code->lines_bytes) == 0;
}

static int line_by(const struct stack_code *code, uint32_t lasti)
{
	struct python_lines l = {code->minor, code->first_line, code->lines, code->lines_bytes,
		.is_cut = code->lines_size > code->lines_bytes};

	return python_line(&l, lasti);
}

/* 0: not known. A line behind what was sent of a long table is looked up in the process's memory; if
 * it has ended, in that of the process it was forked from, which has the same there. */
static uint32_t line_of(struct stacks *s, const struct stack_record_stack *r,
	const struct stack_code *code, const struct stack_python_frame *f)
{
	_cleanup_free_ uint8_t *table = NULL;
	int line = line_by(code, f->lasti);

	if (line >= 0)
		return (uint32_t)line;
	if (code->lines_size > LINES_BYTES_MAX || !(table = malloc(code->lines_size)))
		return 0;
	if (!table_read(idmap_get(&s->spaces, r->h.pid), code, f->lines, table) &&
		!table_read(stacks_space_of_set(s, r->set), code, f->lines, table))
		return 0;
	code = stack_codes_fill(s->codes, r->h.pid, f->code, f->lines, table);
	line = code ? line_by(code, f->lasti) : 0;
	return line > 0 ? (uint32_t)line : 0;
}

/* From 3.13 on the interpreter puts a frame between the call of a class and its __init__() that is
 * no function of the program: it has no line, and its own name for a file. */
static bool is_artificial(const struct merge_python *m)
{
	return !m->frame.py_line && m->frame.py_file[0] &&
	       !strcmp(m->frame.py_file, m->frame.py_func);
}

static void place_python(struct stacks *s, const struct stack_record_stack *r,
	const struct stack_python_frame *f, struct merge_python *out)
{
	const struct stack_code *code = stack_codes_find(s->codes, r->h.pid, f->code, f->lines);
	struct merge_python m = {.is_entry = f->entry};

	m.frame.py_func = code && code->name ? code->name : "(unknown Python function)";
	m.frame.py_file = code && code->file ? code->file : "";
	m.frame.py_line = code ? line_of(s, r, code, f) : 0; /* last: @code may be gone then */
	*out = m;
}

static void ask_for_more(struct stacks *s, struct stack_space *p, const struct waiting *w)
{
	const struct stack_record_stack *r = &w->record;
	const struct native_frame *last = r->native_count ? &w->native[r->native_count - 1] : NULL;

	if (!p)
		return;
	if (r->stop == STACK_STOP_NO_MAPPINGS || r->stop == STACK_STOP_UNKNOWN_CODE ||
		mono_now().ns - p->scanned.ns > RESCAN_ROUTINE_NS)
		p->rescan = true;
	if (r->guessed_from != STACK_GUESSED && r->guessed_from &&
		r->guessed_from <= r->native_count)
		last = &w->native[r->guessed_from - 1];
	for (unsigned i = 0; i < r->native_count; i++)
		if (w->native[i].file && w->native[i].file->table_state == TABLE_NOT_ASKED)
			stack_file_want_table(s->files, w->native[i].file);
	p->rescan |= last && !last->file;
}

static struct waiting *find_waiting(const struct stacks *s, uint64_t hash)
{
	for (size_t i = s->waiting_count; i > 0; i--)
		if (s->waiting[i - 1]->record.hash == hash)
			return s->waiting[i - 1];
	return NULL;
}

static struct waiting *waiting_new(struct stacks *s, const struct stack_record_stack *r)
{
	struct waiting *w;

	if (s->waiting_count == STACKS_WAITING_MAX) {
		s->report.dropped++;
		return NULL;
	}
	w = calloc(1, sizeof(*w) + r->native_count * sizeof(*w->native) +
			      r->python_count * sizeof(*w->python));
	if (!w) {
		s->report.dropped++;
		return NULL;
	}
	w->record = *r;
	w->python = (struct merge_python *)(w->native + r->native_count);
	w->since = mono_now();
	s->waiting[s->waiting_count++] = w;
	return w;
}

/* Code that has come since the last look is looked for now: the stack does not come again. */
static void look_for_code(struct stacks *s, struct stack_space *p, uint64_t ip, mono_time now)
{
	if (!space_find(p, ip) && now.ns - p->scanned.ns >= p->patience_ns)
		stacks_rescan(s, p, now);
}

/* Not code: perhaps the handle of a kernel, which a variable of the program holds. */
static void place_handle(struct stacks *s, struct stack_space *p, struct waiting *w,
	struct native_frame *f, mono_time now)
{
	const struct space_handle *h = space_handle(p, s->files, f->ip, now, &w->handles_wait);

	if (!h)
		return;
	f->file = h->file;
	f->offset = h->vaddr | SYMBOL_HANDLE;
	f->name = stack_file_name(s->files, f->file, f->offset, false);
}

void stacks_place(struct stacks *s, struct stack_space *p, struct waiting *w, mono_time now)
{
	for (unsigned i = 0; i < w->record.native_count; i++) {
		struct native_frame *f = &w->native[i];

		if (f->file || !p || p->ended.ns)
			continue;
		look_for_code(s, p, f->ip - f->is_return, now);
		place_frame(s, p, f->ip, f->is_return, f);
		if (!f->is_mapped && w->is_function)
			place_handle(s, p, w, f, now);
	}
}

static void take_stack(struct stacks *s, const struct stack_record_stack *r, const uint64_t *words)
{
	const struct stack_python_frame *python = (const void *)(words + r->native_count);
	struct stack_space *p = stacks_space_of(s, r);
	struct waiting *w;

	/* two threads that make the same call at the same time both send its stack */
	if (find_waiting(s, r->hash) || !(w = waiting_new(s, r)))
		return;
	for (unsigned i = 0; i < r->native_count; i++)
		place_frame(s, p, words[i], i > 0, &w->native[i]);
	stacks_place(s, p, w, w->since);
	for (unsigned i = 0; i < r->python_count; i++) {
		place_python(s, r, &python[i], &w->python[w->python_count]);
		w->python_count += !is_artificial(&w->python[w->python_count]);
	}
	ask_for_more(s, p, w);
}

void stacks_take_record(void *arg, const void *data, size_t len)
{
	struct stacks *s = arg;
	const struct stack_header *h = data;
	const struct stack_record_stack *r = data;

	if (len < sizeof(*h) || h->size > len)
		s->report.bad++;
	else if (h->kind == STACK_RECORD_CODE)
		s->report.bad += stack_codes_take(s->codes, data, h->size) < 0;
	else if (h->kind != STACK_RECORD_STACK || h->size < sizeof(*r) ||
		 r->native_count > STACK_NATIVE_MAX || r->python_count > STACK_PYTHON_MAX ||
		 h->size < sizeof(*r) + 8 * (r->native_count + 3u * r->python_count))
		s->report.bad++;
	else
		take_stack(s, r, (const uint64_t *)(r + 1));
}

/* ---- single functions ---- */

uint64_t stacks_ask(struct stacks *s, uint32_t pid, uint64_t address)
{
	struct stack_record_stack r = {
		.h = {.size = sizeof(r), .kind = STACK_RECORD_STACK, .pid = pid, .tid = pid},
		.hash = ((address ^ (uint64_t)pid << 48) * 0x9e3779b97f4a7c15ULL) | 1,
		.native_count = 1,
		.stop = STACK_STOP_OUTERMOST,
		.guessed_from = STACK_GUESSED,
	};

	struct stack_space *p = idmap_get(&s->spaces, pid);
	struct waiting *w;

	if (!p)
		return 0;
	take_stack(s, &r, &address);
	w = find_waiting(s, r.hash);
	if (!w)
		return 0;
	w->is_function = true;
	stacks_place(s, p, w, w->since);
	return r.hash;
}

bool stacks_locate(const struct stacks *s, uint32_t pid, uint64_t address, char *out, size_t size)
{
	const struct stack_space *p = idmap_get(&s->spaces, pid);
	const struct space_mapping *m = p ? space_find(p, address) : NULL;

	if (!m || !m->file)
		return false;
	snprintf(out, size, "%s+0x%llx", m->file->name,
		(unsigned long long)(address - m->start + m->offset));
	return true;
}

/* ---- Python's frames read from outside ---- */

struct walk_job {
	struct bounded_job job;
	uint32_t pid, tid;
	struct stack_python python;
	struct stack_python_frame frames[STACK_PYTHON_MAX];
};

static int read_now(void *arg, uint64_t address, void *out, size_t len)
{
	const struct walk_job *j = arg;

	return remote_read_now(j->pid, address, out, len);
}

static int run_walk(struct bounded_job *job)
{
	struct walk_job *j = (struct walk_job *)job;
	const struct python_memory memory = {read_now, j};

	return python_walk(&memory, &j->python, j->tid, j->frames, ARRAY_SIZE(j->frames));
}

/* walk_outside - the frames of thread @tid of @p: how many. *ret_job is the caller's (free()). */
static int walk_outside(const struct stack_space *p, uint32_t tid, struct walk_job **ret_job)
{
	struct walk_job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	*j = (struct walk_job){.job = {.run = run_walk, .uid = p->uid},
		.pid = p->pid,
		.tid = space_tid(p, tid),
		.python = p->python};
	r = bounded_run(&j->job, BOUNDED_WAIT_NS);
	if (r < 0)
		return r;
	*ret_job = j;
	return j->job.result;
}

uint64_t stacks_userspace(struct stacks *s, uint32_t pid, uint32_t tid, uint64_t hash)
{
	_cleanup_free_ struct walk_job *walked = NULL;
	const struct stack_python_frame *frames;
	struct kept *k = idmap_get(&s->kept, hash);
	struct stack_space *p = idmap_get(&s->spaces, pid);
	struct python_memory memory = {space_read, p};
	struct stack_record_stack r;
	struct waiting *w;
	int n;

	if (!k || !k->words || !p || p->python_state != SPACE_PYTHON_READY || p->ended.ns)
		return hash;
	n = walk_outside(p, tid, &walked);
	if (n <= 0)
		return hash;
	frames = walked->frames;
	r = k->record;
	r.python_count = (uint8_t)n;
	for (int i = 0; i < n; i++)
		r.hash = (r.hash ^ frames[i].code ^ ((uint64_t)frames[i].lasti << 44)) *
				 0x9e3779b97f4a7c15ULL |
			 1;
	if (idmap_get(&s->kept, r.hash) || find_waiting(s, r.hash))
		return r.hash;
	w = waiting_new(s, &r);
	if (!w)
		return hash;
	w->python_is_late = true;
	for (unsigned i = 0; i < r.native_count; i++)
		place_frame(s, p, k->words[i], i > 0, &w->native[i]);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ struct stack_record_code *code = NULL;

		if (!stack_codes_find(s->codes, pid, frames[i].code, frames[i].lines) &&
			python_code_fetch(&memory, &p->python, frames[i].code, &code) == 0) {
			code->h.pid = pid;
			stack_codes_take(s->codes, code, sizeof(*code) + code->lines_bytes);
		}
		place_python(s, &r, &frames[i], &w->python[w->python_count]);
		w->python_count += !is_artificial(&w->python[w->python_count]);
	}
	return r.hash;
}
