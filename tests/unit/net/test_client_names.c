/* SPDX-License-Identifier: Apache-2.0 */
/* Names from a hosts file and from a name server on this loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/client/client_private.h"
#include "net/loop.h"

struct rig {
	struct loop *loop;
	struct client_names *names;
	struct evdns_server_port *server;
	char root[64];
	int asked;       /* questions that came to the server */
	const char *now; /* the address of "turns.test" */
};

struct answer {
	struct loop *loop;
	int told, err;
	size_t count;
	char first[INET6_ADDRSTRLEN];
	uint16_t port;
};

/* "many.test" has 20 addresses, "slow.test" no answer, "no.test" does not exist. */
static void serve(struct evdns_server_request *q, void *arg)
{
	struct rig *r = arg;
	struct in_addr many[20];

	r->asked++;
	for (int i = 0; i < q->nquestions; i++) {
		const char *name = q->questions[i]->name;
		bool is_v4 = q->questions[i]->type == EVDNS_TYPE_A;

		if (!strcasecmp(name, "slow.test")) {
			evdns_server_request_drop(q);
			return;
		}
		if (!strcasecmp(name, "no.test")) {
			evdns_server_request_respond(q, 3);
			return;
		}
		for (int k = 0; k < 20; k++)
			many[k].s_addr = htonl(0x0a000001u + (unsigned int)k);
		if (!strcasecmp(name, "turns.test") || !strcasecmp(name, "both.test")) {
			unsigned char six[16];
			bool both = !strcasecmp(name, "both.test");

			inet_pton(AF_INET, both ? "203.0.113.9" : r->now, &many[0]);
			inet_pton(AF_INET, "169.254.169.254", &many[1]);
			if (is_v4 && (both || !strchr(r->now, ':')))
				evdns_server_request_add_a_reply(q, name, both ? 2 : 1, many, 60);
			if (!is_v4 && (both || strchr(r->now, ':'))) {
				inet_pton(AF_INET6, both ? "::ffff:10.1.1.1" : r->now, six);
				evdns_server_request_add_aaaa_reply(q, name, 1, six, 60);
			}
			continue;
		}
		if (is_v4)
			evdns_server_request_add_a_reply(
				q, name, !strcasecmp(name, "many.test") ? 20 : 1, many, 60);
	}
	evdns_server_request_respond(q, 0);
}

static void write_file(const struct rig *r, const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/etc/%s", r->root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void rig_open(struct rig *r)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	char path[128], text[100];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*r = (struct rig){.root = "/tmp/ingero-names-XXXXXX"};
	assert_non_null(mkdtemp(r->root));
	snprintf(path, sizeof(path), "%s/etc", r->root);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(text, sizeof(text), "nameserver 127.0.0.1:%u\n", ntohs(a.sin_port));
	write_file(r, "resolv.conf", text);
	write_file(
		r, "hosts", "192.0.2.7 gpu7 gpu7.rack\n2001:db8::7 gpu7\n192.0.2.66 localhost\n");
	assert_int_equal(loop_new(&r->loop), 0);
	r->server = evdns_add_server_port_with_base(loop_base(r->loop), fd, 0, serve, r);
	assert_non_null(r->server);
	assert_int_equal(client_names_new(loop_base(r->loop), r->root, &r->names), 0);
}

static void rig_close(struct rig *r)
{
	char path[128];

	if (r->names)
		client_names_free(r->names);
	/* what evdns has put off */
	event_base_loop(loop_base(r->loop), EVLOOP_NONBLOCK);
	evdns_close_server_port(r->server);
	loop_free(r->loop);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/etc/%s", r->root, i ? "hosts" : "resolv.conf");
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/etc", r->root);
	rmdir(path);
	assert_int_equal(rmdir(r->root), 0);
}

static void note(void *arg, int err, const struct client_addresses *a)
{
	struct answer *answer = arg;

	answer->told++;
	answer->err = err;
	if (a) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->at[0];
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->at[0];
		bool is_v4 = v4->sin_family == AF_INET;

		answer->count = a->count;
		inet_ntop(v4->sin_family,
			is_v4 ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr,
			answer->first, sizeof(answer->first));
		answer->port = ntohs(is_v4 ? v4->sin_port : v6->sin6_port);
	}
	loop_stop(answer->loop);
}

static struct answer look_up(struct rig *r, const char *host)
{
	struct answer a = {.loop = r->loop};
	struct client_lookup *l = (void *)r;

	assert_int_equal(client_names_lookup(r->names, host, 8080, note, &a, &l), 0);
	if (a.told)
		assert_null(l);
	loop_run(r->loop);
	assert_int_equal(a.told, 1);
	return a;
}

static void test_addresses(void **state)
{
	static const char *const cases[] = {"127.0.0.1", "10.1.2.3", "::1", "2001:db8::1"};
	struct answer a;
	struct rig r;

	(void)state;
	rig_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		a = look_up(&r, cases[i]);
		assert_int_equal(a.err, 0);
		assert_int_equal(a.count, 1);
		assert_string_equal(a.first, cases[i]);
		assert_int_equal(a.port, 8080);
	}
	/* this machine, whatever a file says */
	a = look_up(&r, "localhost");
	assert_int_equal(a.count, 2);
	assert_string_equal(a.first, "127.0.0.1");
	assert_int_equal(r.asked, 0);
	rig_close(&r);
}

static void test_hosts(void **state)
{
	struct answer a;
	struct rig r;

	(void)state;
	rig_open(&r);
	a = look_up(&r, "gpu7.rack");
	assert_int_equal(a.err, 0);
	assert_string_equal(a.first, "192.0.2.7");
	assert_int_equal(a.port, 8080);
	assert_int_equal(look_up(&r, "gpu7").count, 2);
	assert_int_equal(r.asked, 0);
	rig_close(&r);
}

static void test_server(void **state)
{
	struct answer a;
	struct rig r;

	(void)state;
	rig_open(&r);
	a = look_up(&r, "one.test");
	assert_int_equal(a.err, 0);
	assert_int_equal(a.count, 1);
	assert_string_equal(a.first, "10.0.0.1");
	a = look_up(&r, "many.test");
	assert_int_equal(a.err, 0);
	assert_int_equal(a.count, CLIENT_ADDRESSES);
	a = look_up(&r, "no.test");
	assert_int_equal(a.err, -ENOENT);
	assert_true(r.asked >= 3);
	rig_close(&r);
}

/* Who answers for a name may say anything: never where metadata services are; and what was out in the open does
 * not come in. The same addresses, given themselves, are where somebody wants to go. */
static void test_where_a_name_may_lead(void **state)
{
	static const char *const link[] = {"169.254.169.254", "fe80::1", "::ffff:169.254.169.254",
		"64:ff9b::a9fe:a9fe", "fd00:ec2::254"};
	static const char *const near[] = {"10.1.2.3", "172.31.0.1", "192.168.0.1",
		"100.100.100.200", "127.0.0.1", "0.0.0.0", "::1", "fd12::1", "::ffff:127.0.0.1"};
	struct rig r;

	(void)state;
	rig_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(link); i++) {
		r.now = link[i];
		assert_int_equal(look_up(&r, "turns.test").err, -EACCES);
		assert_int_equal(look_up(&r, link[i]).err, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(near); i++) {
		r.now = near[i];
		assert_int_equal(
			look_up(&r, "turns.test").err, 0); /* a name of one's own network */
	}
	r.now = "203.0.113.9";
	assert_int_equal(look_up(&r, "turns.test").err, 0);
	for (size_t i = 0; i < ARRAY_SIZE(near); i++) {
		r.now = near[i];
		assert_int_equal(look_up(&r, "turns.test").err, -EACCES);
		assert_int_equal(look_up(&r, "TURNS.test").err, -EACCES);
		assert_int_equal(look_up(&r, near[i]).err, 0);
	}
	r.now = "2001:db8::5";
	assert_string_equal(look_up(&r, "turns.test").first, "2001:db8::5");
	assert_int_equal(look_up(&r, "both.test").count, 1);
	assert_string_equal(look_up(&r, "both.test").first, "203.0.113.9");
	rig_close(&r);
}

/* A lookup that nobody waits for any more, and one whose client is freed. */
static void test_cancel(void **state)
{
	struct client_lookup *l = NULL;
	struct answer a;
	struct rig r;

	(void)state;
	rig_open(&r);
	a = (struct answer){.loop = r.loop};
	assert_int_equal(client_names_lookup(r.names, "slow.test", 1, note, &a, &l), 0);
	assert_non_null(l);
	while (!r.asked)
		event_base_loop(loop_base(r.loop), EVLOOP_ONCE);
	client_names_cancel(l);
	event_base_loop(loop_base(r.loop), EVLOOP_NONBLOCK);
	assert_int_equal(a.told, 0);
	assert_int_equal(look_up(&r, "one.test").err, 0);
	assert_int_equal(client_names_lookup(r.names, "slow.test", 1, note, &a, &l), 0);
	client_names_cancel(l);
	client_names_free(TAKE(r.names));
	event_base_loop(loop_base(r.loop), EVLOOP_NONBLOCK);
	assert_int_equal(a.told, 0);
	rig_close(&r);
}

static void test_loopback(void **state)
{
	static const struct {
		const char *text;
		bool is_loopback;
	} cases[] = {{"127.0.0.1", true}, {"127.255.0.9", true}, {"128.0.0.1", false},
		{"10.0.0.1", false}, {"0.0.0.0", false}, {"::1", true}, {"::", false},
		{"::ffff:127.0.0.1", true}, {"::ffff:10.0.0.1", false}, {"fe80::1", false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sockaddr_storage a = {};
		struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;

		if (strchr(cases[i].text, ':')) {
			a.ss_family = AF_INET6;
			assert_int_equal(inet_pton(AF_INET6, cases[i].text, &v6->sin6_addr), 1);
		} else {
			a.ss_family = AF_INET;
			assert_int_equal(inet_pton(AF_INET, cases[i].text, &v4->sin_addr), 1);
		}
		assert_int_equal(client_address_is_loopback(&a), cases[i].is_loopback);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_where_a_name_may_lead),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
