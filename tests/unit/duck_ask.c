/* SPDX-License-Identifier: Apache-2.0 */
/* duck_ask.c - for tests/integration/81-duck-sql: statements from standard input, each ended by a NUL, asked
 * of the worker, or of DuckDB as it comes.
 *
 *   duck-ask guarded MILLISECONDS FILE…   by the worker, on these files
 *   duck-ask bare FILE…                   without any guard: any statement, the files attached to be written
 *   duck-ask walled FILE…                 as bare, but behind the walls of the kernel; the files to be read
 *
 * Prints for each "error NUMBER SENTENCE" and perhaps "hint …", or "rows N" and the rows with tabs, or "signal
 * N"; then a NUL. At the end on standard error "peak N": the most KiB that a child had. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "duck/duck_worker.h"
#include "duck_fixture.h"
#include "sql/sql_worker_wire.h"

static const struct duck_worker_table tables[] = {
	{"events", "ts_ns BIGINT, cluster_id VARCHAR, node_id VARCHAR, value_double DOUBLE"},
	{"incidents", "ts_ns BIGINT, cluster_id VARCHAR, node_id VARCHAR, summary VARCHAR"},
};

static FILE *out; /* standard output, or what a child says */

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
	/* Several statements are a script; what they select is nobody's. */
	if (!strchr(text, ';'))
		return duck_select(c, text, &limits, t, e);
	*t = (struct sql_table){0};
	return duck_exec(c, text, e);
}

static void ask(int argc, char **argv, const char *text)
{
	struct errinfo e = {0};
	struct sql_table t;
	int r;

	if (!strcmp(argv[1], "guarded"))
		r = ask_guarded(argv + 2, argc - 2, text, &t, &e);
	else
		r = ask_here(argv + 2, argc - 2, !strcmp(argv[1], "walled"), text, &t, &e);
	if (r < 0) {
		fprintf(out, "error %d %s\n", r, e.text);
		return;
	}
	print_table(&t);
	sql_table_done(&t);
}

/* What a machine that runs tests can bear of a statement that nobody guards: three times a worker's memory,
 * and more of a CPU than 81-duck-sql gives to a worker. */
static void bound_bare(void)
{
	struct rlimit memory = {3ul * DUCK_WORKER_ADDRESS, 3ul * DUCK_WORKER_ADDRESS};
	struct itimerval cpu = {.it_value = {.tv_usec = 500 * 1000}};

	(void)setrlimit(RLIMIT_AS, &memory);
	(void)setitimer(ITIMER_PROF, &cpu, NULL);
}

/* In a child, which may come to any end and says its output to this process. */
static void ask_apart(int argc, char **argv, const char *text)
{
	int pair[2], status;
	char *said, piece[4096];
	size_t len;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		exit(EXIT_FAILED);
	fflush(stdout);
	if (fork() == 0) {
		close(pair[0]); /* which may have the number that is wanted */
		if (dup2(pair[1], SPAWN_SOCKET) < 0)
			_exit(EXIT_FAILED);
		bound_bare();
		out = open_memstream(&said, &len);
		ask(argc, argv, text);
		fclose(out);
		_exit(sql_wire_send_bytes(SPAWN_SOCKET, said, len) < 0 ? EXIT_FAILED : EXIT_OK);
	}
	close(pair[1]);
	while ((n = read(pair[0], piece, sizeof(piece))) > 0)
		fwrite(piece, 1, (size_t)n, stdout);
	close(pair[0]);
	wait(&status);
	if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
}

int main(int argc, char **argv)
{
	static char texts[1 << 20];
	struct rusage children;
	size_t len;

	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	if (argc < 2)
		return EXIT_USAGE;
	if (!duck_fixture_has())
		return 77;
	len = fread(texts, 1, sizeof(texts) - 1, stdin);
	out = stdout;
	for (const char *text = texts; text < texts + len; text += strlen(text) + 1) {
		if (!strcmp(argv[1], "guarded"))
			ask(argc, argv, text);
		else
			ask_apart(argc, argv, text);
		putchar(0);
		fflush(stdout);
	}
	getrusage(RUSAGE_CHILDREN, &children);
	fprintf(stderr, "peak %ld\n", children.ru_maxrss);
	return EXIT_OK;
}
