/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_fixture.h - a scratch store on DuckDB, rows for it, and what questions answer. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cluster/store/store_duck.h"
#include "cluster/store/store_duck_private.h"
#include "duck_fixture.h"

#define T0 INT64_C(1790000000000000000) /* a time of the first row */

struct scratch_store {
	char root[64];
	char folder[96]; /* of the store, in the root */
	struct store_duck_settings settings;
	struct store *store;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static _unused_ int scratch_setup(void **state)
{
	struct scratch_store *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	snprintf(s->root, sizeof(s->root), "/tmp/ingero-test-XXXXXX");
	assert_non_null(mkdtemp(s->root));
	snprintf(s->folder, sizeof(s->folder), "%s/store", s->root);
	s->settings = (struct store_duck_settings){.folder = s->folder, .threads = 2};
	*state = s;
	return 0;
}

static _unused_ int scratch_teardown(void **state)
{
	struct scratch_store *s = *state;

	if (s->store)
		store_free(s->store);
	nftw(s->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

static _unused_ void store_begin(struct scratch_store *s)
{
	struct errinfo err = {0};
	int r = store_duck_open(&s->settings, &s->store, &err);

	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
}

static _unused_ void store_end(struct scratch_store *s)
{
	store_free(TAKE(s->store));
}

/* An event of @cluster: its number @i is in value_int. */
static _unused_ void put_event(struct batch *b, const char *cluster, const char *node, int64_t i)
{
	batch_row(b, TABLE_EVENTS);
	batch_int(b, EVENTS_TS, T0 + i * (int64_t)NS_PER_S);
	batch_int(b, EVENTS_RECEIVED, T0 + i * (int64_t)NS_PER_S);
	batch_text_of(b, EVENTS_CLUSTER, cluster);
	batch_text_of(b, EVENTS_NODE, node);
	batch_text_of(b, EVENTS_NAME, "gpu.temperature");
	batch_text_of(b, EVENTS_KIND, "gauge");
	batch_real(b, EVENTS_REAL, (double)i);
	batch_int(b, EVENTS_INT, i);
}

static _unused_ int take_batch(struct store *s, uint64_t position, struct batch *b)
{
	struct errinfo err = {0};
	int r = store_take(s, position, b->bytes.data, b->bytes.len, &err);

	if (r < 0)
		print_message("%s\n", err.text);
	buf_done(&b->bytes);
	return r;
}

/* Entry @position of a journal: two events of cluster red and one of blue, on three nodes. */
static _unused_ int take_entry(struct store *s, uint64_t position)
{
	struct batch b = {.bytes = BUF_INIT(1u << 20)};
	int64_t i = (int64_t)position;
	char node[32];

	snprintf(node, sizeof(node), "n%d", (int)(position % 3));
	put_event(&b, "red", node, i);
	put_event(&b, "red", "n9", i);
	put_event(&b, "blue", node, i);
	if (position % 10 == 0) {
		batch_row(&b, TABLE_CHAINS);
		batch_int(&b, CHAINS_TS, T0 + i);
		batch_text_of(&b, CHAINS_CLUSTER, "red");
		batch_text_of(&b, CHAINS_NODE, node);
		batch_text_of(&b, CHAINS_ID, "chain");
	}
	return take_batch(s, position, &b);
}

/* Entries up to @position, five a commit, from where the store is. */
static _unused_ void fill_up_to(struct store *s, uint64_t position)
{
	struct store_stats st;

	s->ops->stats(s, &st);
	for (uint64_t i = st.visible + 1; i <= position; i++) {
		assert_int_equal(take_entry(s, i), 0);
		if (i % 5 == 0 || i == position)
			assert_int_equal(store_commit(s, NULL), 0);
	}
}

static _unused_ int64_t ask_number(
	struct store *s, const struct store_scope *scope, const char *question)
{
	struct errinfo err = {0};
	struct sql_table t;
	int64_t v = -1;
	int r = store_select(s, scope, question, &STORE_LIMITS, &t, &err);

	if (r < 0)
		print_error("%s: %s\n", question, err.text);
	assert_int_equal(r, 0);
	assert_true(t.row_count >= 1);
	if (sql_table_cell(&t, 0, 0)->type == SQL_INT)
		v = sql_table_cell(&t, 0, 0)->i;
	else if (sql_table_cell(&t, 0, 0)->type == SQL_REAL)
		v = (int64_t)sql_table_cell(&t, 0, 0)->d;
	sql_table_done(&t);
	return v;
}

/* The store holds entries 1 to @n, each once. */
static _unused_ void assert_filled(struct store *s, int64_t n)
{
	static const char *const red[] = {"red"};
	struct store_scope scope = {.clusters = red, .cluster_count = 1};

	assert_int_equal(ask_number(s, NULL, "SELECT count(*) FROM {events}"), 3 * n);
	assert_int_equal(
		ask_number(s, NULL, "SELECT sum(value_int) FROM {events}"), 3 * n * (n + 1) / 2);
	assert_int_equal(ask_number(s, &scope, "SELECT count(*) FROM {events}"), 2 * n);
	assert_int_equal(ask_number(s, NULL, "SELECT sum(count) FROM {node_metrics}"), 3 * n);
	assert_int_equal(
		ask_number(s, NULL, "SELECT sum(sum) FROM {node_metrics}"), 3 * n * (n + 1) / 2);
	assert_int_equal(ask_number(s, NULL, "SELECT count(*) FROM {causal_chains}"), n / 10);
}

/* ---- damage ---- */

static _unused_ char part_file[4200];

static _unused_ int find_part(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	/* The newest: an older one may be of a merge, and gone once nobody reads it. */
	if (type == FTW_F && strstr(path, "/red-") && strstr(path, ".duckdb") &&
		strcmp(path, part_file) > 0)
		snprintf(part_file, sizeof(part_file), "%s", path);
	return 0;
}

static _unused_ void find_newest_part(const char *folder)
{
	part_file[0] = 0;
	nftw(folder, find_part, 16, FTW_PHYS);
}

static _unused_ void damage_part_in(const char *folder, bool cut)
{
	FILE *f;

	find_newest_part(folder);
	f = fopen(part_file, "r+");
	assert_non_null(f);
	if (cut) {
		assert_int_equal(ftruncate(fileno(f), 100), 0);
	} else {
		static const char junk[200000];

		fseek(f, 4096 * 3, SEEK_SET); /* behind the headers */
		fwrite(junk, 1, sizeof(junk), f);
	}
	fclose(f);
}
