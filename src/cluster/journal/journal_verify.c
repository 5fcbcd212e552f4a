/* SPDX-License-Identifier: Apache-2.0 */
/* journal_verify.c - every byte of a journal against its sums, as a start would find it. */
#include "cluster/journal/journal_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct verifying {
	const char *folder;
	uint64_t sealed;
	void (*tell)(void *arg, const char *sentence);
	void *arg;
	int told;
};

static void _printf_(2, 3) say(struct verifying *v, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->told++;
	v->tell(v->arg, text);
}

static void check_heads(struct verifying *v, const struct journal *j)
{
	for (size_t i = 0; i < j->segment_count; i++) {
		_cleanup_(window_done) struct window w = {.fd = -1};
		char name[SEGMENT_NAME];
		_cleanup_fd_ int fd = -1;

		segment_name(name, j->segments[i].first);
		w.fd = fd = openat(j->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && segment_check(&w, j->segments[i].first) == -EBADMSG)
			say(v, "damaged: the head of %s/%s: its entries are read all the same",
				v->folder, name);
	}
}

static void tell_gap(struct verifying *v, const struct journal_entry *e)
{
	if (e->first <= v->sealed)
		say(v,
			"damaged: entries %" PRIu64 " to %" PRIu64
			" of the journal %s, whose rows are in the store already",
			e->first, MIN(e->position, v->sealed), v->folder);
	if (e->position > v->sealed)
		say(v,
			"missing: requests %" PRIu64 " to %" PRIu64
			" of the journal %s, which were acknowledged: they are damaged or gone",
			MAX(e->first, v->sealed + 1), e->position, v->folder);
}

static int check_entries(struct verifying *v, struct journal *j, struct errinfo *reterr)
{
	_cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
	uint64_t first = j->segment_count ? MIN(j->segments[0].first - 1, v->sealed) : v->sealed;
	struct journal_entry e;
	int r = journal_reader_new(j, first, &reader, reterr);

	while (r >= 0 && (r = journal_next(reader, 0, &e, reterr)) == 1)
		if (!e.data)
			tell_gap(v, &e);
	return r;
}

int journal_verify(const char *folder, uint64_t sealed,
	void (*tell)(void *arg, const char *sentence), void *arg, struct errinfo *reterr)
{
	_cleanup_(journal_freep) struct journal *j = NULL;
	struct verifying v = {folder, sealed, tell, arg, 0};
	struct mark mark;
	int r = journal_open_to_read(folder, &j, reterr);

	if (r == 0 && mark_read(folder, &mark) < 0)
		say(&v, "damaged: %s.acknowledged: the next request writes it again", folder);
	if (r == 0) {
		check_heads(&v, j);
		r = check_entries(&v, j, reterr);
	}
	return r < 0 ? r : v.told;
}
