/* SPDX-License-Identifier: Apache-2.0 */
/* test_told.c - two causes in one recording: both are told, the larger first, none twice. */
#include "ledger_fixture.h"
#include "verdict.h"

#include "diagnose/compose/told.h"

#define LEDGER    _cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s))
#define STEPS     120
#define BIT(NAME) (UINT32_C(1) << DELAY_BY_##NAME)

/* A pause of 10 s: 6 of disk, 3 of waiting for a CPU, 1 asleep. */
static struct incident pause_of(enum problem problem)
{
	struct incident inc = {.problem = (uint8_t)problem,
		.severity = SEVERITY_HIGH,
		.excess_ns = 10 * NS_PER_S,
		.explained = 0.9,
		.cause_count = 3};

	inc.causes[0] = (struct incident_cause){.cause = CAUSE_BLOCK_IO, .ns = 6 * NS_PER_S};
	inc.causes[1] = (struct incident_cause){.cause = CAUSE_RUN_QUEUE, .ns = 3 * NS_PER_S};
	inc.causes[2] = (struct incident_cause){.cause = CAUSE_ASLEEP, .ns = NS_PER_S};
	return inc;
}

static void test_what_an_incident_is_about(void **state)
{
	struct incident inc = pause_of(PROBLEM_STARVATION);

	assert_int_equal(told_ns(&inc, DELAY_BY_DISK), 6 * NS_PER_S);
	assert_int_equal(told_ns(&inc, DELAY_BY_CPU), 0); /* a smaller cause that nobody reads of */
	inc.problem = PROBLEM_SLOW_CALL;
	inc.causes[1].ns = 6 * NS_PER_S;
	assert_int_equal(told_ns(&inc, DELAY_BY_CPU), 6 * NS_PER_S);
	inc.causes[0].ns = 3 * NS_PER_S;
	assert_int_equal(told_ns(&inc, DELAY_BY_DISK), 0);
	inc.problem = PROBLEM_STARVATION; /* of a pause it is told */
	assert_int_equal(told_ns(&inc, DELAY_BY_DISK), 3 * NS_PER_S);
	inc = pause_of(PROBLEM_STARVATION);
	assert_int_equal(told_ns(&inc, DELAY_BY_LOCK), 0); /* asleep, who knows for what */
	assert_true(told_is_view(&inc, BIT(DISK)));
	assert_false(told_is_view(&inc, BIT(CPU)));
	assert_false(told_is_view(&inc, BIT(LOCK)));
	assert_true(told_is_view(&inc, BIT(DISK) | BIT(CPU)));
	inc.causes[2].ns = 20 * NS_PER_S;
	inc.excess_ns = 29 * NS_PER_S;
	assert_true(told_is_view(&inc, BIT(LOCK))); /* the account knows what it slept for */
	inc = pause_of(PROBLEM_SLOW_CALL);          /* copies that are slow because of the disk */
	inc.source = SOURCE_CUDA;
	inc.op = CUDA_MEMCPY;
	inc.slow_calls = 100;
	assert_int_equal(told_ns(&inc, DELAY_BY_COPY), 9 * NS_PER_S);
	assert_int_equal(told_ns(&inc, DELAY_BY_LAUNCH), 0);
	inc.op = CUDA_STREAM_SYNC;
	assert_int_equal(told_ns(&inc, DELAY_BY_GPU), 0);
	inc = pause_of(PROBLEM_PCIE);
	assert_int_equal(told_ns(&inc, DELAY_BY_COPY), 9 * NS_PER_S); /* as much as is known */
	assert_true(told_is_view(&inc, BIT(COPY)));
	assert_int_equal(told_ns(&inc, DELAY_BY_DISK), 0);
}

static void test_a_cause_is_given_away_once(void **state)
{
	struct incident inc = pause_of(PROBLEM_CHECKPOINT);

	snprintf(inc.explanation, sizeof(inc.explanation), "It took 10s.");
	told_cede(&inc, BIT(CPU));
	assert_string_equal(inc.explanation,
		"It took 10s. Of that extra time, 3.0s is an incident of its own.");
	assert_int_equal(inc.excess_ns, 7 * NS_PER_S);
	assert_int_equal(inc.cause_count, 2);
	assert_int_equal(inc.causes[1].cause, CAUSE_ASLEEP);
	assert_true(inc.explained > 0.85 && inc.explained < 0.86); /* 6 of 7 */
	told_cede(&inc, BIT(CPU));
	assert_int_equal(inc.excess_ns, 7 * NS_PER_S);
	told_cede(&inc, BIT(LOCK));
	assert_int_equal(inc.excess_ns, 7 * NS_PER_S);
}

static void test_what_has_a_cause(void **state)
{
	struct incident inc = pause_of(PROBLEM_GOODPUT);

	assert_true(told_is_about_time(PROBLEM_GOODPUT));
	assert_false(told_is_about_time(PROBLEM_MEMORY_LEAK));
	assert_true(told_has_cause(&inc));
	inc.explained = 0.2;
	assert_false(told_has_cause(&inc));
	inc.problem = PROBLEM_PCIE;
	assert_true(told_has_cause(&inc));
	inc.severity = SEVERITY_LOW;
	assert_false(told_has_cause(&inc));
}

static struct event *event_at(
	struct ledger_scene *s, uint8_t source, uint16_t op, int64_t at, uint64_t ns)
{
	struct event *e = &s->events[s->event_count++];

	*e = (struct event){.start.ns = at,
		.dur_ns = ns,
		.pid = JOB,
		.tid = MAIN,
		.source = source,
		.op = op,
		.weight = 1,
		.seq = s->event_count};
	snprintf(e->comm, sizeof(e->comm), "train");
	return e;
}

/* A step of a program whose steps are known by its waits alone: asleep for @sleep_ns, a copy, @hog_ns without a
 * CPU, 5 ms of waiting for the GPU. */
static void plain_step(struct ledger_thread *t, uint64_t sleep_ns, uint64_t hog_ns)
{
	struct ledger_scene *s = t->s;

	if (sleep_ns) {
		event_at(s, SOURCE_HOST, HOST_SCHED_SWITCH, t->at, sleep_ns);
		stay(t, LEDGER_SLEEP, sleep_ns, 0, 0, 0);
	}
	event_at(s, SOURCE_CUDA, CUDA_MEMCPY, t->at, US(100))->flags =
		sleep_ns ? WIRE_AFTER_GAP : 0;
	spend(t, LEDGER_COPY, US(100));
	if (hog_ns) {
		rival(s, MAIN, t->at, hog_ns, 900, "hog");
		spend(t, LEDGER_CPU_WAIT, hog_ns);
	}
	event_at(s, SOURCE_CUDA, CUDA_STREAM_SYNC, t->at, MS(5));
	spend(t, LEDGER_GPU_WAIT, MS(5));
	mark(t, MARK_WAIT);
}

/* With the aggregates that say that every wait is there. */
static struct verdicts said(struct ledger_scene *s)
{
	struct recording rec = ledger_recording(s);
	struct aggregate waits = {
		.bucket.ns = LEDGER_T0, .pid = JOB, .source = SOURCE_CUDA, .op = CUDA_STREAM_SYNC};

	for (size_t i = 0; i < s->event_count; i++)
		if (s->events[i].source == SOURCE_CUDA && s->events[i].op == CUDA_STREAM_SYNC) {
			sketch_add(&waits.sketch, s->events[i].dur_ns, 1);
			waits.stored++;
		}
	rec.aggregates = &waits;
	rec.aggregate_count = 1;
	return verdicts_of(&rec);
}

static uint64_t jitter(int i)
{
	return US(i * 7 % 11);
}

/* A starved loop, and from half-way on a hog: what was there before does not hide what came. */
static void test_a_hog_beside_a_starved_loop(void **state)
{
	LEDGER;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "train", LEDGER_T0);
	const struct incident *hog;

	for (int i = 0; i < STEPS; i++)
		plain_step(&t, MS(20) + jitter(i), i < STEPS / 2 ? 0 : MS(6));
	VERDICTS v = said(s);
	assert_non_null(verdict(&v, PROBLEM_STARVATION));
	assert_int_equal(verdict(&v, PROBLEM_STARVATION)->severity, SEVERITY_HIGH);
	hog = verdict(&v, PROBLEM_CPU_CONTENTION);
	assert_non_null(hog);
	assert_true(hog->severity >= SEVERITY_MEDIUM);
	assert_has(hog->summary, "hog");
	assert_true(hog->excess_ns > STEPS / 2 * MS(5) && hog->excess_ns < STEPS / 2 * MS(7));
	assert_int_equal(v.count, 2);
}

/* One at a time each of them is the only one. */
static void test_one_alone_stays_one(void **state)
{
	LEDGER;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "train", LEDGER_T0);

	for (int i = 0; i < STEPS; i++)
		plain_step(&t, MS(20) + jitter(i), 0);
	VERDICTS v = said(s);
	assert_int_equal(v.count, 1);
	assert_int_equal(v.list[0].problem, PROBLEM_STARVATION);
}

static void test_a_hog_alone(void **state)
{
	LEDGER;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "train", LEDGER_T0);

	for (int i = 0; i < STEPS; i++)
		plain_step(&t, 0, i < STEPS / 2 ? jitter(i) : MS(6));
	VERDICTS v = said(s);
	assert_int_equal(v.count, 1);
	assert_int_equal(v.list[0].problem, PROBLEM_CPU_CONTENTION);
}

static void test_neither(void **state)
{
	LEDGER;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "train", LEDGER_T0);

	for (int i = 0; i < STEPS; i++)
		plain_step(&t, 0, jitter(i));
	VERDICTS v = said(s);
	assert_int_equal(v.count, 0);
}

/* Every tenth step writes a file, after a call that is no wait: known by what it writes. @is_reading: it reads one. */
static struct verdicts with_files(struct ledger_scene *s, bool is_reading)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "train", LEDGER_T0);

	for (int i = 0; i < STEPS; i++) {
		if (i % 10 == 5) {
			event_at(s, SOURCE_IO, is_reading ? IO_READ : IO_WRITE, t.at + 1000, MS(30))
				->arg0 = 2048;
			stay(&t, LEDGER_DISK, MS(40), 0, 0, 0);
		}
		plain_step(&t, 0, jitter(i));
	}
	return said(s);
}

static void test_writes_every_so_many_steps(void **state)
{
	LEDGER;
	VERDICTS v = with_files(s, false);
	const struct incident *inc = verdict(&v, PROBLEM_CHECKPOINT);

	assert_non_null(inc);
	assert_int_equal(inc->period_steps, 10);
	assert_int_equal(v.count, 1);
}

/* Pauses in which the CPU is the largest of the causes, though not half of them. */
static void test_pauses_that_are_about_the_cpu(void **state)
{
	uint32_t cpu = UINT32_C(1) << DELAY_BY_CPU;
	struct incident inc = {.problem = PROBLEM_STARVATION,
		.excess_ns = 100,
		.causes = {{.cause = CAUSE_HOST_CODE, .ns = 34},
			{.cause = CAUSE_RUN_QUEUE, .ns = 24}, {.cause = CAUSE_ASLEEP, .ns = 23},
			{.cause = CAUSE_PREEMPTED, .ns = 19}},
		.cause_count = 4};

	assert_true(told_leads(&inc, cpu));
	assert_false(told_is_view(&inc, cpu));
	inc.causes[0].ns = 50;
	assert_false(told_leads(&inc, cpu));
	inc.causes[0].ns = 34;
	inc.problem = PROBLEM_SLOW_CALL;
	assert_false(told_leads(&inc, cpu));
}

static void test_reads_are_no_checkpoint(void **state)
{
	LEDGER;
	VERDICTS v = with_files(s, true);

	assert_null(verdict(&v, PROBLEM_CHECKPOINT));
	assert_non_null(verdict(&v, PROBLEM_GOODPUT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_an_incident_is_about),
		cmocka_unit_test(test_a_cause_is_given_away_once),
		cmocka_unit_test(test_what_has_a_cause),
		cmocka_unit_test(test_a_hog_beside_a_starved_loop),
		cmocka_unit_test(test_one_alone_stays_one),
		cmocka_unit_test(test_a_hog_alone),
		cmocka_unit_test(test_neither),
		cmocka_unit_test(test_writes_every_so_many_steps),
		cmocka_unit_test(test_reads_are_no_checkpoint),
		cmocka_unit_test(test_pauses_that_are_about_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
