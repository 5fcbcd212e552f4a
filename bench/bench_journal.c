/* SPDX-License-Identifier: Apache-2.0 */
/* bench_journal.c - what it costs to keep a request: OTLP in protobuf to rows, points a second on one core; then
 * entries of these rows through the journal, each on disk before it counts: points a second, bytes a second,
 * syncs, and how long one waits, with as many under way as writers would have.
 *
 *   bench_journal [FOLDER [SECONDS]]      FOLDER: where the journal is made and removed; default: . */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cluster/journal/journal.h"
#include "cluster/keep/rows.h"
#include "otlp/otlp_write.h"

#define POINTS    500 /* of a request */
#define UNDER_WAY 32
#define T0        INT64_C(1790000000000000000)
#define WAITS_MAX (1u << 20)

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_journal: %s: %s\n", what, strerror(-r));
	exit(1);
}

/* ---- decoding ---- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* A request as an exporter sends it: one resource, POINTS gauges with two attributes each. */
static void make_request(struct buf *b)
{
	struct otlp_attributes resource = {.count = 0}, a;
	struct otlp_writer w;
	char name[32];

	otlp_put_text(&resource, "cluster_id", "prod");
	otlp_put_text(&resource, "node_id", "gpu-node-17");
	otlp_put_int(&resource, "rank", 17);
	otlp_put_int(&resource, "nranks", 64);
	otlp_write_begin(&w, b, false, false, &resource, "bench", "1");
	for (int i = 0; i < POINTS; i++) {
		snprintf(name, sizeof(name), "ingero.metric.%d", i % 20);
		a.count = 0;
		otlp_put_text(&a, "gpu", "3");
		otlp_put_text(&a, "causal_chain_id", "chain-000017");
		otlp_write_metric(&w, name, NULL, "ms", OTLP_GAUGE);
		otlp_write_point(&w, &(struct otlp_point){.attributes = &a,
					     .time_ns = (uint64_t)T0 + (uint64_t)i,
					     .value = {.kind = OTLP_DOUBLE, .d = i * 0.125}});
		otlp_write_metric_end(&w);
	}
	otlp_write_end(&w);
}

static void bench_rows(const struct buf *request, uint64_t ns, struct rows *ret)
{
	const struct keeper_request q = {
		.signal = OTLP_METRICS, .data = request->data, .len = request->len};
	uint64_t began = cpu_ns(), took;
	struct seen *seen = NULL;
	struct errinfo e = {0};
	size_t requests = 0;

	check(seen_new(NS_PER_S, &seen), "memory");
	do {
		struct seen_key key;

		check(seen_key_of("metrics", q.data, q.len, &key), "digest");
		(void)seen_find(seen, &key);
		if (requests)
			rows_done(ret);
		*ret = (struct rows){.batch.bytes = BUF_INIT(ROWS_BYTES_MAX)};
		check(rows_read(&q, T0, seen, ret, &e), "decoding");
		check(ret->taken == POINTS ? 0 : -EINVAL, "decoding");
		requests++;
		took = cpu_ns() - began;
	} while (took < ns);
	seen_free(seen);
	printf("rows: %.0f points a second of CPU (%zu bytes of OTLP a point, %zu of rows)\n",
		(double)requests * POINTS * 1e9 / (double)took, request->len / POINTS,
		ret->batch.bytes.len / POINTS);
}

/* ---- the journal ---- */

struct run {
	struct loop *loop;
	struct journal *journal;
	const struct buf *entry;
	uint64_t until_ns;
	size_t done, under_way;
	uint64_t *waits;
	struct one {
		struct run *run;
		uint64_t began;
	} ones[UNDER_WAY];
};

static void on_kept(void *arg, int err, uint64_t position);

static void send(struct one *o)
{
	struct run *r = o->run;

	o->began = mono_now().ns;
	check(journal_append(r->journal, r->entry->data, r->entry->len, on_kept, o), "append");
	r->under_way++;
}

static void on_kept(void *arg, int err, uint64_t position)
{
	struct one *o = arg;
	struct run *r = o->run;
	uint64_t now = mono_now().ns;

	check(err, "writing");
	if (r->done < WAITS_MAX)
		r->waits[r->done] = now - o->began;
	r->done++;
	r->under_way--;
	if (position % 64 == 0)
		journal_trim(r->journal, position);
	if (now < r->until_ns)
		send(o);
	else if (!r->under_way)
		loop_stop(r->loop);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(struct run *r, uint64_t took)
{
	struct journal_stats s = journal_stats(r->journal);
	size_t n = MIN(r->done, (size_t)WAITS_MAX);

	qsort(r->waits, n, sizeof(*r->waits), compare);
	printf("journal: %.0f points/s, %.1f MB/s on disk before they count, %.1f entries a sync; "
	       "waits p50 %.1f ms, p99 %.1f ms, max %.1f ms (%d under way)\n",
		(double)r->done * POINTS * 1e9 / (double)took,
		(double)r->done * (double)r->entry->len * 1e3 / (double)took,
		(double)s.appended / (double)s.syncs, (double)r->waits[n / 2] / 1e6,
		(double)r->waits[n * 99 / 100] / 1e6, (double)r->waits[n - 1] / 1e6, UNDER_WAY);
}

static void bench_journal(const char *folder, const struct buf *entry, uint64_t ns)
{
	struct run r = {.entry = entry, .waits = malloc(WAITS_MAX * sizeof(*r.waits))};
	const struct journal_settings s = {.folder = folder};
	uint64_t began;
	struct errinfo e = {0};

	check(r.waits ? loop_new(&r.loop) : -ENOMEM, "loop");
	if (journal_open(r.loop, &s, &r.journal, &e) < 0) {
		fprintf(stderr, "bench_journal: %s\n", e.text);
		exit(1);
	}
	began = mono_now().ns;
	r.until_ns = began + ns;
	for (size_t i = 0; i < UNDER_WAY; i++) {
		r.ones[i].run = &r;
		send(&r.ones[i]);
	}
	loop_run(r.loop);
	report(&r, mono_now().ns - began);
	journal_free(r.journal);
	loop_free(r.loop);
	free(r.waits);
}

int main(int argc, char **argv)
{
	_cleanup_buf_ struct buf request = BUF_INIT(1 << 20);
	uint64_t ns = (argc > 2 ? strtoull(argv[2], NULL, 10) : 3) * NS_PER_S;
	struct rows rows = {0};
	char folder[4096], command[4200];

	snprintf(folder, sizeof(folder), "%s/bench-journal-%d", argc > 1 ? argv[1] : ".",
		(int)getpid());
	make_request(&request);
	bench_rows(&request, ns, &rows);
	bench_journal(folder, &rows.batch.bytes, ns);
	rows_done(&rows);
	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	return system(command) ? 1 : 0;
}
