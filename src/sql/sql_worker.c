/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker.c - the asker's side for SQLite: what is asked, and again if the file changed hands. */
#include "sql/sql_worker.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "sql/sql_worker_call.h"

#define TRIES 3

static struct sql_worker_kind kind = SQL_WORKER_KIND(SQL_WORKER_NAME, SQL_WORKER_AT_ONCE);

static const struct sql_guard_rules most = {
	.timeout_ns = SQL_WORKER_TIMEOUT_NS,
	.memory_bytes = SQL_WORKER_MEMORY,
	.rows_max = SQL_WORKER_ROWS_MAX,
	.bytes_max = SQL_WORKER_BYTES_MAX,
};

struct question {
	const char *path, *text;
	uint64_t deadline_ns;
	const struct sql_guard_rules *rules;
};

struct sql_worker_stats sql_worker_stats(void)
{
	return sql_worker_kind_stats(&kind);
}

const char *sql_worker_weakness(void)
{
	struct sql_worker_stats f = sql_worker_stats();

	if (!f.known || (f.landlock && f.seccomp))
		return NULL;
	if (!f.landlock && !f.seccomp)
		return "this kernel has neither landlock nor seccomp: SQL is confined only by SQLite's authorizer and process limits";
	return f.seccomp
		       ? "this kernel has no landlock: a vulnerability in SQLite could let SQL read other files"
		       : "this kernel has no seccomp: a vulnerability in SQLite could let SQL make any system call";
}

static int send_question(int socket, const void *arg)
{
	const struct question *q = arg;
	struct sql_wire_question head = {.magic = SQL_WIRE_MAGIC,
		.path_len = (uint32_t)strlen(q->path),
		.text_len = (uint32_t)strlen(q->text),
		.deadline_ns = q->deadline_ns,
		.rules = *q->rules};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)q->path, head.path_len},
		{(void *)q->text, head.text_len}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts)};

	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* As often as a writer came or went while the file was read without locks. */
static int ask(const char *path, const char *text, const struct sql_guard_rules *rules,
	struct sql_wire_result *res, struct errinfo *reterr)
{
	struct question q = {path, text, mono_now().ns + rules->timeout_ns, rules};
	struct sql_worker_call call = {send_question, &q, q.deadline_ns, rules};
	char n[TEXT_MAX];
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < TRIES; i++) {
		if (res->hint)
			buf_clear(res->hint);
		r = sql_worker_call(&kind, &call, res, reterr);
		if (r == 0)
			r = sql_wire_judge(res, reterr);
	}
	if (r == -ETIMEDOUT)
		return errinfo_set_exit(reterr, EXIT_FAILED, r,
			"the SQL timed out after %s: select less",
			text_format_duration(n, rules->timeout_ns));
	if (r == -EAGAIN)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, r,
			"%s is being opened and closed by a writer: try again", path);
	return r;
}

int sql_worker_ask(const char *path, const char *text, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr)
{
	struct sql_guard_rules r = sql_worker_ceilings(rules, &most);
	struct sql_wire_result res = {.hint = hint};
	_cleanup_free_ char *real = NULL;
	int err;

	if (strlen(text) > SQL_GUARD_TEXT_MAX)
		return errinfo_set_exit(reterr, EXIT_USAGE, -E2BIG,
			"the SQL is longer than %d bytes", SQL_GUARD_TEXT_MAX);
	real = realpath(path, NULL); /* SQLite names the files beside it after that */
	if (!real)
		return errinfo_set(reterr, -errno, "%s: %s", path, strerror(errno));
	if (strlen(real) > SQL_WIRE_PATH_MAX)
		return errinfo_set(reterr, -ENAMETOOLONG, "%.100s…: the path is too long", real);
	err = ask(real, text, &r, &res, reterr);
	if (err < 0)
		return err;
	*ret = res.table;
	return 0;
}
