/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - joins the kernel half, the files and Python into named stacks.
 *
 * A record's addresses are turned into files and offsets when it is taken, by the mappings as they
 * are then: it may wait for names as long as it takes, and its process may end. */
#include "agent/stack/stacks.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "agent/probe/stack/stack.h"
#include "agent/stack/code.h"
#include "agent/stack/merge.h"
#include "agent/stack/space.h"
#include "base/log.h"

#define SPACES_MAX            4096
#define LINGER_NS             (10 * NS_PER_S) /* an ended process's mappings are kept */
#define RESCAN_FIRST_NS       (20 * NS_PER_MS)
#define RESCAN_LAST_NS        (5 * NS_PER_S)
#define RESCAN_ROUTINE_NS     (2 * NS_PER_S) /* of processes whose stacks come */
#define GENERATED_PATIENCE_NS (2 * NS_PER_S) /* until the map of a JIT has been read again */
#define TELL_LATEST_NS        (300 * NS_PER_MS)
#define TEXTS_BYTES           (32u << 20)

struct native_frame { /* an address, placed */
	uint64_t ip, offset;
	struct stack_file *file;
	const struct stack_name *name; /* NULL: nobody to ask */
	bool is_return;
};

struct waiting { /* a stack without all its names */
	struct stack_record_stack record;
	mono_time since;
	bool python_is_late; /* its frames were read after the event */
	unsigned python_count;
	struct merge_python *python; /* behind the native frames */
	struct native_frame native[];
};

struct kept {
	struct stack stack;
	struct stack_record_stack record;
	uint64_t *words; /* of the native frames; only where Python's are read from outside */
	struct stack_frame frames[];
};

struct stacks {
	struct probe *probe;
	struct ring_buffer *ring;
	bool with_python;
	stacks_sink *sink;
	void *arg;
	struct intern texts;
	struct stack_files *files;
	struct stack_codes *codes;
	struct idmap spaces;    /* pid -> struct stack_space */
	struct idmap inherited; /* pid of a child -> its set + 1 as a pointer */
	uint16_t set_users[PROBE_SETS_MAX];
	uint32_t next_set;
	uint32_t generation; /* of all mappings told so far */
	struct waiting *waiting[STACKS_WAITING_MAX];
	size_t waiting_count;
	uint64_t answers;  /* names seen so far */
	struct idmap kept; /* hash -> struct kept */
	uint64_t kept_hashes[STACKS_KEPT_MAX];
	size_t kept_next;
	struct stacks_report report;
};

/* ---- sets of mappings ---- */

static uint32_t set_take(struct stacks *s)
{
	for (uint32_t i = 1; i < PROBE_SETS_MAX; i++) {
		uint32_t set = 1 + (s->next_set + i) % (PROBE_SETS_MAX - 1);

		if (!s->set_users[set]) {
			s->next_set = set;
			s->set_users[set] = 1;
			return set;
		}
	}
	return 0;
}

static void set_leave(struct stacks *s, uint32_t set)
{
	if (set && set < PROBE_SETS_MAX && s->set_users[set] && --s->set_users[set] == 0)
		probe_mappings_drop(s->probe, set);
}

static void inherited_leave(struct stacks *s, uint32_t pid)
{
	void *set = idmap_remove(&s->inherited, pid);

	if (set)
		set_leave(s, (uint32_t)(uintptr_t)set);
}

/* ---- processes ---- */

static void space_free(struct stacks *s, struct stack_space *p)
{
	set_leave(s, p->set);
	space_done(p);
	free(p);
}

static void space_tell(struct stacks *s, struct stack_space *p)
{
	struct stack_mappings *m = malloc(sizeof(*m));
	int r = -ENOMEM;

	p->is_dirty = false;
	if (!p->set)
		p->set = set_take(s);
	if (m && p->set) {
		space_mappings(p, m);
		r = probe_mappings(s->probe, p->set, m);
	}
	free(m);
	if (r == 0 && !p->ended.ns)
		r = probe_stack_process(s->probe, p->pid, p->set, ++s->generation,
			s->with_python && p->python_state == SPACE_PYTHON_READY ? &p->python
										: NULL);
	if (r == 0)
		inherited_leave(s, p->pid);
	else
		log_warning("the stacks of process %u end early: %s", p->pid, strerror(-r));
}

static void space_rescan(struct stacks *s, struct stack_space *p, mono_time now)
{
	int r = space_scan(p, s->files);

	p->rescan = false;
	p->scanned = now;
	if (r == -ESRCH && !p->ended.ns)
		p->ended = now;
	p->patience_ns = r == 1 ? RESCAN_FIRST_NS : MIN(2 * p->patience_ns, RESCAN_LAST_NS);
}

static struct stack_space *space_new(struct stacks *s, uint32_t pid)
{
	struct stack_space *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	p->made = p->told = mono_now();
	p->patience_ns = RESCAN_FIRST_NS;
	if (idmap_put(&s->spaces, pid, p) < 0) {
		free(p);
		return NULL;
	}
	space_rescan(s, p, p->made);
	return p;
}

void stacks_process(struct stacks *s, uint32_t pid)
{
	struct stack_space *old = idmap_remove(&s->spaces, pid);

	if (old)
		space_free(s, old);
	space_new(s, pid);
}

void stacks_fork(struct stacks *s, uint32_t child)
{
	uint32_t set = probe_stack_set_of(s->probe, child);

	if (set && set < PROBE_SETS_MAX && s->set_users[set] &&
		idmap_put(&s->inherited, child, (void *)(uintptr_t)set) == 0)
		s->set_users[set]++;
}

void stacks_gone(struct stacks *s, uint32_t pid)
{
	struct stack_space *p = idmap_get(&s->spaces, pid);

	inherited_leave(s, pid);
	if (p && !p->ended.ns)
		p->ended = mono_now();
}

static const struct stack_space *space_of_set(struct stacks *s, uint32_t set)
{
	struct stack_space *p;
	size_t cursor = 0;

	while (set && (p = idmap_next(&s->spaces, &cursor, NULL)))
		if (p->set == set)
			return p;
	return NULL;
}

/* The process of a record: a child that was never looked at is looked at now. One that has ended
 * already is what it was born as: its parent. */
static struct stack_space *space_of(struct stacks *s, const struct stack_record_stack *r)
{
	struct stack_space *p = idmap_get(&s->spaces, r->h.pid);

	if (!p)
		p = space_new(s, r->h.pid);
	if (p && !p->count)
		space_inherit(p, space_of_set(s, r->set));
	return p;
}

static void file_changed(void *arg, struct stack_file *f)
{
	struct stacks *s = arg;
	struct stack_space *p;
	size_t cursor = 0;

	while ((p = idmap_next(&s->spaces, &cursor, NULL)))
		for (size_t i = 0; i < p->count && !p->is_dirty; i++)
			p->is_dirty = p->mappings[i].file == f;
}

/* When files or tables have reached their ceiling: those that no known process maps go. */
static void make_room(struct stacks *s)
{
	struct stack_space *p;
	size_t cursor = 0;

	if (!stack_files_is_full(s->files) || s->waiting_count)
		return;
	while ((p = idmap_next(&s->spaces, &cursor, NULL))) {
		for (size_t i = 0; i < p->count; i++)
			if (p->mappings[i].file)
				stack_file_mark(p->mappings[i].file);
		if (p->generated)
			stack_file_mark(p->generated);
		if (p->python_file)
			stack_file_mark(p->python_file);
		p->rescan = true; /* what found no room may find some now */
	}
	stack_files_sweep(s->files);
}

static void look_after_spaces(struct stacks *s, mono_time now)
{
	uint32_t gone[64];
	size_t gone_count = 0, cursor = 0;
	struct stack_space *p;
	while ((p = idmap_next(&s->spaces, &cursor, NULL))) {
		if (p->ended.ns && now.ns - p->ended.ns > LINGER_NS) {
			if (gone_count < ARRAY_SIZE(gone))
				gone[gone_count++] = p->pid;
			continue;
		}
		if (p->ended.ns)
			continue;
		if (p->rescan && now.ns - p->scanned.ns >= p->patience_ns)
			space_rescan(s, p, now);
		if (space_python(p, now))
			p->is_dirty = true;
		/* Files come by the hundred when a process is met: they are told together. */
		if (p->is_dirty && (space_is_known(p) || now.ns - p->told.ns > TELL_LATEST_NS)) {
			space_tell(s, p);
			p->told = now;
		}
	}
	for (size_t i = 0; i < gone_count; i++)
		space_free(s, idmap_remove(&s->spaces, gone[i]));
}

/* ---- taking a record ---- */

static void place_frame(struct stacks *s, struct stack_space *p, uint64_t ip, bool is_return,
	struct native_frame *out)
{
	const struct space_mapping *m = p ? space_find(p, ip - is_return) : NULL;
	struct native_frame f = {.ip = ip, .is_return = is_return};

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

/* A line table that was too long for the record is fetched, if it is still the same. */
static uint32_t line_of(const struct stack_space *p, const struct stack_code *code,
	const struct stack_python_frame *f)
{
	_cleanup_free_ uint8_t *table = NULL;
	unsigned minor = p ? p->python.minor : 0;
	uint64_t size;

	if (!minor)
		return code->first_line;
	if (code->lines_size <= code->lines_bytes || code->lines_size > (1u << 20))
		return python_line(
			minor, code->first_line, code->lines, code->lines_bytes, f->lasti);
	table = malloc(code->lines_size);
	if (!table || space_read((void *)p, f->lines + p->python.bytes_length, &size, 8) < 0 ||
		size != code->lines_size ||
		space_read((void *)p, f->lines + p->python.bytes_data, table, size) < 0 ||
		memcmp(table, code->lines, code->lines_bytes) != 0)
		return code->first_line;
	return python_line(minor, code->first_line, table, size, f->lasti);
}

/* From 3.13 on the interpreter puts a frame between the call of a class and its __init__() that is
 * no function of the program: it has no line, and its own name for a file. */
static bool is_artificial(const struct merge_python *m)
{
	return !m->frame.py_line && m->frame.py_file[0] &&
	       !strcmp(m->frame.py_file, m->frame.py_func);
}

static void place_python(struct stacks *s, struct stack_space *p,
	const struct stack_python_frame *f, uint32_t pid, struct merge_python *out)
{
	const struct stack_code *code = stack_codes_find(s->codes, pid, f->code, f->lines);
	struct merge_python m = {.is_entry = f->entry};

	m.frame.py_func = code && code->name ? code->name : "(unknown Python function)";
	m.frame.py_file = code && code->file ? code->file : "";
	m.frame.py_line = code ? line_of(p, code, f) : 0;
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
	if (last && !last->file)
		p->rescan = true;
}

static bool is_waiting(const struct stacks *s, uint64_t hash)
{
	for (size_t i = s->waiting_count; i > 0; i--)
		if (s->waiting[i - 1]->record.hash == hash)
			return true;
	return false;
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

static bool is_mapped(const struct stack_space *p, const uint64_t *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!space_find(p, words[i] - (i > 0)))
			return false;
	return true;
}

/* Code that has come since the last look is looked for now: the stack does not come again. */
static void look_for_code(
	struct stacks *s, struct stack_space *p, const uint64_t *words, unsigned count)
{
	mono_time now = mono_now();

	if (p && !p->ended.ns && now.ns - p->scanned.ns >= p->patience_ns &&
		!is_mapped(p, words, count))
		space_rescan(s, p, now);
}

static void take_stack(struct stacks *s, const struct stack_record_stack *r, const uint64_t *words)
{
	const struct stack_python_frame *python = (const void *)(words + r->native_count);
	struct stack_space *p = space_of(s, r);
	struct waiting *w;

	/* two threads that make the same call at the same time both send its stack */
	if (is_waiting(s, r->hash) || !(w = waiting_new(s, r)))
		return;
	look_for_code(s, p, words, r->native_count);
	for (unsigned i = 0; i < r->native_count; i++)
		place_frame(s, p, words[i], i > 0, &w->native[i]);
	for (unsigned i = 0; i < r->python_count; i++) {
		place_python(s, p, &python[i], r->h.pid, &w->python[w->python_count]);
		w->python_count += !is_artificial(&w->python[w->python_count]);
	}
	ask_for_more(s, p, w);
}

static int take_record(void *arg, void *data, size_t len)
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
	return 0;
}

/* ---- handing on ---- */

/* Of a thread that is not Python's, its frames are not missed. */
static const char *python_stop_text(const struct stack_record_stack *r)
{
	static const char *const texts[] = {
#define X(NAME, text) text,
		STACK_PYTHON_STOPS(X)
#undef X
	};

	return r->python_stop == STACK_PYTHON_DEPTH || r->python_stop == STACK_PYTHON_UNREADABLE
		       ? texts[r->python_stop]
		       : "";
}

static const char *stop_text(struct stacks *s, const struct waiting *w)
{
	static const char *const texts[] = {
#define X(NAME, text) text,
		STACK_STOPS(X)
#undef X
	};
	const struct stack_record_stack *r = &w->record;
	const struct native_frame *last = r->native_count ? &w->native[r->native_count - 1] : NULL;
	char text[256];

	if (r->stop >= ARRAY_SIZE(texts) || r->stop == STACK_STOP_OUTERMOST)
		return python_stop_text(r);
	if (r->stop == STACK_STOP_GUESSED && r->guessed_from && r->guessed_from <= r->native_count)
		last = &w->native[r->guessed_from - 1];
	snprintf(text, sizeof(text), "%s%s%s", texts[r->stop], last && last->file ? ": " : "",
		last && last->file ? last->file->name : "");
	return intern(&s->texts, text);
}

static size_t name_natives(const struct waiting *w, struct merge_native *out, size_t max)
{
	size_t n = 0;

	for (unsigned i = 0; i < w->record.native_count; i++) {
		const struct native_frame *f = &w->native[i];
		bool named = f->name && f->name->is_known && f->name->count;
		unsigned count = named ? f->name->count : 1;

		for (unsigned k = 0; k < count && n < max; k++) {
			struct merge_native m = {.is_inlined = k + 1 < count};

			if (named)
				m.frame = f->name->frames[k];
			else if (f->file)
				m.frame.file = f->file->name;
			m.frame.ip = m.is_inlined ? 0 : f->ip;
			m.is_interpreter = f->file && f->file->may_be_python;
			out[n++] = m;
		}
	}
	return n;
}

static void keep(struct stacks *s, struct kept *k)
{
	uint64_t hash = k->stack.hash;
	struct kept *old = idmap_get(&s->kept, hash);

	if (!old) {
		struct kept *oldest = idmap_remove(&s->kept, s->kept_hashes[s->kept_next]);

		if (oldest)
			free(oldest->words);
		free(oldest);
		s->kept_hashes[s->kept_next] = hash;
		s->kept_next = (s->kept_next + 1) % STACKS_KEPT_MAX;
	}
	if (idmap_put(&s->kept, hash, k) < 0) {
		free(k->words);
		free(k);
	}
	if (old) {
		free(old->words);
		free(old);
	}
}

static void hand_on(struct stacks *s, const struct waiting *w)
{
	struct merge_native native[STACK_FRAMES_MAX];
	struct stack_frame frames[STACK_FRAMES_MAX];
	size_t natives = name_natives(w, native, ARRAY_SIZE(native));
	size_t n = merge_frames(
		native, natives, w->python, w->python_count, frames, ARRAY_SIZE(frames));
	struct kept *k = calloc(1, sizeof(*k) + n * sizeof(*frames));

	s->report.handed_on++;
	if (!k) {
		s->report.dropped++;
		return;
	}
	memcpy(k->frames, frames, n * sizeof(*frames));
	k->record = w->record;
	k->stack = (struct stack){
		.hash = w->record.hash, .frames = k->frames, .count = n, .stop = stop_text(s, w)};
	if (!s->with_python && !w->python_is_late) {
		k->words = calloc(w->record.native_count + 1u, sizeof(*k->words));
		for (unsigned i = 0; k->words && i < w->record.native_count; i++)
			k->words[i] = w->native[i].ip;
	}
	s->sink(s->arg, &k->stack);
	keep(s, k);
}

/* The map of a JIT is read again from time to time: a function younger than that may yet be in it.
 */
static bool may_be_named_yet(struct stacks *s, const struct waiting *w, mono_time now)
{
	struct stack_space *p = idmap_get(&s->spaces, w->record.h.pid);

	if (!p || p->ended.ns || now.ns - w->since.ns > GENERATED_PATIENCE_NS)
		return false;
	space_generated(p, s->files, now);
	return true;
}

static bool is_named(struct stacks *s, const struct waiting *w, mono_time now)
{
	bool is_unlisted = false;

	for (unsigned i = 0; i < w->record.native_count; i++) {
		const struct native_frame *f = &w->native[i];

		if (f->name && !f->name->is_known)
			return false;
		is_unlisted |= f->name && !f->name->count && f->file->is_generated;
	}
	return !is_unlisted || !may_be_named_yet(s, w, now);
}

static void hand_on_named(struct stacks *s, mono_time now, bool all)
{
	size_t left = 0;

	for (size_t i = 0; i < s->waiting_count; i++) {
		struct waiting *w = s->waiting[i];

		if (!all && !is_named(s, w, now) &&
			now.ns - w->since.ns < STACKS_PATIENCE_S * NS_PER_S) {
			s->waiting[left++] = w;
			continue;
		}
		hand_on(s, w);
		free(w);
	}
	s->waiting_count = left;
}

void stacks_poll(struct stacks *s)
{
	mono_time now;

	ring_buffer__consume(s->ring);
	s->answers = stack_files_poll(s->files);
	now = mono_now();
	look_after_spaces(s, now);
	make_room(s);
	if (s->waiting_count)
		hand_on_named(s, now, false);
}

void stacks_finish(struct stacks *s, unsigned timeout_ms)
{
	uint64_t deadline = mono_now().ns + timeout_ms * NS_PER_MS;

	do {
		stacks_poll(s);
		if (!s->waiting_count)
			return;
		poll(NULL, 0, 2);
	} while (mono_now().ns < deadline);
	hand_on_named(s, mono_now(), true);
}

const struct stack *stacks_find(const struct stacks *s, uint64_t hash)
{
	const struct kept *k = idmap_get(&s->kept, hash);

	return k ? &k->stack : NULL;
}

void stacks_renew(struct stacks *s)
{
	struct kept *k;
	size_t cursor = 0;

	while ((k = idmap_next(&s->kept, &cursor, NULL)))
		s->sink(s->arg, &k->stack);
}

/* ---- Python's frames read from outside ---- */

uint64_t stacks_userspace(struct stacks *s, uint32_t pid, uint32_t tid, uint64_t hash)
{
	struct stack_python_frame frames[STACK_PYTHON_MAX];
	struct kept *k = idmap_get(&s->kept, hash);
	struct stack_space *p = idmap_get(&s->spaces, pid);
	struct python_memory memory = {space_read, p};
	struct stack_record_stack r;
	struct waiting *w;
	int n;

	if (!k || !k->words || !p || p->python_state != SPACE_PYTHON_READY || p->ended.ns)
		return hash;
	n = python_walk(&memory, &p->python, space_tid(p, tid), frames, ARRAY_SIZE(frames));
	if (n <= 0)
		return hash;
	r = k->record;
	r.python_count = (uint8_t)n;
	for (int i = 0; i < n; i++)
		r.hash = (r.hash ^ frames[i].code ^ ((uint64_t)frames[i].lasti << 44)) *
				 0x9e3779b97f4a7c15ULL |
			 1;
	if (idmap_get(&s->kept, r.hash) || is_waiting(s, r.hash))
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
		place_python(s, p, &frames[i], pid, &w->python[w->python_count]);
		w->python_count += !is_artificial(&w->python[w->python_count]);
	}
	return r.hash;
}

/* ---- life ---- */

int stacks_new(struct probe *p, bool with_python, stacks_sink *sink, void *arg, struct stacks **ret)
{
	_cleanup_(stacks_freep) struct stacks *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->probe = p;
	s->with_python = with_python;
	s->sink = sink;
	s->arg = arg;
	s->texts = INTERN_INIT(TEXTS_BYTES);
	s->spaces = IDMAP_INIT(SPACES_MAX);
	s->inherited = IDMAP_INIT(SPACES_MAX);
	s->kept = IDMAP_INIT(STACKS_KEPT_MAX + 1);
	r = stack_codes_new(&s->texts, &s->codes);
	if (r < 0)
		return r;
	r = stack_files_new(p, file_changed, s, &s->texts, &s->files);
	if (r < 0)
		return r;
	s->ring = ring_buffer__new(probe_ring_stacks(p), take_record, s, NULL);
	if (!s->ring)
		return -errno;
	*ret = TAKE(s);
	return 0;
}

void stacks_free(struct stacks *s)
{
	struct stack_space *p;
	struct kept *k;
	size_t cursor = 0;

	ring_buffer__free(s->ring);
	for (size_t i = 0; i < s->waiting_count; i++)
		free(s->waiting[i]);
	while ((p = idmap_next(&s->spaces, &cursor, NULL))) {
		space_done(p);
		free(p);
	}
	cursor = 0;
	while ((k = idmap_next(&s->kept, &cursor, NULL))) {
		free(k->words);
		free(k);
	}
	idmap_done(&s->spaces);
	idmap_done(&s->inherited);
	idmap_done(&s->kept);
	if (s->files)
		stack_files_free(s->files);
	if (s->codes)
		stack_codes_free(s->codes);
	intern_done(&s->texts);
	free(s);
}

void stacks_report(const struct stacks *s, struct stacks_report *ret)
{
	const struct stack_space *p;
	size_t cursor = 0;

	*ret = s->report;
	probe_stack_tally(s->probe, &ret->tally);
	ret->table_bytes = stack_files_table_bytes(s->files);
	stack_files_health(s->files, &ret->symbols);
	while ((p = idmap_next(&s->spaces, &cursor, NULL))) {
		ret->python_processes += p->python_state == SPACE_PYTHON_READY;
		if (p->python_state == SPACE_PYTHON_REFUSED)
			snprintf(ret->python_refused, sizeof(ret->python_refused), "process %u: %s",
				p->pid, p->python_reason);
	}
}
