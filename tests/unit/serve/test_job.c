/* SPDX-License-Identifier: Apache-2.0 */
/* A request on a pool's thread: replied to once, withdrawn when its time is up or its asker gone,
 * and told so while it runs. */
#include "server_fixture.h"

#include "serve/serve_private.h"

struct rig {
	struct bench bench; /* the first: handlers get it */
	struct pool *pool;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int running, saw_gone;
	int finished, results[8];
	bool may_end;
};

static struct rig rig;

struct request {
	struct job job;
};

static void note(int *what)
{
	pthread_mutex_lock(&rig.mutex);
	++*what;
	pthread_cond_broadcast(&rig.changed);
	pthread_mutex_unlock(&rig.mutex);
}

static void await(const int *what, int n)
{
	pthread_mutex_lock(&rig.mutex);
	while (*what < n)
		pthread_cond_wait(&rig.changed, &rig.mutex);
	pthread_mutex_unlock(&rig.mutex);
}

/* Until the test lets it go, or its asker goes. */
static bool run(struct job *j, bool brief _unused_)
{
	struct pollfd p = {.fd = j->gone, .events = POLLIN};

	note(&rig.running);
	pthread_mutex_lock(&rig.mutex);
	while (!rig.may_end) {
		pthread_mutex_unlock(&rig.mutex);
		if (poll(&p, 1, 1) == 1) {
			note(&rig.saw_gone);
			return true;
		}
		pthread_mutex_lock(&rig.mutex);
	}
	pthread_mutex_unlock(&rig.mutex);
	return true;
}

static void finish(struct job *j, int err)
{
	http_reply(j->x, err == 0 ? 200 : err == -EBUSY ? 503 : 408, NULL, "{}", 2);
	pthread_mutex_lock(&rig.mutex);
	rig.results[rig.finished] = err;
	pthread_mutex_unlock(&rig.mutex);
	note(&rig.finished);
	free(j);
}

static void route_job(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct request *r = calloc(1, sizeof(*r));
	uint64_t deadline = strstr(q->query, "late") ? mono_now().ns + NS_PER_MS : 0;

	r->job = (struct job){.x = x, .ends_with_asker = true, .run = run, .finish = finish};
	if (job_start(&r->job, rig.bench.loop, rig.pool, q, deadline) < 0) {
		free(r);
		http_reply_error(x, 500, "it was not taken");
	}
}

static int setup(void **state)
{
	static const struct http_route routes[] = {
		{"GET", "/job", .handler = route_job}, {.method = NULL}};

	memset(&rig, 0, sizeof(rig));
	pthread_mutex_init(&rig.mutex, NULL);
	pthread_cond_init(&rig.changed, NULL);
	assert_int_equal(
		pool_new(&(struct pool_settings){.threads = 1, .queue_max = 8}, &rig.pool), 0);
	bench_init(&rig.bench);
	rig.bench.settings.routes = routes;
	bench_start(&rig.bench);
	return 0;
}

static void let_go(void)
{
	pthread_mutex_lock(&rig.mutex);
	rig.may_end = true;
	pthread_mutex_unlock(&rig.mutex);
}

static int teardown(void **state)
{
	let_go();
	bench_stop(&rig.bench);
	pool_free(rig.pool);
	return 0;
}

static int begin(const char *query)
{
	char request[128];
	int fd = dial(&rig.bench);

	snprintf(request, sizeof(request), "GET /job?%s HTTP/1.1\r\n" HOST "\r\n", query);
	say(fd, request);
	return fd;
}

static void test_an_answer(void **state)
{
	int fd = begin("");

	await(&rig.running, 1);
	let_go();
	assert_int_equal(hear(fd)->status, 200);
	await(&rig.finished, 1);
	assert_int_equal(rig.results[0], 0);
	close(fd);
}

/* The first has the only thread. The control is the one without a deadline, which goes on waiting. */
static void test_no_turn_in_time(void **state)
{
	int first = begin(""), late, patient;

	await(&rig.running, 1);
	patient = begin("");
	late = begin("late");
	assert_int_equal(hear(late)->status, 503);
	await(&rig.finished, 1);
	assert_int_equal(rig.results[0], -EBUSY);
	let_go();
	assert_int_equal(hear(first)->status, 200);
	assert_int_equal(hear(patient)->status, 200);
	assert_int_equal(rig.running, 2); /* the late one never began */
	close(first);
	close(patient);
	close(late);
}

static void test_gone_while_it_waits(void **state)
{
	int first = begin(""), second;

	await(&rig.running, 1);
	second = begin("");
	while (pool_load(rig.pool) < 2)
		sched_yield();
	close(second);
	await(&rig.finished, 1);
	assert_int_equal(rig.results[0], -ECANCELED);
	assert_int_equal(pool_load(rig.pool), 1);
	let_go();
	assert_int_equal(hear(first)->status, 200);
	assert_int_equal(rig.running, 1);
	assert_int_equal(rig.saw_gone, 0);
	close(first);
}

static void test_gone_while_it_runs(void **state)
{
	int fd = begin("");

	await(&rig.running, 1);
	close(fd);
	await(&rig.saw_gone, 1);
	await(&rig.finished, 1);
	assert_int_equal(rig.results[0], 0); /* it ran to its end, which was early */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_answer),
		TEST(test_no_turn_in_time),
		TEST(test_gone_while_it_waits),
		TEST(test_gone_while_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
