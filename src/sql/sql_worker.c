/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker.c - the asker's side: waits for a turn, starts a worker, gives it the question, takes
 * the answer, ends it.
 *
 * Invariants:
 *  1. A worker that was started is reaped before sql_worker_ask() returns, whatever happened.
 *  2. No more than SQL_WORKER_AT_ONCE are running, over all threads of this process. */
#include "sql/sql_worker.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "base/text.h"
#include "sql/sql_worker_wire.h"

#define GRACE_NS (100 * NS_PER_MS) /* for a worker that ends its statement itself to say so */
#define TRIES    3

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	struct sql_worker_stats stats;
} turns = {.mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

static _Thread_local int gone_fd = -1;

void sql_worker_watch(int fd)
{
	gone_fd = fd;
}

struct sql_worker_stats sql_worker_stats(void)
{
	struct sql_worker_stats f;

	pthread_mutex_lock(&turns.mutex);
	f = turns.stats;
	pthread_mutex_unlock(&turns.mutex);
	return f;
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

/* A turn before @until_ns, or -EBUSY. */
static int turn_take(uint64_t until_ns, struct errinfo *reterr)
{
	int r = 0;

	pthread_mutex_lock(&turns.mutex);
	while (turns.stats.running == SQL_WORKER_AT_ONCE && r == 0) {
		struct timespec end = {.tv_sec = (time_t)(until_ns / NS_PER_S),
			.tv_nsec = (long)(until_ns % NS_PER_S)};

		if (pthread_cond_clockwait(&turns.freed, &turns.mutex, CLOCK_MONOTONIC, &end))
			r = -EBUSY;
	}
	if (mono_now().ns >= until_ns)
		r = -EBUSY; /* its turn has come too late */
	if (r == 0) {
		turns.stats.running++;
		turns.stats.started++;
	}
	pthread_mutex_unlock(&turns.mutex);
	return r == 0 ? 0
		      : errinfo_set_exit(reterr, EXIT_TRY_AGAIN, r,
				"%d SQL statements are running already: try again",
				SQL_WORKER_AT_ONCE);
}

static void turn_give(const struct sql_wire_answer *a, bool was_killed)
{
	pthread_mutex_lock(&turns.mutex);
	turns.stats.running--;
	turns.stats.killed += was_killed;
	if (a->magic) {
		turns.stats.known = true;
		turns.stats.landlock = a->landlock;
		turns.stats.seccomp = a->seccomp;
	}
	pthread_cond_signal(&turns.freed);
	pthread_mutex_unlock(&turns.mutex);
}

static int send_question(int socket, const char *path, const char *text, uint64_t deadline_ns,
	const struct sql_guard_rules *rules)
{
	struct sql_wire_question head = {.magic = SQL_WIRE_MAGIC,
		.path_len = (uint32_t)strlen(path),
		.text_len = (uint32_t)strlen(text),
		.deadline_ns = deadline_ns,
		.rules = *rules};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)path, head.path_len},
		{(void *)text, head.text_len}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts)};

	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Why a worker that gave no answer ended. */
static int judge_end(int status, struct errinfo *reterr)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return -ETIMEDOUT;
	if (WIFSIGNALED(status))
		return errinfo_set_exit(reterr, EXIT_FAILED, -EPROTO,
			"the SQL process was killed by signal %d (%s): select less",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	return errinfo_set_exit(reterr, EXIT_FAILED, -EPROTO,
		"the SQL process exited without an answer (exit code %d)", WEXITSTATUS(status));
}

static int ask_once(const char *path, const char *text, uint64_t deadline_ns,
	const struct sql_guard_rules *rules, struct sql_wire_result *res, struct errinfo *reterr)
{
	_cleanup_fd_ int socket = -1;
	int r, status = 0;
	pid_t pid;

	res->head = (struct sql_wire_answer){0};
	r = turn_take(deadline_ns, reterr);
	if (r < 0)
		return r;
	r = spawn_self(SQL_WORKER_NAME, NULL, &pid, &socket);
	if (r < 0) {
		turn_give(&res->head, false);
		return errinfo_set(reterr, r, "cannot start the SQL process: %s", strerror(-r));
	}
	r = send_question(socket, path, text, deadline_ns, rules);
	if (r == 0)
		r = sql_wire_receive(
			&(struct sql_wire_wait){socket, gone_fd, deadline_ns + GRACE_NS}, rules,
			res);
	if (r < 0)
		kill(pid, SIGKILL); /* one that has ended already keeps its reason */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	turn_give(&res->head, r == -ETIMEDOUT);
	if (r == -ECANCELED)
		return errinfo_set_exit(
			reterr, EXIT_FAILED, r, "the SQL was cancelled: the client disconnected");
	return r == -EPROTO ? judge_end(status, reterr) : r;
}

static struct sql_guard_rules ceilings(const struct sql_guard_rules *asked)
{
	struct sql_guard_rules r = *asked;

	r.timeout_ns = r.timeout_ns ? r.timeout_ns : SQL_WORKER_TIMEOUT_NS;
	if (!r.memory_bytes || r.memory_bytes > SQL_WORKER_MEMORY)
		r.memory_bytes = SQL_WORKER_MEMORY;
	if (!r.rows_max || r.rows_max > SQL_WORKER_ROWS_MAX)
		r.rows_max = SQL_WORKER_ROWS_MAX;
	if (!r.bytes_max || r.bytes_max > SQL_WORKER_BYTES_MAX)
		r.bytes_max = SQL_WORKER_BYTES_MAX;
	return r;
}

/* As often as a writer came or went while the file was read without locks. */
static int ask(const char *path, const char *text, const struct sql_guard_rules *rules,
	struct sql_wire_result *res, struct errinfo *reterr)
{
	uint64_t deadline_ns = mono_now().ns + rules->timeout_ns;
	char n[TEXT_MAX];
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < TRIES; i++) {
		if (res->hint)
			buf_clear(res->hint);
		r = ask_once(path, text, deadline_ns, rules, res, reterr);
		if (r == 0 && res->head.err < 0) {
			r = res->head.err;
			sql_table_done(&res->table);
			if (reterr)
				*reterr = res->err;
		}
	}
	if (r == -ETIMEDOUT)
		return errinfo_set_exit(reterr, EXIT_FAILED, r,
			"the SQL timed out after %s: select less, or raise --timeout",
			text_format_duration(n, rules->timeout_ns));
	if (r == -EAGAIN)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, r,
			"%s is being opened and closed by a writer: try again", path);
	return r;
}

int sql_worker_ask(const char *path, const char *text, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr)
{
	struct sql_guard_rules r = ceilings(rules);
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
