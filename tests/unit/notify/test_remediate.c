/* SPDX-License-Identifier: Apache-2.0 */
/* test_remediate.c - from what a tracer sees to the lines that a reader of the stream gets. */
#include "store_fixture.h"

#include <sys/socket.h>

#include "notify/remediate/remediate.h"
#include "base/socket_path.h"
#include "wire/ids.h"

#define MS ((int64_t)NS_PER_MS)

static char path[SOCKET_PATH_MAX];
static int outliers;

static void count_outlier(void *arg, const struct stream_message *m)
{
	outliers += m->type == STREAM_INFERENCE_OUTLIER;
}

static struct remediate *open_with(struct scratch *s, bool inference, int *ret_reader)
{
	const struct remediate_settings settings = {.path = path,
		.group = SOCKET_NO_GROUP,
		.node = "n1",
		.cluster = "",
		.inference = inference,
		.steps = {.warmup = 5, .ratio = 4},
		.kv_top = 1,
		.allocs_max = BALANCE_ALLOCS,
		.outlier = count_outlier};
	struct remediate *r = NULL;

	outliers = 0;
	snprintf(path, sizeof(path), "%s/d/t.sock", s->folder);
	assert_int_equal(remediate_open(&settings, &r, NULL), 0);
	assert_int_equal(socket_path_connect(path, SOCK_NONBLOCK, ret_reader, NULL), 0);
	remediate_poll(r);
	return r;
}

/* What can be read now. */
static const char *heard(int fd)
{
	static char text[1 << 16];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static void allocate(struct remediate *r, uint64_t bytes, uint64_t pointer, int64_t at_ns)
{
	const struct event e = {.source = SOURCE_CUDA,
		.op = CUDA_MALLOC,
		.pid = 7,
		.arg0 = bytes,
		.arg1 = pointer,
		.start = {at_ns}};

	remediate_event(r, &e);
}

static void wait_ends(struct remediate *r, int64_t at_ns)
{
	const struct event e = {.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.pid = 7,
		.arg0 = 1,
		.start = {at_ns}};

	remediate_event(r, &e);
}

static void test_memory_is_told_when_it_changed(void **state)
{
	struct gpu_sample gpu;
	int reader;
	struct remediate *r = open_with(*state, false, &reader);

	gpu_sample_init(&gpu);
	gpu.index = 0;
	gpu.mem_total_bytes = 1000;
	remediate_gpu(r, &gpu);
	remediate_second(r, (wall_time){1});
	assert_string_equal(heard(reader), "");
	allocate(r, 250, 0x1000, 1);
	remediate_second(r, (wall_time){2});
	assert_non_null(strstr(heard(reader), "\"utilization_pct\":25"));
	remediate_second(r, (wall_time){3});
	assert_string_equal(heard(reader), "");
	remediate_close(r);
	assert_int_equal(access(path, F_OK), -1);
	close(reader);
}

static void test_a_process_that_is_kept_from_its_cpu(void **state)
{
	const struct event e = {.source = SOURCE_HOST,
		.op = HOST_SCHED_SWITCH,
		.pid = 7,
		.wait_ns = 1,
		.peer_pid = 99};
	int reader;
	struct remediate *r = open_with(*state, false, &reader);
	uint64_t launches = 0;

	for (int i = 0; i < 6; i++) {
		remediate_launches(r, 7, "train", launches += 100);
		remediate_second(r, (wall_time){i});
	}
	assert_string_equal(heard(reader), "");
	remediate_launches(r, 7, "train", launches += 10);
	for (int i = 0; i < 5; i++)
		remediate_event(r, &e);
	remediate_second(r, (wall_time){7});
	assert_non_null(strstr(heard(reader), "\"preempting_pids\":[99]"));
	remediate_close(r);
	close(reader);
}

static void test_a_long_step_with_its_oldest_allocation(void **state)
{
	const char *text;
	int reader;
	struct remediate *r = open_with(*state, true, &reader);

	allocate(r, 64, 0x1000, 0);
	for (int i = 1; i <= 20; i++)
		wait_ends(r, i * 10 * MS);
	assert_int_equal(outliers, 0);
	wait_ends(r, 300 * MS);
	assert_int_equal(outliers, 1);
	text = heard(reader);
	assert_non_null(strstr(text, "\"bucket\":\"4x\""));
	assert_non_null(strstr(text, "\"step_duration_ns\":100000000"));
	assert_non_null(strstr(text, "\"kv_cache_top_alloc_ages_ms\":[300]"));
	remediate_incident(r, 7, (wall_time){300 * MS});
	wait_ends(r, 400 * MS); /* something else explains it */
	assert_int_equal(outliers, 1);
	remediate_close(r);
	close(reader);
}

static void test_without_inference_no_step_is_followed(void **state)
{
	int reader;
	struct remediate *r = open_with(*state, false, &reader);

	for (int i = 1; i <= 20; i++)
		wait_ends(r, i * 10 * MS);
	wait_ends(r, 3000 * MS);
	assert_int_equal(outliers, 0);
	assert_int_equal(remediate_steps(r)->steps, 0);
	assert_int_equal(remediate_stats(r).messages, 0);
	remediate_close(r);
	close(reader);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_memory_is_told_when_it_changed),
		TEST(test_a_process_that_is_kept_from_its_cpu),
		TEST(test_a_long_step_with_its_oldest_allocation),
		TEST(test_without_inference_no_step_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
