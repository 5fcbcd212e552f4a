/* SPDX-License-Identifier: Apache-2.0 */
/* question.h - one request to a service of ours, and its reply: what commands that ask have in common. */
#pragma once

#include "net/client/client.h"

#define QUESTION_ANSWER_MAX (8u << 20)

struct question {
	struct http_client *client; /* of @loop, which question_ask() runs */
	struct loop *loop;
	const struct http_endpoint *endpoint;
	const char *path;
	const char *body; /* JSON; NULL: a GET */
	uint64_t timeout_ns;
};

/* question_ask - the body is appended to @answer. -E… with a sentence if there was no reply. */
int question_ask(
	const struct question *q, int *ret_status, struct buf *answer, struct errinfo *reterr);
