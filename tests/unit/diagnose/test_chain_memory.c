/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_memory.c - waiting for memory: the container's limit on whatever line it shows, the machine's shortage, or neither. */
#include "chain_fixture.h"

/* The group's readings: from the fifth second on it is at its limit, and waits @stalled_ms of each second. */
static void group(struct chain_scene *s, int64_t stalled_ms)
{
	for (int i = 0; i < 11; i++) {
		struct container_sample *x = &s->containers[s->rec.container_count++];
		int64_t since = i > 5 ? i - 5 : 0;

		container_sample_init(
			x, (wall_time){CHAIN_T0 + i * (int64_t)NS_PER_S}, CHAIN_GROUP);
		x->memory_high = since * 100;
		x->memory_max = 0;
		x->memory_bytes = INT64_C(2) << 30;
		x->memory_high_bytes = INT64_C(2) << 30;
		x->psi_memory_us = stalled_ms < 0 ? -1 : since * stalled_ms * 1000;
	}
}

static void test_memory_high(void **state)
{
	static const enum delay_kind kinds[] = {
		DELAY_BY_MEMORY, DELAY_BY_NETWORK, DELAY_BY_ASLEEP, DELAY_BY_DISK};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct chain_scene *s = chain_scene_new(kinds[i], true);
		struct process_home *h = chain_home(s, CHAIN_JOB, "python3", "train.py");

		snprintf(h->container_id, sizeof(h->container_id), "0123456789abcdef");
		group(s, 450);
		assert_int_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
		assert_string_equal(s->delay.end.detail, "memory.high of 2.0 GiB reached");
		assert_string_equal(s->delay.end.who, "container 0123456789ab");
		free(s);
	}
}

/* It reclaims now and then, but that is not what the steps wait for. */
static void test_a_limit_beside(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	group(s, 5);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
	s = chain_scene_new(DELAY_BY_NETWORK, true);
	group(s, -1); /* the kernel has no pressure of groups */
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	s->delay.kind = DELAY_BY_MEMORY;
	assert_int_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
	free(s);
}

/* Without pressure of groups a disk is waited for because of the limit if what is read had been read before. */
static void test_what_is_read_again(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_DISK, true);

	group(s, -1);
	for (int i = 0; i < 50; i++)
		chain_event(s, chain_at(CHAIN_SLOW + i), SOURCE_IO, IO_READ, CHAIN_JOB)->arg0 = 80;
	assert_int_not_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
	for (size_t i = 0; i < s->rec.container_count; i++)
		s->containers[i].memory_refaults = 20 * (int64_t)i; /* a fifth of it */
	assert_int_not_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
	for (size_t i = 0; i < s->rec.container_count; i++)
		s->containers[i].memory_refaults = 100 * (int64_t)i;
	assert_int_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
	for (int i = 0; i < 50; i++)
		s->events[i].op = IO_WRITE; /* a group that writes is at its limit, too */
	assert_int_not_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
	s->rec.event_count = 0;
	assert_int_not_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
	free(s);
}

static struct host_sample *readings(struct chain_scene *s)
{
	for (int i = 0; i < 11; i++)
		s->samples[s->rec.sample_count++] =
			(struct host_sample){.time.ns = CHAIN_T0 + i * (int64_t)NS_PER_S,
				.mem_total_mb = 1000,
				.mem_avail_mb = 600};
	return s->samples;
}

static void test_swap(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_MEMORY, true);
	struct host_sample *r = readings(s);

	for (int i = 6; i < 11; i++) {
		r[i].swap_mb = 100u * (unsigned)i;
		r[i].major_faults_per_s = 900;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_MEMORY);
	assert_string_equal(s->delay.end.detail, "swapping: 900 page faults/s read from the disk");
	free(s);
}

static void test_reclaim(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_MEMORY, true);

	readings(s);
	for (int i = 0; i < 50; i++)
		chain_event(
			s, chain_at(CHAIN_SLOW + i), SOURCE_HOST, HOST_DIRECT_RECLAIM, CHAIN_JOB)
			->dur_ns = 30 * NS_PER_MS;
	assert_int_equal(chain_end(s)->resource, RESOURCE_MEMORY);
	assert_float_equal(s->delay.end.share, 0.6, 0.01);
	free(s);
}

/* Pages that are touched for the first time are nobody's fault. */
static void test_fresh_memory(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_MEMORY, true);

	readings(s);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* Code that touches memory, while many pages are new to the process: else it only copies. */
static void test_page_faults(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, false);
	static struct aggregate pages = {
		.pid = CHAIN_JOB, .source = SOURCE_HOST, .op = HOST_PAGE_ALLOC};
	uint64_t touching = chain_stack(s, &(struct stack_frame){.symbol = "__memset_avx2"}, 1);

	for (int i = 0; i < 90; i++)
		chain_event(s, chain_at(i), SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)->stack_hash =
			touching;
	s->rec.aggregates = &pages;
	s->rec.aggregate_count = 1;
	pages.bucket.ns = CHAIN_T0 + NS_PER_S;
	pages.sketch.count = 100;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	pages.sketch.count = 2000; /* huge ones: 42 MB in each of 90 steps */
	pages.sum_arg0 = pages.sketch.count * (2 << 20);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	s->delay.slow_ns = 12 * NS_PER_MS;
	assert_int_equal(chain_end(s)->resource, RESOURCE_FRESH_MEMORY);
	assert_string_equal(s->delay.end.detail, "47 MB");
	s->delay.slow_ns = 50 * NS_PER_MS;
	pages.sketch.count = 10000000;
	pages.sum_arg0 = pages.sketch.count * 4096;
	assert_int_equal(chain_end(s)->resource, RESOURCE_FRESH_MEMORY);
	group(s, -1); /* at its limit, which takes a third of these pages from it */
	for (size_t i = 0; i < s->rec.container_count; i++)
		s->containers[i].memory_refaults = i ? 3000000 : 0;
	assert_int_equal(chain_end(s)->resource, RESOURCE_FRESH_MEMORY);
	for (size_t i = 0; i < s->rec.container_count; i++)
		s->containers[i].memory_refaults = i ? 9000000 : 0;
	assert_int_equal(chain_end(s)->resource, RESOURCE_MEMORY_LIMIT);
	assert_string_equal(s->delay.end.detail, "memory.high of 2.0 GiB reached");
	s->rec.container_count = 0;
	pages.pid++; /* another's */
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* A checkpoint by fork(): whatever the code does that writes to memory then, pages are copied under it. */
static void test_copied_pages(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, true);
	static struct aggregate pages = {
		.pid = CHAIN_JOB, .source = SOURCE_HOST, .op = HOST_PAGE_ALLOC};
	uint64_t updating = chain_stack(s,
		&(struct stack_frame){
			.py_file = "/job/train.py", .py_func = "update", .py_line = 7},
		1);
	size_t forks = s->rec.event_count;

	for (int i = 0; i < CHAIN_STEPS; i++) {
		if (i >= CHAIN_SLOW)
			chain_event(s, chain_at(i), SOURCE_HOST, HOST_PROCESS_FORK, CHAIN_JOB)
				->peer_pid = 3000 + (uint32_t)i;
		chain_event(s, chain_at(i) + 1, SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)
			->stack_hash = updating;
	}
	for (int i = 0; i < ACCOUNT_LINES; i++)
		s->account.slow_ns[i] = s->account.ordinary_ns[i] = 0;
	s->account.slow_ns[ACCOUNT_HOST] = 50 * NS_PER_MS;
	s->rec.aggregates = &pages;
	s->rec.aggregate_count = 1;
	pages.bucket.ns = CHAIN_T0 + CHAIN_SLOW * CHAIN_STEP;
	pages.sketch.count = 50 * 20000;
	pages.sum_arg0 = pages.sketch.count * 4096;
	assert_int_equal(chain_end(s)->resource, RESOURCE_COPIED_MEMORY);
	assert_string_equal(s->delay.end.detail, "82 MB");
	assert_int_equal(s->delay.end.stack_hash, updating);
	pages.sketch.count = 50 * 200; /* hardly any */
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	pages.sketch.count = 50 * 20000;
	for (size_t i = forks; i < s->rec.event_count; i++)
		if (s->events[i].op == HOST_PROCESS_FORK)
			s->events[i].flags |= WIRE_THREAD;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_high),
		cmocka_unit_test(test_a_limit_beside),
		cmocka_unit_test(test_what_is_read_again),
		cmocka_unit_test(test_swap),
		cmocka_unit_test(test_reclaim),
		cmocka_unit_test(test_fresh_memory),
		cmocka_unit_test(test_page_faults),
		cmocka_unit_test(test_copied_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
