/* SPDX-License-Identifier: Apache-2.0 */
/* test_compose.c - which findings become incidents: each loss once, by whoever knows most of it, and in whatever order
 * they were found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/compose/compose.h"
#include "identity.h"
#include "ledger_fixture.h"

#define STEPS     120
#define PROCESSES 3

enum { RIVAL = 900 };

/* Three jobs on one machine, found and not yet composed. */
struct made {
	struct ledger_scene scene;
	struct recording rec;
	struct account_task accounts;
	struct time_findings times[PROCESSES];
	size_t count;
	struct incident states[8];
	size_t state_count;
	struct collective_row rows[2 * PROCESSES];
};

static void made_done(struct made **m)
{
	account_task_done(&(*m)->accounts);
	free(*m);
}
#define MADE _cleanup_(made_done) struct made *m = calloc(1, sizeof(*m))

/* Steps of @pid of 20 ms; from half of them on it waits @ns for a CPU that @by has, and @gpu_ns longer for the GPU. */
static void job(struct ledger_scene *s, uint32_t pid, uint64_t ns, uint32_t by, uint64_t gpu_ns)
{
	struct ledger_thread t = thread_at(s, pid, pid, "python3", LEDGER_T0);

	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(2));
		spend(&t, LEDGER_LAUNCH, MS(16));
		spend(&t, LEDGER_GPU_WAIT, MS(2) + (i < STEPS / 2 ? 0 : gpu_ns));
		mark(&t, MARK_WAIT);
		if (i < STEPS / 2 || !ns)
			continue;
		rival(s, pid, t.at, ns, by, "rival");
		s->events[s->event_count - 1].pid = pid;
		spend(&t, LEDGER_CPU_WAIT, ns);
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
}

static void find(struct made *m)
{
	const struct step_report *report = NULL;

	m->rec = ledger_recording(&m->scene);
	m->rec.collectives = m->rows;
	assert_int_equal(account_get(&m->rec, &m->accounts, &report), 0);
	assert_true(report->count <= PROCESSES);
	for (m->count = 0; m->count < report->count; m->count++)
		assert_int_equal(time_findings_find(
					 &m->rec, &report->items[m->count], 1, &m->times[m->count]),
			0);
}

static struct incident *add_state(
	struct made *m, enum problem problem, uint32_t pid, enum severity severity)
{
	struct incident *i = &m->states[m->state_count++];

	*i = (struct incident){.problem = (uint8_t)problem,
		.pid = pid,
		.severity = severity,
		.confidence = 0.9,
		.first.ns = LEDGER_T0};
	snprintf(i->id, sizeof(i->id), "%s-%u-1", problem_row(problem)->id, pid);
	return i;
}

struct composed {
	struct incident items[64];
	struct incident_list list;
};

static int by_id(const void *a, const void *b)
{
	const struct incident *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* Ordered by id: diagnose.c puts them in order. */
static struct composed *composed(const struct made *m)
{
	struct composed *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->list = (struct incident_list){.items = c->items, .max = ARRAY_SIZE(c->items)};
	memcpy(c->items, m->states, m->state_count * sizeof(m->states[0]));
	c->list.count = m->state_count;
	compose(m->times, m->count, 1, &c->list);
	qsort(c->items, c->list.count, sizeof(c->items[0]), by_id);
	return c;
}

static const struct incident *of(const struct composed *c, enum problem problem, uint32_t pid)
{
	for (size_t i = 0; i < c->list.count; i++)
		if (c->items[i].problem == problem && c->items[i].pid == pid)
			return &c->items[i];
	return NULL;
}

/* How many are about lost time of @pid. */
static size_t times_of(const struct composed *c, uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < c->list.count; i++)
		n += c->items[i].pid == pid && identity_is_time(&c->items[i]);
	return n;
}

static void assert_same(const struct composed *a, const struct composed *b)
{
	assert_int_equal(a->list.count, b->list.count);
	for (size_t i = 0; i < a->list.count; i++) {
		assert_string_equal(a->items[i].id, b->items[i].id);
		assert_int_equal(a->items[i].severity, b->items[i].severity);
		assert_int_equal(a->items[i].excess_ns, b->items[i].excess_ns);
		assert_string_equal(a->items[i].summary, b->items[i].summary);
	}
}

static void shuffle(void *items, size_t n, size_t size, uint32_t *seed)
{
	char *p = items, *t = malloc(size);

	assert_non_null(t);
	for (size_t i = n; i > 1; i--) {
		size_t k;

		*seed = *seed * 1664525u + 1013904223u;
		k = (*seed >> 8) % i;
		memcpy(t, p + (i - 1) * size, size);
		memcpy(p + (i - 1) * size, p + k * size, size);
		memcpy(p + k * size, t, size);
	}
	free(t);
}

/* Something of everything that compose decides about. */
static void make_all(struct made *m)
{
	job(&m->scene, 100, MS(10), 200, 0);
	job(&m->scene, 200, MS(9), 100, MS(5));
	job(&m->scene, 300, MS(8), RIVAL, MS(4));
	find(m);
	add_state(m, PROBLEM_ORCHESTRATION, RIVAL, SEVERITY_MEDIUM)->is_willed = true;
	add_state(m, PROBLEM_THROTTLE, 0, SEVERITY_LOW);
	add_state(m, PROBLEM_DEVICE_ASSERT, 300, SEVERITY_MEDIUM);
	add_state(m, PROBLEM_ORCHESTRATION, 300, SEVERITY_MEDIUM);
	add_state(m, PROBLEM_MEMORY_LEAK, 200, SEVERITY_HIGH);
	add_state(m, PROBLEM_GRAPH_RECAPTURE, 100, SEVERITY_HIGH)->excess_ns = MS(500);
}

static void test_the_order_does_not_matter(void **state)
{
	MADE;
	_cleanup_free_ struct composed *first = NULL;
	uint32_t seed = 1;

	make_all(m);
	first = composed(m);
	assert_true(first->list.count >= 5);
	for (int i = 0; i < 50; i++) {
		_cleanup_free_ struct composed *other = NULL;

		shuffle(m->states, m->state_count, sizeof(m->states[0]), &seed);
		shuffle(m->times, m->count, sizeof(m->times[0]), &seed);
		for (size_t k = 0; k < m->count; k++)
			shuffle(m->times[k].items, (size_t)m->times[k].count,
				sizeof(m->times[k].items[0]), &seed);
		other = composed(m);
		assert_same(first, other);
	}
}

static void test_two_that_hold_each_other_up(void **state)
{
	MADE;
	_cleanup_free_ struct composed *c = NULL;

	job(&m->scene, 100, MS(10), 200, 0);
	job(&m->scene, 200, MS(9), 100, 0);
	job(&m->scene, 300, MS(8), 200, 0); /* control: it holds up nobody */
	find(m);
	c = composed(m);
	assert_non_null(of(c, PROBLEM_CPU_CONTENTION, 100)); /* it lost most */
	assert_null(of(c, PROBLEM_CPU_CONTENTION, 200));
	assert_non_null(of(c, PROBLEM_CPU_CONTENTION, 300));
}

static void test_two_that_lose_as_much(void **state)
{
	MADE;
	_cleanup_free_ struct composed *c = NULL;

	job(&m->scene, 100, MS(10), 200, 0);
	job(&m->scene, 200, MS(10), 100, 0);
	find(m);
	c = composed(m);
	assert_int_equal(times_of(c, 100) + times_of(c, 200), 1);
}

static void test_who_is_blamed_was_ended(void **state)
{
	for (int blamed = 0; blamed < 2; blamed++) {
		MADE;
		_cleanup_free_ struct composed *c = NULL;

		job(&m->scene, 100, MS(10), blamed ? RIVAL : RIVAL + 1, 0);
		find(m);
		add_state(m, PROBLEM_ORCHESTRATION, RIVAL, SEVERITY_MEDIUM)->is_willed = true;
		c = composed(m);
		assert_int_equal(of(c, PROBLEM_ORCHESTRATION, RIVAL) == NULL, blamed);
		assert_non_null(of(c, PROBLEM_CPU_CONTENTION, 100));
	}
}

/* After an error that is told a process crashes: the same story. That it spends its time compiling is none. */
static void test_a_crash_after_an_error(void **state)
{
	static const struct {
		enum problem problem;
		uint32_t pid;
		bool is_time, is_told;
	} rows[] = {{PROBLEM_DEVICE_ASSERT, 100, false, false},
		{PROBLEM_DEVICE_ASSERT, 200, false, true}, {PROBLEM_GPU_MEMORY, 100, false, false},
		{PROBLEM_GPU_MEMORY, 100, true, true}, {PROBLEM_KERNEL_COMPILER, 100, true, true},
		{PROBLEM_MEMORY_LEAK, 100, false, true}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		MADE;
		_cleanup_free_ struct composed *c = NULL;
		struct incident *error =
			add_state(m, rows[i].problem, rows[i].pid, SEVERITY_MEDIUM);

		error->source = rows[i].is_time ? SOURCE_HOST : SOURCE_CUDA;
		error->op = rows[i].is_time ? HOST_LEDGER : 0;
		add_state(m, PROBLEM_ORCHESTRATION, 100, SEVERITY_MEDIUM);
		find(m);
		c = composed(m);
		assert_int_equal(of(c, PROBLEM_ORCHESTRATION, 100) != NULL, rows[i].is_told);
	}
}

/* That clocks are lowered, or a GPU shared, "and nobody is slower" is not said beside who is. */
static void test_notes_that_are_refuted(void **state)
{
	static const enum problem notes[] = {PROBLEM_THROTTLE, PROBLEM_GPU_SHARING};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
		for (int refuted = 0; refuted < 2; refuted++) {
			MADE;
			_cleanup_free_ struct composed *c = NULL;
			struct incident *other;

			add_state(m, notes[i], 0, SEVERITY_LOW);
			other = add_state(m, refuted ? notes[i] : PROBLEM_PCIE, 100, SEVERITY_HIGH);
			other->excess_ns = MS(700);
			find(m);
			c = composed(m);
			assert_int_equal(of(c, notes[i], 0) == NULL, refuted);
		}
}

static void meet(struct made *m, uint32_t pid, uint64_t comm)
{
	m->rows[m->rec.collective_count++] = (struct collective_row){
		.pid = pid, .c = {.comm_hash = comm, .nranks = 2, .seq = 1}};
}

/* 100 and 200 are ranks of one job, 300 is not: who waits for 200 is told with it. */
static void test_victims_of_a_rank(void **state)
{
	static const enum problem problems[] = {PROBLEM_STRAGGLER, PROBLEM_NCCL_HANG};

	for (size_t i = 0; i < ARRAY_SIZE(problems); i++)
		for (int low = 0; low < 2; low++) {
			MADE;
			_cleanup_free_ struct composed *c = NULL;

			job(&m->scene, 100, 0, 0, MS(12));
			job(&m->scene, 300, 0, 0, MS(12));
			find(m);
			add_state(m, problems[i], 200, low ? SEVERITY_LOW : SEVERITY_HIGH);
			meet(m, 100, 7);
			meet(m, 200, 7);
			meet(m, 300, 8);
			for (size_t k = 0; k < m->count; k++)
				m->times[k].rec = &m->rec;
			c = composed(m);
			assert_true(low || !times_of(c, 100));
			assert_true(times_of(c, 100) + times_of(c, 300) > 0);
		}
}

/* A slow transfer is no news beside a rank of its job that is late and costs about as much. */
static void test_transfers_that_wait_for_a_rank(void **state)
{
	for (int apart = 0; apart < 2; apart++)
		for (int small = 0; small < 2; small++) {
			MADE;
			_cleanup_free_ struct composed *c = NULL;
			struct incident *slow = add_state(m, PROBLEM_STRAGGLER, 100, SEVERITY_HIGH);

			slow->culprit_rank = -1;
			slow->unit = "transfers";
			slow->excess_ns = MS(700);
			add_state(m, PROBLEM_STRAGGLER, 200, SEVERITY_HIGH)->excess_ns =
				small ? MS(300) : MS(500);
			job(&m->scene, 100, 0, 0, MS(12));
			find(m);
			meet(m, 100, 7);
			meet(m, 200, apart ? 8 : 7);
			m->times[0].rec = &m->rec;
			c = composed(m);
			assert_int_equal(of(c, PROBLEM_STRAGGLER, 100) != NULL, apart || small);
			assert_non_null(of(c, PROBLEM_STRAGGLER, 200));
		}
}

/* NCCL's errors on ranks of a job whose collectives do not come together are part of that; those of another job are not. */
static void test_errors_of_a_mismatch(void **state)
{
	for (int apart = 0; apart < 2; apart++) {
		MADE;
		_cleanup_free_ struct composed *c = NULL;

		add_state(m, PROBLEM_DEVICE_ASSERT, 100, SEVERITY_MEDIUM)->source = SOURCE_NCCL;
		add_state(m, PROBLEM_NCCL_HANG, 200, SEVERITY_MEDIUM);
		job(&m->scene, 100, 0, 0, MS(12));
		find(m);
		meet(m, 100, 7);
		meet(m, 200, apart ? 8 : 7);
		m->times[0].rec = &m->rec;
		c = composed(m);
		assert_int_equal(of(c, PROBLEM_DEVICE_ASSERT, 100) != NULL, apart);
		assert_non_null(of(c, PROBLEM_NCCL_HANG, 200));
	}
}

/* A hang explains also that who waits has no CPU; a straggler does not. */
static void test_what_a_hang_explains(void **state)
{
	for (int hangs = 0; hangs < 2; hangs++) {
		MADE;
		_cleanup_free_ struct composed *c = NULL;

		job(&m->scene, 100, MS(10), RIVAL, 0);
		find(m);
		add_state(m, hangs ? PROBLEM_NCCL_HANG : PROBLEM_STRAGGLER, 200, SEVERITY_HIGH);
		meet(m, 100, 7);
		meet(m, 200, 7);
		c = composed(m);
		assert_int_equal(of(c, PROBLEM_CPU_CONTENTION, 100) == NULL, hangs);
	}
}

/* A graph that is captured again and again explains the time that its calls take, if it is about as much. */
static void test_what_a_state_covers(void **state)
{
	for (int small = 0; small < 2; small++) {
		MADE;
		_cleanup_free_ struct composed *c = NULL;
		struct ledger_thread t = thread_at(&m->scene, 100, 100, "python3", LEDGER_T0);

		for (int i = 0; i < STEPS; i++) {
			mark(&t, MARK_OPTIMIZER);
			spend(&t, LEDGER_GPU_WAIT, MS(20));
			spend(&t, LEDGER_GRAPH, i < STEPS / 2 ? US(100) : MS(10));
			mark(&t, MARK_WAIT);
		}
		mark(&t, MARK_OPTIMIZER);
		find(m);
		add_state(m, PROBLEM_GRAPH_RECAPTURE, 100, SEVERITY_HIGH)->excess_ns =
			small ? MS(20) : STEPS / 2 * MS(9);
		c = composed(m);
		assert_int_equal(of(c, PROBLEM_GOODPUT, 100) != NULL, small);
	}
}

/* Whoever found it: nobody is woken for a guess. */
static void test_states_are_as_severe_as_they_are_sure(void **state)
{
	MADE;
	_cleanup_free_ struct composed *c = NULL;

	add_state(m, PROBLEM_MEMORY_LEAK, 1, SEVERITY_HIGH)->confidence = 0.59;
	add_state(m, PROBLEM_MEMORY_LEAK, 2, SEVERITY_HIGH)->confidence = 0.39;
	add_state(m, PROBLEM_MEMORY_LEAK, 3, SEVERITY_HIGH)->confidence = 0.6;
	add_state(m, PROBLEM_GPU_MEMORY, 4, SEVERITY_CRITICAL)->confidence = 0.8;
	find(m);
	c = composed(m);
	assert_int_equal(of(c, PROBLEM_MEMORY_LEAK, 1)->severity, SEVERITY_MEDIUM);
	assert_int_equal(of(c, PROBLEM_MEMORY_LEAK, 2)->severity, SEVERITY_LOW);
	assert_int_equal(of(c, PROBLEM_MEMORY_LEAK, 3)->severity, SEVERITY_HIGH);
	assert_int_equal(of(c, PROBLEM_GPU_MEMORY, 4)->severity, SEVERITY_CRITICAL);
}

/* Beyond the ceiling incidents are left out and counted. */
static void test_the_ceiling(void **state)
{
	MADE;
	struct composed c = {0};

	job(&m->scene, 100, MS(10), RIVAL, 0);
	job(&m->scene, 300, MS(10), RIVAL, 0);
	find(m);
	c.list = (struct incident_list){.items = c.items, .max = 1};
	compose(m->times, m->count, 1, &c.list);
	assert_int_equal(c.list.count, 1);
	assert_true(c.list.left_out >= 1);
}

/* The control of identity.h: what breaks it is found. */
static void test_a_breach_is_found(void **state)
{
	MADE;
	_cleanup_free_ struct composed *c = NULL;
	const struct step_account *a;
	struct incident list[2];

	job(&m->scene, 100, MS(10), RIVAL, 0);
	find(m);
	c = composed(m);
	a = m->times[0].account;
	assert_int_equal(c->list.count, 1);
	assert_null(identity_breach(a, c->items, 1));
	list[0] = list[1] = c->items[0];
	assert_non_null(identity_breach(a, list, 2)); /* twice the same */
	list[0].excess_ns = a->lost_ns + 1;
	assert_non_null(identity_breach(a, list, 1));
	list[0].excess_ns = (uint64_t)(a->last.ns - a->first.ns) + 1;
	assert_non_null(identity_breach(a, list, 1));
	list[0] = c->items[0];
	list[0].count = a->steps + 1;
	assert_non_null(identity_breach(a, list, 1));
}

/* A step that computes at one line of a function and copies at that or another one, and launches there if that is the loop. */
static void check_place(bool is_one_line, bool is_loop, size_t incidents)
{
	MADE;
	uint64_t at[3];
	struct step_account *a = calloc(1, sizeof(*a));
	struct composed *c;

	at[0] = line_stack(&m->scene, "/home/u/train.py", 20, NULL);
	at[1] = is_one_line ? at[0] : line_stack(&m->scene, "/home/u/train.py", 30, NULL);
	at[2] = line_stack(&m->scene, "/home/u/train.py", 40, NULL);
	m->rec = ledger_recording(&m->scene);
	*a = (struct step_account){.pid = JOB,
		.steps = 100,
		.ordinary_steps = 100,
		.ordinary_step_ns = MS(100),
		.first.ns = LEDGER_T0,
		.last.ns = LEDGER_T0 + (int64_t)MS(10000),
		.entries[2] = {.line = ACCOUNT_LAUNCH, .stack_hash = at[2], .slow_ns = MS(1)},
		.entry_count = is_loop ? 3 : 2};
	m->times[0] = (struct time_findings){.rec = &m->rec, .account = a, .count = 2};
	for (int i = 0; i < 2; i++) {
		struct time_finding *f = &m->times[0].items[i];

		a->entries[i] = (struct account_entry){.line = i ? ACCOUNT_DISK : ACCOUNT_HOST,
			.stack_hash = at[i],
			.slow_ns = i ? MS(30) : MS(50)};
		a->ordinary_by[OWNER_SELF][a->entries[i].line] = a->entries[i].slow_ns;
		*f = (struct time_finding){.contrast = CONTRAST_WHOLE,
			.problem = PROBLEM_GOODPUT,
			.lost_ns = 100 * a->entries[i].slow_ns,
			.units = 100,
			.share = i ? 0.3 : 0.5,
			.confidence = 0.9,
			.delay = {.kind = i ? DELAY_BY_DISK : DELAY_BY_HOST,
				.slow_ns = a->entries[i].slow_ns,
				.share = i ? 0.3 : 0.5}};
	}
	/* That it is the program itself that writes makes no other cause of it. */
	m->times[0].items[1].delay.end = (struct resource_use){
		.resource = RESOURCE_DISK_WRITE, .who = "train.py", .pid = JOB};
	m->times[0].whole = *a;
	m->count = 1;
	c = composed(m);
	assert_int_equal(c->list.count, incidents);
	if (incidents == 1) {
		assert_int_equal(c->items[0].excess_ns, 100 * MS(80));
		/* 20 if the GPU has no work meanwhile, 100 if it has all the time */
		assert_int_equal(c->items[0].fixed_ns, MS(60));
		assert_non_null(strstr(c->items[0].summary, "Host code"));
		assert_non_null(strstr(c->items[0].summary, "80 of 100 ms"));
		assert_non_null(
			strstr(c->items[0].root_cause, "part of it is waiting for the disk"));
	}
	free(c);
	free(a);
}

/* What one line, or one function, computes and writes is one incident with one promise; at two lines of the loop it is two. */
static void test_one_place_is_one_cause(void **state)
{
	check_place(true, false, 1);
	check_place(true, true, 1);
	check_place(false, false, 1);
	check_place(false, true, 2);
}

/* One of several hogs is named with how many they are: the share is that of all of them. */
static void test_one_of_several(void **state)
{
	for (uint32_t hogs = 1; hogs <= 34; hogs += 33) {
		MADE;
		struct step_account *a = calloc(1, sizeof(*a));
		const struct incident_cause *cause;
		struct composed *c;

		m->rec = ledger_recording(&m->scene);
		*a = (struct step_account){.pid = JOB,
			.steps = 100,
			.ordinary_steps = 100,
			.ordinary_step_ns = MS(100),
			.entries = {{.line = ACCOUNT_CPU,
				.slow_ns = MS(50),
				.culprit_pid = 537,
				.culprit = "xz"}},
			.entry_count = 1};
		m->times[0] = (struct time_findings){.rec = &m->rec,
			.account = a,
			.items = {{.contrast = CONTRAST_WHOLE,
				.problem = PROBLEM_CPU_CONTENTION,
				.lost_ns = 100 * MS(50),
				.units = 100,
				.share = 0.5,
				.confidence = 0.9,
				.delay = {.kind = DELAY_BY_CPU,
					.slow_ns = MS(50),
					.share = 0.5,
					.lead = &a->entries[0],
					.end = {.resource = RESOURCE_CPU_PROGRAM,
						.who = "xz",
						.pid = hogs == 1 ? 537 : 0,
						.count = hogs}}}},
			.count = 1};
		m->times[0].whole = *a;
		m->count = 1;
		c = composed(m);
		assert_int_equal(c->list.count, 1);
		cause = &c->items[0].causes[0];
		assert_int_equal(cause->culprit_pid, 537);
		assert_int_equal(cause->culprit_count, hogs == 1 ? 0 : 34);
		free(c);
		free(a);
	}
}

/* A thread that holds a lock while it computes and writes is one incident; if the units wait for it at two places, two. */
static void test_one_thread_that_is_waited_for(void **state)
{
	for (int places = 1; places <= 2; places++) {
		MADE;
		struct step_account *a = calloc(1, sizeof(*a));
		uint64_t wait[2];
		struct composed *c;

		wait[0] = line_stack(&m->scene, "/home/u/train.py", 20, NULL);
		wait[1] =
			places == 1 ? wait[0] : line_stack(&m->scene, "/home/u/train.py", 30, NULL);
		*a = (struct step_account){.pid = JOB,
			.steps = 100,
			.ordinary_steps = 100,
			.ordinary_step_ns = MS(100),
			.first.ns = LEDGER_T0,
			.last.ns = LEDGER_T0 + (int64_t)MS(10000),
			.entry_count = 2};
		m->times[0] = (struct time_findings){.rec = &m->rec, .account = a, .count = 2};
		for (int i = 0; i < 2; i++) {
			const char *file =
				i && places == 2 ? "/home/u/upload.py" : "/home/u/export.py";
			uint64_t at = line_stack(&m->scene, file, i ? 8 : 7, NULL);

			a->entries[i] =
				(struct account_entry){.line = i ? ACCOUNT_DISK : ACCOUNT_HOST,
					.owner = OWNER_THREAD,
					.stack_hash = at,
					.wait_hash = wait[i],
					.slow_ns = i ? MS(30) : MS(50)};
			m->times[0].items[i] = (struct time_finding){.contrast = CONTRAST_WHOLE,
				.problem = PROBLEM_GOODPUT,
				.lost_ns = 100 * a->entries[i].slow_ns,
				.units = 100,
				.share = i ? 0.3 : 0.5,
				.confidence = 0.9,
				.delay = {.kind = i ? DELAY_BY_DISK : DELAY_BY_HOST,
					.lead = &a->entries[i],
					.slow_ns = a->entries[i].slow_ns,
					.share = i ? 0.3 : 0.5}};
		}
		m->rec = ledger_recording(&m->scene);
		m->times[0].whole = *a;
		m->count = 1;
		c = composed(m);
		assert_int_equal(c->list.count, places);
		if (places == 1) {
			assert_non_null(strstr(c->items[0].summary, "Host code of another thread"));
			assert_non_null(strstr(c->items[0].summary, "export.py:7"));
			assert_non_null(strstr(c->items[0].root_cause, "train.py:20"));
		}
		free(c);
		free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_place_is_one_cause),
		cmocka_unit_test(test_one_of_several),
		cmocka_unit_test(test_one_thread_that_is_waited_for),
		cmocka_unit_test(test_the_order_does_not_matter),
		cmocka_unit_test(test_two_that_hold_each_other_up),
		cmocka_unit_test(test_two_that_lose_as_much),
		cmocka_unit_test(test_who_is_blamed_was_ended),
		cmocka_unit_test(test_a_crash_after_an_error),
		cmocka_unit_test(test_notes_that_are_refuted),
		cmocka_unit_test(test_victims_of_a_rank),
		cmocka_unit_test(test_transfers_that_wait_for_a_rank),
		cmocka_unit_test(test_errors_of_a_mismatch),
		cmocka_unit_test(test_what_a_hang_explains),
		cmocka_unit_test(test_what_a_state_covers),
		cmocka_unit_test(test_states_are_as_severe_as_they_are_sure),
		cmocka_unit_test(test_the_ceiling),
		cmocka_unit_test(test_a_breach_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
