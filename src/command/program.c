/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - see program.h. */
#include "command/program.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "base/notify.h"
#include "base/text.h"
#include "command/config_file.h"
#include "command/update.h"

/* Optimal string alignment distance between short words, on the stack. */

#define WORD_MAX 63

unsigned suggest_distance(const char *a, const char *b)
{
	unsigned char d[WORD_MAX + 1][WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return UINT_MAX;
	for (size_t i = 0; i <= la; i++)
		d[i][0] = (unsigned char)i;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			best = MIN(best, d[i - 1][j] + 1);
			best = MIN(best, d[i][j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, d[i - 2][j - 2] + 1);
			d[i][j] = (unsigned char)best;
		}
	}
	return d[la][lb];
}

int suggest_is_near(const char *typed, const char *name, unsigned *ret_distance)
{
	unsigned distance = suggest_distance(typed, name);
	size_t allowed = MAX((size_t)1, strlen(name) / 3);

	if (distance > allowed || distance >= strlen(typed))
		return 0;
	*ret_distance = distance;
	return 1;
}

const struct command *program_find(const struct program *p, const char *name)
{
	for (const struct command *const *c = p->commands; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

void program_put_word(struct buf *b, const char *word)
{
	if (b->len)
		buf_putc(b, ' ');
	buf_puts(b, word);
}

/* Finds the row of the program's commands, parses its options into its settings and runs it.
 *
 * The only place that prints usage. Help asked for goes to stdout with exit code 0; help after a
 * mistake is one line on stderr with exit code 64, because a page of flags hides the sentence. */

static const struct command *const no_commands[] = {NULL};
static const struct program nothing = {.name = "ingero", .commands = no_commands};
static const struct program *running = &nothing;

const struct program *program_running(void)
{
	return running;
}

int program_columns(int fd)
{
	const char *given = getenv("COLUMNS");
	struct winsize w = {0};

	if (!isatty(fd))
		return 0;
	ioctl(fd, TIOCGWINSZ, &w); /* columns stay 0 if it does not know */
	return given && atoi(given) > 0 ? atoi(given) : w.ws_col;
}

/* Of a failure without a sentence of its own. */
static const char *reason_of(int err)
{
	return err == -EAGAIN
		       ? "cannot start a thread or a process: there is too little memory, or a limit is reached (`ulimit -u`, `ulimit -v`)"
		       : strerror(-err);
}

int dispatch_fail(const struct errinfo *e, int err)
{
	fprintf(stderr, "%s%s: %s\n", log_mark(LOG_LEVEL_ERROR), running->name,
		TEXT_SHOWN(e->text[0] ? e->text : reason_of(err)));
	return errinfo_exit_code(e, err);
}

void dispatch_serve(void)
{
	int r = notify_open();

	if (r < 0)
		log_warning(
			"cannot talk to the service manager ($NOTIFY_SOCKET, $WATCHDOG_USEC): %s",
			strerror(-r));
}

int dispatch_flush(int code)
{
	struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	/* The write that failed may lie far back; whether the reader left can still be seen. */
	if (errno == EPIPE || (poll(&p, 1, 0) == 1 && p.revents & POLLERR))
		return code;
	fprintf(stderr, "%s: cannot write the output: %s\n", running->name,
		(fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY
			? "standard output is closed"
		: errno ? strerror(errno)
			: "the disk may be full");
	return code == EXIT_OK ? EXIT_IO : code;
}

static int print_commands(const struct program *p)
{
	size_t width = strlen("help");

	for (const struct command *const *c = p->commands; *c; c++)
		width = MAX(width, strlen((*c)->name));
	printf("%s - %s\n\nUsage:\n  %s COMMAND [flags]\n\nCommands:\n", p->name, p->headline,
		p->name);
	for (const struct command *const *c = p->commands; *c; c++)
		printf("  %-*s  %s\n", (int)width, (*c)->name, (*c)->summary);
	printf("  %-*s  %s\n\n`%s COMMAND --help` lists the flags of a command.\n", (int)width,
		"help", "Show this list, or the help of a command", p->name);
	return EXIT_OK;
}

static int unknown_command(const struct program *p, const char *typed)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	unsigned best = UINT_MAX, distance;
	const char *near = NULL;

	for (const struct command *const *c = p->commands; *c; c++) {
		if (suggest_is_near(typed, (*c)->name, &distance) && distance < best) {
			best = distance;
			near = (*c)->name;
		}
	}
	text_escape_terminal_len(&b, typed, strnlen(typed, 64));
	fprintf(stderr, "%s: unknown %s '%s'", p->name, typed[0] == '-' ? "flag" : "command",
		buf_str(&b));
	if (near)
		fprintf(stderr, ": did you mean %s?", near);
	fprintf(stderr, "\nRun `%s help` for the list of commands.\n", p->name);
	return EXIT_USAGE;
}

static int run_command(const struct program *p, const struct command *c, int argc, char **argv)
{
	_cleanup_free_ void *settings = calloc(1, MAX(c->settings_size, (size_t)1));
	struct errinfo e = {0};
	int first = argc, r;

	if (!settings)
		return dispatch_fail(&e, -ENOMEM);
	if (c->defaults)
		memcpy(settings, c->defaults, c->settings_size);
	r = option_parse(c, argc, argv, settings, &first, &e);
	if (r > 0) {
		option_print_help(p->name, c);
		return EXIT_OK;
	}
	if (r < 0) {
		int code = dispatch_fail(&e, r);

		if (r != -EOPNOTSUPP)
			fprintf(stderr, "Run `%s %s --help` for its flags.\n", p->name, c->name);
		return code;
	}
	if (c->tells_updates)
		update_begin();
	r = c->run(c, settings, argc - first, argv + first);
	if (c->tells_updates)
		update_end();
	return r;
}

static int run_help(const struct program *p, int argc, char **argv)
{
	const struct command *c;

	if (argc < 2 || argv[1][0] == '-')
		return print_commands(p);
	c = program_find(p, argv[1]);
	if (!c)
		return unknown_command(p, argv[1]);
	option_print_help(p->name, c);
	return EXIT_OK;
}

/* Flags before the command: --debug, --config PATH, --config=PATH. */
static void take_global(int *argc, char ***argv)
{
	static const char config[] = "--config";

	for (;;) {
		const char *flag = *argc > 1 ? (*argv)[1] : "";
		bool apart = strcmp(flag, config) == 0 && *argc > 2;

		if (strcmp(flag, "--debug") == 0)
			log_set_level(LOG_LEVEL_DEBUG);
		else if (apart)
			config_file_choose((*argv)[2]);
		else if (strncmp(flag, config, strlen(config)) == 0 && flag[strlen(config)] == '=')
			config_file_choose(flag + strlen(config) + 1);
		else
			return;
		*argv += 1 + apart;
		*argc -= 1 + apart;
	}
}

int dispatch_run(const struct program *p, int argc, char **argv)
{
	const struct command *c;

	running = p;
	take_global(&argc, &argv);
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_commands(p);
	if (strcmp(argv[1], "help") == 0)
		return run_help(p, argc - 1, argv + 1);
	c = program_find(p, strcmp(argv[1], "--version") == 0 ? "version" : argv[1]);
	if (!c)
		return unknown_command(p, argv[1]);
	return run_command(p, c, argc - 1, argv + 1);
}

/* No file of ours gets the number of a stream that was closed before the start. Standard output is one that cannot be
 * written to, so that what is printed there fails as it would on a full disk. */
static int open_standard_fds(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
			return EXIT_FAILED;
	return EXIT_OK;
}

int dispatch_main(const struct program *p, int argc, char **argv)
{
	if (open_standard_fds() != EXIT_OK)
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return dispatch_flush(dispatch_run(p, argc, argv));
}
