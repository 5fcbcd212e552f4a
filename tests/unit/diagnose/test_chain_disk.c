/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_disk.c - which device, in which direction, and who keeps it busy. */
#include "chain_fixture.h"

enum { DISK = 8 << 20 | 17, OTHER_DISK = 259 << 20 | 3 };

static void requests(struct chain_scene *s, int count, uint32_t pid, const char *comm, uint16_t op,
	uint32_t dev, uint64_t ms)
{
	for (int i = 0; i < count; i++) {
		struct event *e =
			chain_event(s, chain_at(CHAIN_SLOW + i * 50 / count), SOURCE_IO, op, pid);

		e->dur_ns = ms * NS_PER_MS;
		e->dev = dev;
		e->arg0 = 2048; /* 1 MiB */
		snprintf(e->comm, sizeof(e->comm), "%s", comm);
		snprintf(e->peer_comm, sizeof(e->peer_comm), "%s", dev == DISK ? "nvme0n1" : "");
	}
}

static void test_another_writes(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);
	const struct resource_use *u;

	requests(s, 50, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	requests(s, 200, 900, "dd", IO_WRITE, DISK, 40);
	requests(s, 400, 901, "scrub", IO_READ, OTHER_DISK, 40);
	u = chain_end(s);
	assert_int_equal(u->resource, RESOURCE_DISK_WRITE);
	assert_string_equal(u->who, "dd");
	assert_int_equal(u->pid, 900);
	assert_string_equal(u->detail, "nvme0n1, writes 42 MB/s");
	free(s);
}

/* One small request that waits long behind the flood is a victim as well. */
static void test_a_victim_is_not_named(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	requests(s, 50, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	requests(s, 100, 900, "dd", IO_WRITE, DISK, 4);
	requests(s, 1, 901, "logger", IO_WRITE, DISK, 2000);
	assert_string_equal(chain_end(s)->who, "dd");
	free(s);
}

/* A disk that is busy with another is no reason for a job that asks it for nothing, unless the kernel does in its name. */
static void test_somebody_elses_disk(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	requests(s, 100, 900, "dd", IO_WRITE, DISK, 4);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	requests(s, 100, 5, "jbd2/nvme0n1", IO_WRITE, DISK, 4);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_WRITE);
	free(s);
}

static void test_it_reads_itself(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	chain_home(s, CHAIN_JOB, "python3", "train.py");
	requests(s, 100, CHAIN_JOB, "python3", IO_READ, OTHER_DISK, 40);
	requests(s, 20, 5, "kworker/u8:1", IO_WRITE, OTHER_DISK, 10);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_READ);
	assert_string_equal(s->delay.end.who, "train.py");
	assert_string_equal(s->delay.end.detail, "device 259:3, reads 21 MB/s");
	free(s);
}

/* @count MiB in ordinary steps as well. */
static void before(struct chain_scene *s, int count, uint32_t pid, const char *comm)
{
	for (int i = 0; i < count; i++) {
		struct event *e =
			chain_event(s, chain_at(i * CHAIN_SLOW / count), SOURCE_IO, IO_READ, pid);

		e->dur_ns = NS_PER_MS;
		e->dev = DISK;
		e->arg0 = 2048;
		snprintf(e->comm, sizeof(e->comm), "%s", comm);
	}
}

/* The job reads as much as ever, and most of all; what came is another who writes and reads. */
static void test_who_came(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	before(s, 200, CHAIN_JOB, "python3");
	requests(s, 200, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	requests(s, 100, 900, "hog", IO_WRITE, DISK, 40);
	requests(s, 50, 900, "hog", IO_READ, DISK, 40);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_WRITE);
	assert_string_equal(s->delay.end.who, "hog");
	assert_int_equal(s->delay.end.pid, 900);
	free(s);
}

/* The other one has always been there: the job itself reads more. */
static void test_it_reads_more(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	before(s, 150, 900, "scrub");
	before(s, 20, CHAIN_JOB, "python3");
	requests(s, 150, 900, "scrub", IO_READ, DISK, 40);
	requests(s, 100, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_READ);
	assert_string_equal(s->delay.end.who, "python3");
	assert_int_equal(s->delay.end.pid, CHAIN_JOB);
	free(s);
}

/* Of ordinary steps no row was kept: who does most is named, in the direction of that one. */
static void test_who_does_most(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	requests(s, 120, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	requests(s, 100, 900, "hog", IO_WRITE, DISK, 40);
	requests(s, 50, 900, "hog", IO_READ, DISK, 40);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_WRITE);
	assert_string_equal(s->delay.end.who, "hog");
	requests(s, 40, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_READ);
	assert_string_equal(s->delay.end.who, "python3");
	free(s);
}

/* Nobody does more: it is as it always was. */
static void test_all_as_before(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	before(s, 200, 900, "scrub");
	before(s, 60, CHAIN_JOB, "python3");
	requests(s, 200, 900, "scrub", IO_READ, DISK, 40);
	requests(s, 60, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	assert_string_equal(chain_end(s)->who, "scrub");
	free(s);
}

/* A little more is as before: who writes a line to a log is not whom the steps wait for. */
static void test_a_little_more_is_as_before(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	before(s, 200, 900, "scrub");
	before(s, 60, CHAIN_JOB, "python3");
	requests(s, 200, 900, "scrub", IO_READ, DISK, 40);
	requests(s, 60, CHAIN_JOB, "python3", IO_READ, DISK, 5);
	requests(s, 2, 901, "journald", IO_WRITE, DISK, 1);
	assert_string_equal(chain_end(s)->who, "scrub");
	free(s);
}

/* What the kernel writes back has no program's name. */
static void test_the_kernel_is_nobody(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	requests(s, 100, 5, "kworker/u8:1", IO_WRITE, DISK, 40);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_WRITE);
	assert_string_equal(s->delay.end.who, "");
	s->delay.kind = DELAY_BY_CHECKPOINT;
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_WRITE);
	assert_string_equal(s->delay.end.who, "python3");
	assert_int_equal(s->delay.end.pid, CHAIN_JOB);
	free(s);
}

/* A checkpoint that is only read from the disk beside went to the page cache. */
static void test_the_page_cache(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CHECKPOINT, true);

	requests(s, 10, CHAIN_JOB, "python3", IO_READ, DISK, 1);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

static void test_nothing_is_known(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* A loader's worker that waits for the disk leads there, too. */
static void test_of_a_loader(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_LOADER, true);

	chain_entry(s, ACCOUNT_DISK, OWNER_LOADER)->pid = 300;
	requests(s, 100, 300, "pt_data_worker", IO_READ, DISK, 40);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_READ);
	assert_string_equal(s->delay.end.who, "pt_data_worker");
	free(s);
}

/* What is the job's own is the same here as it is of CPUs: what it has forked, unless that runs another program since. */
static void test_what_it_has_forked_is_its_own(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	chain_event(s, CHAIN_T0, SOURCE_HOST, HOST_PROCESS_FORK, CHAIN_JOB)->peer_pid = 2000;
	chain_event(s, CHAIN_T0 + 1, SOURCE_HOST, HOST_PROCESS_EXIT, 2000);
	requests(s, 100, 2000, "reader", IO_READ, DISK, 40);
	assert_int_equal(chain_end(s)->resource, RESOURCE_DISK_READ);
	assert_string_equal(s->delay.end.who, "reader");
	s->events[1].op = HOST_PROCESS_EXEC;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE); /* somebody else's */
	free(s);
}

/* Another program that is waited for is no part of the job because it reads. */
static void test_who_is_waited_for_is_another(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);

	*chain_entry(s, ACCOUNT_DISK, OWNER_PROCESS) = (struct account_entry){
		.line = ACCOUNT_DISK, .owner = OWNER_PROCESS, .pid = 900, .slow_ns = NS_PER_S};
	requests(s, 100, 900, "postgres", IO_READ, DISK, 40);
	assert_int_not_equal(chain_end(s)->resource, RESOURCE_DISK_READ);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_writes),
		cmocka_unit_test(test_a_victim_is_not_named),
		cmocka_unit_test(test_somebody_elses_disk),
		cmocka_unit_test(test_it_reads_itself),
		cmocka_unit_test(test_who_came),
		cmocka_unit_test(test_it_reads_more),
		cmocka_unit_test(test_who_does_most),
		cmocka_unit_test(test_all_as_before),
		cmocka_unit_test(test_a_little_more_is_as_before),
		cmocka_unit_test(test_the_kernel_is_nobody),
		cmocka_unit_test(test_the_page_cache),
		cmocka_unit_test(test_nothing_is_known),
		cmocka_unit_test(test_of_a_loader),
		cmocka_unit_test(test_what_it_has_forked_is_its_own),
		cmocka_unit_test(test_who_is_waited_for_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
