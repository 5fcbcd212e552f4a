/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* Real servers on the same loop, one that stays silent, and a port where nobody is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include "fanout/fanout.h"
#include "net/server/server.h"

struct stand_in { /* what a node answers */
	const char *name, *rows, *chains, *incidents, *type;
	int64_t offset_ns;
	bool no_time;
	struct http_server *server;
	unsigned asked;
};

static struct loop *loop;

static void reply(struct stand_in *n, struct http_exchange *x, const char *body)
{
	n->asked++;
	if (n->name)
		http_reply_field(x, "x-ingero-node", n->name);
	if (body)
		http_reply(x, 200, n->type, body, strlen(body));
	else
		http_reply_error(x, 404, "not here");
}

static void on_query(void *arg, struct http_exchange *x, const struct http_request *q)
{
	reply(arg, x, ((struct stand_in *)arg)->rows);
}

static void on_chains(void *arg, struct http_exchange *x, const struct http_request *q)
{
	reply(arg, x, ((struct stand_in *)arg)->chains);
}

static void on_incidents(void *arg, struct http_exchange *x, const struct http_request *q)
{
	reply(arg, x, ((struct stand_in *)arg)->incidents);
}

static void on_time(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct stand_in *n = arg;
	char body[64];

	snprintf(body, sizeof(body), "{\"timestamp_ns\":%lld}",
		(long long)(wall_now().ns + n->offset_ns));
	reply(n, x, n->no_time ? NULL : body);
}

static void begin(struct stand_in *n, struct fanout_nodes *list)
{
	static const struct http_route routes[] = {
		{"POST", "/api/v1/query", on_query, .open = true},
		{"GET", "/api/v1/chains", on_chains, .open = true},
		{"GET", "/api/v1/incidents", on_incidents, .open = true},
		{"GET", "/api/v1/time", on_time, .open = true},
		{.method = NULL},
	};
	struct http_server_settings s = {.address = "127.0.0.1:0", .routes = routes, .arg = n};
	struct errinfo e = {0};

	if (http_server_new(loop, &s, &n->server, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(fanout_nodes_add(list, http_server_address(n->server), false, &e), 0);
}

/* A port that accepts connections and never answers; nobody listens on it if not @alive. */
static int add_port(struct fanout_nodes *list, bool alive)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct errinfo e;
	char text[64];

	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	if (alive)
		assert_int_equal(listen(fd, 8), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(a.sin_port));
	assert_int_equal(fanout_nodes_add(list, text, false, &e), 0);
	return fd;
}

static struct fanout_result ask(
	const struct fanout_nodes *list, const struct fanout_question *q, uint64_t timeout_ns)
{
	struct fanout_settings s = {
		.nodes = list, .timeout_ns = timeout_ns, .skew_ns = 10 * NS_PER_MS};
	_cleanup_(fanout_freep) struct fanout *f = NULL;
	struct fanout_result r = {0};
	struct errinfo e = {0};

	if (fanout_new(loop, &s, &f, &e) < 0 || fanout_wait(f, q, &r, &e) < 0)
		fail_msg("%s", e.text);
	return r;
}

static const char *text_of(const struct fanout_result *r, enum fanout_note note)
{
	for (size_t i = 0; i < r->warning_count; i++)
		if (r->warnings[i].note == note)
			return r->warnings[i].text;
	return "";
}

#define ROWS "{\"columns\":[\"n\"],\"rows\":[[1],[2]],\"truncated\":false}"
static const struct fanout_question sql = {.kind = FANOUT_SQL, .sql = "SELECT 1"};

static void all_answer(void **state)
{
	struct stand_in a = {.name = "gpu1", .rows = ROWS}, b = {.rows = ROWS};
	struct fanout_nodes list = {0};
	struct fanout_result r;

	begin(&a, &list);
	begin(&b, &list);
	r = ask(&list, &sql, 20 * NS_PER_S);
	assert_int_equal(r.ok_count, 2);
	assert_int_equal(fanout_verdict(&r), EXIT_OK);
	assert_int_equal(r.table.row_count, 4);
	assert_string_equal(r.answers[0].name, "gpu1");
	assert_string_equal(r.answers[1].name, list.items[1].address); /* it does not tell */
	assert_true(r.answers[0].clock.known && r.answers[1].clock.known);
	assert_int_equal(a.asked, 4); /* the question, and the time three times */
	assert_int_equal(r.warning_count, 0);
	fanout_result_done(&r);
	http_server_free(a.server);
	http_server_free(b.server);
	fanout_nodes_done(&list);
}

static void the_dead_are_named(void **state)
{
	struct stand_in a = {.name = "gpu1", .rows = ROWS};
	struct fanout_nodes list = {0};
	int silent, gone;
	struct fanout_result r;

	silent = add_port(&list, true);
	begin(&a, &list);
	gone = add_port(&list, false);
	r = ask(&list, &sql, NS_PER_S / 5);
	assert_int_equal(r.ok_count, 1);
	assert_int_equal(fanout_verdict(&r), EXIT_PARTIAL);
	assert_int_equal(r.table.row_count, 2);
	assert_int_equal(r.warning_count, 2);
	assert_non_null(strstr(r.warnings[0].text, list.items[0].address));
	assert_non_null(strstr(r.warnings[0].text, "200ms"));
	assert_non_null(strstr(r.warnings[1].text, list.items[2].address));
	/* the address is named once */
	assert_null(strstr(r.answers[0].why, list.items[0].address));
	fanout_result_done(&r);
	close(silent);
	close(gone);
	http_server_free(a.server);
	fanout_nodes_done(&list);
}

static void none_is_a_failure(void **state)
{
	struct fanout_nodes list = {0};
	int a = add_port(&list, false), b = add_port(&list, false);
	struct fanout_result r = ask(&list, &sql, NS_PER_S);
	struct errinfo e = {0};

	assert_int_equal(fanout_verdict(&r), EXIT_FAILED);
	fanout_why(&r, &e);
	assert_non_null(strstr(e.text, "none of 2 nodes"));
	assert_int_equal(errinfo_exit_code(&e, -EIO), EXIT_FAILED);
	fanout_result_done(&r);
	close(a);
	close(b);
	fanout_nodes_done(&list);
}

static void a_wrong_clock_is_told(void **state)
{
	struct stand_in n[4] = {{.name = "g1", .rows = ROWS}, {.name = "g2", .rows = ROWS},
		{.name = "g3", .rows = ROWS, .offset_ns = 5000 * (int64_t)NS_PER_MS},
		{.name = "g4", .rows = ROWS, .no_time = true}};
	struct fanout_nodes list = {0};
	const char *said;
	struct fanout_result r;

	for (int i = 0; i < 4; i++)
		begin(&n[i], &list);
	r = ask(&list, &sql, 20 * NS_PER_S);
	said = text_of(&r, FANOUT_NOTE_CLOCK);
	assert_non_null(strstr(said, "g4: cannot compare its clock"));
	assert_int_equal(r.warning_count, 2);
	assert_non_null(strstr(r.warnings[1].text, "node g3 is"));
	assert_non_null(strstr(r.warnings[1].text, "ahead of node g"));
	assert_non_null(strstr(r.warnings[1].text, "±"));
	assert_int_equal(fanout_verdict(&r), EXIT_OK); /* a warning, no failure */
	fanout_result_done(&r);
	for (int i = 0; i < 4; i++)
		http_server_free(n[i].server);
	fanout_nodes_done(&list);
}

static void odd_columns_are_told(void **state)
{
	struct stand_in n[3] = {{.name = "g1", .rows = "{\"columns\":[\"m\"],\"rows\":[[9]]}"},
		{.name = "g2", .rows = ROWS}, {.name = "g3", .rows = ROWS}};
	struct fanout_nodes list = {0};
	struct fanout_result r;

	for (int i = 0; i < 3; i++)
		begin(&n[i], &list);
	r = ask(&list, &sql, 20 * NS_PER_S);
	assert_int_equal(fanout_verdict(&r), EXIT_PARTIAL);
	assert_non_null(strstr(text_of(&r, FANOUT_NOTE_COLUMNS), list.items[0].address));
	assert_int_equal(r.table.row_count, 4);
	fanout_result_done(&r);
	for (int i = 0; i < 3; i++)
		http_server_free(n[i].server);
	fanout_nodes_done(&list);
}

static void two_of_one_name_are_told_apart(void **state)
{
	struct stand_in n[2] = {
		{.name = "localhost", .rows = ROWS}, {.name = "localhost", .rows = ROWS}};
	struct fanout_nodes list = {0};
	char want[400];
	struct fanout_result r;

	for (int i = 0; i < 2; i++)
		begin(&n[i], &list);
	r = ask(&list, &sql, 20 * NS_PER_S);
	snprintf(want, sizeof(want), "localhost (%s)", list.items[1].address);
	assert_string_equal(r.answers[1].name, want);
	assert_non_null(strstr(text_of(&r, FANOUT_NOTE_NAME), "several nodes"));
	fanout_result_done(&r);
	for (int i = 0; i < 2; i++)
		http_server_free(n[i].server);
	fanout_nodes_done(&list);
}

/* A published agent does not know incidents: its chains are taken. */
static void chains_where_incidents_are_not_known(void **state)
{
	struct stand_in n[2] = {
		{.name = "g1",
			.incidents = "{\"incidents\":[{\"id\":\"i\",\"severity\":\"LOW\"}]}"},
		{.name = "g2", .chains = "{\"chains\":[{\"id\":\"c\",\"severity\":\"HIGH\"}]}"}};
	struct fanout_question q = {.kind = FANOUT_INCIDENTS, .query = "since=5m"};
	struct fanout_nodes list = {0};
	struct fanout_result r;

	for (int i = 0; i < 2; i++)
		begin(&n[i], &list);
	r = ask(&list, &q, 20 * NS_PER_S);
	assert_int_equal(r.ok_count, 2);
	assert_int_equal(r.incidents.count, 2);
	assert_string_equal(r.incidents.items[0]->incident.id, "c");
	assert_true(r.incidents.items[0]->stored);
	assert_string_equal(r.incidents.items[1]->node, "g1");
	fanout_result_done(&r);
	for (int i = 0; i < 2; i++)
		http_server_free(n[i].server);
	fanout_nodes_done(&list);
}

/* Nothing to tell is an answer: with a dead node beside it that is partial, not a failure. */
static void a_healthy_node_without_chains_counts(void **state)
{
	struct stand_in a = {.name = "g1", .chains = "{\"chains\":[]}"};
	struct fanout_question q = {.kind = FANOUT_CHAINS};
	struct fanout_nodes list = {0};
	struct fanout_result r;
	int gone;

	begin(&a, &list);
	gone = add_port(&list, false);
	r = ask(&list, &q, 20 * NS_PER_S);
	assert_int_equal(fanout_verdict(&r), EXIT_PARTIAL);
	fanout_result_done(&r);
	http_server_free(a.server);
	close(gone);
	fanout_nodes_done(&list);
}

static void any_path_can_be_asked(void **state)
{
	struct stand_in n[2] = {{.name = "g1", .chains = " {\"x\" : [1, 2]} "},
		{.name = "g2", .chains = "<html>", .type = "text/html"}};
	struct fanout_question q = {.kind = FANOUT_GET, .path = "/api/v1/chains?since=5m"};
	struct fanout_nodes list = {0};
	struct fanout_result r;

	for (int i = 0; i < 2; i++)
		begin(&n[i], &list);
	r = ask(&list, &q, 20 * NS_PER_S);
	assert_string_equal(r.answers[0].json, "{\"x\":[1,2]}");
	assert_false(r.answers[1].ok);
	assert_non_null(strstr(r.answers[1].why, "text/html"));
	fanout_result_done(&r);
	for (int i = 0; i < 2; i++)
		http_server_free(n[i].server);
	fanout_nodes_done(&list);
}

static void not_to_be_called(void *arg, struct fanout_result *r)
{
	fail();
}

static void stop(void *arg)
{
	loop_stop(loop);
}

/* Cancelled, or freed while it asks: nobody is told and nothing leaks. */
static void asking_can_be_given_up(void **state)
{
	struct fanout_nodes list = {0};
	int silent = add_port(&list, true);
	struct fanout_settings s = {.nodes = &list};
	struct fanout *f = NULL;
	struct fanout_run *run = NULL;
	struct errinfo e = {0};

	assert_int_equal(fanout_new(loop, &s, &f, &e), 0);
	assert_int_equal(fanout_ask(f, &sql, not_to_be_called, NULL, &run, &e), 0);
	fanout_cancel(run);
	assert_int_equal(fanout_ask(f, &sql, not_to_be_called, NULL, NULL, &e), 0);
	fanout_free(f);
	assert_int_equal(loop_call(loop, stop, NULL), 0);
	assert_int_equal(loop_run(loop), 0);
	close(silent);
	fanout_nodes_done(&list);
}

static void plain_to_others_needs_a_word(void **state)
{
	struct fanout_nodes list = {0};
	struct fanout_settings s = {.nodes = &list};
	struct fanout *f = NULL;
	struct errinfo e = {0};

	assert_int_equal(fanout_new(loop, &s, &f, &e), -EINVAL); /* no nodes */
	assert_int_equal(fanout_nodes_add(&list, "localhost:1,192.0.2.1:8080", false, &e), 0);
	assert_int_equal(fanout_new(loop, &s, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "192.0.2.1:8080"));
	s.allow_plain = true;
	assert_int_equal(fanout_new(loop, &s, &f, &e), 0);
	fanout_free(f);
	fanout_nodes_done(&list);
}

static void lists_of_nodes(void **state)
{
	struct fanout_nodes l = {0};
	struct errinfo e = {0};

	assert_int_equal(fanout_nodes_add(&l, "gpu-1:8080, gpu-2,http://gpu-3:1,[::1]:9,GPU-1:8080",
				 true, &e),
		0);
	assert_int_equal(l.count, 4);
	assert_string_equal(l.items[0].address, "gpu-1:8080");
	assert_string_equal(l.items[1].address, "gpu-2:8080");
	assert_true(l.items[1].endpoint.tls);
	assert_false(l.items[2].endpoint.tls);
	assert_string_equal(l.items[3].address, "[::1]:9");
	assert_int_equal(fanout_nodes_add(&l, "", true, &e), 0);
	assert_int_equal(fanout_nodes_add(&l, "a,,b", true, &e), -EINVAL);
	assert_int_equal(fanout_nodes_add(&l, "gpu:99999", true, &e), -EINVAL);
	assert_int_equal(fanout_nodes_add(&l, "gpu:80/path", true, &e), -EINVAL);
	fanout_nodes_done(&l);
}

static int set_up(void **state)
{
	return loop_new(&loop);
}

static int tear_down(void **state)
{
	loop_free(loop);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_answer),
		cmocka_unit_test(the_dead_are_named),
		cmocka_unit_test(none_is_a_failure),
		cmocka_unit_test(a_wrong_clock_is_told),
		cmocka_unit_test(odd_columns_are_told),
		cmocka_unit_test(two_of_one_name_are_told_apart),
		cmocka_unit_test(chains_where_incidents_are_not_known),
		cmocka_unit_test(a_healthy_node_without_chains_counts),
		cmocka_unit_test(any_path_can_be_asked),
		cmocka_unit_test(asking_can_be_given_up),
		cmocka_unit_test(plain_to_others_needs_a_word),
		cmocka_unit_test(lists_of_nodes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
