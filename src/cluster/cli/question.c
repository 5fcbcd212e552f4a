/* SPDX-License-Identifier: Apache-2.0 */
/* question.c - see question.h. */
#include "cluster/cli/question.h"

#include <string.h>

struct reply { /* on its way */
	struct loop *loop;
	struct buf *body;
	int status, err;
	struct errinfo e;
};

static void on_answer(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct reply *y = arg;

	y->err = err;
	if (err < 0) {
		y->e = *e;
	} else {
		y->status = r->status;
		buf_append(y->body, r->body, r->body_len);
	}
	loop_stop(y->loop);
}

int question_ask(
	const struct question *q, int *ret_status, struct buf *answer, struct errinfo *reterr)
{
	struct reply y = {.loop = q->loop, .body = answer};
	struct http_ask a = {.endpoint = q->endpoint,
		.method = q->body ? "POST" : "GET",
		.path = q->path,
		.body = q->body,
		.body_len = q->body ? strlen(q->body) : 0,
		.timeout_ns = q->timeout_ns,
		.body_max = QUESTION_ANSWER_MAX};
	int r = http_ask(q->client, &a, on_answer, &y, NULL);

	if (r == 0)
		r = loop_run(q->loop);
	if (r < 0)
		return r;
	if (y.err < 0) {
		*reterr = y.e;
		reterr->exit_code = EXIT_FAILED;
		return y.err;
	}
	*ret_status = y.status;
	return answer->err;
}
