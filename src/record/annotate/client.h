/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - the writing end of the annotation socket: sends lines, waits for every answer. */
#pragma once

#include "base/errinfo.h"

#define ANNOTATE_SOCKET "annotate.sock" /* see socket_path_default() */

struct annotate_result {
	uint64_t sent, stored;
	uint64_t refused;    /* by the check here or by the tracer */
	uint64_t first_line; /* of the input that was refused, from 1; 0: none */
	struct errinfo first_error;
};

/* annotate_client_connect - -ENOENT or -ECONNREFUSED: no tracer listens there; -EACCES; -EAGAIN: it
 * is busy. Each with an exit code and a sentence. On success *ret_fd is the caller's. */
int annotate_client_connect(const char *path, int *ret_fd, struct errinfo *reterr);

/* annotate_client_send - send the lines that @input_fd holds, up to its end, each checked first,
 * and wait for their answers. Bad lines are counted in *ret and the rest is sent. Fails if the
 * tracer goes away or does not answer for 10 s; *ret holds what was reached until then. */
int annotate_client_send(int fd, int input_fd, struct annotate_result *ret, struct errinfo *reterr);
