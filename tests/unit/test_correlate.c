/* SPDX-License-Identifier: Apache-2.0 */
/* test_correlate.c - whole recordings with a known truth: who did it, how much, and above all when
 * nobody did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/problem.h"
#include "scene.h"

struct answer {
	struct incident *list;
	size_t count;
};

static void answer_done(struct answer *a)
{
	free(a->list);
}

static struct answer explain_books(const struct scene *s, const struct accounting *books)
{
	struct recording rec = scene_recording(s);
	struct answer a = {0};

	rec.books = books;
	assert_int_equal(correlate_run(&rec, &a.list, &a.count), 0);
	for (size_t i = 0; i < a.count; i++) {
		uint64_t sum = 0;

		assert_true(a.list[i].explained >= 0 && a.list[i].explained <= 1);
		assert_true(a.list[i].confidence >= 0 && a.list[i].confidence <= 1);
		for (int k = 0; k < a.list[i].cause_count; k++)
			sum += a.list[i].causes[k].ns;
		if (a.list[i].cause_count || a.list[i].problem == PROBLEM_SLOW_CALL)
			assert_int_equal(sum, a.list[i].excess_ns);
		assert_true(a.list[i].summary[0] && a.list[i].root_cause[0]);
		assert_true(a.list[i].fix_count > 0 && a.list[i].step_count > 0);
	}
	return a;
}

static struct answer explain(const struct scene *s)
{
	return explain_books(s, NULL);
}

#define SCENE  _cleanup_(scene_done) struct scene s = {.seed = 1}
#define ANSWER _cleanup_(answer_done) struct answer

static double share(const struct incident *inc, enum cause cause)
{
	uint64_t ns = 0;

	for (int i = 0; i < inc->cause_count; i++)
		if (inc->causes[i].cause == cause)
			ns += inc->causes[i].ns;
	return (double)ns / (double)inc->excess_ns;
}

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void test_cpu_hog(void **state)
{
	SCENE;

	scene_hog(&s);
	scene_sample(&s, 0, 10);
	scene_sample(&s, 25000000, 97);
	scene_aggregate(&s);
	ANSWER a = explain(&s);
	const struct incident *inc = a.list;

	assert_int_equal(a.count, 1);
	assert_true(inc->explained >= 0.9);
	assert_int_equal(inc->causes[0].cause, CAUSE_PREEMPTED);
	assert_int_equal(inc->causes[0].culprit_pid, HOG);
	assert_string_equal(inc->causes[0].culprit, "sim-cpu-hog");
	assert_int_equal(inc->causes[0].calls, 400);
	assert_int_equal(inc->slow_calls, 400);
	assert_int_equal(inc->calls, 800);
	assert_in_range(inc->baseline_ns, 900000, 1100000);
	assert_int_equal(inc->slow_p50_ns, 20000000);
	assert_int_equal(inc->severity, SEVERITY_HIGH);
	assert_true(inc->confidence > 0.85);
	assert_contains(inc->summary, "sim-cpu-hog (pid 8821) used the CPU for");
	assert_contains(inc->root_cause, "CPU contention");
	assert_contains(inc->fixes[1], "renice 19 -p 8821");
	assert_contains(inc->explanation, "losses are unknown");
	assert_string_equal(inc->timeline[inc->step_count - 1].layer, "CUDA");
	assert_int_equal(inc->evidence_count, INCIDENT_EVIDENCE);
}

static void test_run_queue(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 200, 50000, 1000);
	for (int i = 0; i < 200; i++) {
		int64_t at = 10000000 + i * 50000;

		scene_call(&s, CUDA_STREAM_SYNC, at, 11000);
		/* asleep for 900 us, then runnable behind the hog for 10 ms */
		scene_stay(&s, VICTIM, at + 50, 10900, 10000, 0, HOG, "hog");
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_RUN_QUEUE);
	assert_int_equal(a.list->causes[0].culprit_pid, HOG);
	assert_true(a.list->explained >= 0.95);
	assert_contains(a.list->summary, "waiting for a CPU used by hog (pid 8821)");
}

static void test_idle_is_never_a_culprit(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 200, 50000, 1000);
	for (int i = 0; i < 200; i++) {
		int64_t at = 10000000 + i * 50000;

		scene_call(&s, CUDA_STREAM_SYNC, at, 11000);
		scene_stay(&s, VICTIM, at + 50, 10900, 10000, WIRE_PREEMPTED * (i & 1), 0,
			"swapper/3");
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_RUN_QUEUE);
	assert_int_equal(a.list->causes[0].culprit_pid, 0);
	assert_string_equal(a.list->causes[0].culprit, "");
	assert_null(strstr(a.list->summary, "swapper"));
	assert_null(strstr(a.list->explanation, "swapper"));
}

static void disk_scene(struct scene *s, uint64_t writer_kib)
{
	scene_calm(s, CUDA_MEMCPY, 0, 200, 50000, 1000);
	for (int i = 0; i < 200; i++) {
		int64_t at = 10000000 + i * 50000;

		scene_call(s, CUDA_MEMCPY, at, 31000);
		scene_stay(s, VICTIM, at + 500, 30000, 100, WIRE_UNINTERRUPTIBLE, 0, "swapper");
		scene_io(s, IO_READ, VICTIM, "python3", at + 490, 29900, 128);
		scene_io(s, IO_WRITE, 7001, "ckpt-writer", at, 32000, writer_kib);
	}
	scene_aggregate(s);
}

static void test_disk_busy_with_another(void **state)
{
	SCENE;

	disk_scene(&s, 4096);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_int_equal(a.list->causes[0].culprit_pid, 7001);
	assert_true(a.list->causes[0].culprit_share > 0.9);
	assert_true(a.list->explained >= 0.95);
	assert_contains(a.list->summary, "while ckpt-writer (pid 7001) kept the disk busy");
	assert_contains(a.list->fixes[1], "ionice -c 3 -p 7001");
}

static void test_disk_busy_with_itself(void **state)
{
	SCENE;

	disk_scene(&s, 4);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_int_equal(a.list->causes[0].culprit_pid, VICTIM);
	assert_contains(a.list->summary, "its own disk requests");
}

/* D state without a request of its own: a file system, and nobody's fault, whoever else used the disk. */
static void test_disk_wait_without_own_request(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_MEMCPY, 0, 200, 50000, 1000);
	for (int i = 0; i < 200; i++) {
		int64_t at = 10000000 + i * 50000;

		scene_call(&s, CUDA_MEMCPY, at, 31000);
		scene_stay(&s, VICTIM, at + 500, 30000, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper");
		scene_io(&s, IO_WRITE, 7001, "ckpt-writer", at, 32000, 4096);
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_true(a.list->explained > 0.95);
	assert_int_equal(a.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_int_equal(a.list->causes[0].culprit_pid, 0);
	assert_null(strstr(a.list->summary, "ckpt-writer"));
	assert_contains(a.list->summary, "network file system");
	assert_contains(a.list->timeline[0].detail, "without a disk request of its own");
}

/* The GPU got slower: the thread sleeps longer. Another thread of the process is preempted all the
 * while, and so is the same thread between the calls. Neither may be blamed. */
static void test_gpu_slower_blames_nobody(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	for (int i = 0; i < 200; i++) {
		int64_t at = 20000000 + i * 50000;

		scene_call(&s, CUDA_STREAM_SYNC, at, 20000);
		scene_stay(&s, VICTIM, at + 100, 19800, 10, 0, HOG, "bystander");
		for (int k = 0; k < 15; k++)
			scene_stay(&s, VICTIM + 1, at + k * 1000, 900, 900, WIRE_PREEMPTED, HOG,
				"bystander");
		scene_stay(&s, VICTIM, at + 20000, 25000, 25000, WIRE_PREEMPTED, HOG, "bystander");
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);
	const struct incident *inc = &a.list[1];

	/* That the thread had no CPU between its calls is told, but not as why they are slow. */
	assert_int_equal(a.count, 2);
	assert_int_equal(a.list[0].problem, PROBLEM_CPU_CONTENTION);
	assert_true(a.list[0].excess_ns <= 5000000000);
	assert_int_equal(inc->severity, SEVERITY_LOW);
	assert_int_equal(inc->causes[0].cause, CAUSE_UNEXPLAINED);
	assert_true(inc->explained < 0.01);
	assert_contains(inc->root_cause, "unexplained");
	assert_contains(inc->explanation, "slept for 99 %");
	assert_null(strstr(inc->summary, "bystander"));
	assert_null(strstr(inc->root_cause, "bystander"));
}

static void test_healthy_with_noise(void **state)
{
	SCENE;

	for (int i = 0; i < 20000; i++) {
		int64_t at = i * 3000;

		/* launches of 10 us: jitter, and one in 500 hit by an interrupt of 150 us */
		scene_call(&s, CUDA_LAUNCH, at,
			6 + (int64_t)scene_random(&s, 12) + (scene_random(&s, 500) == 0 ? 150 : 0));
		/* syncs between a half and twice the ordinary, and switches everywhere */
		if (i % 10 == 0)
			scene_call(&s, CUDA_STREAM_SYNC, at + 500,
				800 + (int64_t)scene_random(&s, 1600));
		if (i % 3 == 0)
			scene_stay(&s, VICTIM, at + 200, 150, 100, WIRE_PREEMPTED, HOG, "kworker");
	}
	scene_aggregate(&s);
	ANSWER with = explain(&s);
	assert_int_equal(with.count, 0);

	s.aggregate_count = 0;
	ANSWER without = explain(&s);
	assert_int_equal(without.count, 0);
}

/* Nine short syncs, then the long one that waits for the step: ordinary for this program. */
static void test_two_ordinary_lengths(void **state)
{
	SCENE;

	for (int i = 0; i < 6000; i++)
		scene_call(&s, CUDA_STREAM_SYNC, i * 10000, i % 10 == 9 ? 16000 : 10);
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 0);
}

static void test_contention_longer_than_half(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_LAUNCH, 0, 1200, 10000, 20);
	for (int i = 0; i < 2400; i++) {
		int64_t at = 12000000 + i * 10000;

		scene_call(&s, CUDA_LAUNCH, at, 4000);
		scene_stay(&s, VICTIM, at + 10, 3980, 3980, WIRE_PREEMPTED, HOG, "hog");
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_in_range(a.list->baseline_ns, 15000, 25000);
	assert_int_equal(a.list->slow_calls, 2400);
	assert_true(a.list->explained > 0.95);
	assert_in_range(a.list->p50_ns, 4000000 * 0.968, 4000000 * 1.032);
}

/* Tracing started when it was already bad, as it does: evidence makes it an incident all the same.
 */
static void test_contention_from_the_start(void **state)
{
	SCENE;

	for (int i = 0; i < 3000; i++) {
		int64_t at = i * 10000;
		bool hit = i % 5 == 4;

		scene_call(&s, CUDA_LAUNCH, at, hit ? 4000 : 20);
		if (hit)
			scene_stay(&s, VICTIM, at + 10, 3980, 3980, WIRE_PREEMPTED, HOG, "hog");
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->slow_calls, 600);
	assert_int_equal(a.list->causes[0].culprit_pid, HOG);
}

static void test_first_call_only(void **state)
{
	SCENE;

	scene_call(&s, CUDA_MALLOC, 0, 350000);
	scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, VICTIM, VICTIM + 1, 1000, 349500);
	scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, VICTIM, VICTIM + 2, 2000, 349000);
	scene_add(&s, SOURCE_CUDA, CUDA_MALLOC, VICTIM, VICTIM + 3, 3000, 348000);
	scene_calm(&s, CUDA_MALLOC, 400000, 50, 20000, 100);
	scene_call(&s, CUDA_LAUNCH, 400100, 80000);
	scene_calm(&s, CUDA_LAUNCH, 500000, 500, 1000, 10);
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->problem, PROBLEM_COLD_START);
	assert_int_equal(a.list->severity, SEVERITY_LOW);
}

/* 6 ms preempted and 4 ms disk of each 10 ms of excess; 15 calls have another 2 ms unexplained. */
static void test_two_causes_at_once(void **state)
{
	SCENE;
	double preempted = 0, disk = 0, rest = 0;

	scene_calm(&s, CUDA_MEMCPY, 0, 200, 50000, 500);
	for (int i = 0; i < 100; i++) {
		int64_t at = 10000000 + i * 50000, more = i < 15 ? 20000 : 0;

		scene_call(&s, CUDA_MEMCPY, at, 10500 + more);
		scene_stay(&s, VICTIM, at + 100, 6000, 6000, WIRE_PREEMPTED, HOG, "hog");
		scene_stay(&s, VICTIM, at + 6200, 4000, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper");
		scene_io(&s, IO_READ, VICTIM, "python3", at + 6150, 4100, 64);
		preempted += 6000;
		disk += 4000;
		rest += (double)more;
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);
	double all = preempted + disk + rest;

	assert_int_equal(a.count, 1);
	assert_true(share(a.list, CAUSE_PREEMPTED) > preempted / all - 0.05);
	assert_true(share(a.list, CAUSE_PREEMPTED) < preempted / all + 0.05);
	assert_true(share(a.list, CAUSE_BLOCK_IO) > disk / all - 0.05);
	assert_true(share(a.list, CAUSE_BLOCK_IO) < disk / all + 0.05);
	assert_true(share(a.list, CAUSE_UNEXPLAINED) > rest / all - 0.05);
	assert_true(share(a.list, CAUSE_UNEXPLAINED) < rest / all + 0.05);
	assert_int_equal(a.list->causes[0].culprit_pid, HOG);
}

static void test_one_culprit_of_disk_and_cpu(void **state)
{
	SCENE;
	scene_writer(&s);
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_true(share(a.list, CAUSE_RUN_QUEUE) + share(a.list, CAUSE_PREEMPTED) >
		    share(a.list, CAUSE_BLOCK_IO)); /* control: by layer the CPU has more */
	assert_contains(a.list->summary,
		"while writer (pid 8821) kept the disk busy, plus 16 % while "
		"writer used the CPU");
	assert_contains(a.list->root_cause, "disk contention");
	assert_int_equal(a.list->problem, PROBLEM_SLOW_CALL); /* not the CPU's */
}

/* The stay covers the call, its baseline and time around it: the excess is the ceiling. */
static void test_overlap_is_clipped(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 200, 50000, 1000);
	for (int i = 0; i < 100; i++) {
		int64_t at = 10000000 + i * 50000;

		scene_call(&s, CUDA_STREAM_SYNC, at, 10000);
		scene_stay(&s, VICTIM, at - 1000, 13000, 13000, WIRE_PREEMPTED, HOG, "hog");
		scene_stay(&s, VICTIM, at - 900, 13000, 13000, WIRE_PREEMPTED, HOG + 1, "hog2");
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_true(a.list->explained > 0.999);
	assert_true(a.list->causes[0].ns <= a.list->excess_ns);
	assert_int_equal(a.list->causes[0].culprit_pid, HOG);
}

static void test_many_culprits_of_one_name_and_of_many(void **state)
{
	SCENE;
	char name[COMM_LEN];

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	for (int i = 0; i < 200; i++) {
		int64_t at = 20000000 + i * 50000;

		scene_call(&s, CUDA_STREAM_SYNC, at, 20000);
		scene_stay(
			&s, VICTIM, at + 500, 19000, 19000, WIRE_PREEMPTED, 9000 + (i % 8), "hog");
		scene_call(&s, CUDA_DEVICE_SYNC, at + 21000, i < 100 ? 1000 : 20000);
		if (i < 100)
			continue;
		snprintf(name, sizeof(name), "p%d", i % 20);
		scene_stay(&s, VICTIM, at + 21500, 19000, 19000, WIRE_PREEMPTED, 9100 + (i % 20),
			name);
	}
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 2);
	assert_int_equal(a.list[0].op, CUDA_STREAM_SYNC);
	assert_int_equal(a.list[0].causes[0].ns, a.list[0].excess_ns);
	assert_true(a.list[0].causes[0].culprit_share > 0.12 &&
		    a.list[0].causes[0].culprit_share < 0.13);
	assert_contains(a.list[0].summary, "hog (pid 9000 and others)");
	assert_int_equal(a.list[1].op, CUDA_DEVICE_SYNC);
	assert_contains(a.list[1].summary, "preempted by many processes for");
	assert_true(a.list[1].explained > 0.9);
	assert_in_range(a.list[1].cause_count, 5, INCIDENT_CAUSES);
}

static void test_own_threads(void **state)
{
	SCENE;

	scene_hog(&s);
	for (size_t i = 0; i < s.event_count; i++)
		if (s.events[i].source == SOURCE_HOST)
			s.events[i].peer_pid = VICTIM;
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_contains(a.list->summary, "its own threads");
	assert_contains(a.list->fixes[0], "OMP_NUM_THREADS");
}

static void test_pause_of_more_than_30s_splits(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 2400, 50000, 1000);
	for (int burst = 0; burst < 2; burst++)
		for (int i = 0; i < 100; i++) {
			int64_t at = 10025000 + burst * 60000000 + i * 50000;

			scene_call(&s, CUDA_STREAM_SYNC, at, 20000 + burst);
			scene_stay(&s, VICTIM, at + 500, 19000, 19000, WIRE_PREEMPTED, HOG, "hog");
		}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 2);
	assert_true(a.list[0].excess_ns > a.list[1].excess_ns);
	assert_true(a.list[0].first.ns > a.list[1].last.ns);
	assert_string_not_equal(a.list[0].id, a.list[1].id);
}

/* Seen by runtime and driver: once. Marked nested, or (published files) merely contained. */
static void test_nested_driver_calls_count_once(void **state)
{
	for (int marked = 0; marked < 2; marked++) {
		SCENE;

		for (int i = 0; i < 400; i++) {
			int64_t at = i * 50000, dur = i < 200 ? 1000 : 20000;
			struct event *e;

			scene_call(&s, CUDA_STREAM_SYNC, at, dur);
			e = scene_add(&s, SOURCE_DRIVER, DRIVER_STREAM_SYNC, VICTIM, VICTIM,
				at + 10, dur - 20);
			e->flags = marked ? WIRE_NESTED : 0;
			if (i >= 200)
				scene_stay(&s, VICTIM, at + 500, 19000, 19000, WIRE_PREEMPTED, HOG,
					"hog");
		}
		scene_aggregate(&s);
		ANSWER a = explain(&s);
		assert_int_equal(a.count, 1);
		assert_int_equal(a.list->source, SOURCE_CUDA);

		/* Control: without the runtime the driver's view is the one that counts. */
		for (size_t i = 0; i < s.event_count; i++)
			if (s.events[i].source == SOURCE_CUDA)
				s.events[i].source = SOURCE_NET;
		s.aggregate_count = 0;
		scene_aggregate(&s);
		ANSWER control = explain(&s);
		assert_int_equal(control.count, 1);
		assert_int_equal(control.list->source, SOURCE_DRIVER);
	}
}

/* The published sample: 77 slow launches, 350 ms of excess, switches explain 0.1 % of it. */
static void test_published_sample_is_not_blamed_on_switches(void **state)
{
	SCENE;

	scene_calm(&s, CUDA_LAUNCH, 0, 900, 20000, 16);
	for (int i = 0; i < 77; i++) {
		int64_t at = 1000500 + i * 200000;

		scene_call(&s, CUDA_LAUNCH, at, 4552);
		if (i % 11 == 0)
			scene_stay(&s, VICTIM, at + 100, 50, 50, WIRE_PREEMPTED, HOG, "kworker");
		/* what the published rule counted: switches, but beside the calls */
		for (int k = 0; k < 3; k++)
			scene_stay(&s, VICTIM, at + 6000 + k * 1000, 600, 600, WIRE_PREEMPTED, HOG,
				"kworker");
	}
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->slow_calls, 77);
	assert_in_range(a.list->excess_ns, 345000000, 355000000);
	assert_true(a.list->explained > 0.0005 && a.list->explained < 0.0015);
	assert_int_equal(a.list->severity, SEVERITY_LOW);
	assert_contains(a.list->explanation, "0.1 % of the extra time overlaps");
	assert_contains(a.list->explanation, "may be too high");
}

static void test_losses_lower_confidence_and_are_told(void **state)
{
	SCENE;
	struct accounting books = {0};

	scene_hog(&s);
	scene_aggregate(&s);
	books.source[SOURCE_CUDA] = (struct account){.hits = 10000, .stored = 10000};
	ANSWER whole = explain_books(&s, &books);
	books.source[SOURCE_CUDA].lost[LOSS_RING_FULL] = 1;
	ANSWER one = explain_books(&s, &books);
	books.source[SOURCE_CUDA].lost[LOSS_RING_FULL] = 5000;
	ANSWER half = explain_books(&s, &books);

	assert_contains(whole.list->explanation, "None of 10,000 events lost");
	assert_contains(one.list->explanation, "1 of 10,000 events lost");
	assert_true(whole.list->completeness == 1);
	assert_true(half.list->completeness == 0.5);
	assert_true(half.list->confidence < 0.51 * whole.list->confidence);
}

static void test_severity_medium(void **state)
{
	SCENE;

	/* 10 slow calls, 1.9 % of the time, 19 x */
	scene_calm(&s, CUDA_STREAM_SYNC, 0, 200, 50000, 1000);
	for (int i = 0; i < 10; i++) {
		scene_call(&s, CUDA_STREAM_SYNC, 5025000 + i * 50000, 20000);
		scene_stay(
			&s, VICTIM, 5025500 + i * 50000, 19000, 19000, WIRE_PREEMPTED, HOG, "hog");
	}
	scene_aggregate(&s);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->severity, SEVERITY_MEDIUM);
}

static void test_same_answer_for_any_order(void **state)
{
	SCENE;

	scene_hog(&s);
	scene_aggregate(&s);
	ANSWER a = explain(&s);
	ANSWER again = explain(&s);
	for (size_t i = s.event_count - 1; i > 0; i--) {
		size_t k = scene_random(&s, i + 1);
		struct event e = s.events[i];

		s.events[i] = s.events[k];
		s.events[k] = e;
	}
	ANSWER shuffled = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(again.count, 1);
	assert_int_equal(shuffled.count, 1);
	assert_memory_equal(a.list, again.list, sizeof(*a.list));
	assert_memory_equal(a.list->causes, shuffled.list->causes, sizeof(a.list->causes));
	assert_string_equal(a.list->id, shuffled.list->id);
	assert_string_equal(a.list->explanation, shuffled.list->explanation);
}

static void test_empty(void **state)
{
	struct recording rec = {0};
	struct answer a = {0};

	assert_int_equal(correlate_run(&rec, &a.list, &a.count), 0);
	assert_int_equal(a.count, 0);
	free(a.list);
}

static void test_hostile_rows(void **state)
{
	static const uint64_t extremes[] = {0, 1, 1000, 5000000, UINT64_C(1) << 50,
		(UINT64_C(1) << 50) + 1, INT64_MAX, UINT64_MAX};
	SCENE;

	for (int i = 0; i < 20000; i++) {
		static const uint8_t sources[] = {SOURCE_CUDA, SOURCE_CUDA, SOURCE_DRIVER,
			SOURCE_HOST, SOURCE_HOST, SOURCE_IO, 0, 255};
		struct event *e = scene_add(&s, sources[scene_random(&s, 8)],
			(uint16_t)scene_random(&s, 4), VICTIM * (uint32_t)scene_random(&s, 2),
			(uint32_t)scene_random(&s, 3), (int64_t)scene_random(&s, 10000000), 0);

		e->dur_ns = extremes[scene_random(&s, ARRAY_SIZE(extremes))];
		e->wait_ns = extremes[scene_random(&s, ARRAY_SIZE(extremes))];
		e->flags = (uint16_t)scene_random(&s, 256);
		e->arg0 = extremes[scene_random(&s, ARRAY_SIZE(extremes))];
		e->peer_pid = (uint32_t)scene_random(&s, 3);
		e->weight = scene_random(&s, 2) ? UINT32_MAX : 0;
		e->seq = scene_random(&s, 2) ? UINT64_MAX : 0;
		memset(e->comm, '\'', sizeof(e->comm) - 1);
		memset(e->peer_comm, scene_random(&s, 2) ? 0xff : 0, sizeof(e->peer_comm) - 1);
		if (scene_random(&s, 50) == 0)
			e->start.ns = scene_random(&s, 2) ? INT64_MAX : INT64_MIN;
	}
	scene_sample(&s, 0, 1e300);
	s.samples[0].time.ns = INT64_MIN;
	ANSWER a = explain(&s);
	assert_in_range(a.count, 1, CORRELATE_INCIDENTS_MAX);

	scene_aggregate(&s);
	for (size_t i = 0; i < s.aggregate_count; i++)
		s.aggregates[i].sketch.count = i % 2 ? UINT64_MAX : s.aggregates[i].sketch.count;
	ANSWER b = explain(&s);
	assert_true(b.count <= CORRELATE_INCIDENTS_MAX);
}

/* Nonsense rows beside a true incident are left out, counted, and change nothing else. */
static void test_nonsense_is_counted_as_lost(void **state)
{
	SCENE;
	struct accounting books = {0};

	scene_hog(&s);
	books.source[SOURCE_CUDA] = (struct account){.hits = 1200, .stored = 1200};
	for (int i = 0; i < 3; i++)
		scene_call(&s, CUDA_STREAM_SYNC, 100, 1)->dur_ns = UINT64_MAX;
	scene_call(&s, CUDA_STREAM_SYNC, 100, 1)->start.ns = INT64_MIN;
	ANSWER a = explain_books(&s, &books);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->slow_calls, 400);
	assert_contains(a.list->explanation, "4 of 1,200 events lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_hog),
		cmocka_unit_test(test_run_queue),
		cmocka_unit_test(test_idle_is_never_a_culprit),
		cmocka_unit_test(test_disk_busy_with_another),
		cmocka_unit_test(test_disk_busy_with_itself),
		cmocka_unit_test(test_disk_wait_without_own_request),
		cmocka_unit_test(test_gpu_slower_blames_nobody),
		cmocka_unit_test(test_healthy_with_noise),
		cmocka_unit_test(test_two_ordinary_lengths),
		cmocka_unit_test(test_contention_longer_than_half),
		cmocka_unit_test(test_contention_from_the_start),
		cmocka_unit_test(test_first_call_only),
		cmocka_unit_test(test_two_causes_at_once),
		cmocka_unit_test(test_one_culprit_of_disk_and_cpu),
		cmocka_unit_test(test_overlap_is_clipped),
		cmocka_unit_test(test_many_culprits_of_one_name_and_of_many),
		cmocka_unit_test(test_own_threads),
		cmocka_unit_test(test_pause_of_more_than_30s_splits),
		cmocka_unit_test(test_nested_driver_calls_count_once),
		cmocka_unit_test(test_published_sample_is_not_blamed_on_switches),
		cmocka_unit_test(test_losses_lower_confidence_and_are_told),
		cmocka_unit_test(test_severity_medium),
		cmocka_unit_test(test_same_answer_for_any_order),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile_rows),
		cmocka_unit_test(test_nonsense_is_counted_as_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
