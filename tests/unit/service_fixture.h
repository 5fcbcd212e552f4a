/* SPDX-License-Identifier: Apache-2.0 */
/* service_fixture.h - a symbol service whose child is the test program again, and what its sink
 * got. The program is also the file that is asked about: it has a function and data whose names and
 * contents are known. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/symbol/child.h"
#include "record/symbol/exchange.h"
#include "base/clock.h"

#define PATIENCE_NS (30 * NS_PER_S) /* a busy machine; reached only by a failure */
#define ANSWERS_MAX 64

uint64_t known_data = 0x1122334455667788;
uint64_t known_zero[4];
int known_function(int n);

__attribute__((noinline)) int known_function(int n)
{
	__asm__ volatile("");
	return n + 1;
}

/* ---- what the sink got ---- */

struct seen {
	int identities, unwinds, frame_answers, place_answers;
	struct symbol_identity identity;
	struct symbol_unwind unwind; /* without its arrays */
	uint32_t first_address, last_address;
	uint64_t tickets[ANSWERS_MAX]; /* of frames and places, in order */
	size_t ticket_count;
	int err; /* of the last frames or places */
	char function[NAMES_TEXT_MAX + 8];
	uint64_t from_start;
	unsigned frame_counts[SYMBOL_OFFSETS_MAX];
	size_t count;
	struct symbol_place places[SYMBOL_NAMES_MAX];
	struct symbol_service *asks_on; /* the sink asks for unwinding when it sees an identity */
};

static _unused_ void see_identity(void *arg, uint32_t file, const struct symbol_identity *i)
{
	struct seen *s = arg;

	s->identities++;
	s->identity = *i;
	if (s->asks_on) {
		assert_int_equal(symbol_ask_unwind(s->asks_on, file), 0);
		symbol_poll(s->asks_on); /* has no effect from here */
	}
}

static _unused_ void see_unwind(void *arg, uint32_t file, const struct symbol_unwind *u)
{
	struct seen *s = arg;

	s->unwinds++;
	s->unwind = *u;
	if (!u->count)
		return;
	s->first_address = u->address[0];
	s->last_address = u->address[u->count - 1];
	assert_true(u->rule[u->count - 1] < u->rule_count);
}

static _unused_ void see_frames(void *arg, uint32_t file, uint64_t ticket, int err,
	const struct symbol_frames *f, size_t count)
{
	struct seen *s = arg;

	s->frame_answers++;
	s->err = err;
	s->count = count;
	if (s->ticket_count < ANSWERS_MAX)
		s->tickets[s->ticket_count++] = ticket;
	for (size_t i = 0; i < count; i++)
		s->frame_counts[i] = f[i].count;
	s->function[0] = 0;
	if (f[0].count) {
		const struct names_frame *outer = &f[0].frame[f[0].count - 1];

		snprintf(s->function, sizeof(s->function), "%s", outer->function);
		s->from_start = outer->from_start;
	}
}

static _unused_ void see_places(void *arg, uint32_t file, uint64_t ticket, int err,
	const struct symbol_place *p, size_t count)
{
	struct seen *s = arg;

	s->place_answers++;
	s->err = err;
	s->count = count;
	if (s->ticket_count < ANSWERS_MAX)
		s->tickets[s->ticket_count++] = ticket;
	memcpy(s->places, p, count * sizeof(*p));
}

/* ---- a service ---- */

static struct seen seen;

static _unused_ struct symbol_service *start_as(const char *name, uint64_t patience_ns)
{
	const struct symbol_sink sink = {
		see_identity, see_unwind, see_frames, see_places, &seen, NULL};
	const struct symbol_settings settings = {
		.child_name = name,
		.patience_ns = patience_ns,
		.longest_ns = 50 * NS_PER_MS,
		.files_max = 4,
		.questions_max = 32,
	};
	struct symbol_service *s = NULL;

	seen = (struct seen){0};
	assert_int_equal(symbol_start_with(&settings, &sink, &s), 0);
	return s;
}

static _unused_ struct symbol_service *start(void)
{
	return start_as(SYMBOL_CHILD_NAME, PATIENCE_NS);
}

static _unused_ struct symbol_health health_of(const struct symbol_service *s)
{
	struct symbol_health h;

	symbol_health(s, &h);
	return h;
}

/* Polls until no question waits. */
static _unused_ void settle(struct symbol_service *s)
{
	uint64_t end = mono_now().ns + PATIENCE_NS;

	do {
		symbol_poll(s);
		if (!health_of(s).waiting)
			return;
		poll(NULL, 0, 1);
	} while (mono_now().ns < end);
	fail_msg("no answer: %s", health_of(s).last_end);
}

static _unused_ int own_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static _unused_ uint32_t open_own(struct symbol_service *s)
{
	uint32_t file = 0;

	assert_int_equal(symbol_open(s, own_file(), -1, &file), 0);
	assert_true(file > 0);
	return file;
}

/* Where @address lies in this program's file, and where the file begins in memory. */
static _unused_ uint64_t own_offset(const void *address, uint64_t *ret_begin)
{
	uint64_t start, end, offset, inode, begin = 0, at = (uintptr_t)address;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(
			sscanf(line, "%lx-%lx %*s %lx %*s %lu", &start, &end, &offset, &inode), 4);
		if (inode && !offset) /* the last one before the address is of the same file */
			begin = start;
		if (at < start || at >= end)
			continue;
		fclose(f);
		if (ret_begin)
			*ret_begin = begin;
		return at - start + offset;
	}
	fclose(f);
	fail_msg("the address is in no mapping");
	return 0;
}

static _unused_ void ask_known(struct symbol_service *s, uint32_t file, uint64_t ticket)
{
	uint64_t offset = own_offset((const void *)known_function, NULL);
	bool is_return = false;

	assert_int_equal(symbol_ask_frames(s, file, ticket, &offset, &is_return, 1), 0);
}
