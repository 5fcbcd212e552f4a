/* SPDX-License-Identifier: Apache-2.0 */
/* test_late.c - ranks as PyTorch's are seen: hosts run ahead, nobody says how long they waited, agents send five times a
 * second. Who is late is shown soon, who is not worth a word is not, and agents that restart, lie or are missing
 * make nobody else late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "cluster/detect/fleet.h"
#include "wire/ids.h"

#define MS      INT64_C(1000000)
#define SECOND  INT64_C(1000000000)
#define BEGIN   (1794843164 * SECOND)
#define STEP    (150 * MS)
#define RANKS   4
#define BUCKETS 6
#define LOOK    (200 * MS)
#define COMM    0xfb8
#define NOBODY  UINT32_MAX
#define EVER    1000000

struct made { /* a job, and what becomes of it */
	uint64_t comm;
	uint32_t pid;            /* of rank 0; the others follow */
	uint32_t late, from, to; /* this rank, from this step to that */
	uint32_t every;          /* so many steps; 0: each */
	int64_t by;              /* so much */
	bool all_longer; /* in these steps nobody comes late, but all take longer by that: the GPU of one does */
	uint32_t once;             /* in this step rank 1 is late by that; 0: never */
	uint32_t untraced;         /* ranks, as bits */
	bool is_sharded, one_each; /* layers gathered and scattered; a node for each rank */
	uint32_t renumbered;       /* from this step on rank r is rank RANKS - 1 - r; 0: never */
	uint32_t boot_from;        /* agents begin anew at this step; 0: never */
	uint32_t split_at;         /* from this step on with another communicator; 0: never */
};

struct stage {
	struct fleet *fleet;
	const struct made *jobs[2];
	size_t job_count;
	uint32_t steps[2], batches[RANKS + 1];
	int64_t now_ns;
	int64_t ready[2]; /* the step that is being made begins */
};

static const struct made PLAIN = {.comm = COMM, .pid = 100, .late = NOBODY, .to = EVER};

static void begin(struct stage *s, const struct made *a, const struct made *b)
{
	struct fleet_settings f = fleet_defaults;

	f.nodes = nodes_defaults;
	f.calls = calls_defaults;
	*s = (struct stage){
		.jobs = {a, b}, .job_count = b ? 2 : 1, .now_ns = BEGIN, .ready = {BEGIN, BEGIN}};
	assert_int_equal(fleet_new(&f, &s->fleet), 0);
}

static bool is_late(const struct made *m, uint32_t rank, uint32_t step)
{
	if (m->once && step == m->once && rank == 1)
		return true;
	return rank == m->late && !m->all_longer && step >= m->from && step < m->to &&
	       (!m->every || step % m->every == 0);
}

static void push(struct stage *s, const struct made *m, uint32_t node, uint64_t boot,
	struct push_call *items, size_t count)
{
	struct push_calls c = {.batch = ++s->batches[node],
		.sent_ns = s->now_ns,
		.who = {.cluster = "c", .rank = -1, .boot = 1 + boot},
		.items = items,
		.count = count};
	struct calls_taken taken;

	snprintf(c.who.node, sizeof(c.who.node), m->one_each ? "n%u" : "n", node);
	assert_int_equal(fleet_take_calls(s->fleet, &c, s->now_ns + MS, &taken), 0);
	assert_int_equal(taken.refused, 0);
}

/* What a rank calls in a step: buckets that differ in size, or layers that are alike. */
static size_t put_step(
	const struct made *m, uint32_t rank, uint32_t step, int64_t at, struct push_call *out)
{
	size_t n = m->is_sharded ? 3 * BUCKETS : BUCKETS;
	bool turned = m->renumbered && step >= m->renumbered;
	bool split = m->split_at && step >= m->split_at;

	for (size_t i = 0; i < n; i++) {
		bool scatters = m->is_sharded && i >= BUCKETS && (i % 2 || i + 1 == n);
		int32_t number = (int32_t)(turned ? RANKS - 1 - rank : rank);

		out[i] = (struct push_call){.comm = m->comm + split,
			.seq = (uint64_t)(split ? step - m->split_at : step) * n + i + 1,
			.bytes = m->is_sharded ? 5000000 : 1000 * (i + 1),
			.enter_ns = at + (int64_t)i * (m->is_sharded ? 4 * MS : MS / 2),
			.wait_ns = UINT64_MAX,
			.rank = number,
			.world_rank = number,
			.nranks = RANKS,
			.peer = -1,
			.pid = m->pid + rank,
			.op = scatters        ? NCCL_REDUCE_SCATTER
			      : m->is_sharded ? NCCL_ALL_GATHER
					      : NCCL_ALL_REDUCE};
		out[i].leave_ns = out[i].enter_ns + 50000;
	}
	return n;
}

/* One step of job @which; it takes longer by what its late rank is late by. */
static void make_step(struct stage *s, size_t which)
{
	const struct made *m = s->jobs[which];
	uint32_t step = s->steps[which]++;
	struct push_call items[RANKS * 3 * BUCKETS];
	size_t n = 0;
	int64_t lag = 0;

	for (uint32_t r = 0; r < RANKS; r++) {
		int64_t noise = (int64_t)((step * 7919 + r * 104729) % 97) * MS / 100;
		int64_t at = s->ready[which] + 60 * MS + noise + (is_late(m, r, step) ? m->by : 0);

		lag = MAX(lag, is_late(m, r, step) ? m->by : 0);
		if (m->untraced >> r & 1)
			continue;
		n += put_step(m, r, step, at, items + n);
		if (m->one_each) {
			push(s, m, r, m->boot_from && step >= m->boot_from, items, n);
			n = 0;
		}
	}
	if (n)
		push(s, m, RANKS, m->boot_from && step >= m->boot_from, items, n);
	s->ready[which] += STEP + (m->all_longer && step >= m->from ? m->by : lag);
}

/* Until @steps steps of the first job are made. When the first episode was shown; 0: none was. */
static int64_t play(struct stage *s, uint32_t steps)
{
	struct fleet_episode e;
	int64_t shown = 0;

	while (s->steps[0] < steps) {
		size_t cursor = 0;

		for (size_t i = 0; i < s->job_count; i++)
			while (s->ready[i] + STEP < s->now_ns)
				make_step(s, i);
		s->now_ns += LOOK / 2;
		fleet_tick(s->fleet, s->now_ns);
		if (!shown && fleet_episode_next(s->fleet, "c", &cursor, &e))
			shown = s->now_ns;
	}
	return shown;
}

/* The only episode there is; false: there is none. */
static bool only(const struct stage *s, struct fleet_episode *ret)
{
	struct fleet_episode more;
	size_t cursor = 0;

	if (!fleet_episode_next(s->fleet, "c", &cursor, ret))
		return false;
	if (fleet_episode_next(s->fleet, "c", &cursor, &more))
		fail_msg("two: %s; %s", ret->text, more.text);
	return true;
}

static void assert_only(const struct stage *s, int32_t rank, uint32_t pid)
{
	struct fleet_episode e;

	assert_true(only(s, &e));
	if (e.problem != FLEET_STRAGGLER || e.rank != rank || e.pid != pid)
		fail_msg("%s", e.text);
	assert_false(e.provisional);
}

static void assert_silent(const struct made *m)
{
	struct fleet_episode e;
	struct stage s;

	begin(&s, m, NULL);
	if (play(&s, 100) || only(&s, &e))
		fail_msg("%s", only(&s, &e) ? e.text : "shown");
	fleet_free(s.fleet);
}

static void test_from_the_first_step(void **state _unused_)
{
	struct made m = PLAIN;
	struct stage s;

	m.late = 2;
	m.by = 80 * MS;
	for (int i = 0; i < 2; i++) {
		m.is_sharded = i;
		begin(&s, &m, NULL);
		play(&s, 60);
		assert_only(&s, 2, 102);
		fleet_free(s.fleet);
	}
}

/* Within a second after the first late collective. */
static void test_soon(void **state _unused_)
{
	struct made m = PLAIN;
	struct stage s;
	int64_t shown;

	m.late = 1;
	m.by = 60 * MS;
	m.from = 60;
	for (int i = 0; i < 2; i++) {
		m.is_sharded = i;
		begin(&s, &m, NULL);
		shown = play(&s, 100);
		if (shown - (BEGIN + 60 * STEP + m.by) > SECOND)
			fail_msg("shown %.2f s after",
				(double)(shown - BEGIN - 60 * STEP - m.by) / 1e9);
		assert_only(&s, 1, 101);
		fleet_free(s.fleet);
	}
}

/* What nobody would care about: a rank 3 ms late of 150, one that is a little later once in a while. */
static void test_not_material(void **state _unused_)
{
	struct made m = PLAIN;
	struct fleet_episode e;
	struct stage s;

	assert_silent(&m);
	m.is_sharded = true;
	assert_silent(&m);
	m.is_sharded = false;
	m.late = 1;
	m.by = 3 * MS;
	assert_silent(&m);
	m.by = 40 * MS; /* once in a while, as an evaluation is */
	m.every = 25;
	begin(&s, &m, NULL);
	play(&s, 200);
	if (only(&s, &e))
		assert_true(e.provisional);
	fleet_free(s.fleet);
}

/* Why it is late is added when its agent says so, and stays while the agent says what it does. */
static void test_cause(void **state _unused_)
{
	struct made m = PLAIN;
	struct push_report r = {
		.who = {.cluster = "c", .node = "n", .rank = -1}, .pid = 103, .world_rank = 3};
	struct fleet_episode e;
	struct stage s;
	uint32_t pids[4];

	m.late = 3;
	m.by = 60 * MS;
	m.from = 60;
	begin(&s, &m, NULL);
	play(&s, 60);
	assert_int_equal(fleet_late(s.fleet, "c", "n", pids, 4), 0);
	play(&s, 70);
	assert_int_equal(fleet_late(s.fleet, "c", "other", pids, 4), 0);
	assert_int_equal(fleet_late(s.fleet, "c", "n", pids, 4), 1);
	assert_int_equal(pids[0], 103);
	strcpy(r.cause, "Host code in load (train.py:41)");
	strcpy(r.fix, "Move it");
	strcpy(r.place, "train.py:41 (load)");
	assert_int_equal(fleet_take_report(s.fleet, &r, s.now_ns), 0);
	assert_true(only(&s, &e));
	assert_non_null(strstr(e.text, "Host code in load (train.py:41)"));
	r = (struct push_report){
		.who = r.who, .pid = 103, .world_rank = 3, .doing = PUSH_DOING_RUNNING};
	assert_int_equal(fleet_take_report(s.fleet, &r, s.now_ns), 0);
	play(&s, 90);
	assert_true(only(&s, &e));
	assert_string_equal(e.cause, "Host code in load (train.py:41)");
	assert_string_equal(e.place, "train.py:41 (load)");
	assert_string_equal(e.fix, "Move it");
	strcpy(r.cause, "The steps wait"); /* names no line */
	assert_int_equal(fleet_take_report(s.fleet, &r, s.now_ns), 0);
	assert_true(only(&s, &e));
	assert_string_equal(e.cause, "Host code in load (train.py:41)");
	strcpy(r.cause, "Host code in save (train.py:80)");
	strcpy(r.place, "train.py:80 (save)");
	assert_int_equal(fleet_take_report(s.fleet, &r, s.now_ns), 0);
	assert_true(only(&s, &e));
	assert_string_equal(e.cause, "Host code in save (train.py:80)");
	fleet_free(s.fleet);
}

/* A job that becomes slower though nobody is late: its agents are asked, and who has the late GPU is told, but not of a job
 * that is as it was. */
static void test_slower(void **state _unused_)
{
	for (int longer = 0; longer < 2; longer++) {
		struct push_report r = {.who = {.cluster = "c", .node = "n", .rank = -1},
			.pid = 102,
			.world_rank = 2,
			.confidence = 0.75,
			.line = PUSH_LINE_LATE,
			.cause = "More GPU work on rank 2"};
		struct made m = PLAIN;
		struct fleet_episode e;
		struct stage s;
		uint32_t pids[8];

		m.all_longer = longer;
		m.from = 60;
		m.by = 40 * MS;
		begin(&s, &m, NULL);
		play(&s, 60);
		assert_int_equal(fleet_late(s.fleet, "c", "n", pids, 8), 0);
		play(&s, 100);
		assert_int_equal(fleet_late(s.fleet, "c", "n", pids, 8), longer ? RANKS : 0);
		assert_int_equal(fleet_late(s.fleet, "c", "other", pids, 8), 0);
		assert_false(only(&s, &e));
		assert_int_equal(fleet_take_report(s.fleet, &r, s.now_ns), 0);
		play(&s, 104);
		assert_int_equal(only(&s, &e), longer);
		if (longer) {
			assert_int_equal(e.rank, 2);
			assert_non_null(strstr(e.text, "More GPU work on rank 2"));
			assert_true(e.share > 0.1 && e.share < 0.3);
		}
		fleet_free(s.fleet);
	}
}

/* Somebody was late once, long before: agents are asked of the whole job nonetheless. */
static void test_slower_after_one_was_late(void **state _unused_)
{
	struct made m = PLAIN;
	struct fleet_episode e;
	struct stage s;
	uint32_t pids[8];

	m.once = 50;
	m.all_longer = true;
	m.from = 60;
	m.by = 40 * MS;
	begin(&s, &m, NULL);
	play(&s, 54);
	assert_true(only(&s, &e)); /* it is shown */
	assert_int_equal(fleet_late(s.fleet, "c", "n", pids, 8), 1);
	play(&s, 110);
	assert_int_equal(fleet_late(s.fleet, "c", "n", pids, 8), RANKS);
	fleet_free(s.fleet);
}

/* Likewise, where all ranks have the same to do: nobody is named, neither for the collectives nor for load that moves. */
static void test_slower_link(void **state _unused_)
{
	struct push_report r = {.who = {.cluster = "c", .node = "n", .rank = -1},
		.pid = 101,
		.world_rank = 1,
		.confidence = 0.75,
		.line = PUSH_LINE_LINK,
		.cause = "Slow link between ranks"};
	struct made m = PLAIN;
	struct fleet_episode e;
	struct stage s;

	m.all_longer = true;
	m.from = 60;
	m.by = 40 * MS;
	begin(&s, &m, NULL);
	play(&s, 100);
	assert_int_equal(fleet_take_report(s.fleet, &r, s.now_ns), 0);
	play(&s, 104);
	assert_true(only(&s, &e));
	assert_int_equal(e.problem, FLEET_COLLECTIVE);
	assert_int_equal(e.rank, -1);
	assert_non_null(strstr(e.text, "all ranks are on time; Slow link between ranks"));
	fleet_free(s.fleet);
}

/* Half of the ranks have no agent: the late one of those that have is shown, which may not be the latest of all;
 * nobody is named for one that has none. */
static void test_untraced(void **state _unused_)
{
	struct made m = PLAIN;
	struct fleet_episode e;
	struct stage s;

	m.untraced = 1 << 0 | 1 << 2;
	m.late = 1;
	m.by = 60 * MS;
	m.from = 60;
	begin(&s, &m, NULL);
	play(&s, 200);
	assert_true(only(&s, &e));
	assert_int_equal(e.pid, 101);
	fleet_free(s.fleet);
	m.late = 0;
	assert_silent(&m);
}

static void test_agents_restart(void **state _unused_)
{
	struct made m = PLAIN;
	struct stage s;

	m.boot_from = 40;
	m.one_each = true;
	assert_silent(&m);
	m.late = 1;
	m.by = 60 * MS;
	m.from = 60;
	begin(&s, &m, NULL);
	play(&s, 120);
	assert_only(&s, 1, 101);
	fleet_free(s.fleet);
}

/* The same processes with other numbers: the process that is late is named by the number that it has now. */
static void test_renumbered(void **state _unused_)
{
	struct made m = PLAIN;
	struct stage s;

	m.renumbered = 40;
	m.split_at = 40;
	assert_silent(&m);
	m.late = 1;
	m.by = 60 * MS;
	m.from = 60;
	begin(&s, &m, NULL);
	play(&s, 120);
	assert_only(&s, RANKS - 1 - 1, 101);
	fleet_free(s.fleet);
}

/* The communicator is destroyed and another takes its place, while somebody is late. */
static void test_split(void **state _unused_)
{
	struct made m = PLAIN;
	struct stage s;

	m.split_at = 80;
	assert_silent(&m);
	m.late = 1;
	m.by = 60 * MS;
	m.from = 60;
	begin(&s, &m, NULL);
	play(&s, 120);
	assert_only(&s, 1, 101);
	fleet_free(s.fleet);
}

/* Two jobs with the same ranks on the same node. */
static void test_two_jobs(void **state _unused_)
{
	struct made a = PLAIN, b = PLAIN;
	struct stage s;

	b.comm = COMM + 100;
	b.pid = 200;
	b.late = 2;
	b.by = 60 * MS;
	b.from = 60;
	begin(&s, &a, &b);
	play(&s, 120);
	assert_only(&s, 2, 202);
	fleet_free(s.fleet);
}

/* Somebody sends calls and causes of ranks that are not his: from another node they are another process's, and
 * what makes no sense is refused. */
static void test_forged(void **state _unused_)
{
	struct made m = PLAIN;
	struct push_call lies[BUCKETS * 64];
	struct push_calls c = {.sent_ns = BEGIN,
		.who = {.cluster = "c", .node = "liar", .rank = -1, .boot = 9},
		.items = lies,
		.count = 1};
	struct push_report r = {.who = {.cluster = "c", .node = "liar", .rank = -1},
		.pid = 101,
		.world_rank = 1,
		.cause = "rank 2 is to blame"};
	struct fleet_episode e;
	struct calls_taken taken;
	struct stage s;

	m.late = 1;
	m.by = 60 * MS;
	m.from = 60;
	begin(&s, &m, NULL);
	play(&s, 50);
	for (uint32_t step = 0; step < 50; step++) {
		struct made liar = PLAIN;

		put_step(&liar, 2, step, BEGIN + step * STEP + 140 * MS, lies);
		c.batch = step + 1;
		c.count = BUCKETS;
		assert_int_equal(fleet_take_calls(s.fleet, &c, s.now_ns, &taken), 0);
	}
	lies[0] = (struct push_call){.comm = COMM, .seq = 1, .nranks = -5, .rank = 70, .op = 999};
	c.batch = 1000;
	c.count = 1;
	assert_int_equal(fleet_take_calls(s.fleet, &c, s.now_ns, &taken), 0);
	assert_int_equal(taken.refused, 1);
	play(&s, 120);
	assert_int_equal(fleet_take_report(s.fleet, &r, s.now_ns), 0);
	play(&s, 130);
	assert_only(&s, 1, 101);
	assert_true(only(&s, &e));
	assert_string_equal(e.cause, "");
	fleet_free(s.fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_the_first_step),
		cmocka_unit_test(test_soon),
		cmocka_unit_test(test_not_material),
		cmocka_unit_test(test_cause),
		cmocka_unit_test(test_slower),
		cmocka_unit_test(test_slower_after_one_was_late),
		cmocka_unit_test(test_slower_link),
		cmocka_unit_test(test_untraced),
		cmocka_unit_test(test_agents_restart),
		cmocka_unit_test(test_renumbered),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_two_jobs),
		cmocka_unit_test(test_forged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
