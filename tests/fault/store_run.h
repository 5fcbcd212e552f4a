/* SPDX-License-Identifier: Apache-2.0 */
/* store_run.h - a tracer's use of the store, and the rules that hold for its file whatever failed:
 * the tests of faults share them. */
#pragma once

#include "../unit/store_fixture.h"

#include "store/write/writer.h"

#define RUN_SOURCES 3 /* events come of sources 1 to 3, aggregates of the first */

struct run {
	struct store_writer *writer;
	uint64_t pushed[WIRE_SOURCE_MAX], refused[WIRE_SOURCE_MAX];
	uint64_t counted, uncounted; /* calls that only aggregates hold: accepted, refused */
	struct accounting books;     /* the final ones */
};

/* As the tracer keeps them: hits are what the probes saw. */
static void run_books(const struct store_writer *w, struct accounting *ret, void *arg)
{
	struct run *run = arg;

	*ret = (struct accounting){0};
	for (unsigned s = 1; s <= RUN_SOURCES; s++) {
		struct account *a = &ret->source[s];
		uint64_t bare = store_writer_unaggregated(w, s);

		a->hits = run->pushed[s];
		a->stored = store_writer_stored(w, s);
		a->lost[LOSS_QUEUE_FULL] = run->refused[s];
		a->lost[LOSS_WRITE_FAILED] = store_writer_failed(w, s) + bare;
		if (s != 1)
			continue;
		a->hits += run->counted + run->uncounted;
		a->aggregated = run->counted - bare;
		a->lost[LOSS_QUEUE_FULL] += run->uncounted;
	}
	run->books = *ret;
}

static _unused_ bool run_start(struct run *run, const char *path)
{
	struct store_writer_config config = {.batch_events = 64, .batch_ms = 2};
	struct session session = {.started.ns = 1};
	struct errinfo err = {0};
	struct nodedb *db = NULL;

	*run = (struct run){0};
	if (nodedb_open(path, "n1", &db, &err) < 0)
		return false;
	if (nodedb_session_begin(db, &session, &err) < 0 ||
		store_writer_start(db, session.id, &config, &run->writer, &err) < 0) {
		nodedb_close(db, NULL);
		return false;
	}
	return true;
}

static _unused_ void run_push(struct run *run, int events)
{
	struct accounting books;

	for (int i = 0; i < events; i++) {
		struct event e = {.start.ns = 1000 + i,
			.pid = 7,
			.tid = 7,
			.source = (uint8_t)(1 + i % RUN_SOURCES),
			.op = 1,
			.dur_ns = 5,
			.weight = 1};
		struct aggregate a = {.bucket.ns = 5000000000LL * (i / 100),
			.pid = 7,
			.source = 1,
			.op = 3,
			.stored = 1};

		run->pushed[e.source]++;
		run->refused[e.source] += !store_writer_push(run->writer, &e);
		if (i % 100 != 50)
			continue;
		sketch_add(&a.sketch, 100, 12); /* of which one is a row */
		if (store_writer_push_aggregate(run->writer, &a))
			run->counted += 11;
		else
			run->uncounted += 11;
		run_books(run->writer, &books, run);
		(void)store_writer_push_accounting(run->writer, &books);
	}
}

static _unused_ int run_stop(struct run *run)
{
	return store_writer_stop(run->writer, run_books, run, (wall_time){9000}, NULL);
}

#define RUN_CHECK(x)                                                                               \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #x);                            \
			return false;                                                              \
		}                                                                                  \
	} while (0)

/* What holds for a file after any fault: it is sound, its books say what is in it to the row, and
 * they balance or say that the end is not known. */
static _unused_ bool run_file_holds(const char *path)
{
	struct nodedb_content c;
	struct errinfo err = {0};
	uint64_t rows[WIRE_SOURCE_MAX] = {0}, counted = 0;
	bool has_books;

	RUN_CHECK(scratch_int(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check") ==
		  1);
	if (nodedb_read(path, NULL, &c, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	for (size_t i = 0; i < c.event_count; i++)
		rows[c.events[i].source]++;
	for (size_t i = 0; i < c.aggregate_count; i++)
		counted += c.aggregates[i].sketch.count - c.aggregates[i].stored;
	has_books = c.has_books;
	for (unsigned s = 1; has_books && s <= RUN_SOURCES; s++) {
		const struct account *a = &c.books.source[s];

		RUN_CHECK(a->stored == rows[s]);
		RUN_CHECK(a->aggregated == (s == 1 ? counted : 0));
		RUN_CHECK(a->hits >= a->stored + a->aggregated + account_lost(a));
		RUN_CHECK(c.books.unclean || account_balances(a));
	}
	nodedb_content_done(&c);
	return true;
}
