/* SPDX-License-Identifier: Apache-2.0 */
#include "store_duck_fixture.h"

#include "base/file.h"
#include "net/digest.h"

/* ---- upkeep ---- */

/* Red has an old part and blue, which came later, fills the store: whose parts are left. */
static void fill_by_one(struct scratch_store *s, const struct store_share *shares, size_t count,
	int64_t *ret_red, int64_t *ret_blue)
{
	struct store_stats st;
	uint64_t n = 0;

	s->settings.bytes_max = 0;
	store_begin(s);
	for (int part = 0; part < 6; part++) {
		struct batch b = {.bytes = BUF_INIT(1u << 20)};

		for (int i = 0; i < 10; i++)
			put_event(&b, part ? "blue" : "red", "n1", (int64_t)++n);
		assert_int_equal(take_batch(s->store, (uint64_t)part + 1, &b), 0);
		assert_int_equal(store_commit(s->store, NULL), 0);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 6);
	((struct store_duck *)s->store)->settings.bytes_max =
		st.bytes * 7 / 12; /* three and a half */
	assert_int_equal(store_share(s->store, shares, count), 0);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 3);
	assert_int_equal(st.dropped_rows, 30);
	*ret_red = ask_number(
		s->store, NULL, "SELECT count(*) FROM {events} WHERE cluster_id = 'red'");
	*ret_blue = ask_number(
		s->store, NULL, "SELECT count(*) FROM {events} WHERE cluster_id = 'blue'");
}

static void test_who_fills_the_store_loses_its_own(void **state)
{
	static const struct store_share shares[] = {{"red", 1, 0}, {"blue", 2, 0}};
	int64_t red, blue;

	fill_by_one(*state, shares, 2, &red, &blue);
	assert_int_equal(red, 10);
	assert_int_equal(blue, 20);
}

static void test_a_cluster_that_several_list(void **state)
{
	static const struct store_share shares[] = {{"red", 3, 90}, {"red", 1, 5}, {"green", 2, 0}};
	int64_t red, blue;

	fill_by_one(
		*state, shares, 3, &red, &blue); /* it is the lowest owner's, who has too much */
	assert_int_equal(red, 0);
	assert_int_equal(blue, 30);
}

static void test_control_one_owner_loses_the_oldest(void **state)
{
	static const struct store_share shares[] = {{"red", 1, 0}, {"blue", 1, 0}};
	int64_t red, blue;

	fill_by_one(*state, shares, 2, &red, &blue);
	assert_int_equal(red, 0);
	assert_int_equal(blue, 30);
}

static void test_a_share_that_is_too_small(void **state)
{
	static const struct store_share shares[] = {{"red", 1, 1}, {"blue", 2, 99}};
	int64_t red, blue;

	fill_by_one(*state, shares, 2, &red, &blue);
	assert_int_equal(red, 0);
	assert_int_equal(blue, 30);
}

static void test_merging_keeps_the_rows(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	for (uint64_t n = 4; n <= 32; n += 4) {
		fill_up_to(s->store, n);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 16);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		assert_filled(s->store, 32);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 2);
	assert_int_equal(st.dropped_rows, 0);
	store_end(s);
	store_begin(s);
	assert_filled(s->store, 32);
}

static void test_retention_drops_the_oldest(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	s->settings.retention_ns = 100 * NS_PER_S;
	store_begin(s);
	for (uint64_t n = 50; n <= 200; n += 50) {
		fill_up_to(s->store, n);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	while (s->store->ops->upkeep(s->store, T0 + 210 * (int64_t)NS_PER_S, NULL) > 0)
		;
	/* Parts with rows 101 to 150 and 151 to 200 stay, of each cluster. */
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 300);
	assert_int_equal(ask_number(s->store, NULL, "SELECT min(value_int) FROM {events}"), 101);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 4);
	assert_int_equal(st.dropped_rows, 310);
	assert_int_equal(st.durable, 200);
	store_end(s);

	s->settings.retention_ns = 0;
	s->settings.bytes_max = st.bytes - 1;
	store_begin(s);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 3);
	assert_true(st.bytes <= s->settings.bytes_max);
}

/* A clock that jumps ahead removes nothing, over restarts too, unless somebody says that it is right. */
static void test_a_clock_that_jumps_expires_nothing(void **state)
{
	struct scratch_store *s = *state;
	const int64_t later = T0 + 31 * 86400 * (int64_t)NS_PER_S;
	struct store_stats st;

	s->settings.retention_ns = 30 * 86400 * NS_PER_S;
	store_begin(s);
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	assert_int_equal(s->store->ops->upkeep(s->store, T0 + 60 * (int64_t)NS_PER_S, NULL), 0);
	for (int i = 0; i < 3; i++) {
		while (s->store->ops->upkeep(s->store, later, NULL) > 0)
			;
		assert_filled(s->store, 20);
		s->store->ops->stats(s->store, &st);
		assert_true(st.ahead_ns > 30 * 86400 * (int64_t)NS_PER_S);
		store_end(s);
		s->settings.trust_clock = i == 2;
		store_begin(s);
	}
	while (s->store->ops->upkeep(s->store, later, NULL) > 0)
		; /* the control: the same with a clock that is trusted */
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 0);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.ahead_ns, 0);
	assert_int_equal(st.dropped_rows, 62);
}

/* ---- damage ---- */

static void read_whole(const char *path, struct buf *b)
{
	assert_int_equal(file_read(path, 1u << 20, b), 0);
}

/* The manifest as a version wrote it that had no sums of it; the part of cluster red is as it is now. */
static void write_old_manifest(const struct scratch_store *s)
{
	const char *part, *rest;
	_cleanup_buf_ struct buf b = BUF_INIT(1u << 20), old = BUF_INIT(1u << 20);
	char path[128], copy[128];
	char sum[DIGEST_HEX];
	struct stat st;

	find_newest_part(s->folder);
	assert_int_equal(stat(part_file, &st), 0);
	assert_int_equal(digest_sha256_file(part_file, sum), 0);
	snprintf(path, sizeof(path), "%s/manifest", s->folder);
	snprintf(copy, sizeof(copy), "%s/manifest.copy", s->folder);
	read_whole(path, &b);
	part = strstr(strstr(buf_str(&b), "\"folder\":\"red-"), ",\"bytes\":");
	rest = strstr(part, ",\"received_ns\"");
	buf_puts(&old, "{\"format\":1");
	buf_append(&old, buf_str(&b) + 11, (size_t)(part - buf_str(&b)) - 11);
	buf_printf(&old, ",\"bytes\":%lld,\"sha256\":\"%s\"", (long long)st.st_size, sum);
	assert_non_null(strstr(rest, ",\"missing\":"));
	buf_append(&old, rest, (size_t)(strstr(rest, ",\"missing\":") - rest));
	buf_puts(&old, "}\n");
	assert_int_equal(file_write_atomic(path, old.data, old.len, 0600), 0);
	assert_int_equal(unlink(copy), 0);
}

/* A store of a version without sums is opened, and has them from then on. */
static void test_an_old_manifest_is_read(void **state)
{
	struct scratch_store *s = *state;
	_cleanup_buf_ struct buf again = BUF_INIT(1u << 20);
	struct store_report report = {0};
	char path[128], copy[128];

	store_begin(s);
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	snprintf(path, sizeof(path), "%s/manifest", s->folder);
	snprintf(copy, sizeof(copy), "%s/manifest.copy", s->folder);
	write_old_manifest(s);
	assert_int_equal(store_duck_verify(s->folder, &report, NULL), 0);
	store_begin(s);
	assert_filled(s->store, 20);
	store_end(s);
	read_whole(path, &again);
	assert_non_null(strstr(buf_str(&again), "\"format\":2"));
	assert_int_equal(access(copy, F_OK), 0);
}

/* Takes the column out of the part of cluster red, as a version before the column wrote it. */
static void drop_column(const struct scratch_store *s, const char *column)
{
	struct duck *d = NULL;
	struct duck_connection *c = NULL;
	struct errinfo err = {0};
	char sql[4400];

	find_newest_part(s->folder);
	assert_int_equal(duck_open(NULL, NULL, &d, &err), 0);
	assert_int_equal(duck_connect(d, &c, &err), 0);
	snprintf(sql, sizeof(sql),
		"ATTACH '%s' AS p; ALTER TABLE p.causal_chains DROP COLUMN %s; DETACH p", part_file,
		column);
	if (duck_exec(c, sql, &err) < 0)
		fail_msg("%s", err.text);
	duck_disconnect(c);
	duck_close(d);
}

/* Rows of before a column have NULL in it, in their part, beside newer ones, and merged with them. */
static void test_a_part_of_before_a_column(void **state)
{
	struct scratch_store *s = *state;
	struct batch b = {.bytes = BUF_INIT(1u << 20)};

	store_begin(s);
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	drop_column(s, "problem");
	write_old_manifest(s);
	store_begin(s);
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {causal_chains}"), 2);
	assert_int_equal(
		ask_number(s->store, NULL, "SELECT count(problem) FROM {causal_chains}"), 0);
	batch_row(&b, TABLE_CHAINS);
	batch_int(&b, CHAINS_TS, T0);
	batch_text_of(&b, CHAINS_CLUSTER, "red");
	batch_text_of(&b, CHAINS_NODE, "n1");
	batch_text_of(&b, CHAINS_PROBLEM, "pcie");
	assert_int_equal(take_batch(s->store, 21, &b), 0);
	assert_int_equal(store_commit(s->store, NULL), 0);
	for (int sealed = 0; sealed < 2; sealed++) {
		assert_int_equal(
			ask_number(s->store, NULL, "SELECT count(*) FROM {causal_chains}"), 3);
		assert_int_equal(
			ask_number(s->store, NULL,
				"SELECT count(*) FROM {causal_chains} WHERE problem = 'pcie'"),
			1);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {causal_chains}"), 3);
	assert_int_equal(
		ask_number(s->store, NULL, "SELECT count(problem) FROM {causal_chains}"), 1);
}

static void test_a_part_that_is_cut_is_moved_away(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	fill_up_to(s->store, 30);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	damage_part_in(s->folder, true);
	for (int i = 0; i < 2; i++) { /* it is moved once */
		store_begin(s);
		assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 30);
		s->store->ops->stats(s->store, &st);
		assert_int_equal(st.fault, 0);
		assert_int_equal(st.parts, 1);
		assert_int_equal(st.missing.parts, 1); /* also after a restart */
		assert_int_equal(st.missing.rows, 63);
		store_end(s);
		assert_int_equal(access(part_file, F_OK), -1);
	}
}

static void test_a_part_that_cannot_be_read_is_moved_away(void **state)
{
	struct scratch_store *s = *state;
	static const char *const names[] = {"blue"};
	struct store_scope blue = {.clusters = names, .cluster_count = 1};
	struct store_stats st;
	struct store_missing m;

	store_begin(s);
	fill_up_to(s->store, 30);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	damage_part_in(s->folder, false);
	store_begin(s);
	/* The first question that meets it is answered without it. */
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(value_int) FROM {events}"), 30);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.missing.rows, 63);
	assert_int_equal(st.missing.since_ns, T0 + 10);
	store_missing(s->store, &blue, &m);
	assert_int_equal(m.rows, 0); /* nothing of blue is missing */
	assert_int_equal(access(part_file, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_who_fills_the_store_loses_its_own),
		T(test_control_one_owner_loses_the_oldest),
		T(test_a_cluster_that_several_list),
		T(test_a_share_that_is_too_small),
		T(test_merging_keeps_the_rows),
		T(test_retention_drops_the_oldest),
		T(test_a_clock_that_jumps_expires_nothing),
		T(test_an_old_manifest_is_read),
		T(test_a_part_of_before_a_column),
		T(test_a_part_that_is_cut_is_moved_away),
		T(test_a_part_that_cannot_be_read_is_moved_away),
#undef T
	};

	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
