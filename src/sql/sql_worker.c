/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker.c - the asker's side for SQLite: what is asked, and again if the file changed hands. */
#include "sql/sql_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/mutex.h"
#include "base/spawn.h"
#include "base/text.h"

#define SQL_WORKER_TIMEOUT_NS (5 * NS_PER_S)
#define SQL_WORKER_MEMORY     (256u << 20) /* of SQLite, for an error instead of an end */
#define SQL_WORKER_ADDRESS    (768u << 20) /* of the process, by the kernel */
#define SQL_WORKER_BYTES_MAX  (8u << 20)

/* The asker's side of a worker, see sql_worker.h.
 *
 * Invariants:
 *  1. A worker that was asked is reaped before sql_worker_call() returns, whatever happened.
 *  2. No more than at_once of a kind are running, over all threads of this process. */

#define GRACE_NS (100 * NS_PER_MS) /* for a worker that ends its statement itself to say so */

static _Thread_local int gone_fd = -1;

void sql_worker_watch(int fd)
{
	gone_fd = fd;
}

struct sql_worker_stats sql_worker_kind_stats(struct sql_worker_kind *k)
{
	MUTEX_HELD(&k->mutex);

	return k->stats;
}

/* A turn before @until_ns, or -EBUSY. */
static int turn_take(struct sql_worker_kind *k, uint64_t until_ns, struct errinfo *reterr)
{
	int r = 0;

	pthread_mutex_lock(&k->mutex);
	while (k->stats.running == k->at_once && r == 0) {
		struct timespec end = {.tv_sec = (time_t)(until_ns / NS_PER_S),
			.tv_nsec = (long)(until_ns % NS_PER_S)};

		if (pthread_cond_clockwait(&k->freed, &k->mutex, CLOCK_MONOTONIC, &end))
			r = -EBUSY;
	}
	if (mono_now().ns >= until_ns)
		r = -EBUSY; /* its turn has come too late */
	if (r == 0) {
		k->stats.running++;
		k->stats.started++;
	}
	pthread_mutex_unlock(&k->mutex);
	return r == 0 ? 0
		      : errinfo_set_exit(reterr, EXIT_TRY_AGAIN, r,
				"%u SQL statements are running already: try again", k->at_once);
}

static void turn_give(struct sql_worker_kind *k, const struct sql_wire_answer *a, bool was_killed)
{
	MUTEX_HELD(&k->mutex);

	k->stats.running--;
	k->stats.killed += was_killed;
	if (a->magic) {
		k->stats.known = true;
		k->stats.landlock = a->landlock;
		k->stats.seccomp = a->seccomp;
	}
	pthread_cond_signal(&k->freed);
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

/* A worker that does not take its question must not hold up its asker for longer than its answer may. */
static void bound_sending(int socket, uint64_t deadline_ns)
{
	uint64_t now = mono_now().ns, left = MAX(deadline_ns, now + NS_PER_MS) - now;
	struct timeval t = {.tv_sec = (time_t)(left / NS_PER_S),
		.tv_usec = (suseconds_t)(left % NS_PER_S / 1000)};

	(void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

static int talk(int socket, const struct sql_worker_call *c, struct sql_wire_result *res)
{
	struct sql_wire_wait wait = {socket, gone_fd, c->deadline_ns + GRACE_NS};
	int r;

	bound_sending(socket, c->deadline_ns);
	r = c->send(socket, c->arg);
	if (r == -EAGAIN)
		return -ETIMEDOUT;
	return r < 0 ? -EPROTO : sql_wire_receive(&wait, c->rules, res);
}

static void reap(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
}

static pid_t spare_take(struct sql_worker_kind *k, int *ret_socket)
{
	pid_t pid;

	MUTEX_HELD(&k->mutex);
	pid = k->spare;
	*ret_socket = k->spare_socket;
	k->spare = 0;
	return pid;
}

void sql_worker_kind_rest(struct sql_worker_kind *k)
{
	int socket;
	pid_t pid = spare_take(k, &socket);

	if (!pid)
		return;
	kill(pid, SIGKILL);
	reap(pid, NULL);
	close(socket);
}

/* One that waits, unless it has ended, or a new one. */
static int worker_take(struct sql_worker_kind *k, pid_t *ret_pid, int *ret_socket)
{
	pid_t spare = spare_take(k, ret_socket);

	if (spare && waitpid(spare, NULL, WNOHANG) == 0) {
		*ret_pid = spare;
		return 0;
	}
	if (spare)
		close(*ret_socket);
	return spawn_self(k->name, NULL, ret_pid, ret_socket);
}

static bool wants_spare(struct sql_worker_kind *k)
{
	MUTEX_HELD(&k->mutex);

	return k->keeps_spare && !k->spare;
}

static void spare_make(struct sql_worker_kind *k)
{
	int socket;
	pid_t pid;

	if (!wants_spare(k) || spawn_self(k->name, NULL, &pid, &socket) < 0)
		return;
	pthread_mutex_lock(&k->mutex);
	if (!k->spare) {
		k->spare = pid;
		k->spare_socket = socket;
		pid = 0;
	}
	pthread_mutex_unlock(&k->mutex);
	if (pid) {
		close(socket);
		reap(pid, NULL);
	}
}

int sql_worker_call(struct sql_worker_kind *k, const struct sql_worker_call *c,
	struct sql_wire_result *res, struct errinfo *reterr)
{
	_cleanup_fd_ int socket = -1;
	int r, status = 0;
	pid_t pid;

	res->head = (struct sql_wire_answer){0};
	r = turn_take(k, c->deadline_ns, reterr);
	if (r < 0)
		return r;
	r = worker_take(k, &pid, &socket);
	if (r < 0) {
		turn_give(k, &res->head, false);
		return errinfo_set(reterr, r, "cannot start the SQL process: %s", strerror(-r));
	}
	r = talk(socket, c, res);
	if (r < 0)
		kill(pid, SIGKILL); /* one that has ended already keeps its reason */
	reap(pid, &status);
	spare_make(k);
	turn_give(k, &res->head, r == -ETIMEDOUT);
	if (r == -ECANCELED)
		return errinfo_set_exit(
			reterr, EXIT_FAILED, r, "the SQL was cancelled: the client disconnected");
	return r == -EPROTO ? judge_end(status, reterr) : r;
}

struct sql_guard_rules sql_worker_ceilings(
	const struct sql_guard_rules *asked, const struct sql_guard_rules *most)
{
	struct sql_guard_rules r = *asked;

	r.timeout_ns = r.timeout_ns ? r.timeout_ns : most->timeout_ns;
	if (!r.memory_bytes || r.memory_bytes > most->memory_bytes)
		r.memory_bytes = most->memory_bytes;
	if (!r.rows_max || r.rows_max > most->rows_max)
		r.rows_max = most->rows_max;
	if (!r.bytes_max || r.bytes_max > most->bytes_max)
		r.bytes_max = most->bytes_max;
	return r;
}

/* The worker: takes one question from its socket, shuts the doors, answers,
 * ends.
 *
 * Invariants:
 *  1. No byte of the database is looked at before the doors are shut.
 *  2. What the kernel does not have (landlock, seccomp) is told in the answer; what it has and
 * refuses ends the worker. */

#define OPEN_FILES 16

struct asked {
	struct sql_wire_question head;
	char path[SQL_WIRE_PATH_MAX + 1];
	char text[SQL_GUARD_TEXT_MAX + 1];
};

bool sql_worker_is_meant(int argc, char **argv)
{
	return argc > 0 && !strcmp(argv[0], SQL_WORKER_NAME);
}

static int receive(struct asked *q)
{
	static char rest[SQL_WIRE_PATH_MAX + SQL_GUARD_TEXT_MAX + 1];
	struct iovec parts[] = {{&q->head, sizeof(q->head)}, {rest, sizeof(rest)}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts)};
	ssize_t n;

	do
		n = recvmsg(SPAWN_SOCKET, &m, 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(q->head) || q->head.magic != SQL_WIRE_MAGIC ||
		q->head.path_len > SQL_WIRE_PATH_MAX || q->head.text_len > SQL_GUARD_TEXT_MAX ||
		(size_t)n != sizeof(q->head) + q->head.path_len + q->head.text_len)
		return -EPROTO;
	memcpy(q->path, rest, q->head.path_len);
	memcpy(q->text, rest + q->head.path_len, q->head.text_len);
	return 0;
}

/* The database and what SQLite keeps beside it, as far as it is there now. */
static size_t find_files(const char *path, int files[3])
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		files[count] = open(FORMATTED(SQL_WIRE_PATH_MAX + 8, "%s%s", path, suffixes[i]),
			O_PATH | O_CLOEXEC | O_NOFOLLOW);
		count += files[count] >= 0;
	}
	return count;
}

static int give_up_privileges(const struct asked *q, uint64_t left_ns)
{
	struct confine_limits limits = {
		.address_bytes = SQL_WORKER_ADDRESS,
		.open_files = OPEN_FILES,
		.cpu_seconds = left_ns / NS_PER_S + 2,
		.no_processes = true,
	};
	int r;

	confine_limits(&limits);
	(void)prctl(PR_SET_NAME, SQL_WORKER_NAME, 0, 0, 0);
	confine_bounding_set();
	r = confine_reader(q->path);
	r = r ?: confine_capabilities();
	r = r ?: confine_life(SPAWN_SOCKET);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

int sql_worker_forbid_calls(bool links_hidden)
{
	static const uint16_t calls[] = {__NR_clock_nanosleep, __NR_nanosleep};
	static const uint16_t fcntl_commands[] = {
		F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_GETLK, F_SETLK};
	int r = confine_calls(&(struct confine_calls){
		.calls = calls,
		.call_count = ARRAY_SIZE(calls),
		.fcntl_commands = fcntl_commands,
		.fcntl_count = ARRAY_SIZE(fcntl_commands),
		.opens = true,
		.links_hidden = links_hidden,
	});

	return r == -ENOSYS || r == -EINVAL ? 0 : r; /* a kernel without */
}

static int shut_doors(const struct asked *q, uint64_t left_ns, struct sql_wire_answer *ret)
{
	int files[3], r;
	size_t count;

	tzset(); /* 'localtime' reads a file that is out of reach afterwards */
	count = find_files(q->path, files);
	r = give_up_privileges(q, left_ns);
	r = r ?: confine_paths(files, count, &ret->landlock);
	for (size_t i = 0; i < count; i++)
		close(files[i]);
	r = r ?: sql_worker_forbid_calls(false);
	if (r < 0)
		return r;
	ret->seccomp = r > 0;
	return 0;
}

static int answer(const struct asked *q, uint64_t left_ns, struct sql_wire_result *ret)
{
	_cleanup_(sql_closep) sql_db *db = NULL;
	struct sql_guard_rules rules = q->head.rules;
	struct sql_stamp stamp;
	int r = sql_open_read(q->path, false, &db, &stamp, &ret->err);

	r = r ?: sql_exec(db, "BEGIN", &ret->err); /* guard and statement see one moment */
	if (r < 0)
		return sql_stamp_changed(q->path, &stamp) ? -EAGAIN : r;
	rules.timeout_ns = left_ns;
	r = sql_guard_select(db, q->text, &rules, &ret->table, ret->hint, &ret->err);
	if (!sql_stamp_changed(q->path, &stamp))
		return r;
	sql_table_done(&ret->table);
	return -EAGAIN; /* a writer came while it was read without locks */
}

void sql_worker_main(void)
{
	static struct asked q;
	_cleanup_buf_ struct buf hint = BUF_INIT(SQL_WIRE_HINT_MAX);
	struct sql_wire_result res = {.hint = &hint};
	uint64_t now;
	int r = receive(&q);

	if (r < 0)
		_exit(EXIT_FAILED);
	now = mono_now().ns;
	r = shut_doors(&q, q.head.deadline_ns - MIN(now, q.head.deadline_ns), &res.head);
	if (r < 0)
		errinfo_set(&res.err, r, "the SQL process cannot drop its privileges: %s",
			strerror(-r));
	now = mono_now().ns;
	r = r ?: now < q.head.deadline_ns ? answer(&q, q.head.deadline_ns - now, &res) : -ETIMEDOUT;
	res.head.err = MIN(r, 0);
	r = sql_wire_send(SPAWN_SOCKET, &res);
	/* At once: all it has goes with it, and sanitizers look for leaks for seconds. */
	_exit(r < 0 ? EXIT_FAILED : EXIT_OK);
}

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
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < TRIES; i++) {
		if (res->hint)
			buf_clear(res->hint);
		r = sql_worker_call(&kind, &call, res, reterr);
		r = r ?: sql_wire_judge(res, reterr);
	}
	if (r == -ETIMEDOUT)
		return errinfo_set_exit(reterr, EXIT_FAILED, r,
			"the SQL timed out after %s: select less",
			TEXT_DURATION(rules->timeout_ns));
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
