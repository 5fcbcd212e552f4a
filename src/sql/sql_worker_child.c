/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker_child.c - the worker: takes one question from its socket, shuts the doors, answers,
 * ends.
 *
 * Invariants:
 *  1. No byte of the database is looked at before the doors are shut.
 *  2. What the kernel does not have (landlock, seccomp) is told in the answer; what it has and
 * refuses ends the worker. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/spawn.h"
#include "sql/sql_worker.h"
#include "sql/sql_worker_wire.h"

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
	char name[SQL_WIRE_PATH_MAX + 8];
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		files[count] = open(name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
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
	if (r == 0)
		r = confine_capabilities();
	if (r == 0)
		r = confine_life(SPAWN_SOCKET);
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
	if (r == 0)
		r = confine_paths(files, count, &ret->landlock);
	for (size_t i = 0; i < count; i++)
		close(files[i]);
	if (r == 0)
		r = sql_worker_forbid_calls(false);
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

	if (r == 0)
		r = sql_exec(db, "BEGIN", &ret->err); /* guard and statement see one moment */
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
	if (r == 0)
		r = now < q.head.deadline_ns ? answer(&q, q.head.deadline_ns - now, &res)
					     : -ETIMEDOUT;
	res.head.err = MIN(r, 0);
	r = sql_wire_send(SPAWN_SOCKET, &res);
	/* At once: all it has goes with it, and sanitizers look for leaks for seconds. */
	_exit(r < 0 ? EXIT_FAILED : EXIT_OK);
}
