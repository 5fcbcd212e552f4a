/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_provider.c - which cloud answers, asked of a server that plays one of them. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/push/pusher_node.h"

#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n"

struct cloud { /* replies to what begins so; "" ends the list */
	const char *request, *field, *reply;
};

static const char *reply_to(const struct cloud *c, const char *head)
{
	for (; c->request; c++)
		if (!strncmp(head, c->request, strlen(c->request)) && strcasestr(head, c->field))
			return c->reply;
	return "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
}

static void serve(int fd, const struct cloud *c)
{
	for (;;) {
		char head[4096] = "";
		int peer = accept(fd, NULL, NULL);
		size_t len = 0;
		ssize_t n = 1;

		while (n > 0 && !strstr(head, "\r\n\r\n")) {
			n = read(peer, head + len, sizeof(head) - 1 - len);
			len += n > 0 ? (size_t)n : 0;
			head[len] = 0;
		}
		if (write(peer, reply_to(c, head), strlen(reply_to(c, head))) < 0)
			_exit(1);
		close(peer);
	}
}

/* What is found where all three services are the one that plays @c. */
static void detect(const struct cloud *c, char ret[PROVIDER_MAX])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct http_endpoint to = {.host = "127.0.0.1"};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);
	pid_t child;

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	to.port = ntohs(a.sin_port);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		serve(fd, c);
	pusher_provider_ask(&(struct provider_endpoints){to, to, to}, ret);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd);
}

static void test_clouds(void **state)
{
	static const struct cloud aws[] = {
		{"PUT /latest/api/token",
			"x-aws-ec2-metadata-token-ttl-seconds:", OK "Content-Length: 3\r\n\r\ntok"},
		{"GET /latest/meta-data/instance-id", "x-aws-ec2-metadata-token: tok",
			OK "Content-Length: 19\r\n\r\ni-0123456789abcdef0"},
		{NULL, NULL, NULL}};
	static const struct cloud fake[] = {
		{"PUT /latest/api/token", "", OK "Content-Length: 3\r\n\r\ntok"},
		{"GET /", "", OK "Content-Length: 19\r\n\r\n<html>welcome</html"},
		{NULL, NULL, NULL}};
	static const struct cloud gcp[] = {
		{"GET /computeMetadata/v1/", "metadata-flavor: Google",
			OK "Metadata-Flavor: Google\r\nContent-Length: 1\r\n\r\n1"},
		{NULL, NULL, NULL}};
	static const struct cloud azure[] = {
		{"GET /metadata/instance?api-version=2021-02-01", "metadata: true",
			OK "Content-Length: 14\r\n\r\n{\"compute\":{}}"},
		{NULL, NULL, NULL}};
	static const struct cloud away[] = {
		{"GET /", "",
			"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nConnection: "
			"close\r\nContent-Length: 0\r\n\r\n"},
		{NULL, NULL, NULL}};
	char got[PROVIDER_MAX];

	detect(aws, got);
	assert_string_equal(got, "aws");
	detect(gcp, got);
	assert_string_equal(got, "gcp");
	detect(azure, got);
	assert_string_equal(got, "azure");
	detect(fake, got); /* a page that answers everything is no cloud */
	assert_string_equal(got, "");
	detect(away, got);
	assert_string_equal(got, "");
}

static void test_instance_ids(void **state)
{
	assert_true(pusher_provider_is_instance("i-0123456789abcdef0", 19));
	assert_true(pusher_provider_is_instance("i-01234567", 10));
	assert_false(pusher_provider_is_instance("i-0123456789ABCDEF0", 19));
	assert_false(pusher_provider_is_instance("i-012345", 8));
	assert_false(pusher_provider_is_instance("<html>", 6));
	assert_false(pusher_provider_is_instance("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clouds),
		cmocka_unit_test(test_instance_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
