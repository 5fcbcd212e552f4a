/* SPDX-License-Identifier: Apache-2.0 */
/* memory_store.h - a store that holds rows in memory and outlives its keepers: what engines promise
 * (store.h), with failures on demand. Rows are written down as text, one a line. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "cluster/store/store.h"

struct memory_store {
	struct store store;
	pthread_mutex_t lock;
	struct buf rows, fresh; /* committed, and not yet: "events|ts_ns=1|…" a line */
	size_t row_count, fresh_count;
	uint64_t visible, taken, durable;
	atomic_int take_err, commit_err, seal_err; /* what the next call gives; 0: it goes well */
	atomic_bool is_lazy;                       /* nothing is durable before seal() */
	atomic_uint_fast64_t lost;                 /* requests, as it was told */
};

static void memory_put_row(struct buf *b, const struct batch_row *row)
{
	const struct table_desc *d = &store_tables[row->table];

	buf_puts(b, d->name);
	for (int i = 0; i < d->column_count; i++) {
		const struct sql_value *v = &row->cells[i];

		if (v->type == SQL_INT)
			buf_printf(b, "|%s=%" PRId64, d->columns[i].name, v->i);
		else if (v->type == SQL_REAL)
			buf_printf(b, "|%s=%g", d->columns[i].name, v->d);
		else if (v->type == SQL_TEXT)
			buf_printf(
				b, "|%s=%.*s", d->columns[i].name, (int)v->len, (const char *)v->p);
	}
	buf_puts(b, "|\n");
}

static int memory_take(struct store *store, uint64_t position, const void *batch, size_t len,
	struct errinfo *reterr)
{
	struct memory_store *s = (struct memory_store *)store;
	struct batch_reader r = {batch, len};
	struct batch_row row;
	int err;

	pthread_mutex_lock(&s->lock);
	err = s->take_err;
	while (err == 0 && (err = batch_next(&r, &row)) == 1) {
		memory_put_row(&s->fresh, &row);
		s->fresh_count++;
		err = 0;
	}
	if (err == 0 && position <= MAX(s->visible, s->taken))
		err = -EINVAL; /* it was there already */
	if (err == 0) {
		s->taken = position;
	} else if (err != -EBADMSG) {
		buf_clear(&s->fresh);
		s->fresh_count = 0;
		s->taken = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return err < 0 ? errinfo_set(reterr, err, "the store takes nothing") : 0;
}

static int memory_commit(struct store *store, struct errinfo *reterr)
{
	struct memory_store *s = (struct memory_store *)store;
	int err;

	pthread_mutex_lock(&s->lock);
	err = s->commit_err;
	if (err == 0 && s->taken) {
		buf_append(&s->rows, s->fresh.data, s->fresh.len);
		s->row_count += s->fresh_count;
		s->visible = s->taken;
		if (!s->is_lazy)
			s->durable = s->visible;
	}
	buf_clear(&s->fresh);
	s->fresh_count = 0;
	s->taken = 0;
	pthread_mutex_unlock(&s->lock);
	return err < 0 ? errinfo_set(reterr, err, "the store commits nothing") : 0;
}

static uint64_t memory_durable(struct store *store)
{
	struct memory_store *s = (struct memory_store *)store;
	uint64_t durable;

	pthread_mutex_lock(&s->lock);
	durable = s->durable;
	pthread_mutex_unlock(&s->lock);
	return durable;
}

static int memory_seal(struct store *store, struct errinfo *reterr)
{
	struct memory_store *s = (struct memory_store *)store;

	pthread_mutex_lock(&s->lock);
	if (!s->seal_err)
		s->durable = s->visible;
	pthread_mutex_unlock(&s->lock);
	return s->seal_err;
}

static int memory_upkeep(struct store *store, int64_t now_ns, struct errinfo *reterr)
{
	return 0;
}

static void memory_stats(struct store *store, struct store_stats *ret)
{
	struct memory_store *s = (struct memory_store *)store;

	pthread_mutex_lock(&s->lock);
	*ret = (struct store_stats){.visible = s->visible, .durable = s->durable};
	pthread_mutex_unlock(&s->lock);
}

static int memory_lose(struct store *store, const struct store_loss *l, struct errinfo *reterr)
{
	((struct memory_store *)store)->lost += l->last - l->first + 1;
	return 0;
}

static const struct store_ops memory_ops = {.name = "memory",
	.take = memory_take,
	.commit = memory_commit,
	.durable = memory_durable,
	.seal = memory_seal,
	.upkeep = memory_upkeep,
	.stats = memory_stats,
	.lose = memory_lose};

static void memory_store_init(struct memory_store *s)
{
	*s = (struct memory_store){
		.store = {&memory_ops}, .rows = BUF_INIT(64u << 20), .fresh = BUF_INIT(64u << 20)};
	pthread_mutex_init(&s->lock, NULL);
}

/* memory_store_crash - as a restart after kill -9 finds it: nothing that was not durable. Only for stores
 * that are not lazy, or whose rows are all gone. */
static void memory_store_crash(struct memory_store *s)
{
	if (s->durable < s->visible) {
		buf_clear(&s->rows);
		s->row_count = 0;
	}
	buf_clear(&s->fresh);
	s->fresh_count = 0;
	s->taken = 0;
	s->visible = s->durable;
}

static void memory_store_done(struct memory_store *s)
{
	buf_done(&s->rows);
	buf_done(&s->fresh);
	pthread_mutex_destroy(&s->lock);
}
