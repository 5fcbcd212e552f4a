/* SPDX-License-Identifier: Apache-2.0 */
/* test_diagnose.c - whole recordings with a known truth: who did it, how much, and above all when
 * nobody did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "identity.h"
#include "diagnose/compose/diagnose.h"
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
	assert_int_equal(diagnose_run(&rec, &a.list, &a.count), 0);
	for (size_t i = 0; i < a.count; i++) {
		const struct incident *inc = &a.list[i];
		uint64_t sum = 0;

		if (getenv("INGERO_SHOW"))
			print_message("%s %s %.2f: %s\n", severity_name(inc->severity),
				problem_row(inc->problem)->id, inc->confidence, inc->summary);
		assert_true(inc->explained >= 0 && inc->explained <= 1);
		assert_true(inc->confidence >= 0 && inc->confidence <= 1);
		for (int k = 0; k < inc->cause_count; k++)
			sum += inc->causes[k].ns;
		assert_true(sum <= inc->excess_ns);
		assert_true(inc->summary[0] && inc->root_cause[0]);
		assert_true(inc->fix_count > 0 && inc->step_count > 0);
	}
	identity_check(&rec, a.list, a.count);
	return a;
}

static struct answer explain(struct scene *s)
{
	scene_aggregate(s);
	return explain_books(s, NULL);
}

#define SCENE  _cleanup_(scene_done) struct scene s = {.seed = 1}
#define ANSWER _cleanup_(answer_done) struct answer

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* Neither in what is said first nor in the root cause. */
static void assert_unsaid(const struct incident *inc, const char *part)
{
	assert_null(strstr(inc->summary, part));
	assert_null(strstr(inc->root_cause, part));
}

/* Within 5 % of @us microseconds. */
static void assert_about(uint64_t ns, double us)
{
	if ((double)ns < 950 * us || (double)ns > 1050 * us)
		fail_msg("%.0f us instead of %.0f", (double)ns / 1000, us);
}

static const struct incident *of(const struct answer *a, enum cause cause)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i].cause_count && a->list[i].causes[0].cause == cause)
			return &a->list[i];
	return NULL;
}

static void test_cpu_hog(void **state)
{
	SCENE;

	scene_hog(&s);
	scene_sample(&s, 0, 10);
	scene_sample(&s, 25000000, 97);
	ANSWER a = explain(&s);
	const struct incident *inc = a.list;

	assert_int_equal(a.count, 1);
	assert_int_equal(inc->problem, PROBLEM_CPU_CONTENTION);
	assert_int_equal(inc->pid, VICTIM);
	assert_int_equal(inc->causes[0].cause, CAUSE_RUN_QUEUE);
	assert_int_equal(inc->causes[0].culprit_pid, HOG);
	assert_string_equal(inc->causes[0].culprit, "sim-cpu-hog");
	assert_int_equal(inc->count, 400);
	assert_int_equal(inc->calls, 799);
	assert_about(inc->baseline_ns, 50000);
	assert_about(inc->slow_p50_ns, 69000);
	assert_about(inc->excess_ns, 400 * 19000);
	assert_int_equal(inc->severity, SEVERITY_HIGH);
	assert_true(inc->confidence > 0.6);
	assert_contains(inc->summary, "sim-cpu-hog");
	assert_contains(inc->evidence_sql, "4821");
	assert_in_range(inc->since.ns, SCENE_T0_NS + 19900000000, SCENE_T0_NS + 20100000000);
}

/* Asleep until the GPU is done, then runnable behind the hog for 10 ms. */
static void late_wakings(struct scene *s, uint16_t flags, uint32_t pid, const char *name)
{
	int64_t at = 0;

	scene_steps(s, &at, 200);
	for (int i = 0; i < 200; i++) {
		int64_t begin = scene_step(s, &at, 49000, 11000);

		scene_stay(s, VICTIM, begin + 50, 10900, 10000, (i & 1) ? flags : 0, pid, name);
	}
}

static void test_run_queue(void **state)
{
	SCENE;

	late_wakings(&s, 0, HOG, "hog");
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_RUN_QUEUE);
	assert_int_equal(a.list->causes[0].culprit_pid, HOG);
	assert_about(a.list->excess_ns, 200 * 10000);
	assert_contains(a.list->summary, "hog");
}

static void test_idle_is_never_a_culprit(void **state)
{
	SCENE;

	late_wakings(&s, WIRE_PREEMPTED, 0, "swapper/3");
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_RUN_QUEUE);
	assert_int_equal(a.list->causes[0].culprit_pid, 0);
	assert_string_equal(a.list->causes[0].culprit, "");
	assert_unsaid(a.list, "swapper");
	assert_null(strstr(a.list->explanation, "swapper"));
}

/* Steps that lose 30 ms to a wait for the disk: with a request of their own if @own, while another writes. */
static void disk_scene(struct scene *s, bool own, uint64_t writer_kib)
{
	int64_t at = 0;

	scene_steps(s, &at, 200);
	for (int i = 0; i < 200; i++) {
		int64_t from = at + 500;

		scene_step(s, &at, 79000, 1000);
		scene_stay(s, VICTIM, from, 30000, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper");
		if (own)
			scene_io(s, IO_READ, VICTIM, "python3", from - 10, 29900, 128);
		scene_io(s, IO_WRITE, 7001, "ckpt-writer", from - 500, 32000, writer_kib);
	}
}

static void test_disk_busy_with_another(void **state)
{
	SCENE;

	disk_scene(&s, true, 4096);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_int_equal(a.list->causes[0].culprit_pid, 7001);
	assert_about(a.list->excess_ns, 200 * 30000);
	assert_contains(a.list->summary, "ckpt-writer");
}

static void test_disk_busy_with_itself(void **state)
{
	SCENE;

	disk_scene(&s, true, 4);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_int_not_equal(a.list->causes[0].culprit_pid, 7001);
	assert_unsaid(a.list, "ckpt-writer");
}

/* D state without a request of its own: a file system, and nobody's fault, whoever else used the disk. */
static void test_disk_wait_without_own_request(void **state)
{
	SCENE;

	disk_scene(&s, false, 4096);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_int_equal(a.list->causes[0].culprit_pid, 0);
	assert_unsaid(a.list, "ckpt-writer");
}

/* The GPU got slower: the thread sleeps longer. Another thread of the process is preempted all the
 * while, and so is the same thread in every step, slow or not. Neither may be blamed. */
static void test_gpu_slower_blames_nobody(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 600; i++) {
		int64_t from = at, wait = i < 400 ? 2000 : 20000;
		int64_t begin = scene_step(&s, &at, 49000, wait);

		scene_stay(&s, VICTIM, from + 100, 3000, 3000, WIRE_PREEMPTED, HOG, "bystander");
		scene_stay(&s, VICTIM, begin + 50, wait - 100, 10, 0, HOG, "bystander");
		for (int k = 0; i >= 400 && k < 15; k++)
			scene_stay(&s, VICTIM + 1, from + k * 1000, 900, 900, WIRE_PREEMPTED, HOG,
				"bystander");
	}
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_about(a.list->excess_ns, 200 * 18000);
	assert_int_equal(a.list->causes[0].culprit_pid, 0);
	assert_unsaid(a.list, "bystander");
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
	ANSWER with = explain(&s);
	assert_int_equal(with.count, 0);

	s.aggregate_count = 0;
	ANSWER without = explain_books(&s, NULL);
	assert_int_equal(without.count, 0);
}

/* Nine short syncs, then the long one that waits for the step: ordinary for this program. */
static void test_two_ordinary_lengths(void **state)
{
	SCENE;

	for (int i = 0; i < 6000; i++)
		scene_call(&s, CUDA_STREAM_SYNC, i * 10000, i % 10 == 9 ? 16000 : 10);
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 0);
}

static void test_contention_longer_than_half(void **state)
{
	SCENE;
	int64_t at = 0;

	scene_steps(&s, &at, 200);
	scene_hogged(&s, &at, 800, HOG, "hog");
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_about(a.list->baseline_ns, 50000);
	assert_int_equal(a.list->count, 800);
	assert_int_equal(a.list->causes[0].culprit_pid, HOG);
}

/* Tracing started when it was already bad, as it does: one step in five is hit from the first second on. */
static void test_contention_from_the_start(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 200; i++) {
		scene_steps(&s, &at, 4);
		scene_hogged(&s, &at, 1, HOG, "hog");
	}
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->count, 200);
	assert_int_equal(a.list->causes[0].culprit_pid, HOG);
	assert_about(a.list->excess_ns, 200 * 19000);
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
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->problem, PROBLEM_COLD_START);
	assert_int_equal(a.list->severity, SEVERITY_LOW);
}

/* 6 ms preempted and 4 ms of disk in each slow step: two incidents, and together what was lost. */
static void test_two_causes_at_once(void **state)
{
	SCENE;
	int64_t at = 0;
	const struct incident *cpu, *disk;

	scene_steps(&s, &at, 200);
	for (int i = 0; i < 100; i++) {
		int64_t from = at + 100;

		scene_step(&s, &at, 59000, 1000);
		scene_stay(&s, VICTIM, from, 6000, 6000, WIRE_PREEMPTED, HOG, "hog");
		scene_stay(&s, VICTIM, from + 6100, 4000, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper");
		scene_io(&s, IO_READ, VICTIM, "python3", from + 6050, 4100, 64);
	}
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 2);
	cpu = of(&a, CAUSE_RUN_QUEUE);
	disk = of(&a, CAUSE_BLOCK_IO);
	assert_non_null(cpu);
	assert_non_null(disk);
	assert_about(cpu->excess_ns, 100 * 6000);
	assert_about(disk->excess_ns, 100 * 4000);
	assert_int_equal(cpu->causes[0].culprit_pid, HOG);
	assert_unsaid(disk, "hog");
}

static void test_one_culprit_of_disk_and_cpu(void **state)
{
	SCENE;
	const struct incident *disk, *cpu;

	scene_writer(&s);
	ANSWER a = explain(&s);

	disk = of(&a, CAUSE_BLOCK_IO);
	assert_non_null(disk);
	assert_about(disk->excess_ns, 100 * 4700);
	assert_int_equal(a.count, 2);
	assert_true(a.list[0].excess_ns + a.list[1].excess_ns <= 100 * 10100 * UINT64_C(1000));
	cpu = of(&a, CAUSE_RUN_QUEUE); /* of which the writer had 1.6 of 5.3 ms */
	assert_non_null(cpu);
	assert_true(cpu->causes[0].culprit_share < 0.7);
	assert_int_equal(disk->causes[0].culprit_pid, HOG);
}

/* Stays of one thread that overlap, and reach beyond the step: no more is lost than the step took longer. */
static void test_overlap_is_clipped(void **state)
{
	SCENE;
	int64_t at = 0;

	scene_steps(&s, &at, 200);
	for (int i = 0; i < 100; i++) {
		int64_t begin = scene_step(&s, &at, 49000, 10000);

		scene_stay(&s, VICTIM, begin + 950, 9000, 9000, WIRE_PREEMPTED, HOG, "hog");
		scene_stay(&s, VICTIM, begin + 990, 13000, 13000, WIRE_PREEMPTED, HOG + 1, "hog2");
	}
	ANSWER a = explain(&s);

	assert_true(a.count >= 1);
	for (size_t i = 0; i < a.count; i++)
		assert_true(a.list[i].excess_ns <= UINT64_C(100) * 9100 * 1000);
	assert_int_equal(a.list->causes[0].cause, CAUSE_RUN_QUEUE);
}

/* One name in eight processes is one culprit; twenty names are not nobody. */
static void test_many_culprits_of_one_name_and_of_many(void **state)
{
	for (int many_names = 0; many_names < 2; many_names++) {
		SCENE;
		int64_t at = 0;

		scene_steps(&s, &at, 400);
		for (uint32_t i = 0; i < 200; i++) {
			char name[COMM_LEN] = "hog";

			if (many_names)
				snprintf(name, sizeof(name), "p%u", i % 20);
			scene_hogged(&s, &at, 1, 9000 + i % (many_names ? 20 : 8), name);
		}
		ANSWER a = explain(&s);

		assert_int_equal(a.count, 1);
		assert_int_equal(a.list->problem, PROBLEM_CPU_CONTENTION);
		assert_about(a.list->excess_ns, 200 * 19000);
		if (!many_names)
			assert_contains(a.list->summary, "hog");
	}
}

/* Threads of the job itself had the CPU: no stranger is blamed. */
static void test_own_threads(void **state)
{
	SCENE;

	scene_hog(&s);
	for (size_t i = 0; i < s.event_count; i++)
		if (s.events[i].source == SOURCE_HOST) {
			s.events[i].peer_pid = VICTIM;
			snprintf(s.events[i].peer_comm, COMM_LEN, "python3");
		}
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->problem, PROBLEM_CPU_CONTENTION);
	assert_int_equal(a.list->causes[0].culprit_pid, VICTIM);
}

/* Seen by runtime and driver: once. Marked nested, or (published files) merely contained. */
static void test_nested_driver_calls_count_once(void **state)
{
	for (int marked = 0; marked < 2; marked++) {
		SCENE;
		size_t n;

		scene_hog(&s);
		n = s.event_count;
		for (size_t i = 0; i < n; i++) {
			struct event outer = s.events[i], *e;

			if (outer.source != SOURCE_CUDA)
				continue;
			e = scene_add(&s, SOURCE_DRIVER, DRIVER_STREAM_SYNC, VICTIM, VICTIM, 0, 0);
			e->start.ns = outer.start.ns + 10000;
			e->dur_ns = outer.dur_ns - 20000;
			e->flags = marked ? WIRE_NESTED : 0;
		}
		ANSWER a = explain(&s);

		assert_int_equal(a.count, 1);
		assert_int_equal(a.list->count, 400);
		assert_about(a.list->excess_ns, 400 * 19000);
		assert_int_equal(a.list->causes[0].culprit_pid, HOG);
	}
}

/* Every step is interrupted for a moment; that 77 of them launch for 4.5 ms longer is not because of that. */
static void test_switches_beside_slow_calls_are_not_blamed(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 900; i++) {
		int64_t from = at;
		bool slow = i % 11 == 5;

		scene_call(&s, CUDA_LAUNCH, from, slow ? 4552 : 16);
		for (int k = 0; k < 3; k++)
			scene_stay(&s, VICTIM, from + 6000 + k * 1000, 600, 600, WIRE_PREEMPTED,
				HOG, "kworker/1:0");
		scene_step(&s, &at, slow ? 14500 : 10000, 5000);
	}
	ANSWER a = explain(&s);

	for (size_t i = 0; i < a.count; i++)
		if (a.list[i].slow_p50_ns > a.list[i].baseline_ns)
			assert_unsaid(&a.list[i], "kworker");
	assert_null(of(&a, CAUSE_RUN_QUEUE));
}

static void test_losses_lower_confidence(void **state)
{
	SCENE;
	struct accounting books = {0};

	scene_hog(&s);
	scene_aggregate(&s);
	books.source[SOURCE_CUDA] = (struct account){.hits = 10000, .stored = 10000};
	ANSWER whole = explain_books(&s, &books);
	books.source[SOURCE_CUDA].lost[LOSS_RING_FULL] = 5000;
	ANSWER half = explain_books(&s, &books);
	ANSWER unknown = explain_books(&s, NULL);

	assert_true(whole.list->completeness == 1);
	assert_true(half.list->completeness == 0.5);
	assert_true(unknown.list->completeness == -1);
	assert_true(half.list->confidence < 0.51 * whole.list->confidence);
	assert_true(unknown.list->confidence < whole.list->confidence);
	assert_int_equal(whole.list->severity, SEVERITY_HIGH);
	assert_true(half.list->severity < SEVERITY_HIGH); /* nobody is woken for a guess */
}

/* 19 ms in one of twelve steps: 3 % of the time. */
static void test_severity_medium(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 40; i++) {
		scene_steps(&s, &at, 9);
		scene_hogged(&s, &at, 1, HOG, "hog");
	}
	ANSWER a = explain(&s);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->severity, SEVERITY_MEDIUM);
}

static void test_same_answer_for_any_order(void **state)
{
	SCENE;

	scene_writer(&s);
	ANSWER a = explain(&s);
	ANSWER again = explain_books(&s, NULL);
	for (size_t i = s.event_count - 1; i > 0; i--) {
		size_t k = scene_random(&s, i + 1);
		struct event e = s.events[i];

		s.events[i] = s.events[k];
		s.events[k] = e;
	}
	ANSWER shuffled = explain_books(&s, NULL);

	assert_int_equal(a.count, 2);
	assert_int_equal(again.count, 2);
	assert_int_equal(shuffled.count, 2);
	assert_memory_equal(a.list, again.list, 2 * sizeof(*a.list));
	for (int i = 0; i < 2; i++) {
		const struct incident_cause *x = a.list[i].causes, *y = shuffled.list[i].causes;

		assert_int_equal(a.list[i].cause_count, shuffled.list[i].cause_count);
		assert_int_equal(x->cause, y->cause);
		assert_int_equal(x->ns, y->ns);
		assert_int_equal(x->culprit_pid, y->culprit_pid);
		assert_string_equal(x->culprit, y->culprit);
		assert_string_equal(a.list[i].id, shuffled.list[i].id);
		assert_string_equal(a.list[i].summary, shuffled.list[i].summary);
		assert_string_equal(a.list[i].explanation, shuffled.list[i].explanation);
	}
}

static void test_empty(void **state)
{
	struct recording rec = {0};
	struct answer a = {0};

	assert_int_equal(diagnose_run(&rec, &a.list, &a.count), 0);
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
	ANSWER a = explain_books(&s, NULL);
	assert_true(a.count <= DIAGNOSE_INCIDENTS_MAX);

	scene_aggregate(&s);
	for (size_t i = 0; i < s.aggregate_count; i++)
		s.aggregates[i].sketch.count = i % 2 ? UINT64_MAX : s.aggregates[i].sketch.count;
	ANSWER b = explain_books(&s, NULL);
	assert_true(b.count <= DIAGNOSE_INCIDENTS_MAX);
}

/* Nonsense rows beside a true incident are left out, counted, and change nothing else. */
static void test_nonsense_is_counted_as_lost(void **state)
{
	SCENE;
	struct accounting books = {0};

	scene_hog(&s);
	scene_aggregate(&s);
	books.source[SOURCE_CUDA] = (struct account){.hits = 1200, .stored = 1200};
	for (int i = 0; i < 3; i++)
		scene_call(&s, CUDA_STREAM_SYNC, 100, 1)->dur_ns = UINT64_MAX;
	scene_call(&s, CUDA_STREAM_SYNC, 100, 1)->start.ns = INT64_MIN;
	ANSWER a = explain_books(&s, &books);

	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->count, 400);
	assert_true(a.list->completeness > 1195.9 / 1200 && a.list->completeness < 1196.1 / 1200);
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
		cmocka_unit_test(test_nested_driver_calls_count_once),
		cmocka_unit_test(test_switches_beside_slow_calls_are_not_blamed),
		cmocka_unit_test(test_losses_lower_confidence),
		cmocka_unit_test(test_severity_medium),
		cmocka_unit_test(test_same_answer_for_any_order),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile_rows),
		cmocka_unit_test(test_nonsense_is_counted_as_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
