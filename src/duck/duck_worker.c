/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker.c - the asker's side of the worker: checks the question, has it answered. */
#include "duck/duck_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/path_user.h"
#include "base/spawn.h"
#include "base/text.h"

static struct sql_worker_kind kind =
	SQL_WORKER_KIND(DUCK_WORKER_NAME, DUCK_WORKER_AT_ONCE, .keeps_spare = true);

static const struct sql_guard_rules most = {
	.timeout_ns = DUCK_WORKER_TIMEOUT_NS,
	.memory_bytes = DUCK_WORKER_MEMORY,
	.rows_max = DUCK_WORKER_ROWS_MAX,
	.bytes_max = DUCK_WORKER_BYTES_MAX,
};

struct question {
	struct duck_wire_question head;
	const struct buf *body;
};

struct sql_worker_stats duck_worker_stats(void)
{
	return sql_worker_kind_stats(&kind);
}

void duck_worker_rest(void)
{
	sql_worker_kind_rest(&kind);
}

static int check(const struct duck_worker_question *q, struct errinfo *reterr)
{
	if (strlen(q->text) > SQL_GUARD_TEXT_MAX)
		return errinfo_set_exit(reterr, EXIT_USAGE, -E2BIG,
			"the SQL is longer than %d bytes", SQL_GUARD_TEXT_MAX);
	if (q->file_count > DUCK_WORKER_FILES_MAX)
		return errinfo_set(reterr, -E2BIG,
			"the rows lie in %zu files, and SQL can read %d at once: ask for fewer clusters",
			q->file_count, DUCK_WORKER_FILES_MAX);
	if (q->table_count > DUCK_WORKER_TABLES_MAX)
		return errinfo_set(reterr, -E2BIG, "%zu tables, but at most %d are possible",
			q->table_count, DUCK_WORKER_TABLES_MAX);
	return 0;
}

static void put(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text) + 1);
}

static int send_question(int socket, const void *arg)
{
	const struct question *q = arg;
	int r = sql_wire_send_bytes(socket, &q->head, sizeof(q->head));

	return r < 0 ? r : sql_wire_send_bytes(socket, buf_str(q->body), q->body->len);
}

static int ask(const struct question *q, struct sql_wire_result *res, struct errinfo *reterr)
{
	struct sql_worker_call call = {send_question, q, q->head.deadline_ns, &q->head.rules};
	int r = sql_worker_call(&kind, &call, res, reterr);

	r = r ?: sql_wire_judge(res, reterr);
	if (r == -ETIMEDOUT)
		return errinfo_set_exit(reterr, EXIT_FAILED, r,
			"the SQL timed out after %s: select less",
			TEXT_DURATION(q->head.rules.timeout_ns));
	return r;
}

/* Who has no room for a second sentence gets it behind the first. */
static void join_hint(const struct buf *hint, struct errinfo *reterr)
{
	struct errinfo first = *reterr;

	errinfo_set_exit(reterr, first.exit_code, 0, "%.380s (%.100s)", first.text, buf_str(hint));
}

int duck_worker_ask(const struct duck_worker_question *q, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf body = BUF_INIT(DUCK_WIRE_BODY_MAX),
				 own = BUF_INIT(SQL_WIRE_HINT_MAX);
	struct question asked = {{.magic = DUCK_WIRE_MAGIC,
					 .file_count = (uint32_t)q->file_count,
					 .table_count = (uint32_t)q->table_count,
					 .rules = sql_worker_ceilings(rules, &most)},
		&body};
	struct sql_wire_result res = {.hint = hint ? hint : &own};
	int r = check(q, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < q->file_count; i++)
		put(&body, q->files[i]);
	for (size_t i = 0; i < q->table_count; i++) {
		put(&body, q->tables[i].name);
		put(&body, q->tables[i].columns);
	}
	put(&body, q->text);
	if (body.err)
		return body.err;
	asked.head.body_len = (uint32_t)body.len;
	asked.head.deadline_ns = mono_now().ns + asked.head.rules.timeout_ns;
	r = ask(&asked, &res, reterr);
	if (r == 0)
		*ret = res.table;
	else if (own.len && reterr)
		join_hint(&own, reterr);
	return r;
}

/* The worker: takes one question from its socket, shuts the doors, answers, ends.
 *
 * The library is loaded and an empty database in memory is opened while everything is still allowed: its
 * code needs files, and a library that is mapped stays. After that come the doors, then the files.
 *
 * Invariants:
 *  1. No byte of a file of rows is looked at before the doors are shut.
 *  2. DuckDB knows the files by their descriptors: where they lie is not to be learned from it.
 *  3. What the kernel does not have (landlock, seccomp) is told in the answer; what it has and refuses
 *     ends the worker, and so does a setting of DuckDB that does not read back as it was set. */

#define DUCK_FILE_PATH_MAX 32

/* Catalogs are p0, p1, … in the order of the files; tables
 * without rows are in the schema `none`, so that a view has its columns also where no file has them. */

#define VIEW_MAX (256u << 10)

/* Each file is open twice, here and by DuckDB; many systems begin with 1,024. */
static void make_room(size_t count)
{
	struct rlimit l;
	rlim_t want = 2 * count + 64;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= want)
		return;
	l.rlim_cur = MIN(want, l.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &l); /* else opening says so */
}

int duck_files_open(struct duck_files *f, struct errinfo *reterr)
{
	make_room(f->count);
	for (size_t i = 0; i < f->count; i++) {
		/* A link that another user laid leads no further than that user's rights. */
		_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
		int r = path_user_enter(f->names[i], &before, reterr);

		if (r < 0)
			return r;
		f->fds[i] = open(f->names[i], O_PATH | O_CLOEXEC);
		if (f->fds[i] < 0)
			return errinfo_set(reterr, -errno, "%s: %s: try again",
				basename(f->names[i]), strerror(errno));
	}
	return 0;
}

/* duck_file_path - a path of file @i that does not tell where it lies. */
static const char *duck_file_path(
	const struct duck_files *f, size_t i, char out[DUCK_FILE_PATH_MAX])
{
	snprintf(out, DUCK_FILE_PATH_MAX, "/proc/self/fd/%d", f->fds[i]);
	return out;
}

int duck_attach_all(struct duck_connection *c, const struct duck_files *f, struct errinfo *reterr)
{
	char text[128], path[DUCK_FILE_PATH_MAX];
	struct errinfo e = {0};

	for (size_t i = 0; i < f->count; i++) {
		int r;

		snprintf(text, sizeof(text), "ATTACH '%s' AS p%zu (READ_ONLY)",
			duck_file_path(f, i, path), i);
		r = duck_exec(c, text, &e);
		if (r < 0 && strstr(e.text, "Conflicting lock"))
			return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EBUSY,
				"%s is being written: try again", basename(f->names[i]));
		if (r < 0)
			return errinfo_set(reterr, r == -ENOMEM ? r : -EBADMSG,
				"%s cannot be read: %.300s", basename(f->names[i]), e.text);
	}
	return 0;
}

/* ---- views ---- */

/* Which files have a table: rows of file and table, by the files' order. */
static int list_tables(struct duck_connection *c, struct sql_table *ret, struct errinfo *reterr)
{
	static const struct duck_limits limits = {
		.rows_max = (size_t)DUCK_WORKER_FILES_MAX * DUCK_WORKER_TABLES_MAX,
		.bytes_max = 8u << 20};

	return duck_select(c,
		"SELECT CAST(substr(database_name, 2) AS BIGINT) AS file, table_name FROM duckdb_tables() WHERE "
		"schema_name = 'main' AND regexp_full_match(database_name, 'p[0-9]+') ORDER BY file",
		&limits, ret, reterr);
}

static int make_view(struct duck_connection *c, const struct duck_worker_table *t,
	const struct sql_table *found, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(VIEW_MAX);

	buf_printf(&text,
		"CREATE TABLE none.\"%s\" (%s); CREATE VIEW main.\"%s\" AS SELECT * FROM none.\"%s\"",
		t->name, t->columns, t->name, t->name);
	for (size_t i = 0; i < found->row_count; i++)
		if (!strcmp(sql_table_bytes(found, sql_table_cell(found, i, 1)), t->name))
			buf_printf(&text, " UNION ALL BY NAME SELECT * FROM p%d.main.\"%s\"",
				(int)sql_table_cell(found, i, 0)->i, t->name);
	return text.err ? text.err : duck_exec(c, buf_str(&text), reterr);
}

/* duck_make_views - each table as a view over the files that have it. */
static int duck_make_views(struct duck_connection *c, const struct duck_files *f,
	const struct duck_worker_table *tables, size_t table_count, struct errinfo *reterr)
{
	struct sql_table found = {0};
	int r = duck_exec(c, "CREATE SCHEMA none", reterr);

	if (r == 0 && f->count)
		r = list_tables(c, &found, reterr);
	for (size_t i = 0; r == 0 && i < table_count; i++)
		r = make_view(c, &tables[i], &found, reterr);
	sql_table_done(&found);
	return r;
}

/* duck_shut - nothing can be attached, loaded, written or set from now on, as far as DuckDB goes. -EPERM:
 * it is not so. */
static int duck_shut(struct duck_connection *c, struct errinfo *reterr)
{
	static const struct duck_setting settings[] = {
		{"enable_external_access", "false"}, {"lock_configuration", "true"}, {0}};
	int r = duck_exec(c,
		"SET enable_external_access = false; SET lock_configuration = true; BEGIN TRANSACTION READ ONLY",
		reterr);

	return r < 0 ? r : duck_check(c, settings, reterr);
}

#define QUESTION_NS                                                                                \
	(10 * NS_PER_S) /* from its first byte, for which it waits as long as there is an asker */

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
	struct pollfd p = {.fd = SPAWN_SOCKET, .events = POLLIN};
	struct sql_wire_wait w = {.socket = SPAWN_SOCKET, .gone = -1};
	int r;

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	w.until_ns = mono_now().ns + QUESTION_NS;
	r = sql_wire_receive_bytes(&w, &q->head, sizeof(q->head));

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

static int open_empty(struct duck **ret, struct duck_connection **ret_c, struct errinfo *e)
{
	const struct duck_setting settings[] = {
		{"threads", "1"}, /* so that there is none but this one */
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
	int r = duck_load(e);

	clearenv(); /* whose names and paths DuckDB would tell */
	tzset();    /* reads a file that is out of reach afterwards */
	r = r ?: duck_open(NULL, settings, ret, e);
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

	r = r ?: duck_make_views(c, &q->files, q->tables, q->head.table_count, &ret->err);
	r = r ?: duck_shut(c, &ret->err);
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

static int bound_memory(struct duck_connection *c, uint64_t bytes, struct errinfo *e)
{
	return duck_exec(
		c, FORMATTED(64, "SET memory_limit = '%uKiB'", (unsigned)(bytes >> 10)), e);
}

static int run(struct asked *q, struct duck_connection *c, struct sql_wire_result *ret)
{
	struct duck_walls walls = {0};
	uint64_t now;
	int r = duck_files_open(&q->files, &ret->err);

	r = r ?: bound_memory(c, q->head.rules.memory_bytes, &ret->err);
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
	struct duck_connection *c = NULL;
	struct duck *d = NULL;
	int opened = open_empty(&d, &c, &res.err), r = receive(&q);

	if (r < 0)
		_exit(EXIT_FAILED);
	r = opened < 0 ? opened : run(&q, c, &res);
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
	r = f->count ? confine_reader(duck_file_path(f, 0, first))
		     : confine_user(CONFINE_NOBODY, CONFINE_NOBODY);
	r = r ?: confine_capabilities();
	r = r ?: confine_life(SPAWN_SOCKET);
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

	r = r ?: confine_paths(f->fds, f->count, &ret->landlock);
	r = r ?: sql_worker_forbid_calls(true);
	if (r < 0)
		return r;
	ret->seccomp = r > 0;
	return 0;
}
