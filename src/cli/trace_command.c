/* SPDX-License-Identifier: Apache-2.0 */
/* trace_command.c - see trace_command.h.
 *
 * The command, the tracer and this process are one process group, the terminal's: Ctrl-C, Ctrl-Z and fg reach the
 * command as if it had been typed alone. So a signal that the kernel sent is the command's already; one that
 * somebody sent to us is passed on. The tracer takes none: it ends when the channel is closed. */
#include "cli/trace_command.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/text.h"

/* Whether a folder of PATH holds @name; an empty one is the working folder. execvp() says EACCES also of a folder that
 * may not be looked into, where shells say that the command was not found. Without PATH it looked elsewhere, and is
 * believed. */
static bool is_in_path(const char *name)
{
	const char *path = getenv("PATH");
	struct stat st;

	if (!path)
		return true;
	while (path) {
		char file[PATH_MAX];
		size_t len = strcspn(path, ":");
		int n = snprintf(
			file, sizeof(file), "%.*s%s/%s", (int)len, path, len ? "" : ".", name);

		if (n > 0 && (size_t)n < sizeof(file) && stat(file, &st) == 0 &&
			S_ISREG(st.st_mode))
			return true;
		path = path[len] ? path + len + 1 : NULL;
	}
	return false;
}

/* In the new process: waits until it is held, becomes the user, executes. Tells @report what failed. */
_Noreturn static void become(
	char *const *argv, const struct caller *c, int stdout_fd, int held, int report)
{
	sigset_t none;
	char byte;
	int r;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL); /* ours ignores both */
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(held, &byte, 1) != 1 || dup2(stdout_fd, STDOUT_FILENO) < 0)
		_exit(LAUNCH_NOT_EXECUTABLE);
	r = caller_become(c);
	if (r == 0) {
		environ = c->envp;
		execvp(argv[0], argv);
		r = -errno;
		if (r == -EACCES && !strchr(argv[0], '/') && !is_in_path(argv[0]))
			r = -ENOENT;
	}
	if (write(report, &r, sizeof(r)) < 0)
		_exit(LAUNCH_NOT_EXECUTABLE);
	_exit(LAUNCH_NOT_FOUND);
}

/* Until it has executed the program (0), or ended (1, with its status). */
static int wait_executed(pid_t pid, int *ret_status)
{
	for (;;) {
		int status;

		if (waitpid(pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!WIFSTOPPED(status)) {
			*ret_status = status;
			return 1;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return 0;
		/* a signal on the way there: it is for the process, but a stop would hold it for good */
		if (ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : WSTOPSIG(status)) < 0 &&
			errno != ESRCH)
			return -errno;
	}
}

static int cannot_run(const char *name, int err, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	int r = err;

	text_escape_terminal_len(&b, name, strnlen(name, 200));
	if (err == -ENOENT && !strchr(name, '/'))
		errinfo_set(reterr, r, "cannot run '%s': no such command in PATH", buf_str(&b));
	else
		errinfo_set(reterr, r, "cannot run '%s': %s", buf_str(&b), strerror(-err));
	reterr->exit_code = err == -ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
	return r;
}

static int hold(pid_t pid, int held, int report, const char *name, struct errinfo *reterr)
{
	int status = 0, why = -ECHILD, r;

	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return errinfo_set(reterr, r,
			"cannot hold the command until probes are in place (ptrace): %s",
			strerror(-r));
	}
	if (write(held, "", 1) != 1) /* it waits for this byte alone */
		return -errno;
	r = wait_executed(pid, &status);
	if (r < 0) {
		launch_abort(pid);
		return errinfo_set(reterr, r, "cannot start the command: %s", strerror(-r));
	}
	if (r == 0)
		return 0;
	if (read(report, &why, sizeof(why)) == sizeof(why))
		return cannot_run(name, why, reterr);
	errinfo_set(reterr, -EINTR, "the command ended before it started");
	reterr->exit_code = launch_exit_code(status);
	return -EINTR;
}

int launch_begin(char *const *argv, const struct caller *c, int stdout_fd, pid_t *ret_pid,
	struct errinfo *reterr)
{
	int held[2], report[2], r;
	pid_t pid;

	if (pipe2(held, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(report, O_CLOEXEC) < 0) {
		r = -errno;
		close(held[0]);
		close(held[1]);
		return r;
	}
	fflush(NULL); /* nothing that waits to be printed is printed twice */
	pid = fork();
	if (pid == 0) {
		close(held[1]);
		become(argv, c, stdout_fd, held[0], report[1]);
	}
	r = pid < 0 ? -errno : 0;
	close(held[0]);
	close(report[1]);
	if (r == 0)
		r = hold(pid, held[1], report[0], argv[0], reterr);
	else
		errinfo_set(reterr, r, "cannot start the command: %s", strerror(-r));
	close(held[1]);
	close(report[0]);
	if (r == 0)
		*ret_pid = pid;
	return r;
}

int launch_release(pid_t pid)
{
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 ? -errno : 0;
}

void launch_abort(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

int launch_exit_code(int status)
{
	return WIFSIGNALED(status) ? LAUNCH_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

#define READY    'r'
#define RECORDED 'c'
#define NOTHING  'n'

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct watch { /* of trace_command_supervise() */
	struct trace_command *command;
	const char *db_path;
	int status; /* of the command */
	bool command_ended, tracer_ended;
};

static void say(const char *fmt, ...) _printf_(1, 2);
static void say(const char *fmt, ...)
{
	va_list ap;

	fputs("ingero: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* SIGCHLD besides: nothing is polled. */
static void block_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
		sigaddset(ret, passed_on[i]);
	sigprocmask(SIG_BLOCK, ret, NULL);
}

/* ---- begin ---- */

static int check_flags(const struct trace_settings *s, struct errinfo *reterr)
{
	if (s->user)
		return errinfo_set(reterr, -EINVAL,
			"--user cannot be combined with a command, which is traced with its children: use --pid for other processes");
	return 0;
}

int trace_command_begin(struct trace_command *c, const struct trace_settings *s,
	struct trace_plan *plan, struct errinfo *reterr)
{
	struct tracer_settings *ts = &plan->tracer;
	sigset_t set;
	int r = check_flags(s, reterr);

	r = r ?: caller_find(&c->caller, reterr);
	if (r < 0)
		return r;
	c->folder = getcwd(NULL, 0);
	if (!c->folder)
		return errinfo_set(reterr, -errno, "cannot find the working folder: %s",
			errno == ENOENT ? "it was deleted; run the command in another one"
					: strerror(errno));
	block_signals(&set);
	/* the lines of --json are alone on stdout */
	r = launch_begin(
		c->argv, &c->caller, plan->json ? STDERR_FILENO : STDOUT_FILENO, &c->pid, reterr);
	if (r < 0)
		return r;
	if (c->caller.note[0])
		say("%s", c->caller.note);
	c->db = s->db;
	c->facts = (struct discover_command){
		.argv = c->argv, .envp = c->caller.envp, .folder = c->folder};
	memcpy(c->pids, s->pids.pid, sizeof(s->pids.pid));
	c->pids[s->pids.count] = (uint32_t)c->pid;
	ts->filter = FILTER_PIDS;
	ts->pids = c->pids;
	ts->pid_count = s->pids.count + 1;
	ts->command = &c->facts;
	ts->command_pid = (uint32_t)c->pid;
	return 0;
}

int trace_command_fork(struct trace_command *c, struct errinfo *reterr)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errinfo_set(reterr, -errno, "cannot start the tracer: %s", strerror(errno));
	c->tracer = fork();
	if (c->tracer < 0) {
		int r = -errno;

		close(pair[0]);
		close(pair[1]);
		return errinfo_set(reterr, r, "cannot start the tracer: %s", strerror(-r));
	}
	c->channel = pair[c->tracer ? 0 : 1];
	close(pair[c->tracer ? 1 : 0]);
	return c->tracer ? 1 : 0;
}

void trace_command_done(struct trace_command *c)
{
	caller_done(&c->caller);
	free(c->folder);
}

/* ---- the tracer's side ---- */

/* If nobody is there to hear it, the run is over anyway. */
static void tell(const struct trace_command *c, char byte)
{
	(void)send(c->channel, &byte, 1, MSG_NOSIGNAL);
}

void trace_command_ready(struct trace_command *c)
{
	tell(c, READY);
}

void trace_command_ended(struct trace_command *c, bool recorded)
{
	tell(c, recorded ? RECORDED : NOTHING);
}

bool trace_command_is_over(const struct trace_command *c)
{
	struct pollfd p = {.fd = c->channel, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* ---- supervise ---- */

static bool hear(const struct trace_command *c, char want)
{
	char byte = 0;
	ssize_t n;

	do
		n = recv(c->channel, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1 && byte == want;
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return launch_exit_code(status);
}

/* What is to be typed to see it again, done: as a program of its own, since this one does not read recordings. Its
 * words are for people, like all of ours beside the command's own. */
static void explain(const struct watch *w)
{
	_cleanup_buf_ struct buf again = BUF_INIT(PATH_MAX);
	const char *argv[] = {"ingero", "explain", "--db", w->db_path, "--again", NULL, NULL};
	pid_t pid;

	if (w->command->db) {
		buf_puts(&again, " --db ");
		text_escape_terminal(&again, w->command->db);
	}
	argv[5] = buf_str(&again);
	fputc('\n', stderr);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (caller_variable(&w->command->caller, "NO_COLOR"))
			setenv("NO_COLOR", "1", 1);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execv("/proc/self/exe", (char *const *)argv);
		_exit(LAUNCH_NOT_EXECUTABLE);
	}
	if (pid > 0)
		wait_for(pid);
}

/* The tracer has ended, or is to: the channel has what it said. */
static void finish_tracer(struct watch *w)
{
	bool recorded;
	int code;

	shutdown(w->command->channel, SHUT_WR);
	recorded = hear(w->command, RECORDED);
	code = wait_for(w->command->tracer);
	w->tracer_ended = true;
	if (code > LAUNCH_SIGNAL)
		say("the tracer was ended by signal %d: the recording has no clean end",
			code - LAUNCH_SIGNAL);
	if (recorded)
		explain(w);
}

static void look_around(struct watch *w)
{
	struct pollfd p = {.fd = w->command->channel, .events = POLLIN};

	w->command_ended = waitpid(w->command->pid, &w->status, WNOHANG) == w->command->pid;
	if (!w->tracer_ended && !w->command_ended && poll(&p, 1, 0) > 0) {
		finish_tracer(w); /* --duration is over, or it failed and said so */
		say("tracing has ended; the command continues");
	}
}

static bool is_for_us(const siginfo_t *i)
{
	return i->si_signo != SIGCHLD &&
	       (i->si_code == SI_USER || i->si_code == SI_TKILL || i->si_code == SI_QUEUE);
}

/* How it ended, unless it ended well. */
static void say_end(const struct watch *w)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	const char *name = w->command->argv[0];

	text_escape_terminal_len(&b, name, strnlen(name, 100));
	if (WIFSIGNALED(w->status))
		say("%s was ended by signal %d (%s)", buf_str(&b), WTERMSIG(w->status),
			strsignal(WTERMSIG(w->status)));
	else if (WEXITSTATUS(w->status))
		say("%s ended with exit status %d", buf_str(&b), WEXITSTATUS(w->status));
}

int trace_command_supervise(struct trace_command *c, const char *db_path)
{
	struct watch w = {.command = c, .db_path = db_path};
	siginfo_t info;
	sigset_t set;
	int code;

	block_signals(&set);
	if (!hear(c, READY)) {
		code = wait_for(c->tracer);
		launch_abort(c->pid);
		return code ? code : EXIT_BUG;
	}
	/* On failure it was killed already; if not, it shall not be held for good. */
	if (launch_release(c->pid) < 0)
		kill(c->pid, SIGKILL);
	for (;;) {
		look_around(&w);
		if (w.command_ended)
			break;
		if (sigwaitinfo(&set, &info) > 0 && is_for_us(&info))
			kill(c->pid, info.si_signo);
	}
	say_end(&w);
	if (!w.tracer_ended)
		finish_tracer(&w);
	close(c->channel);
	return launch_exit_code(w.status);
}
