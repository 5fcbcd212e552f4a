/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - joins the kernel half, the files and Python into named stacks: see stacks_private.h
 * for where the parts are. */
#include "record/stack/stacks.h"

#include <poll.h>

#include "base/bounded.h"
#include "record/stack/stacks_private.h"

#define STACKS_PATIENCE_S 30
DEFINE_CLEANUP(struct stacks *, stacks_free)

/* Stacks whose names have come are put together and handed on; the newest are kept. */

#define YOUNG_PATIENCE_NS (2 * NS_PER_S) /* until mappings and maps of JITs were read again */
#define YOUNG_AGAIN_NS    (50 * NS_PER_MS)

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

/* An address in code that a JIT made, which its map does not have (yet). */
static bool has_unlisted(const struct waiting *w)
{
	for (unsigned i = 0; i < w->record.native_count; i++) {
		const struct native_frame *f = &w->native[i];

		if (f->name && !f->name->count && f->file->is_generated)
			return true;
	}
	return false;
}

/* Mappings and the map of a JIT are read again from time to time: code younger than that may yet be
 * found. At the end once more. */
static bool may_be_named_yet(struct stacks *s, struct waiting *w, mono_time now)
{
	struct stack_space *p = idmap_get(&s->spaces, w->record.h.pid);

	bool is_last = s->finishing.ns > w->placed.ns;

	if (!p || p->ended.ns || (now.ns - w->since.ns > YOUNG_PATIENCE_NS && !w->handles_wait) ||
		(s->finishing.ns && !is_last))
		return false;
	if (is_last || now.ns - w->placed.ns >= YOUNG_AGAIN_NS) {
		w->placed = now;
		space_generated(p, s->files, now);
		stacks_place(s, p, w, now);
	}
	return true;
}

static bool is_named(struct stacks *s, struct waiting *w, mono_time now)
{
	bool is_placed = true;

	for (unsigned i = 0; i < w->record.native_count; i++) {
		const struct native_frame *f = &w->native[i];

		if (f->name && !f->name->is_known)
			return false;
		is_placed &= f->file || f->is_mapped;
	}
	return (is_placed && !has_unlisted(w)) || !may_be_named_yet(s, w, now);
}

/* stacks.c: those whose names have come, or @all. */
static void stacks_hand_on(struct stacks *s, mono_time now, bool all)
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

#define SPACES_MAX  4096
#define TEXTS_BYTES (32u << 20)

void stacks_poll(struct stacks *s)
{
	mono_time now;

	ring_consume(s->ring);
	s->answers = stack_files_poll(s->files);
	now = mono_now();
	stacks_look_after(s, now);
	stacks_make_room(s);
	if (s->waiting_count)
		stacks_hand_on(s, now, false);
}

void stacks_finish(struct stacks *s, unsigned timeout_ms)
{
	uint64_t deadline;

	s->finishing = mono_now();
	deadline = s->finishing.ns + timeout_ms * NS_PER_MS;
	do {
		stacks_poll(s);
		if (!s->waiting_count)
			return;
		poll(NULL, 0, 2);
	} while (mono_now().ns < deadline);
	stacks_hand_on(s, mono_now(), true);
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
	r = r ?: stack_files_new(p, stacks_file_changed, s, &s->texts, &s->files);
	r = r ?: ring_new(probe_map(p, "stacks"), stacks_take_record, s, &s->ring);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void stacks_free(struct stacks *s)
{
	struct stack_space *p;
	struct kept *k;
	size_t cursor = 0;

	ring_free(s->ring);
	bounded_end();
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
