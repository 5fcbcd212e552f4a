/* SPDX-License-Identifier: Apache-2.0 */
/* test_bad_input.c - recordings that are damaged, cut or strange: no crash, no nonsense sums, and the account says how
 * much is not known. identity.h is what every answer is held against. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "identity.h"
#include "diagnose/compose/diagnose.h"
#include "ledger_fixture.h"

#define STEPS    200
#define SCENE    _cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s))
#define THREADS  10000
#define REQUESTS 3000
#define HOUR     (3600 * NS_PER_S)

/* The answer to @rec holds together; how many are MEDIUM or worse. */
static size_t alarms(const struct recording *rec)
{
	_cleanup_free_ struct incident *list = NULL;
	size_t n = 0, count = 0;

	assert_int_equal(diagnose_run(rec, &list, &n), 0);
	identity_check(rec, list, n);
	for (size_t i = 0; i < n; i++) {
		count += list[i].severity >= SEVERITY_MEDIUM;
		if (getenv("INGERO_SHOW"))
			print_message("%s %s\n", severity_name(list[i].severity), list[i].summary);
	}
	return count;
}

static uint64_t unknown_ns(const struct recording *rec, uint32_t pid, const char **ret_reason)
{
	struct step_report r = {0};
	uint64_t ns = 0;

	*ret_reason = "";
	assert_int_equal(account_run(rec, &r), 0);
	for (size_t i = 0; i < r.count; i++)
		if (r.items[i].pid == pid) {
			ns = r.items[i].total_ns[ACCOUNT_UNKNOWN];
			*ret_reason = r.items[i].unknown_reason;
		}
	step_report_done(&r);
	return ns;
}

/* @n healthy steps of 20 ms of thread @tid. */
static struct ledger_thread healthy(struct ledger_scene *s, uint32_t pid, uint32_t tid, int n)
{
	struct ledger_thread t = thread_at(s, pid, tid, "python3", LEDGER_T0);

	for (int i = 0; i < n; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(2));
		spend(&t, LEDGER_LAUNCH, MS(3));
		spend(&t, LEDGER_GPU_WAIT, MS(15));
		mark(&t, MARK_WAIT);
	}
	mark(&t, MARK_OPTIMIZER);
	return t;
}

/* The wall clock is set in mid-recording, forwards or back. */
static void test_clock_steps(void **state)
{
	static const int64_t by[] = {10, 3600, 86400 * 365, -1, -10, -3600};

	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		SCENE;
		struct recording rec;

		healthy(s, JOB, MAIN, STEPS);
		for (size_t k = s->count / 2; k < s->count; k++)
			s->rows[k].start.ns += by[i] * (int64_t)NS_PER_S;
		rec = ledger_recording(s);
		assert_int_equal(alarms(&rec), 0);
	}
}

/* Every @nth row is lost, or a stretch of them: what is missing is not known, and nobody's fault. */
static void test_lost_rows(void **state)
{
	for (int way = 0; way < 2; way++) {
		SCENE;
		struct recording rec;
		const char *reason;
		size_t kept = 0;

		healthy(s, JOB, MAIN, STEPS);
		for (size_t i = 0; i < s->count; i++)
			if (way ? i < 150 || i >= 190 || s->rows[i].mark == MARK_OPTIMIZER
				: i % 10 != 3)
				s->rows[kept++] = s->rows[i];
		assert_true(kept < s->count);
		s->count = kept;
		rec = ledger_recording(s);
		assert_int_equal(alarms(&rec), 0);
		assert_true(unknown_ns(&rec, JOB, &reason) > 0);
		assert_non_null(strstr(reason, "missing"));
	}
}

/* The control: nothing is lost, nothing is unknown. */
static void test_whole_recordings_know_all(void **state)
{
	SCENE;
	struct recording rec;
	const char *reason;

	healthy(s, JOB, MAIN, STEPS);
	rec = ledger_recording(s);
	assert_int_equal(alarms(&rec), 0);
	assert_int_equal(unknown_ns(&rec, JOB, &reason), 0);
	assert_string_equal(reason, "");
}

/* A worker that the job waits for dies in the middle of a step; so does the job itself. */
static void test_threads_that_die(void **state)
{
	for (int job_too = 0; job_too < 2; job_too++) {
		SCENE;
		struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
		struct ledger_thread w = thread_at(s, JOB, HOLDER, "worker", LEDGER_T0);
		struct recording rec;

		for (int i = 0; i < STEPS; i++) {
			mark(&t, MARK_OPTIMIZER);
			spend(&t, LEDGER_GPU_WAIT, MS(15));
			stay(&t, LEDGER_LOCK, MS(1), 0, JOB, HOLDER);
			if (i < STEPS / 2) {
				spend(&w, LEDGER_RUN, MS(16));
				mark(&w, MARK_TICK);
			}
		}
		if (!job_too)
			mark(&t, MARK_OPTIMIZER);
		rec = ledger_recording(s);
		assert_int_equal(alarms(&rec), 0);
	}
}

/* A recording begins and ends anywhere: at every row, in steps of 7. */
static void test_any_begin_and_end(void **state)
{
	SCENE;
	struct recording rec;

	healthy(s, JOB, MAIN, 60);
	rec = ledger_recording(s);
	for (size_t from = 0; from < s->count; from += 7)
		for (size_t to = from; to <= s->count; to += 7) {
			struct recording part = rec;

			part.ledger = rec.ledger + from;
			part.ledger_count = to - from;
			assert_int_equal(alarms(&part), 0);
		}
}

/* Each has a row or two; the one that trains is found among them. */
static void test_many_threads(void **state)
{
	SCENE;
	struct recording rec;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (uint32_t i = 0; i < THREADS; i++) {
		struct ledger_thread o =
			thread_at(s, JOB, 20000 + i, "pool", LEDGER_T0 + (int64_t)MS(i % 4000));

		spend(&o, LEDGER_RUN, US(300));
		mark(&o, MARK_STOP);
	}
	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_GPU_WAIT, MS(15));
		mark(&t, MARK_WAIT);
		if (i < STEPS / 2)
			continue;
		rival(s, MAIN, t.at, MS(10), 900, "hog");
		spend(&t, LEDGER_CPU_WAIT, MS(10));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	rec = ledger_recording(s);
	assert_int_equal(alarms(&rec), 1);
}

/* A server with a thread for each of many requests: they are its units, healthy, and nothing is unknown. */
static void test_many_requests(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct recording rec;
	struct ledger_thread main = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread accepts = thread_at(s, JOB, HOLDER, "accepts", LEDGER_T0);

	spend(&accepts, LEDGER_RUN, MS(1));
	mark(&accepts, MARK_TICK);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct ledger_thread t;

		spend(&accepts, LEDGER_RUN, MS(5));
		mark(&accepts, MARK_TICK);
		t = thread_at(s, JOB, 20000 + i, "request", accepts.at);
		spend(&t, LEDGER_LAUNCH, MS(4));
		mark(&t, MARK_TICK);
		spend(&t, LEDGER_GPU_WAIT, MS(4));
		mark(&t, MARK_EXIT);
	}
	stay(&main, LEDGER_LOCK, (uint64_t)(accepts.at - LEDGER_T0), 0, 0, 0);
	rec = ledger_recording(s);
	assert_int_equal(alarms(&rec), 0);
	assert_int_equal(account_run(&rec, &report), 0);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.items[0].origin, STEP_BY_REQUEST);
	assert_int_equal(report.items[0].steps, REQUESTS);
	assert_int_equal(report.items[0].total_ns[ACCOUNT_UNKNOWN], 0);
}

/* Processes that made each other, themselves, or were never made: the account ends, and says that it does not know. */
static void test_makers_in_a_circle(void **state)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct recording rec;
	const char *reason;

	for (uint32_t i = 0; i < STEPS; i++) {
		struct ledger_thread a, b;

		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_GPU_WAIT, MS(10));
		mark(&t, MARK_WAIT);
		stay(&t, LEDGER_PIPE, MS(10), 0, 3000 + i, 3000 + i);
		a = thread_at(s, 3000 + i, 3000 + i, "a", t.at);
		b = thread_at(s, 6000 + i, 6000 + i, "b", t.at);
		spend(&a, LEDGER_RUN, US(10));
		mark(&a, MARK_TICK);
		spend(&b, LEDGER_RUN, US(10));
		mark(&b, MARK_TICK);
		for (uint32_t k = 0; k < 2; k++)
			s->events[s->event_count++] = (struct event){.start.ns = t.at,
				.pid = (k ? 3000 : 6000) + i,
				.tid = (k ? 3000 : 6000) + i,
				.source = SOURCE_HOST,
				.op = HOST_PROCESS_FORK,
				.peer_pid = (k && i % 2 ? 6000 : 3000) + i};
	}
	mark(&t, MARK_OPTIMIZER);
	rec = ledger_recording(s);
	alarms(&rec);
	assert_int_equal(unknown_ns(&rec, JOB, &reason), STEPS * MS(10));
}

/* Two loops in one process, each with a thread of its own: one is told of, and no time twice. */
static void test_two_jobs_in_one_process(void **state)
{
	for (int slow = 0; slow < 2; slow++) {
		SCENE;
		struct ledger_thread t = thread_at(s, JOB, HOLDER, "python3", LEDGER_T0);
		struct recording rec;

		healthy(s, JOB, MAIN, STEPS);
		for (int i = 0; i < STEPS; i++) {
			mark(&t, MARK_OPTIMIZER);
			spend(&t, LEDGER_GPU_WAIT, MS(12));
			mark(&t, MARK_WAIT);
			if (i < STEPS / 2 || !slow)
				continue;
			rival(s, HOLDER, t.at, MS(10), 900, "hog");
			spend(&t, LEDGER_CPU_WAIT, MS(10));
			mark(&t, MARK_TICK);
		}
		mark(&t, MARK_OPTIMIZER);
		rec = ledger_recording(s);
		assert_true(alarms(&rec) <= (size_t)slow);
	}
}

/* Steps of a second, and one of an hour, in which it waits for the disk. */
static void test_a_unit_of_an_hour(void **state)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct recording rec;

	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_GPU_WAIT, NS_PER_S);
		mark(&t, MARK_WAIT);
		if (i == STEPS / 2)
			stay(&t, LEDGER_DISK, HOUR, 0, 0, 0);
	}
	mark(&t, MARK_OPTIMIZER);
	rec = ledger_recording(s);
	assert_true(alarms(&rec) <= 1);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

/* Rows of any content. */
static void test_whatever_the_rows_hold(void **state)
{
	static const uint64_t values[] = {
		0, 1, 1000, NS_PER_S, HOUR, UINT64_C(1) << 62, UINT64_MAX};
	static const int64_t times[] = {INT64_MIN, -1, 0, LEDGER_T0, LEDGER_T0 * 2, INT64_MAX};

	for (uint64_t round = 1; round <= 100; round++) {
		SCENE;
		uint64_t seed = round;
		struct recording rec;

		healthy(s, JOB, MAIN, 40);
		for (size_t i = 0; i < s->count; i++) {
			struct ledger_row *r = &s->rows[i];

			if (next_random(&seed) % 8)
				continue;
			switch (next_random(&seed) % 6) {
			case 0: r->start.ns = times[next_random(&seed) % ARRAY_SIZE(times)]; break;
			case 1: r->dur_ns = values[next_random(&seed) % ARRAY_SIZE(values)]; break;
			case 2:
				r->ns[next_random(&seed) % LEDGER_LINES] =
					values[next_random(&seed) % ARRAY_SIZE(values)];
				break;
			case 3: r->mark = (uint8_t)next_random(&seed); break;
			case 4: r->tid = (uint32_t)next_random(&seed); break;
			default:
				r->stay_ns = values[next_random(&seed) % ARRAY_SIZE(values)];
				r->stay_line = (uint8_t)next_random(&seed);
				r->waker = (uint8_t)next_random(&seed);
				r->waker_tid = next_random(&seed) % 2 ? MAIN : HOLDER;
			}
		}
		rec = ledger_recording(s);
		alarms(&rec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock_steps),
		cmocka_unit_test(test_lost_rows),
		cmocka_unit_test(test_whole_recordings_know_all),
		cmocka_unit_test(test_threads_that_die),
		cmocka_unit_test(test_any_begin_and_end),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_many_requests),
		cmocka_unit_test(test_makers_in_a_circle),
		cmocka_unit_test(test_two_jobs_in_one_process),
		cmocka_unit_test(test_a_unit_of_an_hour),
		cmocka_unit_test(test_whatever_the_rows_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
