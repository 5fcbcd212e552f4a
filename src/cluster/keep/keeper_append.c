/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_append.c - rows become an entry of the journal, and whoever sent them is told what became of it.
 *
 * Invariant: a key is SEEN_PENDING from the append to its result, then SEEN_KEPT or forgotten: nobody is told
 * that a duplicate is kept while its first one may still fail. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cluster/keep/keeper_private.h"

/* ---- results ---- */

static void tell(keeper_done *done, void *arg, struct keeper_result *r, int err, const char *why)
{
	r->err = err;
	if (err < 0)
		snprintf(r->why, sizeof(r->why), "%s", why);
	done(arg, r);
}

void keeper_refuse(struct keeper *k, keeper_done *done, void *arg, int err, const char *why)
{
	struct keeper_result r = {0};

	k->stats.refused++;
	tell(done, arg, &r, err, why);
}

const char *keeper_reason(int err)
{
	switch (err) {
	case -ENOSPC:
		return "the disk is full, or the journal as large as it may be: come again later";
	case -ENOBUFS: return "too much waits for the disk: come again later";
	case -E2BIG: return "the request is too large for the journal: send it in parts";
	case -ENOMEM: return "out of memory for this request: come again later";
	case -ECANCELED: return "shutting down";
	default: return "the journal cannot be written: come again later";
	}
}

void keeper_tell(keeper_done *done, void *arg, struct keeper_result *r, int err)
{
	tell(done, arg, r, err, keeper_reason(err));
}

/* ---- appending ---- */

void pending_free(struct pending *p)
{
	free(p->keys);
	free(p);
}

static void set_keys(struct keeper *k, const struct pending *p, enum seen_state state)
{
	for (size_t i = 0; i < p->key_count; i++)
		seen_set(k->seen, &p->keys[i], state);
}

static void on_appended(void *arg, int err, uint64_t position)
{
	_cleanup_(pending_freep) struct pending *p = arg;
	struct keeper *k = p->keeper;

	if (!k)
		return;
	TAILQ_REMOVE(&k->pending, p, link);
	set_keys(k, p, err < 0 ? SEEN_NOT : SEEN_KEPT);
	if (err < 0) {
		k->stats.refused++;
	} else {
		k->confirmed = k->rows_position = position;
		k->stats.requests++;
		k->stats.points += p->result.taken;
		k->stats.rejected += p->result.rejected;
	}
	tell(p->done, p->arg, &p->result, err, keeper_reason(err));
}

int keeper_append(struct keeper *k, struct pending *p, const struct batch *b)
{
	_cleanup_buf_ struct buf entry = BUF_INIT(JOURNAL_ENTRY_MAX);
	int r = 0;

	entry_put(&entry, ENTRY_ROWS, 0, p->key_count);
	buf_append(&entry, p->keys, p->key_count * sizeof(*p->keys));
	buf_append(&entry, b->bytes.data, b->bytes.len);
	if (entry.err)
		return entry.err == -ENOBUFS ? -E2BIG : entry.err;
	for (size_t i = 0; r == 0 && i < p->key_count; i++)
		r = seen_set(k->seen, &p->keys[i], SEEN_PENDING);
	if (r == 0)
		r = journal_append(k->journal, entry.data, entry.len, on_appended, p);
	if (r < 0) {
		set_keys(k, p, SEEN_NOT);
		return r;
	}
	TAILQ_INSERT_TAIL(&k->pending, p, link);
	return 0;
}

struct pending *pending_new(struct keeper *k, keeper_done *done, void *arg)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (p)
		*p = (struct pending){.keeper = k, .done = done, .arg = arg};
	return p;
}

void keeper_take_rows(struct keeper *k, const struct batch *b, keeper_done *done, void *arg)
{
	_cleanup_(pending_freep) struct pending *p = pending_new(k, done, arg);
	int r = -ENOMEM;

	if (p) {
		p->result.taken = b->row_count;
		r = b->bytes.err ? b->bytes.err : keeper_append(k, p, b);
	}
	if (r < 0)
		keeper_refuse(k, done, arg, r, keeper_reason(r));
	else
		TAKE(p);
}
