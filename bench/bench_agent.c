// SPDX-License-Identifier: Apache-2.0
/* bench_agent.c - what `ingero trace` itself uses while a process makes 100,000 launches a second:
 * CPU time per second (and what of it the thread takes that explains meanwhile) and resident
 * memory, of the real program, read from /proc over ten seconds after a warm-up. Then how long it
 * takes to stop.
 *
 *   bench_agent INGERO SIM-CALLS [RATE [SECONDS]] */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "workload.h"

#define WARMUP_S 3

static void nap_s(double s)
{
	const struct timespec wait_briefly = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

	nanosleep(&wait_briefly, NULL);
}

/* Seconds of CPU of the whole process: fields 14 and 15, in ticks; the name may hold spaces. */
static double cpu_seconds(pid_t pid)
{
	unsigned long user = 0, sys = 0;
	char path[64], text[1024], *end;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		workload_die(path, errno);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			    &sys) != 2)
		workload_die(path, EBADMSG);
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

static double status_mb(pid_t pid, const char *key)
{
	char path[64], line[256];
	double kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		workload_die(path, errno);
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kb = strtod(line + strlen(key), NULL);
	fclose(f);
	return kb / 1024;
}

static void read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");

	line[0] = 0;
	if (f && !fgets(line, size, f))
		line[0] = 0;
	if (f)
		fclose(f);
}

/* Seconds of CPU of the thread that explains while tracing; 0 if there is none. */
static double explain_seconds(pid_t pid)
{
	char path[160], line[64];
	struct dirent *e;
	double ns = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d)
		workload_die(path, errno);
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", (int)pid, e->d_name);
		read_line(path, line, sizeof(line));
		if (strcmp(line, "ingero-explain\n") != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", (int)pid, e->d_name);
		read_line(path, line, sizeof(line));
		ns += strtod(line, NULL);
	}
	closedir(d);
	return ns / 1e9;
}

static pid_t start_trace(const char *ingero, pid_t target, const char *db)
{
	char pid_text[16];
	pid_t pid = fork();

	if (pid < 0)
		workload_die("fork", errno);
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		snprintf(pid_text, sizeof(pid_text), "%d", (int)target);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, STDOUT_FILENO);
		execl(ingero, ingero, "trace", "--pid", pid_text, "--db", db, NULL);
		_exit(127);
	}
	return pid;
}

static void remove_db(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
	char name[160];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

int main(int argc, char **argv)
{
	const char *rate = argc > 3 ? argv[3] : "100000";
	double seconds = argc > 4 ? strtod(argv[4], NULL) : 10, cpu, explain, stop;
	char db[96], duration[16];
	struct workload_result r;
	struct workload w;
	mono_time begin;
	pid_t agent;
	int status;

	if (argc < 3 || seconds < 1) {
		fprintf(stderr, "usage: bench_agent INGERO SIM-CALLS [RATE [SECONDS]]\n");
		return 64;
	}
	workload_need_root();
	snprintf(db, sizeof(db), "/tmp/bench_agent-%ld.db", (long)getpid());
	snprintf(duration, sizeof(duration), "%.0f", seconds + WARMUP_S + 1);
	workload_start(
		&w, argv[2], (const char *const[]){"--rate", rate, "--duration", duration, NULL});
	agent = start_trace(argv[1], w.pid, db);
	nap_s(1);
	workload_go(&w);
	nap_s(WARMUP_S - 1);
	begin = mono_now();
	cpu = cpu_seconds(agent);
	explain = explain_seconds(agent);
	nap_s(seconds);
	explain = (explain_seconds(agent) - explain) * 1e9 / (double)(mono_now().ns - begin.ns);
	cpu = (cpu_seconds(agent) - cpu) * 1e9 / (double)(mono_now().ns - begin.ns);
	printf("agent_rss_mb %.1f (most %.1f; budget 60)\n", status_mb(agent, "VmRSS:"),
		status_mb(agent, "VmHWM:"));
	begin = mono_now();
	kill(agent, SIGTERM);
	if (waitpid(agent, &status, 0) != agent || status)
		workload_die("ingero trace failed", ECHILD);
	stop = (double)(mono_now().ns - begin.ns) / 1e9;
	r = workload_wait(&w);
	printf("agent_stop_s %.2f (budget 2)\n", stop);
	printf("agent_cpu %.4f (CPU seconds per second at %.0f launches/s; budget 0.05)\n", cpu,
		(double)r.calls / r.seconds);
	printf("agent_explain_cpu %.4f (of this, explaining while tracing; budget 0.02)\n",
		explain);
	remove_db(db);
	return 0;
}
