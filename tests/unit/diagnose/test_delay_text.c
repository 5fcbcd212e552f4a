/* SPDX-License-Identifier: Apache-2.0 */
/* test_delay_text.c - incidents about lost time, of made-up accounts: the title is the answer, the root cause does not
 * repeat it, advice and place fit the evidence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/sentences/delay_subject.h"
#include "diagnose/sentences/delay_text.h"
#include "diagnose/findings/detector.h"
#include "steps_fixture.h"

#define WAIT_HASH 7

/* Where the steps run: below the module of train.py. */
static const struct stack_frame wait_frames[] = {
	{.py_file = "/usr/lib/python3.11/threading.py", .py_func = "wait", .py_line = 355},
	{.py_file = "/home/u/train.py", .py_func = "train", .py_line = 120},
	{.py_file = "/home/u/train.py", .py_func = "<module>", .py_line = 140},
};
static struct stack wait_stack = {.hash = WAIT_HASH, .frames = wait_frames, .count = 3, .stop = ""};

struct story { /* slow steps that lost most of their time to one delay */
	enum delay_kind kind;
	struct account_entry who; /* the account's first entry */
	struct resource_use end;
	const struct gpu_change *gpu;
	double waits, share;
	bool lasts, every, no_period, mostly;
	const char *script; /* that the job runs; NULL: not known */
};

static void tell(const struct story *t, struct incident *inc)
{
	struct stack *items[] = {&wait_stack, &steps_stack};
	struct stack_list stacks = {items, 2};
	struct process_home home = {.pid = STEPS_PID, .comm = "python3"};
	struct ledger_row row = {.pid = STEPS_WORKER};
	struct recording rec = {.stacks = &stacks,
		.ledger = &row,
		.ledger_count = 1,
		.homes = &home,
		.home_count = t->script ? 1 : 0};
	struct delay_list all = {.count = 1};
	struct incident_list list = {.items = inc, .max = 1};
	struct step_account a;

	snprintf(home.script, sizeof(home.script), "%s", t->script ? t->script : "");
	steps_fill(&a);
	a.entries[0] = t->who;
	a.entries[0].slow_ns = 131 * STEPS_MS;
	a.entries[0].ordinary_ns = t->every ? 0 : 2 * STEPS_MS;
	if (t->waits > 0) {
		a.ordinary_waits = 4;
		a.slow_waits = t->waits;
	}
	if (t->mostly)
		a.slow_steps = a.steps - a.steps / 4;
	if (t->every) {
		a.lost_ns = a.slow_step_ns = 0;
		a.slow_steps = 0;
		a.ordinary_step_ns = 236 * STEPS_MS;
	}
	all.items[0] = (struct delay){.kind = t->kind,
		.ordinary_ns = t->every ? 0 : 2 * STEPS_MS,
		.slow_ns = 131 * STEPS_MS,
		.lead = &a.entries[0],
		.share = t->share > 0 ? t->share : 0.95,
		.end = t->end};
	assert_ptr_equal(incident_begin(&list, PROBLEM_STARVATION), inc);
	inc->pid = STEPS_PID;
	inc->period_steps = t->no_period || t->lasts || t->every ? 0 : a.period_steps;
	inc->since.ns = t->lasts ? a.slow_first.ns : 0;
	delay_text_write(&rec, &a, &all, &all.items[0], t->every ? NULL : t->gpu, inc);
	assert_true(inc->root_cause[0]);
	assert_null(strstr(inc->summary, inc->root_cause));
	assert_null(strstr(inc->root_cause, inc->summary));
	assert_true(inc->fix_count > 0);
	free(a.bars);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

static bool advises(const struct incident *inc, const char *part)
{
	for (int i = 0; i < inc->fix_count; i++)
		if (strstr(inc->fixes[i], part))
			return true;
	return false;
}

#define SELF(line_, ...)                                                                           \
	{                                                                                          \
		.line = line_, .pid = STEPS_PID, .comm = "python3", .stack_hash = STEPS_HASH,      \
		__VA_ARGS__                                                                        \
	}

static void each_title_is_the_answer(void **state)
{
	static const struct gpu_change clock = {
		.reason = GPU_BY_CLOCK, .slow_clock_mhz = 544, .ordinary_clock_mhz = 1905};
	static const struct gpu_change lowered = {
		.reason = GPU_BY_CLOCK, .slow_clock_mhz = 900, .ordinary_clock_mhz = 1905};
	static const struct gpu_change nothing = {.reason = GPU_BY_NOTHING};
	static const struct {
		struct story story;
		const char *title, *cause;
	} rows[] = {
		{{.kind = DELAY_BY_GPU,
			 .who = SELF(ACCOUNT_GPU),
			 .end = {.resource = RESOURCE_GPU_CLOCK},
			 .gpu = &clock,
			 .lasts = true},
			"GPU clock at 544 MHz instead of 1905: steps take 236 ms instead of 100 (train.py)",
			"clocks are locked"},
		{{.kind = DELAY_BY_GPU,
			 .who = SELF(ACCOUNT_GPU),
			 .end = {.resource = RESOURCE_GPU_HEAT},
			 .gpu = &lowered,
			 .lasts = true},
			"GPU too hot (clock at 900 MHz instead of 1905): steps take 236 ms",
			"temperature"},
		{{.kind = DELAY_BY_GPU,
			 .who = SELF(ACCOUNT_GPU),
			 .end = {.resource = RESOURCE_GPU_POWER, .detail = "300 W instead of 700"},
			 .gpu = &lowered,
			 .lasts = true},
			"GPU held back by its power limit (clock at 900 MHz instead of 1905): steps",
			"300 W instead of 700"},
		{{.kind = DELAY_BY_GPU,
			 .who = SELF(ACCOUNT_GPU),
			 .end = {.resource = RESOURCE_GPU_PROCESS, .who = "infer.py", .pid = 9},
			 .gpu = &nothing,
			 .lasts = true},
			"GPU shared with infer.py (pid 9): ", "take turns"},
		{{.kind = DELAY_BY_GPU, .who = SELF(ACCOUNT_GPU), .gpu = &nothing, .lasts = true},
			"Waiting for the GPU in collate (train.py:88): steps", "Cause unknown"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU),
			 .end = {.resource = RESOURCE_CPU_PROGRAM, .who = "xz", .count = 48},
			 .lasts = true},
			"CPU contention from 48 × xz: steps take 236 ms instead of 100 (train.py)",
			"other programs use the CPUs"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU),
			 .end = {.resource = RESOURCE_CPU_PROGRAM,
				 .who = "xz",
				 .pid = 7,
				 .who_share = 0.6,
				 .detail = "60 % of the waiting"},
			 .lasts = true},
			"CPU contention from xz (pid 7): steps", "xz (pid 7) in 60 %"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU),
			 .end = {.resource = RESOURCE_CPU_PROGRAM,
				 .who = "xz",
				 .pid = 7,
				 .who_share = 0.16,
				 .detail = "16 % of the waiting"},
			 .lasts = true},
			"CPU contention from xz (pid 7) and other programs: steps",
			"xz (pid 7) in 16 %"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU, .culprit_pid = 99, .culprit = "stress-ng"),
			 .lasts = true},
			"CPU contention from stress-ng (pid 99): steps", "other programs"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU, .culprit_pid = STEPS_PID, .culprit = "prefetch"),
			 .lasts = true},
			"CPU contention from the job's own thread prefetch in collate (train.py:88): steps",
			"More threads of the job"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU),
			 .end = {.resource = RESOURCE_CPU_QUOTA, .detail = "0.6 CPUs"},
			 .lasts = true},
			"CPU limit of its control group (0.6 CPUs): steps", "control group"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU),
			 .end = {.resource = RESOURCE_CPU_MASK, .detail = "1 of 64"},
			 .lasts = true},
			"Too few CPUs allowed (1 of 64): steps", "take turns"},
		{{.kind = DELAY_BY_HOST, .who = SELF(ACCOUNT_HOST)},
			"Host code in collate (train.py:88): every 16th step takes 236 ms instead of 100",
			"The GPU waits"},
		{{.kind = DELAY_BY_HOST,
			 .who = SELF(ACCOUNT_HOST),
			 .no_period = true,
			 .share = 0.5},
			"Host code in collate (train.py:88): 31 of 512 steps take 236 ms instead of 100 (+129 ms from this)",
			"The GPU waits"},
		{{.kind = DELAY_BY_HOST, .who = SELF(ACCOUNT_HOST), .every = true},
			"Host code in collate (train.py:88): 131 of 236 ms of every step (56 %)",
			"The GPU waits"},
		{{.kind = DELAY_BY_COMPILE,
			 .who = SELF(ACCOUNT_HOST),
			 .end = {.resource = RESOURCE_COMPILER, .who = "nvrtc"}},
			"Compiling with nvrtc in collate (train.py:88): every 16th step",
			"new shape"},
		{{.kind = DELAY_BY_GPU,
			 .who = SELF(ACCOUNT_GPU),
			 .end = {.resource = RESOURCE_PRECISION,
				 .who = "fp32",
				 .detail = "96 % of them"},
			 .every = true},
			"GPU matrix products in fp32 in collate (train.py:88): 131 of 236 ms of every step",
			"narrower types: 96 % of them are in fp32"},
		{{.kind = DELAY_BY_CPU,
			 .who = SELF(ACCOUNT_CPU, .culprit_pid = 99, .culprit = "stress-ng"),
			 .end = {.resource = RESOURCE_CPU_MASK, .detail = "1 CPU"}},
			"Too few CPUs allowed (1 CPU), shared with stress-ng (pid 99): every",
			"take turns"},
		{{.kind = DELAY_BY_COPY,
			 .who = SELF(ACCOUNT_COPY),
			 .end = {.resource = RESOURCE_DISK_READ,
				 .who = "train.py",
				 .pid = STEPS_PID}},
			"Copies from a file on disk in collate (train.py:88): every",
			"read from disk"},
		{{.kind = DELAY_BY_CHECKPOINT, .who = SELF(ACCOUNT_DISK)},
			"Saving a checkpoint in collate (train.py:88): every", "Training stops"},
		{{.kind = DELAY_BY_DISK,
			 .who = SELF(ACCOUNT_DISK),
			 .end = {.resource = RESOURCE_DISK_WRITE,
				 .who = "dd",
				 .pid = 5,
				 .detail = "nvme0n1 writes 1.2 GB/s"}},
			"Disk busy with writes by dd (pid 5): every", "nvme0n1 writes 1.2 GB/s"},
		{{.kind = DELAY_BY_MEMORY,
			 .who = SELF(ACCOUNT_MEMORY),
			 .end = {.resource = RESOURCE_MEMORY_LIMIT, .detail = "8 GiB"}},
			"Memory limit of the container (8 GiB): every", "frees memory"},
		{{.kind = DELAY_BY_NETWORK,
			 .who = SELF(ACCOUNT_NETWORK),
			 .end = {.resource = RESOURCE_ADDRESS, .who = "10.0.0.7:443"}},
			"Waiting for 10.0.0.7:443 over the network in collate", "answer"},
		{{.kind = DELAY_BY_GIL,
			 .who = SELF(ACCOUNT_GIL, .culprit_pid = STEPS_PID, .culprit = "spinner")},
			"Python's interpreter lock (GIL) held by thread spinner in collate (train.py:88): every",
			"One thread at a time"},
		{{.kind = DELAY_BY_LOCK,
			 .who = SELF(ACCOUNT_LOCK, .culprit_pid = STEPS_PID, .culprit = "logger")},
			"Lock held by thread logger in collate (train.py:88): every",
			"waits for the lock"},
		{{.kind = DELAY_BY_GC, .who = SELF(ACCOUNT_GC)},
			"Python garbage collection in collate", "live objects"},
		{{.kind = DELAY_BY_COPY, .who = SELF(ACCOUNT_COPY), .every = true},
			"Copies to and from the GPU in collate (train.py:88): 131 of 236 ms of every step",
			"pinned"},
		{{.kind = DELAY_BY_SYNC, .who = SELF(ACCOUNT_GPU), .waits = 40, .lasts = true},
			"GPU synchronisation in the middle of the step in collate (train.py:88): steps",
			"40 times per step instead of 4"},
		{{.kind = DELAY_BY_LAUNCH, .who = SELF(ACCOUNT_LAUNCH), .every = true},
			"Launching kernels in collate", "kernels (640 per step) more slowly"},
		{{.kind = DELAY_BY_ALLOCATION, .who = SELF(ACCOUNT_ALLOCATION)},
			"Allocating GPU memory in collate", "allocated again"},
		{{.kind = DELAY_BY_STOPPED,
			 .who = SELF(ACCOUNT_STOPPED, .culprit_pid = 3, .culprit = "slurmstepd")},
			"Process stopped by slurmstepd (pid 3): every", "SIGSTOP"},
		{{.kind = DELAY_BY_ASLEEP, .who = SELF(ACCOUNT_ASLEEP)}, "Sleeping in collate",
			"nothing that is recorded wakes it"},
		{{.kind = DELAY_BY_UNKNOWN, .who = SELF(ACCOUNT_UNKNOWN), .lasts = true},
			"Cause unknown: steps take 236 ms instead of 100 (train.py)",
			"3 rows of the ledger were lost"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct incident inc = {0};

		tell(&rows[i].story, &inc);
		if (strncmp(inc.summary, rows[i].title, strlen(rows[i].title)) != 0)
			fail_msg("wanted: %s\n   got: %s", rows[i].title, inc.summary);
		assert_has(inc.root_cause, rows[i].cause);
	}
}

/* Where the one that is named has a small part, stopping it is not the first thing to do; of a program that is called as
 * the job is, it is said which process is the job. */
static void advice_names_whom_to_stop(void **state)
{
	struct story t = {.kind = DELAY_BY_CPU,
		.who = SELF(ACCOUNT_CPU),
		.end = {.resource = RESOURCE_CPU_PROGRAM, .who = "xz", .pid = 7, .who_share = 0.6},
		.lasts = true};
	struct incident inc = {0};

	tell(&t, &inc);
	assert_has(inc.fixes[0], "Stop xz, lower its priority (`renice 19 -p 7`)");
	t.end.who_share = 0.16;
	tell(&t, &inc);
	assert_has(inc.fixes[0], "Reserve CPUs");
	assert_has(inc.fixes[1], "Stop xz, ");
	assert_int_equal(inc.fix_count, 2);
	t.end = (struct resource_use){
		.resource = RESOURCE_CPU_PROGRAM, .who = "python3", .count = 34, .who_share = 1};
	t.script = "train.py";
	tell(&t, &inc);
	assert_has(inc.fixes[0], "Stop python3 (not the job, PID 4821), lower");
}

/* Which call allocates, and how often; pinned memory has its own name and advice. */
static void allocations_by_call(void **state)
{
	struct aggregate g = {.bucket.ns = STEPS_T0_NS, .pid = STEPS_PID, .source = SOURCE_CUDA};
	struct recording rec = {.aggregates = &g, .aggregate_count = 1, .ledger_count = 1};
	struct incident inc[2] = {0};

	for (int i = 0; i < 2; i++) {
		struct incident_list list = {.items = &inc[i], .max = 1};
		struct delay_list all = {.count = 1};
		struct step_account a;

		steps_fill(&a);
		g.bucket = a.first;
		g.op = i ? CUDA_HOST_ALLOC : CUDA_FREE;
		g.sketch.count = 60 * a.steps;
		g.sketch.sum = 1000 * STEPS_MS;
		all.items[0] = (struct delay){.kind = DELAY_BY_ALLOCATION,
			.slow_ns = 131 * STEPS_MS,
			.lead = &a.entries[0],
			.share = 0.95};
		assert_ptr_equal(incident_begin(&list, PROBLEM_GPU_MEMORY), &inc[i]);
		delay_text_write(&rec, &a, &all, &all.items[0], NULL, &inc[i]);
		free(a.bars);
	}
	assert_has(inc[0].summary, "Allocating GPU memory");
	assert_has(inc[0].root_cause, "cudaFree about 60 times per step; no pool keeps it");
	assert_has(inc[1].summary, "Allocating pinned host memory");
	assert_has(inc[1].fixes[0], "pinned buffers once");
}

static const struct account_entry worker = {.line = ACCOUNT_HOST,
	.owner = OWNER_LOADER,
	.pid = STEPS_WORKER,
	.comm = "pt_data_worker",
	.stack_hash = STEPS_HASH,
	.wait_hash = WAIT_HASH};

static void the_data_loader(void **state)
{
	struct incident inc = {0};

	tell(&(struct story){.kind = DELAY_BY_LOADER, .who = worker}, &inc);
	assert_has(inc.summary,
		"Slow data loader in collate (train.py:88): every 16th step takes 236 ms");
	assert_string_equal(inc.place, "train.py:88 (collate)");
	assert_true(advises(&inc, "num_workers"));
	assert_has(inc.explanation, "Step boundary: optimizer.step (95 %).");
}

/* A rhythm is that of the few. */
static void most_steps_are_slow(void **state)
{
	struct incident inc = {0};

	tell(&(struct story){.kind = DELAY_BY_LOADER, .who = worker, .mostly = true}, &inc);
	assert_has(inc.summary, ": 384 of 512 steps take 236 ms instead of 100");
}

/* Nothing that makes it faster helps a worker that does not run. */
static void a_worker_that_is_stopped(void **state)
{
	struct incident inc = {0};
	struct account_entry stopped = worker;

	stopped.line = ACCOUNT_STOPPED;
	tell(&(struct story){.kind = DELAY_BY_LOADER, .who = stopped}, &inc);
	assert_has(inc.summary, "Data loader worker stopped: pt_data_worker: every");
	assert_false(advises(&inc, "num_workers"));
	assert_false(advises(&inc, "workers"));
}

/* Who stopped it is not who is to be resumed. */
static void a_rank_that_somebody_stops(void **state)
{
	struct incident inc = {0};

	tell(&(struct story){.kind = DELAY_BY_STOPPED,
		     .who = SELF(ACCOUNT_STOPPED, .culprit_pid = 3, .culprit = "slurmstepd")},
		&inc);
	assert_true(advises(&inc, "Keep slurmstepd (pid 3) from stopping it"));
	assert_false(advises(&inc, "kill -CONT"));
}

/* Time of another process is known by where the steps wait for it. */
static void another_process(void **state)
{
	struct incident inc = {0};

	tell(&(struct story){.kind = DELAY_BY_PROCESS,
		     .who = {.line = ACCOUNT_HOST,
			     .owner = OWNER_PROCESS,
			     .pid = 77,
			     .comm = "nvidia-smi",
			     .wait_hash = WAIT_HASH}},
		&inc);
	assert_has(inc.summary,
		"Waiting for nvidia-smi (pid 77) in train (train.py:120): every 16th step");
	assert_string_equal(inc.place, "train.py:120 (train)");
	assert_int_equal(inc.stacks[0].hash, WAIT_HASH);
}

/* Who holds a lock, does not read or stops another is named, with what can be done about it. */
static void what_another_process_does(void **state)
{
	static const struct {
		struct resource_use end;
		const char *title, *why, *fix;
	} rows[] = {
		{{.resource = RESOURCE_FILE_LOCK, .who = "compactor", .pid = 77},
			"File lock held by compactor (pid 77) in train (train.py:120): every",
			"wait in flock() or fcntl()", "Let compactor hold the lock for less time"},
		{{.resource = RESOURCE_PIPE_FULL, .who = "shipper", .pid = 77},
			"Pipe or socket to shipper (pid 77) is full in train (train.py:120): every",
			"wait in write()", "Let shipper read faster"},
		{{.resource = RESOURCE_STOPPER,
			 .who = "housekeeperd",
			 .pid = 78,
			 .on = "reader",
			 .on_pid = 77},
			"Waiting for reader (pid 77), stopped by housekeeperd (pid 78), in train (train.py:120): every",
			"SIGSTOP", "Keep housekeeperd (pid 78) from stopping it"},
		{{.resource = RESOURCE_PROCESS, .who = "python3", .pid = 77},
			"Waiting for another process of python3 (pid 77) in train",
			"wait for that process", "Call that process ahead"},
		{{.resource = RESOURCE_PROCESS, .who = "python3", .count = 2},
			"Waiting for 2 other processes of python3 in train",
			"wait for that process", "Call that process ahead"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct incident inc = {0};

		tell(&(struct story){.kind = DELAY_BY_PROCESS,
			     .who = {.line = ACCOUNT_HOST,
				     .owner = OWNER_PROCESS,
				     .pid = 77,
				     .comm = "python3",
				     .wait_hash = WAIT_HASH},
			     .end = rows[i].end},
			&inc);
		assert_has(inc.summary, rows[i].title);
		assert_has(inc.root_cause, rows[i].why);
		if (!advises(&inc, rows[i].fix))
			fail_msg("wanted: %s\n   got: %s", rows[i].fix, inc.fixes[0]);
		if (rows[i].end.resource != RESOURCE_PROCESS)
			assert_false(advises(&inc, "answer"));
	}
}

/* Two item() for every parameter cost more calls than waiting: the advice is the same. */
static void many_waits_that_are_short(void **state)
{
	struct incident many = {0}, few = {0};

	tell(&(struct story){.kind = DELAY_BY_HOST, .who = SELF(ACCOUNT_HOST), .waits = 245},
		&many);
	assert_has(many.root_cause, "waits for the GPU 245 times per step instead of 4");
	assert_true(advises(&many, ".item()"));
	tell(&(struct story){.kind = DELAY_BY_HOST, .who = SELF(ACCOUNT_HOST), .waits = 6}, &few);
	assert_false(advises(&few, ".item()"));
}

/* Nobody is told to stop the job's own worker, or the tracer to be stopped as a neighbour. */
static void whose_the_cpu_is(void **state)
{
	static const struct resource_use programs[] = {
		{.resource = RESOURCE_CPU_PROGRAM, .who = "xz", .count = 2},
		{.resource = RESOURCE_CPU_PROGRAM, .who = "python3", .count = 2}}; /* as the job */
	struct account_entry crowded = worker;
	struct incident inc = {0};

	crowded.line = ACCOUNT_CPU;
	crowded.culprit_pid = STEPS_WORKER;
	snprintf(crowded.culprit, COMM_LEN, "pt_data_worker");
	tell(&(struct story){.kind = DELAY_BY_CPU, .who = crowded}, &inc);
	assert_has(inc.summary, "CPU contention from the job's own pt_data_worker (pid ");
	assert_false(advises(&inc, "Stop"));
	tell(&(struct story){.kind = DELAY_BY_CPU,
		     .who = SELF(ACCOUNT_CPU, .culprit_pid = 15, .culprit = "kworker/u8:5")},
		&inc);
	assert_has(inc.summary, "CPU contention from kernel thread kworker/u8:5: every");
	assert_false(advises(&inc, "Stop"));
	tell(&(struct story){.kind = DELAY_BY_CPU,
		     .who = SELF(ACCOUNT_CPU, .culprit_pid = 5, .culprit = "ingero")},
		&inc);
	assert_has(inc.summary, "Cost of tracing");
	assert_true(advises(&inc, "overhead-budget"));
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		tell(
			&(struct story){
				.kind = DELAY_BY_CPU, .who = SELF(ACCOUNT_CPU), .end = programs[i]},
			&inc);
		assert_int_equal(advises(&inc, "Stop xz"), !i);
		assert_int_equal(advises(&inc, "Run fewer processes of python3 at a time"), i);
	}
}

/* Neither two kinds of steps nor a period: longer and longer. */
static void a_drift(void **state)
{
	struct recording rec = {0};
	struct incident inc = {0};
	struct step_account a;
	struct delay_list all = {
		.items = {{.kind = DELAY_BY_HOST, .slow_ns = 9, .share = 1}}, .count = 1};

	steps_fill(&a);
	a.is_drift = true;
	a.drift_from_ns = 44 * STEPS_MS;
	a.drift_to_ns = 90 * STEPS_MS;
	delay_text_write(&rec, &a, &all, &all.items[0], NULL, &inc);
	assert_string_equal(inc.summary, "Host code: steps grew gradually to 90 ms from 44");
	free(a.bars);
}

/* 60 ms lead to launches, 40 ms are the program's own: that is host code, unless it is hardly any. */
static void test_launching_is_no_place_of_host_code(void **state)
{
	static const struct stack_frame driving[] = {
		{.py_file = "/x/site-packages/torch/nn/modules/linear.py", .py_func = "forward"},
		{.py_file = "/home/u/train.py", .py_func = "update", .py_line = 72}};
	static const struct stack_frame own[] = {
		{.py_file = "/home/u/replay.py", .py_func = "draw", .py_line = 36}};
	struct stack made[] = {{1, driving, 2, ""}, {2, own, 1, ""}};
	struct stack *items[] = {&made[0], &made[1]};
	struct stack_list stacks = {items, 2};
	struct recording rec = {.stacks = &stacks};
	struct step_account a = {.entry_count = 2,
		.entries = {{.line = ACCOUNT_HOST, .stack_hash = 1, .slow_ns = 60 * STEPS_MS},
			{.line = ACCOUNT_HOST, .stack_hash = 2, .slow_ns = 40 * STEPS_MS}}};
	struct delay d = {.kind = DELAY_BY_HOST, .lead = &a.entries[0]};
	struct code_place p;

	assert_true(delay_subject_place(&rec, &a, &d, NULL, &p));
	assert_string_equal(p.func, "draw");
	a.entries[1].slow_ns = 10 * STEPS_MS;
	assert_true(delay_subject_place(&rec, &a, &d, NULL, &p));
	assert_string_equal(p.func, "update");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launching_is_no_place_of_host_code),
		cmocka_unit_test(each_title_is_the_answer),
		cmocka_unit_test(advice_names_whom_to_stop),
		cmocka_unit_test(allocations_by_call),
		cmocka_unit_test(the_data_loader),
		cmocka_unit_test(most_steps_are_slow),
		cmocka_unit_test(a_worker_that_is_stopped),
		cmocka_unit_test(a_rank_that_somebody_stops),
		cmocka_unit_test(another_process),
		cmocka_unit_test(what_another_process_does),
		cmocka_unit_test(many_waits_that_are_short),
		cmocka_unit_test(whose_the_cpu_is),
		cmocka_unit_test(a_drift),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
