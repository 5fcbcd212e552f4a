/* SPDX-License-Identifier: Apache-2.0 */
/* annotate_fixture.h - an annotation server at a socket in a scratch folder, with a store that only
 * remembers: acknowledging is the test's business. */
#pragma once

#include "store_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/socket_path.h"
#include "record/annotate/annotate.h"

struct annotate_bench {
	char path[SOCKET_PATH_MAX];
	struct annotate_server *server;
	uint64_t tickets[4096];
	uint32_t pids[4096];
	size_t count, acked;
	bool full; /* the store takes nothing */
};

static _unused_ bool bench_put(void *arg, const struct annotation *a, uint64_t ticket)
{
	struct annotate_bench *b = arg;

	if (b->full)
		return false;
	assert_true(b->count < ARRAY_SIZE(b->tickets));
	b->pids[b->count] = a->peer_pid;
	b->tickets[b->count++] = ticket;
	return true;
}

static _unused_ void bench_start(struct scratch *s, struct annotate_bench *b)
{
	struct errinfo err = {0};
	int fd;

	*b = (struct annotate_bench){0};
	snprintf(b->path, sizeof(b->path), "%s/d/a.sock", s->folder);
	if (socket_path_bind(b->path, SOCKET_NO_GROUP, &fd, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(annotate_server_new(fd, "", bench_put, b, &b->server), 0);
}

/* Everything taken so far is stored; ids count from 1. */
static _unused_ void bench_ack(struct annotate_bench *b)
{
	while (b->acked < b->count) {
		annotate_server_ack(b->server, b->tickets[b->acked], (int64_t)b->acked + 1);
		b->acked++;
	}
}

static _unused_ int bench_connect(const struct annotate_bench *b)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", b->path);
	assert_int_equal(connect(fd, (const void *)&address, sizeof(address)), 0);
	return fd;
}
