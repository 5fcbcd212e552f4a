/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_child.c - the worker: takes one question from its socket, shuts the doors, answers, ends.
 *
 * The library is loaded and an empty database in memory is opened while everything is still allowed: its
 * code needs files, and a library that is mapped stays. After that come the doors, then the files.
 *
 * Invariants:
 *  1. No byte of a file of rows is looked at before the doors are shut.
 *  2. DuckDB knows the files by their descriptors: where they lie is not to be learned from it.
 *  3. What the kernel does not have (landlock, seccomp) is told in the answer; what it has and refuses
 *     ends the worker, and so does a setting of DuckDB that does not read back as it was set. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "duck/duck.h"
#include "duck/duck_worker.h"
#include "duck/duck_worker_attach.h"
#include "duck/duck_worker_wire.h"
#include "sql/sql_worker_wire.h"
#include "base/confine.h"
#include "sql/sql_worker.h"

#define QUESTION_NS (10 * NS_PER_S)

struct asked {
	struct duck_wire_question head;
	char *body;
	const char *text;
	struct duck_files files;
	struct duck_worker_table tables[DUCK_WORKER_TABLES_MAX];
};

bool duck_worker_is_meant(int argc, char **argv)
{
	return argc > 0 && !strcmp(argv[0], DUCK_WORKER_NAME);
}

/* ---- the question ---- */

static const char *next_text(char **at, const char *end)
{
	const char *text = *at;
	char *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;

	if (nul)
		*at = nul + 1;
	return nul ? text : NULL;
}

static int split(struct asked *q)
{
	char *at = q->body, *end = at + q->head.body_len;
	bool whole = true;

	for (size_t i = 0; whole && i < q->head.file_count; i++)
		whole = (q->files.names[i] = next_text(&at, end));
	for (size_t i = 0; whole && i < q->head.table_count; i++)
		whole = (q->tables[i].name = next_text(&at, end)) &&
			(q->tables[i].columns = next_text(&at, end));
	return whole && (q->text = next_text(&at, end)) && at == end ? 0 : -EPROTO;
}

static int receive(struct asked *q)
{
	struct sql_wire_wait w = {SPAWN_SOCKET, -1, mono_now().ns + QUESTION_NS};
	int r = sql_wire_receive_bytes(&w, &q->head, sizeof(q->head));

	if (r < 0)
		return r;
	if (q->head.magic != DUCK_WIRE_MAGIC || q->head.file_count > DUCK_WORKER_FILES_MAX ||
		q->head.table_count > DUCK_WORKER_TABLES_MAX ||
		q->head.body_len > DUCK_WIRE_BODY_MAX)
		return -EPROTO;
	q->body = malloc(q->head.body_len + 1);
	if (!q->body)
		return -ENOMEM;
	r = sql_wire_receive_bytes(&w, q->body, q->head.body_len);
	q->files.count = q->head.file_count;
	return r < 0 ? r : split(q);
}

/* ---- the database ---- */

static int open_empty(
	uint64_t memory_bytes, struct duck **ret, struct duck_connection **ret_c, struct errinfo *e)
{
	char memory[32];
	const struct duck_setting settings[] = {
		{"threads", "1"}, /* so that there is none but this one */
		{"memory_limit", memory},
		{"temp_directory", ""},
		{"max_temp_directory_size", "0KiB"},
		{"max_expression_depth", "250"},
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_community_extensions", "false"},
		{"allow_unsigned_extensions", "false"},
		{"allow_extensions_metadata_mismatch", "false"},
		{"allow_persistent_secrets", "false"},
		{"allow_unredacted_secrets", "false"},
		{"enable_external_file_cache", "false"},
		{0},
	};
	int r;

	snprintf(memory, sizeof(memory), "%uKiB", (unsigned)(memory_bytes >> 10));
	r = duck_load(e);
	clearenv(); /* whose names and paths DuckDB would tell */
	tzset();    /* reads a file that is out of reach afterwards */
	if (r == 0)
		r = duck_open(NULL, settings, ret, e);
	return r < 0 ? r : duck_connect(*ret, ret_c, e);
}

/* ---- the answer ---- */

/* What there is instead of a table that was not found. */
static void put_hint(const struct asked *q, const char *said, struct buf *hint)
{
	if (!strstr(said, "Table with name"))
		return;
	for (size_t i = 0; i < q->head.table_count; i++)
		buf_printf(hint, "%s%s", i ? ", " : "the tables are ", q->tables[i].name);
}

static int answer(const struct asked *q, struct duck_connection *c, struct sql_wire_result *ret)
{
	struct duck_limits limits = {q->head.rules.rows_max, q->head.rules.bytes_max};
	int r = duck_attach_all(c, &q->files, &ret->err);

	if (r == 0)
		r = duck_make_views(c, &q->files, q->tables, q->head.table_count, &ret->err);
	if (r == 0)
		r = duck_shut(c, &ret->err);
	if (r < 0)
		return r;
	r = duck_select_stranger(c, q->text, &limits, &ret->table, &ret->err);
	/* Its transaction only reads, and it has no other one. */
	if (r == -EIO && !strncmp(ret->err.text, "TransactionContext Error", 24))
		r = errinfo_set(&ret->err, -EPERM, "a statement may only read, in one transaction");
	if (r == -EINVAL)
		put_hint(q, ret->err.text, ret->hint);
	return r;
}

static int run(struct asked *q, struct sql_wire_result *ret)
{
	struct duck_walls walls = {0};
	struct duck_connection *c = NULL;
	struct duck *d = NULL;
	uint64_t now;
	int r = duck_files_open(&q->files, &ret->err);

	if (r == 0)
		r = open_empty(q->head.rules.memory_bytes, &d, &c, &ret->err);
	if (r < 0)
		return r;
	now = mono_now().ns;
	r = duck_worker_confine(
		&q->files, q->head.deadline_ns - MIN(now, q->head.deadline_ns), &walls);
	ret->head.landlock = walls.landlock;
	ret->head.seccomp = walls.seccomp;
	if (r < 0)
		return errinfo_set(&ret->err, r, "the SQL process cannot drop its privileges: %s",
			strerror(-r));
	return answer(q, c, ret);
}

void duck_worker_main(void)
{
	static struct asked q;
	_cleanup_buf_ struct buf hint = BUF_INIT(SQL_WIRE_HINT_MAX);
	struct sql_wire_result res = {.hint = &hint};
	int r = receive(&q);

	if (r < 0)
		_exit(EXIT_FAILED);
	r = run(&q, &res);
	res.head.err = MIN(r, 0);
	r = sql_wire_send(SPAWN_SOCKET, &res);
	/* At once: all it has goes with it, and DuckDB would take its time. */
	_exit(r < 0 ? EXIT_FAILED : EXIT_OK);
}

#define OPEN_FILES 16 /* besides those of rows, which are open twice */

static int give_up_privileges(const struct duck_files *f, uint64_t left_ns)
{
	char first[DUCK_FILE_PATH_MAX];
	int r = 0;

	(void)prctl(PR_SET_NAME, DUCK_WORKER_NAME, 0, 0, 0);
	confine_bounding_set();
	if (f->count)
		r = confine_reader(duck_file_path(f, 0, first));
	else
		r = confine_user(CONFINE_NOBODY, CONFINE_NOBODY);
	if (r == 0)
		r = confine_capabilities();
	if (r == 0)
		r = confine_life(SPAWN_SOCKET);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	confine_limits(&(struct confine_limits){
		.address_bytes = DUCK_WORKER_ADDRESS,
		.open_files = OPEN_FILES + 2 * f->count,
		.cpu_seconds = left_ns / NS_PER_S + 2,
		.no_processes = true,
	});
	return r;
}

int duck_worker_confine(const struct duck_files *f, uint64_t left_ns, struct duck_walls *ret)
{
	int r = give_up_privileges(f, left_ns);

	if (r == 0)
		r = confine_paths(f->fds, f->count, &ret->landlock);
	if (r == 0)
		r = sql_worker_forbid_calls(true);
	if (r < 0)
		return r;
	ret->seccomp = r > 0;
	return 0;
}
