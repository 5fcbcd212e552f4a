/* SPDX-License-Identifier: Apache-2.0 */
/* test_scrape.c - scrapes over a socket: one reading for all who ask within a second, none when
 * there is none, and who may ask from where. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "prometheus/prometheus.h"
#include "notify/telemetry/telemetry.h"
#include "net/client/client.h"

static const struct metric_desc hits = {.otlp = "hits",
	.prometheus = "hits_total",
	.unit = "1",
	.kind = METRIC_COUNTER,
	.help = "hits"};

struct scene {
	struct loop *loop;
	struct scrape *scrape;
	struct http_client *client;
	struct http_endpoint endpoint;
	int wanted;  /* readings asked for */
	int to_give; /* are given; then no more */
	int replies, expected;
	int status;
	char body[1024], type[64];
};

static void on_want(void *arg)
{
	struct scene *s = arg;
	struct metric_set *set;

	s->wanted++;
	if (s->to_give-- <= 0)
		return;
	set = metric_set_new((wall_time){1});
	metric_put_int(set, &hits, (wall_time){1}, s->wanted, NULL);
	scrape_give(s->scrape, set);
	metric_set_free(set);
}

static void on_reply(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct scene *s = arg;
	const char *type = err ? NULL : http_head_get(&r->head, "content-type");

	if (err)
		print_message("%s\n", e->text);
	s->status = err ? err : r->status;
	snprintf(s->body, sizeof(s->body), "%.*s", err ? 0 : (int)r->body_len, err ? "" : r->body);
	snprintf(s->type, sizeof(s->type), "%s", type ? type : "");
	if (++s->replies == s->expected)
		loop_stop(s->loop);
}

static void scene_open(struct scene *s, struct scrape_settings settings, const char *bearer)
{
	struct http_client_settings client = {.bearer = bearer};
	struct errinfo e = {0};

	settings.want = on_want;
	settings.arg = s;
	assert_int_equal(loop_new(&s->loop), 0);
	if (scrape_new(s->loop, &settings, &s->scrape, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(http_client_new(s->loop, &client, &s->client, &e), 0);
	assert_int_equal(
		http_endpoint_parse(scrape_address(s->scrape), false, 0, &s->endpoint, &e), 0);
}

static void scene_close(struct scene *s)
{
	http_client_free(s->client);
	scrape_free(s->scrape);
	loop_free(s->loop);
}

static void ask(struct scene *s, const char *path, int times)
{
	s->replies = 0;
	s->expected = times;
	for (int i = 0; i < times; i++) {
		struct http_ask a = {.endpoint = &s->endpoint,
			.method = "GET",
			.path = path,
			.timeout_ns = 20 * NS_PER_S,
			.body_max = 1 << 16,
			.alone = true};

		assert_int_equal(http_ask(s->client, &a, on_reply, s, NULL), 0);
	}
	assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(s->replies, times);
}

static void test_one_reading_for_all(void **state)
{
	struct scene s = {.to_give = 100};

	scene_open(&s, (struct scrape_settings){.address = "127.0.0.1:0"}, NULL);
	ask(&s, "/metrics", 1);
	assert_int_equal(s.status, 200);
	assert_string_equal(s.type, PROMETHEUS_TYPE);
	assert_string_equal(
		s.body, "# HELP hits_total hits\n# TYPE hits_total counter\nhits_total 1\n");
	ask(&s, "/metrics", 20);
	assert_string_equal(
		s.body, "# HELP hits_total hits\n# TYPE hits_total counter\nhits_total 1\n");
	assert_int_equal(s.wanted, 1); /* it is fresh */
	assert_int_equal(scrape_count(s.scrape), 21);
	ask(&s, "/", 1);
	assert_int_equal(s.status, 200);
	ask(&s, "/elsewhere", 1);
	assert_int_equal(s.status, 404);
	scene_close(&s);
}

/* Those beyond the ceiling are told at once, the others when nobody has given a reading. */
static void test_no_reading(void **state)
{
	struct scene s = {0};

	scene_open(&s, (struct scrape_settings){.address = "127.0.0.1:0"}, NULL);
	ask(&s, "/metrics", 1);
	assert_int_equal(s.status, 503);
	assert_non_null(strstr(s.body, "no metrics"));
	assert_int_equal(s.wanted, 1);
	assert_int_equal(scrape_count(s.scrape), 0);
	scene_close(&s);
}

/* kubelet has no token; what it is told is whether the tracing thread gives readings. */
static void test_health(void **state)
{
	static const char *const paths[] = {"/livez", "/readyz"};
	char token[] = "/tmp/ingero-token-XXXXXX";
	_cleanup_fd_ int fd = mkstemp(token);
	struct scrape_settings settings = {.address = "127.0.0.1:0", .token_file = token};

	assert_int_equal(write(fd, "0123456789abcdef\n", 17), 17);
	assert_int_equal(fchmod(fd, 0600), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct scene well = {.to_give = 1}, hung = {0};

		scene_open(&well, settings, NULL);
		ask(&well, paths[i], 3);
		assert_int_equal(well.status, 200);
		assert_string_equal(well.body, "ok\n");
		assert_int_equal(scrape_count(well.scrape), 0); /* no metrics were given away */
		scene_close(&well);
		scene_open(&hung, settings, NULL);
		ask(&hung, paths[i], 1);
		assert_int_equal(hung.status, 503);
		assert_non_null(strstr(hung.body, "does not answer"));
		scene_close(&hung);
	}
	unlink(token);
}

static void test_addresses(void **state)
{
	static const struct {
		struct scrape_settings s;
		int err;
	} cases[] = {
		{{.address = "0"}, 0},
		{{.address = "localhost:0"}, 0},
		{{.address = ":0"}, -EPERM},
		{{.address = "0.0.0.0:0"}, -EPERM},
		{{.address = ":0", .allow_remote = true}, 0},
		{{.address = "127.0.0.1:0", .token_file = "/nonexistent"}, -ENOENT},
		{{.address = "nonsense"}, -EINVAL},
		{{.address = ""}, -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(loop_freep) struct loop *l = NULL;
		struct scrape *s = NULL;
		struct errinfo e = {0};
		int r;

		assert_int_equal(loop_new(&l), 0);
		r = scrape_new(l, &cases[i].s, &s, &e);
		if (r != cases[i].err)
			fail_msg("%s: %d %s", cases[i].s.address, r, e.text);
		assert_true(r == 0 || e.text[0]);
		if (r == -EPERM)
			assert_non_null(strstr(e.text, "--prometheus-allow-remote"));
		if (s)
			scrape_free(s);
	}
}

static void test_a_token(void **state)
{
	char path[] = "/tmp/ingero-token-XXXXXX";
	_cleanup_fd_ int fd = mkstemp(path);
	struct scene with = {.to_give = 1}, without = {.to_give = 1};

	assert_int_equal(write(fd, "0123456789abcdef\n", 17), 17);
	assert_int_equal(fchmod(fd, 0600), 0);
	scene_open(&without, (struct scrape_settings){.address = "127.0.0.1:0", .token_file = path},
		NULL);
	ask(&without, "/metrics", 1);
	assert_int_equal(without.status, 401);
	assert_int_equal(without.wanted, 0); /* not even asked for */
	scene_close(&without);
	scene_open(&with, (struct scrape_settings){.address = "127.0.0.1:0", .token_file = path},
		"0123456789abcdef");
	ask(&with, "/metrics", 1);
	assert_int_equal(with.status, 200);
	scene_close(&with);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_reading_for_all),
		cmocka_unit_test(test_no_reading),
		cmocka_unit_test(test_health),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
