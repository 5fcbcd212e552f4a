/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "cli/commands.h"
#include "cluster/cli/commands.h"
#include "command/program.h"

static const struct program *program = &ingero_program;
static char out[8192], err[8192];

static void drain(FILE *f, char *to, size_t size)
{
	size_t n;

	rewind(f);
	n = fread(to, 1, size - 1, f);
	to[n] = 0;
	fclose(f);
}

/* Runs with stdout and stderr caught; arguments are split at spaces. */
static int run(const char *line)
{
	static char text[256];
	char *argv[8] = {(char *)"ingero"};
	int argc = 1, rc, saved_out = dup(1), saved_err = dup(2);
	FILE *o = tmpfile(), *e = tmpfile();

	snprintf(text, sizeof(text), "%s", line);
	for (char *p = strtok(text, " "); p; p = strtok(NULL, " "))
		argv[argc++] = p;
	fflush(stdout);
	dup2(fileno(o), 1);
	dup2(fileno(e), 2);
	rc = dispatch_run(program, argc, argv);
	fflush(stdout);
	dup2(saved_out, 1);
	dup2(saved_err, 2);
	close(saved_out);
	close(saved_err);
	drain(o, out, sizeof(out));
	drain(e, err, sizeof(err));
	return rc;
}

static void help_goes_to_stdout(void **state)
{
	static const char *const lines[] = {"", "help", "--help", "-h", "--debug help"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(run(lines[i]), EXIT_OK);
		assert_non_null(strstr(out, "Usage:\n  ingero COMMAND [flags]\n"));
		assert_non_null(strstr(out, "  check "));
		assert_non_null(strstr(out, "  version "));
		assert_string_equal(err, "");
	}
	assert_int_equal(run("help check"), EXIT_OK);
	assert_non_null(strstr(out, "ingero check [flags]"));
	assert_int_equal(run("check --help"), EXIT_OK);
	assert_non_null(strstr(out, "ingero check [flags]"));
}

static void mistakes_go_to_stderr(void **state)
{
	assert_int_equal(run("foo"), EXIT_USAGE);
	assert_string_equal(err,
		"ingero: unknown command 'foo'\nRun `ingero help` for the list of commands.\n");
	assert_string_equal(out, "");
	assert_int_equal(run("chekc"), EXIT_USAGE);
	assert_non_null(strstr(err, "ingero: unknown command 'chekc': did you mean check?\n"));
	assert_int_equal(run("help chekc"), EXIT_USAGE);
	assert_int_equal(run("--bogus"), EXIT_USAGE);
	assert_non_null(strstr(err, "ingero: unknown flag '--bogus'"));
	assert_int_equal(run("version --jsn"), EXIT_USAGE);
	assert_string_equal(err, "ingero: unknown flag --jsn: did you mean --json?\n"
				 "Run `ingero version --help` for its flags.\n");
	assert_int_equal(run("version extra"), EXIT_USAGE);
	assert_int_equal(run("\x1b[2J"), EXIT_USAGE);
	assert_null(strchr(err, '\x1b'));
}

static void version_in_both_forms(void **state)
{
	assert_int_equal(run("version"), EXIT_OK);
	assert_memory_equal(out, "ingero ", 7);
	assert_int_equal(run("--version"), EXIT_OK);
	assert_memory_equal(out, "ingero ", 7);
	assert_int_equal(run("version --json"), EXIT_OK);
	assert_non_null(strstr(out, "\"version\": \""));
	assert_non_null(strstr(out, "\"kernel\": \""));
}

static void another_program_has_its_name(void **state)
{
	program = &cluster_program;
	assert_int_equal(run("help"), EXIT_OK);
	assert_non_null(strstr(out, "Usage:\n  ingero-cluster COMMAND [flags]\n"));
	assert_null(strstr(out, "  trace "));
	assert_int_equal(run("version --help"), EXIT_OK);
	assert_non_null(strstr(out, "  ingero-cluster version [--json] [--check]\n"));
	assert_int_equal(run("version"), EXIT_OK);
	assert_memory_equal(out, "ingero-cluster ", 15);
	assert_int_equal(run("trace"), EXIT_USAGE);
	assert_string_equal(err, "ingero-cluster: unknown command 'trace'\n"
				 "Run `ingero-cluster help` for the list of commands.\n");
	assert_int_equal(run("completion"), EXIT_USAGE);
	assert_non_null(strstr(err, "ingero-cluster: name the shell: ingero-cluster completion "));
	program = &ingero_program;
}

/* What dispatch_flush() says when stdout is @fd and something is waiting to be written. */
static int flush_to(int fd)
{
	int saved = dup(1), saved_err = dup(2), null = open("/dev/null", O_WRONLY), rc;

	fflush(stdout);
	dup2(fd, 1);
	dup2(null, 2);
	printf("text\n");
	rc = dispatch_flush(EXIT_OK);
	clearerr(stdout);
	dup2(saved, 1);
	dup2(saved_err, 2);
	close(saved);
	close(saved_err);
	close(null);
	return rc;
}

static void a_full_disk_is_told_and_a_closed_pipe_is_not(void **state)
{
	int full = open("/dev/full", O_WRONLY), ends[2];

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(flush_to(ends[1]), EXIT_OK);
	close(ends[0]);
	assert_int_equal(flush_to(ends[1]), EXIT_OK);
	close(ends[1]);
	assert_int_equal(flush_to(full), EXIT_IO);
	close(full);
}

static void failures_have_a_sentence_and_a_code(void **state)
{
	struct errinfo e = {.text = "no such database"}, none = {0};
	int saved = dup(2), said = memfd_create("said", MFD_CLOEXEC);
	char text[1000] = "";

	dup2(said, 2);
	assert_int_equal(dispatch_fail(&e, -ENOENT), EXIT_NO_INPUT);
	assert_int_equal(dispatch_fail(&none, -EACCES), EXIT_NO_PERMISSION);
	assert_int_equal(dispatch_fail(&none, -EAGAIN), EXIT_TRY_AGAIN);
	dup2(saved, 2);
	assert_true(pread(said, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, ": no such database\n"));
	assert_non_null(strstr(
		text, ": cannot start a thread or a process: ")); /* not what EAGAIN says alone */
	close(saved);
	close(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_goes_to_stdout),
		cmocka_unit_test(mistakes_go_to_stderr),
		cmocka_unit_test(version_in_both_forms),
		cmocka_unit_test(another_program_has_its_name),
		cmocka_unit_test(a_full_disk_is_told_and_a_closed_pipe_is_not),
		cmocka_unit_test(failures_have_a_sentence_and_a_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
