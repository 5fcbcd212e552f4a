// SPDX-License-Identifier: Apache-2.0
/* workload.c - see workload.h. The child dies with the benchmark (PDEATHSIG). CPU time is taken
 * from the scheduler's own nanosecond sums: from /proc at the gate, from wait4() at the end. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX     16
#define GATE_WAIT_MS 10000
#define EXIT_SKIPPED 77
#define RESULT_MAX   512

void workload_die(const char *what, int err)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

void workload_need_root(void)
{
	if (geteuid() == 0)
		return;
	printf("# skip: loading BPF programs needs root\n");
	exit(EXIT_SKIPPED);
}

static void nap_ms(long ms)
{
	const struct timespec wait_briefly = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&wait_briefly, NULL);
}

static uint64_t cpu_used_ns(pid_t pid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu", &ns) != 1)
		workload_die(path, errno);
	fclose(f);
	return ns;
}

static void run_child(
	const struct workload *w, const char *program, const char *const *args, int out)
{
	const char *argv[ARGS_MAX] = {program};
	int n = 1;

	while (*args && n < ARGS_MAX - 3)
		argv[n++] = *args++;
	argv[n++] = "--wait-start";
	argv[n++] = w->path;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	execv(program, (char *const *)argv);
	_exit(127);
}

void workload_start(struct workload *w, const char *program, const char *const *args)
{
	char ready[128];
	int ends[2];

	*w = (struct workload){.folder = "/tmp/ingero-bench-XXXXXX"};
	if (!mkdtemp(w->folder) || pipe2(ends, O_CLOEXEC) < 0)
		workload_die(w->folder, errno);
	snprintf(w->path, sizeof(w->path), "%s/go", w->folder);
	snprintf(ready, sizeof(ready), "%s.ready", w->path);
	w->out = ends[0];
	w->pid = fork();
	if (w->pid < 0)
		workload_die("fork", errno);
	if (w->pid == 0)
		run_child(w, program, args, ends[1]);
	close(ends[1]);
	for (int i = 0; access(ready, F_OK) < 0; i++) {
		if (i == GATE_WAIT_MS || waitpid(w->pid, NULL, WNOHANG) == w->pid)
			workload_die(program, ETIMEDOUT);
		nap_ms(1);
	}
	unlink(ready);
	w->cpu_before_ns = cpu_used_ns(w->pid);
}

void workload_go(struct workload *w)
{
	int fd = open(w->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		workload_die(w->path, errno);
	close(fd);
}

static double number_of(const char *json, const char *key)
{
	const char *at = strstr(json, key);

	if (!at)
		workload_die(key, ENODATA);
	return strtod(at + strlen(key), NULL);
}

struct workload_result workload_wait(struct workload *w)
{
	struct workload_result r = {0};
	char json[RESULT_MAX] = "";
	size_t len = 0;
	ssize_t n;
	struct rusage use;
	uint64_t cpu_us;
	int status;

	while (len < sizeof(json) - 1 && (n = read(w->out, json + len, sizeof(json) - 1 - len)) > 0)
		len += (size_t)n;
	close(w->out);
	if (wait4(w->pid, &status, 0, &use) != w->pid || status)
		workload_die("sim-calls failed", ECHILD);
	unlink(w->path);
	rmdir(w->folder);
	r.wall_ns = number_of(json, "\"ns_per_call\":");
	r.seconds = number_of(json, "\"seconds\":");
	r.calls = (uint64_t)number_of(json, "\"calls\":");
	cpu_us = (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
		 (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
	r.cpu_ns = ((double)cpu_us * 1000 - (double)w->cpu_before_ns) / (double)r.calls;
	return r;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double workload_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
