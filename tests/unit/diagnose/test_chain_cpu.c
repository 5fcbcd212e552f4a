/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_cpu.c - who had the CPUs: programs are summed, and a quota, a mask and the job itself are told from them. */
#include "chain_fixture.h"

/* @count waits in slow steps while @pids processes of @comm from @pid on had the CPU in turn. */
static void waits(
	struct chain_scene *s, int count, uint32_t pid, int pids, const char *comm, int cpus)
{
	for (int i = 0; i < count; i++) {
		struct event *e = chain_event(s, chain_at(CHAIN_SLOW + i * 50 / count), SOURCE_HOST,
			HOST_SCHED_SWITCH, CHAIN_JOB);

		e->wait_ns = e->dur_ns = 10 * NS_PER_MS;
		e->peer_pid = pid + (uint32_t)(i % pids);
		e->cpu = (uint32_t)(i % cpus);
		snprintf(e->peer_comm, sizeof(e->peer_comm), "%s", comm);
	}
}

static void busy(struct chain_scene *s, double pct)
{
	for (int i = 0; i < 10; i++)
		s->samples[s->rec.sample_count++] =
			(struct host_sample){.time.ns = CHAIN_T0 + i * (int64_t)NS_PER_S,
				.cpu_pct = pct,
				.busiest_cpu = 15};
}

static void test_programs_are_summed(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);
	const struct resource_use *u;

	busy(s, 100);
	waits(s, 400, 2000, 48, "xz", 16);
	u = chain_end(s);
	assert_int_equal(u->resource, RESOURCE_CPU_PROGRAM);
	assert_string_equal(u->who, "xz");
	assert_int_equal(u->count, 48);
	assert_int_equal(u->pid, 0);
	assert_float_equal(u->share, 1, 0.01);
	free(s);
}

static void test_waits_of_ordinary_steps_do_not_count(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	for (int i = 0; i < 40; i++) {
		struct event *e =
			chain_event(s, chain_at(i), SOURCE_HOST, HOST_SCHED_SWITCH, CHAIN_JOB);

		e->wait_ns = 90 * NS_PER_MS;
		e->peer_pid = 7;
		snprintf(e->peer_comm, sizeof(e->peer_comm), "before");
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	waits(s, 40, 2000, 1, "since", 16);
	assert_string_equal(chain_end(s)->who, "since");
	assert_int_equal(s->delay.end.pid, 2000);
	free(s);
}

static void test_scripts_have_their_names(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	for (uint32_t i = 0; i < 4; i++)
		chain_home(s, 2000 + i, "python3", "burn.py");
	waits(s, 40, 2000, 4, "python3", 16);
	assert_string_equal(chain_end(s)->who, "burn.py");
	assert_int_equal(s->delay.end.count, 4);
	free(s);
}

static void test_the_job_itself(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	chain_home(s, CHAIN_JOB, "python3", "train.py");
	waits(s, 40, CHAIN_JOB, 1, "OMP worker", 16);
	waits(s, 4, 2000, 1, "cron", 16);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	assert_string_equal(s->delay.end.who, "train.py");
	free(s);
}

/* A second run of the same script, which uses a GPU, is another program; a child that does not is the job's. */
static void test_a_child_and_a_second_run(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	chain_home(s, CHAIN_JOB, "python3", "train.py");
	chain_home(s, 2000, "pt_data_worker", "train.py");
	s->ledger[s->rec.ledger_count++] = (struct ledger_row){.pid = 2000, .tid = 2000};
	waits(s, 40, 2000, 1, "pt_data_worker", 16);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	s->ledger[0].launches = 1;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_PROGRAM);
	s->homes[0].rank = 0;
	s->homes[1].rank = 1;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	free(s);
}

/* Three runs of one script take turns. Whether they are one job is not known: two users' notebooks run the same kernel. */
static void test_runs_of_one_session(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	chain_home(s, CHAIN_JOB, "python3", "train.py");
	for (uint32_t i = 0; i < 2; i++) {
		chain_home(s, 2000 + i, "python3", "train.py");
		s->ledger[s->rec.ledger_count++] =
			(struct ledger_row){.pid = 2000 + i, .tid = 2000 + i, .launches = 1};
	}
	waits(s, 40, 2000, 2, "python3", 16);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_PROGRAM);
	assert_non_null(strstr(s->delay.end.detail, "3 processes of train.py share "));
	free(s);
}

static void test_what_it_starts(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	chain_event(s, CHAIN_T0, SOURCE_HOST, HOST_PROCESS_FORK, CHAIN_JOB)->peer_pid = 2000;
	chain_event(s, CHAIN_T0 + 1, SOURCE_HOST, HOST_PROCESS_EXIT, 2000);
	waits(s, 40, 2000, 1, "worker", 16);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	assert_string_equal(s->delay.end.who, "worker");
	s->events[1].op = HOST_PROCESS_EXEC; /* it has become another program */
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_PROGRAM);
	s->events[1].op = HOST_PROCESS_EXIT;
	s->events[0].pid = 5; /* it is another's */
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_PROGRAM);
	free(s);
}

/* Whoever is waited for is followed as well: it is the job's only if it runs what the job runs. */
static void test_what_it_runs(void **state)
{
	static const struct {
		const char *comm, *script;
		bool forked, is_own;
	} rows[] = {
		{"sim-cpu-hog", "", false, false}, /* followed, and that is all */
		{"ffmpeg", "", true, false},       /* a decoder that the loader has started */
		{"bash", "prepare.sh", true, false},
		{"python3", "evaluate.py", true, false},
		{"python3", "train.py", false, true}, /* a worker from before the recording */
		{"pt_data_worker", "train.py", true, true},
		{"python3", "multiprocessing.spawn", true, true},
		{"python3", "multiprocessing.spawn", false, true}, /* from before the recording */
		{"python3", "", true, false},                      /* a program as text */
		{"python3", "", false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

		chain_home(s, CHAIN_JOB, "python3", "train.py");
		chain_home(s, 2000, rows[i].comm, rows[i].script);
		s->ledger[s->rec.ledger_count++] = (struct ledger_row){.pid = 2000, .tid = 2000};
		if (rows[i].forked) {
			chain_event(s, CHAIN_T0, SOURCE_HOST, HOST_PROCESS_FORK, CHAIN_JOB)
				->peer_pid = 2000;
			chain_event(s, CHAIN_T0 + 1, SOURCE_HOST, HOST_PROCESS_EXEC, 2000);
		}
		waits(s, 40, 2000, 1, rows[i].comm, 16);
		assert_int_equal(chain_end(s)->resource,
			rows[i].is_own ? RESOURCE_CPU_OWN : RESOURCE_CPU_PROGRAM);
		free(s);
	}
}

/* A program without an interpreter is known by its name. */
static void test_a_native_worker(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	chain_home(s, CHAIN_JOB, "trainer", "");
	chain_home(s, 2000, "trainer", "");
	s->ledger[s->rec.ledger_count++] = (struct ledger_row){.pid = 2000, .tid = 2000};
	waits(s, 40, 2000, 1, "trainer", 16);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	snprintf(s->homes[1].comm, sizeof(s->homes[1].comm), "hog");
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_PROGRAM);
	free(s);
}

/* The account says whose waits count: a busy helper thread's do not. */
static void test_threads_of_the_account(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	chain_entry(s, ACCOUNT_CPU, OWNER_SELF);
	waits(s, 10, 2000, 1, "xz", 16);
	waits(s, 40, 3000, 1, "other", 16);
	for (size_t i = 10; i < s->rec.event_count; i++)
		snprintf(s->events[i].comm, COMM_LEN, "helper");
	assert_string_equal(chain_end(s)->who, "xz");
	free(s);
}

static void test_a_quota(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);
	struct process_home *h;

	for (int i = 0; i < 11; i++) {
		struct container_sample *x = &s->containers[s->rec.container_count++];

		container_sample_init(
			x, (wall_time){CHAIN_T0 + i * (int64_t)NS_PER_S}, CHAIN_GROUP);
		x->throttled_us = i < 5 ? 0 : (i - 5) * 400000;
		x->quota_us = 60000;
		x->period_us = 100000;
	}
	waits(s, 40, 2000, 1, "xz", 16);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_QUOTA);
	assert_string_equal(s->delay.end.detail, "60 % of a CPU");
	assert_string_equal(s->delay.end.who, "");
	h = chain_home(s, CHAIN_JOB, "python3", "train.py");
	snprintf(h->cgroup_path, sizeof(h->cgroup_path), "/job-100");
	assert_string_equal(chain_end(s)->who, "control group /job-100");
	snprintf(h->container_id, sizeof(h->container_id), "0123456789abcdef");
	assert_string_equal(chain_end(s)->who, "container 0123456789ab");
	for (size_t i = 0; i < s->rec.container_count; i++)
		s->containers[i].quota_us = 150000;
	assert_string_equal(chain_end(s)->detail, "1.5 CPUs");
	free(s);
}

static void test_a_mask(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	busy(s, 12);
	waits(s, 40, CHAIN_JOB, 1, "python3", 1);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_MASK);
	assert_string_equal(s->delay.end.detail, "1 CPU, while all are 12 % busy");
	for (size_t i = 0; i < s->rec.sample_count; i++)
		s->samples[i].cpu_pct = 97; /* nowhere else to go */
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	free(s);
}

/* The job may use all CPUs, its workers one: they were started while it was pinned. On a machine with two that one is half. */
static void test_an_inherited_mask(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_CPU, OWNER_PROCESS);

	e->pid = 2000;
	chain_home(s, CHAIN_JOB, "python3", "train.py")->cpus = 2;
	for (uint32_t i = 0; i < 2; i++) {
		chain_home(s, 2000 + i, "python3", "train.py")->cpus = 1;
		s->ledger[s->rec.ledger_count++] =
			(struct ledger_row){.pid = 2000 + i, .tid = 2000 + i};
	}
	busy(s, 64);
	for (int i = 0; i < 10; i++)
		s->samples[i].busiest_cpu = 1;
	waits(s, 40, 2001, 1, "python3", 1);
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].pid = s->events[i].tid = 2000;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_MASK);
	assert_string_equal(s->delay.end.who, "train.py");
	s->homes[1].cpus = 2;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	s->homes[1].cpus = 1;
	for (size_t i = 0; i < s->rec.sample_count; i++)
		s->samples[i].cpu_pct = 90; /* the other one is not free either */
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	free(s);
}

static void test_a_mask_of_several(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);
	struct process_home *h = chain_home(s, CHAIN_JOB, "python3", "train.py");

	busy(s, 12);
	waits(s, 40, CHAIN_JOB, 1, "python3", 6);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	h->cpus = 6;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_MASK);
	h->cpus = 16; /* all that there are */
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	free(s);
}

/* It was set while the job ran: some waits are from before. */
static void test_a_later_mask(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);

	chain_home(s, CHAIN_JOB, "python3", "train.py")->cpus = 16;
	busy(s, 12);
	waits(s, 16, CHAIN_JOB, 1, "python3", 16);
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].wait_ns = NS_PER_MS;
	waits(s, 40, CHAIN_JOB, 1, "python3", 2);
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_MASK);
	assert_string_equal(s->delay.end.detail, "2 CPUs, while all are 12 % busy");
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].peer_pid = 4000; /* others have these CPUs: they may be why */
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_PROGRAM);
	free(s);
}

/* 64 threads on 4 CPUs: whatever they wait for. */
static void test_too_many_threads(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_LOCK, true);

	chain_entry(s, ACCOUNT_LOCK, OWNER_SELF);
	chain_home(s, CHAIN_JOB, "python3", "train.py")->cpus = 4;
	waits(s, 50 * 64, CHAIN_JOB, 1, "python3", 4);
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].tid = 200 + (uint32_t)i % 64;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	assert_string_equal(s->delay.end.detail, "64 threads on 4 CPUs");
	s->homes[0].cpus = 0; /* not known: what is seen */
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].tid = 200 + (uint32_t)i % 3;
	assert_int_not_equal(chain_end(s)->resource, RESOURCE_CPU_OWN);
	free(s);
}

/* It is ready to run, its CPU idles, and nobody gives it to it. Short waits are the scheduler's. */
static void test_kept_off_idle_cpus(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, true);
	struct process_home *h;

	waits(s, 40, 0, 1, "swapper/0", 2);
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].wait_ns = 60 * NS_PER_MS;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CPU_QUOTA);
	assert_string_equal(s->delay.end.detail, "not run although CPUs are idle");
	h = chain_home(s, CHAIN_JOB, "python3", "train.py");
	snprintf(h->cgroup_path, sizeof(h->cgroup_path),
		"/user.slice"); /* of another hierarchy, maybe */
	assert_string_equal(chain_end(s)->who, "");
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].wait_ns = NS_PER_MS;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_are_summed),
		cmocka_unit_test(test_waits_of_ordinary_steps_do_not_count),
		cmocka_unit_test(test_scripts_have_their_names),
		cmocka_unit_test(test_the_job_itself),
		cmocka_unit_test(test_a_child_and_a_second_run),
		cmocka_unit_test(test_runs_of_one_session),
		cmocka_unit_test(test_what_it_starts),
		cmocka_unit_test(test_what_it_runs),
		cmocka_unit_test(test_a_native_worker),
		cmocka_unit_test(test_threads_of_the_account),
		cmocka_unit_test(test_a_quota),
		cmocka_unit_test(test_a_mask),
		cmocka_unit_test(test_an_inherited_mask),
		cmocka_unit_test(test_a_mask_of_several),
		cmocka_unit_test(test_a_later_mask),
		cmocka_unit_test(test_too_many_threads),
		cmocka_unit_test(test_kept_off_idle_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
