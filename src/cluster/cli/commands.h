/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the program `ingero-cluster`: the rows that commands.c lists; each is defined in its
 * cmd_X.c. To add a command: as in cli/commands.h. */
#pragma once

#include "base/buf.h"
#include "command/program.h"
#include "net/client/client.h"

extern const struct program cluster_program;

extern const struct command cmd_all;
extern const struct command cmd_audit;
extern const struct command cmd_blame;
extern const struct command cmd_cluster_demo;
extern const struct command cmd_echo;
extern const struct command cmd_fleet;
extern const struct command cmd_simulate;
extern const struct command cmd_stress;

/* One request to a service of ours, and its reply: what commands that ask have in common. */

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

/* question_own_ca - *ret, the caller's, is the certificate that a service of this user's made itself, if @e is on
 * this machine and there is one; else it is untouched. 0 or -ENOMEM. */
int question_own_ca(const struct http_endpoint *e, char **ret);

/* The service's answer to /api/v1/blame for people. Pure. */

/* blame_text - appends what the JSON in @body says: a sentence for each episode, or what was examined. @cluster: what was
 * asked about; NULL: all.
 * Everything foreign is escaped for a terminal. -EBADMSG: it is not such an answer; -ENOMEM. */
int blame_text(struct buf *b, const char *body, size_t len, const char *cluster);
