/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_scan.c - a recording read without its ordinary calls yields the same incidents. */
#include "published_fixture.h"
#include "diagnose/compose/diagnose.h"
#include "scene.h"
#include "store_fixture.h"

static struct nodedb_content read_thin(const char *path, enum nodedb_thin thin)
{
	struct nodedb_content c;
	struct errinfo err = {0};

	if (nodedb_read(path, &(struct nodedb_filter){.thin = thin}, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static void store_scene(const char *path, struct scene *sc, bool with_aggregates)
{
	struct nodedb *db = scratch_open(path);
	struct session session = {.started.ns = SCENE_T0_NS};
	struct errinfo err = {0};

	if (with_aggregates)
		scene_aggregate(sc);
	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(nodedb_batch_begin(db, &err), 0);
	for (size_t i = 0; i < sc->event_count; i++)
		assert_int_equal(nodedb_put_event(db, &sc->events[i], &err), 0);
	for (size_t i = 0; i < sc->aggregate_count; i++)
		assert_int_equal(nodedb_add_aggregate(db, false, &sc->aggregates[i], &err), 0);
	assert_int_equal(nodedb_batch_commit(db, &err), 0);
	scratch_close(db);
}

static struct incident *incidents_of(const struct nodedb_content *c, size_t *ret_count)
{
	struct recording rec = {.events = c->events,
		.event_count = c->event_count,
		.aggregates = c->aggregates,
		.aggregate_count = c->aggregate_count,
		.node = c->node};
	struct incident *list = NULL;

	assert_int_equal(diagnose_run(&rec, &list, ret_count), 0);
	return list;
}

/* Returns how many rows were left out. */
static uint64_t compare(const char *path, size_t expected_incidents)
{
	struct nodedb_content whole = read_thin(path, NODEDB_THIN_NEVER);
	struct nodedb_content thin = read_thin(path, NODEDB_THIN_ALWAYS);
	size_t n, m;
	struct incident *a = incidents_of(&whole, &n), *b = incidents_of(&thin, &m);
	uint64_t left_out = thin.thinned_rows;

	assert_int_equal(n, expected_incidents);
	assert_int_equal(m, n);
	for (size_t i = 0; i < n; i++) { /* what short calls took is on another line: a trifle */
		assert_string_equal(a[i].id, b[i].id);
		assert_string_equal(a[i].summary, b[i].summary);
		assert_string_equal(a[i].root_cause, b[i].root_cause);
		assert_int_equal(a[i].severity, b[i].severity);
		assert_in_range(
			b[i].excess_ns, a[i].excess_ns / 100 * 99, a[i].excess_ns / 99 * 100);
	}
	assert_int_equal(thin.event_count + thin.thinned_rows, whole.event_count);
	assert_int_equal(thin.first_ns, whole.first_ns);
	assert_int_equal(thin.last_ns, whole.last_ns);
	assert_int_equal(thin.total_calls, whole.total_calls);
	for (size_t i = 1; i < thin.event_count; i++)
		assert_true(thin.events[i - 1].start.ns <= thin.events[i].start.ns);
	free(a);
	free(b);
	nodedb_content_done(&whole);
	nodedb_content_done(&thin);
	return left_out;
}

/* Steps slowed by a hog among launches, some of them nested, and copies, stored as they end. */
static void busy_scene(struct scene *sc)
{
	size_t n;

	scene_hog(sc);
	scene_launches(sc, 5);
	n = sc->event_count;
	for (size_t i = 0; i < n; i++) {
		int64_t at = (sc->events[i].start.ns - SCENE_T0_NS) / 1000;

		if (sc->events[i].op == CUDA_LAUNCH)
			scene_add(sc, SOURCE_DRIVER, DRIVER_LAUNCH, VICTIM, VICTIM, at + 2, 4)
				->flags = WIRE_NESTED;
		else if (sc->events[i].source == SOURCE_CUDA)
			scene_call(sc, CUDA_MEMCPY, at - 30000, 500);
	}
}

static void test_same_incidents(void **state)
{
	struct scratch *s = *state;
	struct scene sc = {0};
	uint64_t left_out;

	busy_scene(&sc);
	store_scene(s->path, &sc, true);
	left_out = compare(s->path, 1);
	assert_in_range(left_out, 4000 + 4000 + 700, 4000 + 4000 + 800);
	scene_done(&sc);
}

/* The first call after a pause is as short as others, and all that shows the pause; samples of what
 * ran on a CPU are no calls. */
static void test_pauses_and_samples_stay(void **state)
{
	struct scratch *s = *state;
	struct scene sc = {0};
	struct nodedb_content thin;
	size_t gaps = 0, samples = 0;

	for (int i = 0; i < 4000; i++) {
		struct event *e = scene_call(&sc, CUDA_LAUNCH, i * 10000 + 30, 8);

		e->flags = i % 40 ? 0 : WIRE_AFTER_GAP;
		if (i % 10 == 0)
			scene_add(&sc, SOURCE_HOST, HOST_CPU_SAMPLE, VICTIM, VICTIM, i * 10000, 10);
	}
	store_scene(s->path, &sc, true);
	thin = read_thin(s->path, NODEDB_THIN_ALWAYS);
	for (size_t i = 0; i < thin.event_count; i++) {
		gaps += (thin.events[i].flags & WIRE_AFTER_GAP) != 0;
		samples += thin.events[i].op == HOST_CPU_SAMPLE;
	}
	assert_int_equal(gaps, 100);
	assert_int_equal(samples, 400);
	assert_in_range(thin.thinned_rows, 3800, 3900); /* control: the others are left out */
	nodedb_content_done(&thin);
	scene_done(&sc);
}

/* Calls that are slow in the first seconds: what is left out still says when the op was first
 * called, so none of them is taken for the first. */
static void test_first_calls_count(void **state)
{
	struct scratch *s = *state;
	struct scene sc = {0};

	scene_call(&sc, CUDA_MEMCPY, 0, 50);
	for (int i = 0; i < 3; i++) { /* three are the least that matters */
		scene_call(&sc, CUDA_MEMCPY, 1000000 + i * 300000, 200000);
		scene_stay(&sc, VICTIM, 1000000 + i * 300000 + 100, 199000, 199000, WIRE_PREEMPTED,
			HOG, "hog");
	}
	for (int i = 0; i < 300; i++)
		scene_call(&sc, CUDA_MEMCPY, 2000000 + i * 20000, 50);
	store_scene(s->path, &sc, true);
	assert_in_range(compare(s->path, 0), 290, 300);
	scene_done(&sc);
}

static void test_without_aggregates(void **state)
{
	struct scratch *s = *state;
	struct scene sc = {0};

	busy_scene(&sc);
	store_scene(s->path, &sc, false);
	assert_int_equal(compare(s->path, 1), 0);
	scene_done(&sc);
}

static void test_published(void **state)
{
	struct scratch *s = *state;

	scratch_sql(s->path,
		PUBLISHED_8 "INSERT INTO events(timestamp,pid,tid,source,op,duration,arg1) VALUES"
			    " (1000, 7, 7, 1, 3, 100, 0), (1090, 7, 7, 3, 1, 40, 7)");
	assert_int_equal(compare(s->path, 0), 0);
}

static void test_empty(void **state)
{
	struct scratch *s = *state;
	struct scene sc = {0};

	store_scene(s->path, &sc, false);
	assert_int_equal(compare(s->path, 0), 0);
}

/* While a writer is at work there is one connection, and what it sees is complete. */
static void test_live(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct scene sc = {0};
	struct nodedb *db;
	struct errinfo err = {0};

	busy_scene(&sc);
	store_scene(s->path, &sc, true);
	db = scratch_open(s->path);
	assert_int_equal(nodedb_put_event(db, &sc.events[0], &err), 0);
	c = read_thin(s->path, NODEDB_THIN_ALWAYS);
	assert_int_equal(c.event_count + c.thinned_rows, sc.event_count + 1);
	nodedb_content_done(&c);
	scratch_close(db);
	scene_done(&sc);
}

/* Rows that make no sense are seen and counted whichever way the file is read. */
static void test_damaged_rows(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content whole, thin;
	struct scene sc = {0};

	busy_scene(&sc);
	store_scene(s->path, &sc, true);
	scratch_sql(s->path, "UPDATE events SET duration = x'00' WHERE seq = 11;"
			     "UPDATE events SET duration = -1 WHERE seq = 12;"
			     "UPDATE events SET seq = -9223372036854775807 WHERE seq = 13;"
			     "UPDATE events SET timestamp = 'never' WHERE seq = 14;"
			     "UPDATE events SET op = 77 WHERE seq = 15");
	whole = read_thin(s->path, NODEDB_THIN_NEVER);
	thin = read_thin(s->path, NODEDB_THIN_ALWAYS);
	assert_int_equal(whole.skipped_rows, 4);
	assert_int_equal(thin.skipped_rows, 4);
	assert_int_equal(thin.event_count + thin.thinned_rows, whole.event_count);
	nodedb_content_done(&whole);
	nodedb_content_done(&thin);
	scene_done(&sc);
}

/* What the pages say and what SQLite says of the same rows: a row that does not fit on its page, and a
 * table with a column more, are left to SQLite. Processes and times are chosen by both. */
static void compare_ways(const char *path, const char *other, const struct scope *scope)
{
	const struct nodedb_filter f = {.thin = NODEDB_THIN_ALWAYS, .scope = *scope};
	struct nodedb_content a, b;
	struct errinfo err = {0};

	assert_int_equal(nodedb_read(path, &f, &a, &err), 0);
	assert_int_equal(nodedb_read(other, &f, &b, &err), 0);
	assert_true(a.event_count > 100);
	assert_int_equal(a.event_count, b.event_count);
	assert_int_equal(a.thinned_rows, b.thinned_rows);
	for (size_t i = 0; i < a.event_count; i++) {
		if (a.events[i].seq == 5000) /* the one that was changed */
			memcpy(b.events[i].comm, a.events[i].comm, COMM_LEN);
		assert_memory_equal(&a.events[i], &b.events[i], sizeof(a.events[i]));
	}
	nodedb_content_done(&a);
	nodedb_content_done(&b);
}

static void test_pages_and_rows(void **state)
{
	static const char *const changes[] = {
		"UPDATE events SET comm = hex(zeroblob(9000)) WHERE seq = 5000",
		"ALTER TABLE events ADD COLUMN later INTEGER"};
	static const uint32_t pids[] = {VICTIM, HOG};
	const struct scope scopes[] = {{0}, {.pids = pids, .pid_count = 2},
		{.from_ns = SCENE_T0_NS + 3 * (int64_t)NS_PER_S,
			.to_ns = SCENE_T0_NS + 20 * (int64_t)NS_PER_S}};
	struct scratch *s = *state;
	struct scene sc = {0};
	char *file, other[128];
	size_t len;

	busy_scene(&sc);
	store_scene(s->path, &sc, true);
	file = scratch_bytes(s->path, &len);
	snprintf(other, sizeof(other), "%s/other.db", s->folder);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		scratch_write(other, file, len);
		scratch_sql(other, changes[i]);
		for (size_t k = 0; k < ARRAY_SIZE(scopes); k++)
			compare_ways(s->path, other, &scopes[k]);
	}
	free(file);
	scene_done(&sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_same_incidents),
		TEST(test_pauses_and_samples_stay),
		TEST(test_first_calls_count),
		TEST(test_without_aggregates),
		TEST(test_published),
		TEST(test_empty),
		TEST(test_live),
		TEST(test_damaged_rows),
		TEST(test_pages_and_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
