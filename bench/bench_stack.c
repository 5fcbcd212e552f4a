// SPDX-License-Identifier: Apache-2.0
/* bench_stack.c - what a call stack costs: the caller of a function whose every call is recorded
 * (cudaStreamSynchronize), in C and in Python, with stacks and without, in turns. The main figure
 * is the kernel's own account of the probe's program (BPF_ENABLE_STATS), which other processes
 * hardly disturb; the second one is the caller's CPU time. Then what the tracer holds in memory for
 * it.
 *
 * Both kinds of round have the account switched on, which itself costs each run of a program two
 * clock readings. Walks are measured from a second after the first call on, when all tables are
 * there.
 *
 *   bench_stack INGERO SIM-CALLS PYTHON SCRIPT LIBCUDART [ROUNDS] */
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

#include <bpf/bpf.h>

#include "base/macros.h"
#include "workload.h"

#define ROUNDS_MAX 16
#define WARMUP_S   1.0
#define MEASURED_S 1.5
#define C_RATE     "20000" /* calls a second, so that the tracer keeps up */
#define BUDGET_NS  1500
#define OUTPUT_MAX 65536

static const char *ingero, *sim_calls, *python, *script, *libcudart;

static void nap_s(double s)
{
	const struct timespec wait_briefly = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

	nanosleep(&wait_briefly, NULL);
}

/* ---- the kernel's account ---- */

#define PROGRAMS_MAX 64

struct account {
	uint64_t runs, ns;
	uint32_t ids[PROGRAMS_MAX]; /* that are in it */
	size_t count;
};

/* One program's, if it is one for calls; links name their program too. */
static void account_add(struct account *a, uint32_t id)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int fd;

	for (size_t i = 0; i < a->count; i++)
		if (a->ids[i] == id)
			return;
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0 || a->count == PROGRAMS_MAX)
		return;
	a->ids[a->count++] = id;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && !strncmp(info.name, "call_", 5)) {
		a->runs += info.run_cnt;
		a->ns += info.run_time_ns;
	}
	close(fd);
}

/* Of the programs that process @pid holds: others may trace as well. */
static struct account account_read(pid_t pid)
{
	struct account a = {0};
	char path[512], line[128];
	struct dirent *e;
	uint32_t id;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	d = opendir(path);
	if (!d)
		workload_die(path, errno);
	while ((e = readdir(d))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "prog_id: %u", &id) == 1)
				account_add(&a, id);
		if (f)
			fclose(f);
	}
	closedir(d);
	return a;
}

/* ---- the tracer ---- */

struct tracer {
	pid_t pid;
	char folder[64], db[96], out[96];
};

static void tracer_start(struct tracer *t, pid_t target, bool with_stacks)
{
	char pid_text[16];

	*t = (struct tracer){.folder = "/var/tmp/bench_stack-XXXXXX"};
	if (!mkdtemp(t->folder))
		workload_die(t->folder, errno);
	snprintf(t->db, sizeof(t->db), "%s/db", t->folder);
	snprintf(t->out, sizeof(t->out), "%s/out", t->folder);
	snprintf(pid_text, sizeof(pid_text), "%d", (int)target);
	t->pid = fork();
	if (t->pid < 0)
		workload_die("fork", errno);
	if (t->pid == 0) {
		int out = open(t->out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out, STDOUT_FILENO);
		execl(ingero, ingero, "trace", "--pid", pid_text, "--db", t->db,
			"--overhead-budget", "0", with_stacks ? "--stack" : "--stack=false", NULL);
		_exit(127);
	}
}

/* What it has printed so far, as text. */
static const char *tracer_output(const struct tracer *t)
{
	static char text[OUTPUT_MAX];
	FILE *f = fopen(t->out, "re");
	size_t n = 0;

	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = 0;
	return text;
}

static void tracer_wait_ready(const struct tracer *t)
{
	for (int i = 0; !strstr(tracer_output(t), "Recording to"); i++) {
		if (i == 1000 || waitpid(t->pid, NULL, WNOHANG) == t->pid)
			workload_die("ingero trace does not start", ETIMEDOUT);
		nap_s(0.01);
	}
}

static void tracer_stop(const struct tracer *t)
{
	int status;

	kill(t->pid, SIGTERM);
	if (waitpid(t->pid, &status, 0) != t->pid || status)
		workload_die("ingero trace failed", ECHILD);
}

static void tracer_clean(const struct tracer *t)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
	char name[160];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", t->db, suffixes[i]);
		unlink(name);
	}
	unlink(t->out);
	rmdir(t->folder);
}

static double rss_mb(pid_t pid)
{
	char path[64], line[256];
	double kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && kb < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			kb = strtod(line + 6, NULL);
	if (f)
		fclose(f);
	return kb / 1024;
}

/* The symbol process is its only child. */
static pid_t child_of(pid_t pid)
{
	char path[96];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	return child;
}

/* ---- rounds ---- */

struct round {
	double probe_ns; /* per call, of all programs it ran */
	double cpu_ns;   /* per call, of the process */
};

struct held { /* in memory, while stacks were taken */
	double tracer_mb, symbol_mb;
	char line[160]; /* what the tracer said of its stacks */
};

static void held_read(const struct tracer *t, struct held *h)
{
	const char *at = strstr(tracer_output(t), "  Stacks: ");

	snprintf(h->line, sizeof(h->line), "%.*s", at ? (int)strcspn(at + 2, "\n") : 0,
		at ? at + 2 : "");
}

static struct round run_round(bool is_python, bool with_stacks, struct held *h)
{
	const char *const c_args[] = {
		"--op", "stream-sync", "--rate", C_RATE, "--duration", "4", NULL};
	const char *const python_args[] = {script, libcudart, "4", NULL};
	struct account before, after, whole;
	struct workload_result r;
	struct round round;
	struct workload w;
	struct tracer t;

	workload_start(&w, is_python ? python : sim_calls, is_python ? python_args : c_args);
	tracer_start(&t, w.pid, with_stacks);
	tracer_wait_ready(&t);
	workload_go(&w);
	nap_s(WARMUP_S);
	before = account_read(t.pid);
	nap_s(MEASURED_S);
	after = account_read(t.pid);
	if (with_stacks) {
		h->tracer_mb = rss_mb(t.pid);
		h->symbol_mb = rss_mb(child_of(t.pid));
	}
	r = workload_wait(&w);
	whole = account_read(t.pid);
	tracer_stop(&t);
	if (with_stacks)
		held_read(&t, h);
	tracer_clean(&t);
	if (after.runs <= before.runs)
		workload_die("the probes did not run", ENODATA);
	/* programs that run for one call: entry and return of the function and of the driver's */
	round.probe_ns = (double)(after.ns - before.ns) / (double)(after.runs - before.runs) *
			 (double)whole.runs / (double)r.calls;
	round.cpu_ns = r.cpu_ns;
	return round;
}

static void run_rounds(const char *name, bool is_python, int rounds, double budget_ns)
{
	double probe[2][ROUNDS_MAX], cpu[2][ROUNDS_MAX], off, on;
	struct held h = {0};

	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < 2; k++) {
			struct round r = run_round(is_python, k, &h);

			probe[k][i] = r.probe_ns;
			cpu[k][i] = r.cpu_ns;
		}
	off = workload_median(probe[0], (size_t)rounds);
	on = workload_median(probe[1], (size_t)rounds);
	printf("stack_%s_probe_ns %.0f without, %.0f with: %.2f times, %.0f ns added", name, off,
		on, on / off, on - off);
	if (budget_ns > 0)
		printf(" (budget %.0f)", budget_ns);
	printf("\nstack_%s_cpu_ns %.0f without, %.0f with, per call, of the caller\n", name,
		workload_median(cpu[0], (size_t)rounds), workload_median(cpu[1], (size_t)rounds));
	printf("stack_%s_memory tracer %.1f MB, symbol process %.1f MB; %s\n", name, h.tracer_mb,
		h.symbol_mb, h.line);
}

int main(int argc, char **argv)
{
	int rounds = argc > 6 ? atoi(argv[6]) : 3, stats;

	if (argc < 6 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_stack INGERO SIM-CALLS PYTHON SCRIPT LIBCUDART "
				"[ROUNDS]\n");
		return 64;
	}
	workload_need_root();
	ingero = argv[1];
	sim_calls = argv[2];
	python = argv[3];
	script = argv[4];
	libcudart = argv[5];
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME); /* ends with this process */
	if (stats < 0)
		workload_die("the kernel keeps no account of programs", errno);
	run_rounds("c", false, rounds, BUDGET_NS);
	run_rounds("python", true, rounds, 0);
	close(stats);
	return 0;
}
