// SPDX-License-Identifier: Apache-2.0
/* train_ask.c - a service on the loopback that answers after a set time, in a thread of the program
 * itself, and the question to it: what a tool call of an agent is to the thread that makes it. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "train.h"
#include "workload.h"

static int listener = -1;
static uint64_t answer_us;

static void *serve_one(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char byte;

	while (recv(fd, &byte, 1, 0) == 1) {
		workload_sleep_until(workload_now_ns() + answer_us * 1000);
		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	close(fd);
	return NULL;
}

static void *serve(void *arg)
{
	pthread_t thread;
	int fd;

	(void)arg;
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)fd) != 0)
			close(fd);
		else
			pthread_detach(thread);
	}
	return NULL;
}

int train_ask_start(uint64_t us)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	pthread_t thread;

	answer_us = us;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(listener, 64) < 0)
		return -errno;
	if (pthread_create(&thread, NULL, serve, NULL) != 0)
		return -EAGAIN;
	pthread_detach(thread);
	return 0;
}

static int ask_connect(void)
{
	struct sockaddr_in at;
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && getsockname(listener, (struct sockaddr *)&at, &size) == 0 &&
		connect(fd, (struct sockaddr *)&at, size) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int train_ask(struct train_worker *w)
{
	char byte = 0;

	if (!w->asks) {
		w->ask_fd = ask_connect();
		w->asks = true;
	}
	if (w->ask_fd < 0 || send(w->ask_fd, &byte, 1, MSG_NOSIGNAL) != 1 ||
		recv(w->ask_fd, &byte, 1, 0) != 1)
		return SIM_INVALID_VALUE;
	return 0;
}
