/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker.h - one statement that a stranger wrote, run by a process that is thrown away
 * afterwards.
 *
 * SQLite cannot hold hostile SQL inside a process that has anything to lose (docs/adr/0007), so
 * this program is started once more, under another name: with limits on memory and CPU time,
 * without capabilities, able to open the one database to read it and nothing else, with few system
 * calls; there it goes through sql_guard_select(). It is killed at the deadline, whatever it is
 * doing. What it answers is checked as a stranger's word. */
#pragma once

#include <pthread.h>

#include "sql/sql_guard.h"
#include "sql/sql_worker_wire.h"

#define SQL_WORKER_NAME     "ingero-sql"
#define SQL_WORKER_AT_ONCE  8 /* of one process; more wait for their turn */
#define SQL_WORKER_ROWS_MAX 10000

/* sql_worker_ask - runs @text on the database at @path and waits for its rows. Safe from any
 * thread. What of @rules is 0 or more than the ceilings above becomes these; its time counts from
 * the call on and includes starting the process. Results as of sql_guard_select(), and -EBUSY (no
 * turn came in time), -EAGAIN (the file changed hands again and again), -EPROTO (the process ended
 * or answered what cannot be). */
int sql_worker_ask(const char *path, const char *text, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr);

/* sql_worker_watch - from now on a statement that this thread waits for is ended, with -ECANCELED,
 * as soon as @fd is readable: whoever asked has gone. -1: no more. */
void sql_worker_watch(int fd);

struct sql_worker_stats {
	unsigned running;
	uint64_t started, killed; /* killed: at the deadline */
	bool known;               /* one has answered, so that the next two are true */
	int landlock;             /* version of the kernel's interface; 0: it has none */
	bool seccomp;
};
struct sql_worker_stats sql_worker_stats(void);

/* sql_worker_weakness - what the kernel lacks of the walls around a worker; NULL: nothing, or no
 * worker has answered yet. */
const char *sql_worker_weakness(void);

/* sql_worker_forbid_calls - in a worker, of this or another engine: only the system calls that running
 * a statement takes. @links_hidden: nor may it ask where its files lie. 0 on a kernel without. */
int sql_worker_forbid_calls(bool links_hidden);

/* The worker's own side, for main(). */
bool sql_worker_is_meant(int argc, char **argv);
_noreturn_ void sql_worker_main(void);

/* One question to a process of its own, whichever engine runs in it: a turn, a start, the
 * question, the answer, the end. For those who make such workers: sql/sql_worker.c, duck/duck_worker.c. */

struct sql_worker_kind {
	const char *name; /* of the process, as argv[0] */
	unsigned at_once;
	bool keeps_spare; /* after a question one is started for the next, since starting takes long */
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t freed;
	struct sql_worker_stats stats;
	pid_t spare; /* waits for its question; 0: none does */
	int spare_socket;
};
#define SQL_WORKER_KIND(kind_name, count, ...)                                                     \
	{                                                                                          \
		.name = (kind_name), .at_once = (count), .mutex = PTHREAD_MUTEX_INITIALIZER,       \
		.freed = PTHREAD_COND_INITIALIZER, __VA_ARGS__                                     \
	}

/* sql_worker_kind_rest - ends the one that waits: nobody will ask for a while. */
void sql_worker_kind_rest(struct sql_worker_kind *k);

struct sql_worker_call {
	int (*send)(int socket, const void *arg); /* the question; negative errno */
	const void *arg;
	uint64_t deadline_ns;                /* of the monotonic clock */
	const struct sql_guard_rules *rules; /* no more than these is taken */
};

/* sql_worker_call - 0: *res is what the worker said, and may be an error. -EBUSY no turn came in time;
 * -ETIMEDOUT; -ECANCELED as of sql_worker_watch(); -EPROTO the process ended or answered what cannot be. */
int sql_worker_call(struct sql_worker_kind *k, const struct sql_worker_call *c,
	struct sql_wire_result *res, struct errinfo *reterr);

struct sql_worker_stats sql_worker_kind_stats(struct sql_worker_kind *k);

/* sql_worker_ceilings - @asked with what is 0 or more than in @most replaced; of time only 0 is. */
struct sql_guard_rules sql_worker_ceilings(
	const struct sql_guard_rules *asked, const struct sql_guard_rules *most);
