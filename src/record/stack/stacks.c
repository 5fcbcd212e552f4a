/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - joins the kernel half, the files and Python into named stacks: see stacks_private.h
 * for where the parts are. */
#include "record/stack/stacks_private.h"

#include "base/bounded.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

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
	if (r < 0)
		return r;
	r = stack_files_new(p, stacks_file_changed, s, &s->texts, &s->files);
	if (r < 0)
		return r;
	r = ring_new(probe_ring_stacks(p), stacks_take_record, s, &s->ring);
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
