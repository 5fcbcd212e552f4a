/* SPDX-License-Identifier: Apache-2.0 */
/* duck_ask.c - for tests/integration/81-duck-sql: a statement from standard input, asked of the worker, or of
 * DuckDB as it comes, without any guard.
 *
 *   duck-ask guarded MILLISECONDS FILE…   by the worker, on these files
 *   duck-ask bare FILE…                   in this process: any statement, the files attached to be written
 *   duck-ask walled FILE…                 as bare, but for the walls of the kernel; the files to be read
 *
 * Prints "error NUMBER SENTENCE" and perhaps "hint …", or "rows N" and the rows with tabs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "duck/duck_worker.h"
#include "duck/duck_worker_walls.h"
#include "duck_fixture.h"
#include "sql/sql_worker_wire.h"

static const struct duck_worker_table tables[] = {
	{"events", "ts_ns BIGINT, cluster_id VARCHAR, node_id VARCHAR, value_double DOUBLE"},
	{"incidents", "ts_ns BIGINT, cluster_id VARCHAR, node_id VARCHAR, summary VARCHAR"},
};

static FILE *out; /* a walled process writes to no file: it is sent to one that does */

static void print_cell(const struct sql_table *t, const struct sql_cell *c)
{
	switch (c->type) {
	case SQL_NULL: fprintf(out, "NULL"); break;
	case SQL_INT: fprintf(out, "%" PRId64, c->i); break;
	case SQL_REAL: fprintf(out, "%.17g", c->d); break;
	case SQL_TEXT:
	case SQL_BLOB: fwrite(sql_table_bytes(t, c), 1, c->len, out); break;
	}
}

static void print_table(const struct sql_table *t)
{
	fprintf(out, "rows %zu\n", t->row_count);
	for (size_t i = 0; i < t->row_count; i++)
		for (int k = 0; k < t->column_count; k++) {
			print_cell(t, sql_table_cell(t, i, k));
			fputc(k + 1 < t->column_count ? '\t' : '\n', out);
		}
}

static int ask_guarded(
	char **args, int count, const char *text, struct sql_table *t, struct errinfo *e)
{
	_cleanup_buf_ struct buf hint = BUF_INIT(4096);
	struct sql_guard_rules rules = {.timeout_ns = strtoull(args[0], NULL, 10) * NS_PER_MS};
	struct duck_worker_question q = {.files = (const char *const *)args + 1,
		.file_count = (size_t)count - 1,
		.tables = tables,
		.table_count = ARRAY_SIZE(tables),
		.text = text};
	int r = duck_worker_ask(&q, &rules, t, &hint, e);

	if (hint.len)
		fprintf(out, "hint %s\n", buf_str(&hint));
	return r;
}

/* What the settings of DuckDB hold back is not held back here: what fails, fails by the kernel. */
static int wall_in(char **names, int count, struct duck_connection *c, struct errinfo *e)
{
	static struct duck_files files;
	struct duck_walls walls = {0};
	int r;

	for (int i = 0; i < count; i++)
		files.names[i] = names[i];
	files.count = (size_t)count;
	r = duck_files_open(&files, e);
	if (r == 0)
		r = duck_worker_confine(&files, 5 * NS_PER_S, &walls);
	return r < 0 ? r : duck_attach_all(c, &files, e);
}

static int attach_to_write(char **files, int count, struct duck_connection *c, struct errinfo *e)
{
	char attach[4200];
	int r = 0;

	for (int i = 0; r == 0 && i < count; i++) {
		snprintf(attach, sizeof(attach), "ATTACH '%s' AS p%d", files[i], i);
		r = duck_exec(c, attach, e);
	}
	return r;
}

static int ask_here(char **files, int count, bool walled, const char *text, struct sql_table *t,
	struct errinfo *e)
{
	static const struct duck_limits limits = {.rows_max = 10000, .bytes_max = 8u << 20};
	static const struct duck_setting one_thread[] = {{"threads", "1"}, {0}};
	struct duck_connection *c;
	struct duck *d;
	int r = duck_open(NULL, one_thread, &d, e);

	if (r == 0)
		r = duck_connect(d, &c, e);
	if (r == 0)
		r = walled ? wall_in(files, count, c, e) : attach_to_write(files, count, c, e);
	if (r == 0 && count)
		r = duck_exec(c, "USE p0", e);
	if (r < 0)
		return r;
	if (strncmp(text, "script:", 7))
		return duck_select(c, text, &limits, t, e);
	*t = (struct sql_table){0};
	return duck_exec(c, text + 7, e);
}

static int ask(int argc, char **argv, const char *text)
{
	struct errinfo e = {0};
	struct sql_table t;
	int r;

	if (!strcmp(argv[1], "guarded"))
		r = ask_guarded(argv + 2, argc - 2, text, &t, &e);
	else
		r = ask_here(argv + 2, argc - 2, !strcmp(argv[1], "walled"), text, &t, &e);
	if (r < 0)
		fprintf(out, "error %d %s\n", r, e.text);
	else
		print_table(&t);
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

/* The walled process is a child that says its output to this one, and whose end is this one's. */
static int ask_behind_walls(int argc, char **argv, const char *text)
{
	int pair[2], status;
	char *said, piece[4096];
	size_t len;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return EXIT_FAILED;
	if (fork() == 0) {
		close(pair[0]); /* which may have the number that is wanted */
		if (dup2(pair[1], SPAWN_SOCKET) < 0)
			_exit(EXIT_FAILED);
		out = open_memstream(&said, &len);
		status = ask(argc, argv, text);
		fclose(out);
		_exit(sql_wire_send_bytes(SPAWN_SOCKET, said, len) < 0 ? EXIT_BUG : status);
	}
	close(pair[1]);
	while ((n = read(pair[0], piece, sizeof(piece))) > 0)
		fwrite(piece, 1, (size_t)n, stdout);
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	static char text[SQL_GUARD_TEXT_MAX + 100];

	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	if (argc < 3)
		return EXIT_USAGE;
	text[fread(text, 1, sizeof(text) - 1, stdin)] = 0;
	if (!duck_fixture_has())
		return 77;
	out = stdout;
	return !strcmp(argv[1], "walled") ? ask_behind_walls(argc, argv, text)
					  : ask(argc, argv, text);
}
