/* SPDX-License-Identifier: Apache-2.0 */
/* annotate.h - the annotation socket, by which workloads say what they are doing: a line, and a line of its answer.
 *
 *   {"labels":{"phase":"train","step":"1200"},"ts":N,"pid":N,"start_time":N,
 *    "span_start":N,"span_end":N,"v":1}                       only labels must be there
 *   {"ok":true,"id":N}   {"ok":false,"error":"why"}
 *
 * Times are Unix nanoseconds, start_time clock ticks since boot. Values may be strings, whole
 * numbers or booleans; they are stored as strings. Lines are pure: no I/O. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "base/macros.h"
#include "model/event.h"

/* annotate_line_parse - @line without its newline. A missing ts is @now. -EINVAL with a sentence;
 * the peer fields of *ret are 0. */
int annotate_line_parse(const char *line, size_t len, wall_time now, struct annotation *ret,
	struct errinfo *reterr);

/* annotate_line_compose - appends the line for @labels ("key=value" each) and a newline. */
int annotate_line_compose(const char *const *labels, size_t count, uint32_t pid, wall_time now,
	struct buf *out, struct errinfo *reterr);

/* annotate_line_answer - appends an answer: an id, or the error if @error is not NULL. */
void annotate_line_answer(struct buf *out, int64_t id, const char *error);

/* annotate_line_parse_answer - 0 with the id, -EREMOTEIO with the other side's error in @reterr,
 * -EBADMSG if it is no answer. */
int annotate_line_parse_answer(
	const char *line, size_t len, int64_t *ret_id, struct errinfo *reterr);

/* ---- the annotation socket: takes lines from workloads and answers every one, in order,
 * once it is stored or refused.
 *
 * Runs on its owner's thread and never waits: the owner calls annotate_server_poll() often, gives
 * what arrives to the store, and reports back with annotate_server_ack(). */

#define ANNOTATE_CONNECTIONS_MAX  64
#define ANNOTATE_CONNECTIONS_USER 16   /* of another user than this one and root */
#define ANNOTATE_CONNECTIONS_KEPT 8    /* for these two */
#define ANNOTATE_LINES_PER_S      1000 /* of one connection, or of another user; more have to wait */

struct annotate_server;

/* Takes a copy of @a to be stored; false: there is no room now, the writer is told so. */
typedef bool annotate_put(void *arg, const struct annotation *a, uint64_t ticket);

/* annotate_server_new - serve @listen_fd (socket_path_bind()), which becomes the server's.
 * @root is the prefix of /proc, "" for the real one. */
int annotate_server_new(int listen_fd, const char *root, annotate_put *put, void *arg,
	struct annotate_server **ret);
DECLARE_FREE(struct annotate_server, annotate_server_free)

/* annotate_server_poll - accept, read, answer what can be done now; a bounded number of lines. */
void annotate_server_poll(struct annotate_server *s);

/* annotate_server_ack - the fate of @ticket: the row's id, or a negative errno. */
void annotate_server_ack(struct annotate_server *s, uint64_t ticket, int64_t id);

/* annotate_server_refuse - take no more connections or lines; what was taken is still answered. */
void annotate_server_refuse(struct annotate_server *s);

/* annotate_server_waiting - lines given to the store and not yet acknowledged. */
size_t annotate_server_waiting(const struct annotate_server *s);

/* ---- the writing end of the annotation socket: sends lines, waits for every answer ---- */

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
