/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker_call.c - the asker's side of a worker, see sql_worker_call.h.
 *
 * Invariants:
 *  1. A worker that was started is reaped before sql_worker_call() returns, whatever happened.
 *  2. No more than at_once of a kind are running, over all threads of this process. */
#include "sql/sql_worker_call.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/spawn.h"

#define GRACE_NS (100 * NS_PER_MS) /* for a worker that ends its statement itself to say so */

static _Thread_local int gone_fd = -1;

void sql_worker_watch(int fd)
{
	gone_fd = fd;
}

struct sql_worker_stats sql_worker_kind_stats(struct sql_worker_kind *k)
{
	struct sql_worker_stats f;

	pthread_mutex_lock(&k->mutex);
	f = k->stats;
	pthread_mutex_unlock(&k->mutex);
	return f;
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
	pthread_mutex_lock(&k->mutex);
	k->stats.running--;
	k->stats.killed += was_killed;
	if (a->magic) {
		k->stats.known = true;
		k->stats.landlock = a->landlock;
		k->stats.seccomp = a->seccomp;
	}
	pthread_cond_signal(&k->freed);
	pthread_mutex_unlock(&k->mutex);
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
	r = spawn_self(k->name, NULL, &pid, &socket);
	if (r < 0) {
		turn_give(k, &res->head, false);
		return errinfo_set(reterr, r, "cannot start the SQL process: %s", strerror(-r));
	}
	r = talk(socket, c, res);
	if (r < 0)
		kill(pid, SIGKILL); /* one that has ended already keeps its reason */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
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
