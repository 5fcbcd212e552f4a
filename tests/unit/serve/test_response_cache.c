/* SPDX-License-Identifier: Apache-2.0 */
/* An answer is kept for the next who asks the same; who comes while it is being made waits for it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "serve/serve_private.h"
#include "store_fixture.h"

static void test_the_same_question_again(void **state)
{
	struct scratch *s = *state;
	_cleanup_(response_cache_freep) struct response_cache *k = NULL;
	_cleanup_buf_ struct buf made = BUF_INIT(100), out = BUF_INIT(100);
	struct response_cache_slot *slot = NULL;
	uint64_t age = UINT64_MAX;

	scratch_write(s->path, "x", 1);
	assert_int_equal(response_cache_new(&k), 0);
	assert_false(response_cache_begin(k, s->path, "a", &out, &age, &slot));
	assert_non_null(slot);
	buf_puts(&made, "answer");
	response_cache_end(k, slot, &made);
	assert_true(response_cache_begin(k, s->path, "a", &out, &age, &slot));
	assert_string_equal(buf_str(&out), "answer");
	assert_true(age < 60 * NS_PER_S);
	assert_false(response_cache_begin(k, s->path, "b", &out, &age, &slot));
	response_cache_end(k, slot, NULL); /* it failed: the next tries again */
	assert_false(response_cache_begin(k, s->path, "b", &out, &age, &slot));
	response_cache_end(k, slot, NULL);
	assert_string_equal(buf_str(&out), "answer");
}

static void test_more_questions_than_slots(void **state)
{
	struct scratch *s = *state;
	_cleanup_(response_cache_freep) struct response_cache *k = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT(100);
	struct response_cache_slot *slots[RESPONSE_CACHE_SLOTS + 1];
	uint64_t age;
	char key[16], longest[1000];

	assert_int_equal(response_cache_new(&k), 0);
	for (int i = 0; i <= RESPONSE_CACHE_SLOTS; i++) {
		snprintf(key, sizeof(key), "q%d", i);
		assert_false(response_cache_begin(k, s->path, key, &out, &age, &slots[i]));
	}
	assert_null(slots[RESPONSE_CACHE_SLOTS]); /* all are being made: this one is not kept */
	for (int i = 0; i <= RESPONSE_CACHE_SLOTS; i++)
		response_cache_end(k, slots[i], &out);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_false(response_cache_begin(k, s->path, longest, &out, &age, &slots[0]));
	assert_null(slots[0]);
}

struct other {
	struct response_cache *response_cache;
	const char *path;
	atomic_int tid;
	atomic_bool is_answered;
	bool hit;
	char text[32];
};

/* other_waits - until its thread waits for a condition: it is in the system call for that. */
static void other_waits(const struct other *o)
{
	uint64_t deadline_ns = mono_now().ns + 10 * NS_PER_S;
	char path[64], call[16] = "";

	while (mono_now().ns < deadline_ns) {
		_cleanup_fd_ int fd = -1;

		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)o->tid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (o->tid && fd >= 0 && read(fd, call, sizeof(call) - 1) > 0 &&
			strtol(call, NULL, 10) == SYS_futex)
			return;
		sched_yield();
	}
	fail_msg("a thread that asks for what another makes does not wait");
}

static void *ask(void *arg)
{
	struct other *o = arg;
	_cleanup_buf_ struct buf out = BUF_INIT(100);
	struct response_cache_slot *slot;
	uint64_t age;

	o->tid = gettid();
	o->hit = response_cache_begin(o->response_cache, o->path, "a", &out, &age, &slot);
	snprintf(o->text, sizeof(o->text), "%s", buf_str(&out));
	o->is_answered = true;
	return NULL;
}

static void test_others_wait_for_the_first(void **state)
{
	struct scratch *s = *state;
	_cleanup_(response_cache_freep) struct response_cache *k = NULL;
	_cleanup_buf_ struct buf made = BUF_INIT(100), out = BUF_INIT(100);
	struct other others[3];
	struct response_cache_slot *slot;
	pthread_t threads[3];
	uint64_t age;

	assert_int_equal(response_cache_new(&k), 0);
	assert_false(response_cache_begin(k, s->path, "a", &out, &age, &slot));
	for (int i = 0; i < 3; i++) {
		others[i] = (struct other){.response_cache = k, .path = s->path};
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &others[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		other_waits(&others[i]);
		assert_false(others[i].is_answered);
	}
	buf_puts(&made, "first");
	response_cache_end(k, slot, &made);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_true(others[i].hit);
		assert_string_equal(others[i].text, "first");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_same_question_again),
		TEST(test_more_questions_than_slots),
		TEST(test_others_wait_for_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
