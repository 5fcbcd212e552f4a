/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - starts and ends the programs of a demo. Only processes started here are ended, each is
 * waited for, and they die with this process (PDEATHSIG) if it is killed. */
#include "cli/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define INSTALLED_DIR "/usr/local/lib/ingero/sim"
#define END_WAIT_MS   2000
#define FILE_WAIT_MS  10000

static int has_sim(const char *dir)
{
	char path[1200];

	snprintf(path, sizeof(path), "%s/sim-train", dir);
	return access(path, X_OK) == 0;
}

int stage_find_sim(char *out, size_t size, struct errinfo *reterr)
{
	const char *env = getenv("INGERO_SIM_DIR");
	char exe[1024], *slash;
	ssize_t n;

	if (env) {
		snprintf(out, size, "%s", env);
		if (has_sim(out))
			return 0;
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n > 0) {
		exe[n] = 0;
		slash = strrchr(exe, '/');
		if (slash)
			*slash = 0;
		snprintf(out, size, "%s/sim", exe);
		if (has_sim(out))
			return 0;
	}
	snprintf(out, size, "%s", INSTALLED_DIR);
	if (has_sim(out))
		return 0;
	return errinfo_set(reterr, -ENOENT,
		"stand-in GPU not found (sim-train beside ingero, in %s, or in $INGERO_SIM_DIR)",
		INSTALLED_DIR);
}

int stage_open(struct stage *s, struct errinfo *reterr)
{
	int r;

	*s = (struct stage){0};
	r = stage_find_sim(s->sim_dir, sizeof(s->sim_dir), reterr);
	if (r < 0)
		return r;
	/* not /tmp: it may be a tmpfs, where nothing waits for a disk */
	snprintf(s->work_dir, sizeof(s->work_dir), "/var/tmp/ingero-demo-XXXXXX");
	if (!mkdtemp(s->work_dir)) {
		r = -errno;
		s->work_dir[0] = 0;
		return errinfo_set(
			reterr, r, "cannot create a working folder in /var/tmp: %s", strerror(-r));
	}
	return 0;
}

/* @argv[0] is to be the program; settings of the environment stand before it. */
static void run_actor(const struct stage *s, char *path, char **argv)
{
	int null = open("/dev/null", O_RDWR);
	char log[128];
	sigset_t none;
	int out;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(log, sizeof(log), "%s/actors.log", s->work_dir);
	out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(null, STDIN_FILENO);
	dup2(out >= 0 ? out : null, STDOUT_FILENO);
	dup2(out >= 0 ? out : null, STDERR_FILENO);
	/* where a driver is installed, its folder may be named there */
	setenv("LD_LIBRARY_PATH", s->sim_dir, true);
	while (argv[1] && argv[1][0] != '-' && strchr(argv[1], '='))
		putenv(*++argv);
	argv[0] = path;
	execv(path, argv);
	_exit(127);
}

static bool has_python(void)
{
	char path[1024], *save, *folders = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin");
	bool found = false;

	for (char *f = folders ? strtok_r(folders, ":", &save) : NULL; f && !found;
		f = strtok_r(NULL, ":", &save)) {
		snprintf(path, sizeof(path), "%s/python3", f);
		found = access(path, X_OK) == 0;
	}
	free(folders);
	return found;
}

static void put_path(const struct stage *s, const char *program, char *out, size_t size)
{
	size_t n = strlen(program);
	bool is_script = n > 3 && strcmp(program + n - 3, ".py") == 0;

	snprintf(out, size, "%s/%s", s->sim_dir, program);
	if (is_script && (access(out, X_OK) < 0 || !has_python()))
		snprintf(out, size, "%s/%.*s", s->sim_dir, (int)n - 3, program);
}

int stage_start(
	struct stage *s, const char *program, const char *const *args, struct errinfo *reterr)
{
	char path[1200], texts[STAGE_ARGS][256], *argv[STAGE_ARGS + 2] = {path};
	pid_t pid;
	int n;

	if (s->count == STAGE_ACTORS)
		return -ENOBUFS;
	put_path(s, program, path, sizeof(path));
	for (n = 0; args[n] && n < STAGE_ARGS; n++) {
		const char *w = strstr(args[n], "%w");

		if (w)
			snprintf(texts[n], sizeof(texts[n]), "%.*s%s%s", (int)(w - args[n]),
				args[n], s->work_dir, w + 2);
		else
			snprintf(texts[n], sizeof(texts[n]), "%s", args[n]);
		argv[n + 1] = texts[n];
	}
	pid = fork();
	if (pid < 0)
		return errinfo_set(reterr, -errno, "cannot start %s: %s", program, strerror(errno));
	if (pid == 0)
		run_actor(s, path, argv);
	s->actors[s->count] = pid;
	return (int)s->count++;
}

int stage_wait_file(const struct stage *s, const char *name, struct errinfo *reterr)
{
	const struct timespec wait_briefly = {.tv_nsec = 5 * (long)NS_PER_MS};
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", s->work_dir, name);
	for (int i = 0; i < FILE_WAIT_MS / 5; i++) {
		if (access(path, F_OK) == 0)
			return 0;
		nanosleep(&wait_briefly, NULL);
	}
	return errinfo_set(
		reterr, -ETIMEDOUT, "the stand-in GPU's program did not start (%s)", path);
}

void stage_touch(const struct stage *s, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", s->work_dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

pid_t stage_pid(const struct stage *s, size_t actor)
{
	return s->actors[actor];
}

void stage_end(struct stage *s, size_t actor)
{
	const struct timespec wait_briefly = {.tv_nsec = 10 * (long)NS_PER_MS};
	pid_t pid = s->actors[actor];

	if (!pid)
		return;
	s->actors[actor] = 0;
	kill(pid, SIGTERM);
	for (int i = 0; i < END_WAIT_MS / 10; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		nanosleep(&wait_briefly, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void remove_folder(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(path);
}

void stage_close(struct stage *s)
{
	for (size_t i = 0; i < s->count; i++)
		stage_end(s, i);
	if (s->work_dir[0])
		remove_folder(s->work_dir);
}
