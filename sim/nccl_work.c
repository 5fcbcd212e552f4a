// SPDX-License-Identifier: Apache-2.0
/* nccl_work.c - sim-nccl: ranks that meet in collectives. Without RANK in the environment it starts
 * --ranks of them, as processes forked before any CUDA call (or threads, or all in one with --init
 * all); with RANK and WORLD_SIZE it is one of them, and --id-file hands the unique id around. Each
 * rank prints one line of JSON. With --duration ranks stop by their own clocks, so the last step of
 * some may wait for others in vain until a signal; --steps has no such end. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"
#include "ranks.h"
#include "workload.h"

#define NOBODY UINT64_MAX

static struct rank_settings settings = {
	.ranks = 2,
	.steps = 100,
	.kernel_us = 200,
	.count = 1 << 18,
	.delay_every = 1,
	.delay_rank = NOBODY,
	.hang_rank = NOBODY,
	.mismatch_rank = NOBODY,
	.collectives = "allreduce",
	.init = "rank",
};

#define FIELD(f) offsetof(struct rank_settings, f)
static const struct option_row rows[] = {
	{"ranks", OPTION_NUMBER, FIELD(ranks), "ranks (2)", 1, RANKS_MAX, 0},
	{"steps", OPTION_NUMBER, FIELD(steps), "steps of each rank (100)", 1, 1e12, 0},
	{"duration", OPTION_NUMBER, FIELD(duration_s), "stop after seconds", 1, 86400, 0},
	{"collectives", OPTION_TEXT, FIELD(collectives),
		"of a step, by commas (allreduce); list shows all", 0, 0, 0},
	{"count", OPTION_NUMBER, FIELD(count), "elements of a collective (262144)", 1, 1e9, 0},
	{"kernel-us", OPTION_NUMBER, FIELD(kernel_us), "kernel before them (200)", 0, 1e9, 0},
	{"init", OPTION_TEXT, FIELD(init), "rank, config, all, scalable, split or grow (rank)", 0,
		0, 0},
	{"nonblocking", OPTION_SWITCH, FIELD(nonblocking), "with --init config", 0, 0, 0},
	{"split", OPTION_SWITCH, FIELD(split), "also in two sub-communicators, even and odd", 0, 0,
		0},
	{"config", OPTION_SWITCH, FIELD(config),
		"collectives by their functions with a configuration", 0, 0, 0},
	{"group", OPTION_SWITCH, FIELD(group), "a step's collectives in one group", 0, 0, 0},
	{"threads", OPTION_SWITCH, FIELD(threads), "ranks are threads, not processes", 0, 0, 0},
	{"delay-rank", OPTION_NUMBER, FIELD(delay_rank), "this rank comes late", 0, RANKS_MAX, 0},
	{"delay-file", OPTION_TEXT, FIELD(delay_file),
		"instead of sleeping, write this file (32 MiB, past the page cache)", 0, 0, 0},
	{"delay-rotate", OPTION_SWITCH, FIELD(delay_rotate), "another rank each time", 0, 0, 0},
	{"delay-us", OPTION_NUMBER, FIELD(delay_us), "by so much", 0, 1e9, 0},
	{"delay-every", OPTION_NUMBER, FIELD(delay_every), "every N steps (1)", 1, 1e9, 0},
	{"delay-from", OPTION_NUMBER, FIELD(delay_from), "from this step on (0)", 0, 1e9, 0},
	{"hang-rank", OPTION_NUMBER, FIELD(hang_rank), "this rank stops", 0, RANKS_MAX, 0},
	{"hang-step", OPTION_NUMBER, FIELD(hang_step), "at this step (0)", 0, 1e9, 0},
	{"mismatch-rank", OPTION_NUMBER, FIELD(mismatch_rank), "this rank calls another collective",
		0, RANKS_MAX, 0},
	{"mismatch-step", OPTION_NUMBER, FIELD(mismatch_step), "at this step (0)", 0, 1e9, 0},
	{"id-file", OPTION_TEXT, FIELD(id_file),
		"with RANK and WORLD_SIZE: rank 0 writes the unique id here", 0, 0, 0},
	{"wait-start", OPTION_TEXT, FIELD(wait_start), "create FILE.ready, wait for FILE", 0, 0, 0},
	{NULL, 0, 0, NULL, 0, 0, 0},
};

static void bad_usage(const char *why)
{
	fprintf(stderr, "sim-nccl: %s\n", why);
	exit(64);
}

static void settings_check(void)
{
	static const char *const inits[] = {"rank", "config", "all", "scalable", "split", "grow"};
	const char *at = settings.collectives;
	bool known = false;

	if (strcmp(at, "list") == 0) {
		rank_ops_print();
		exit(0);
	}
	for (size_t i = 0; i < sizeof(inits) / sizeof(inits[0]); i++)
		known |= strcmp(settings.init, inits[i]) == 0;
	if (!known)
		bad_usage("--init is rank, config, all, scalable, split or grow");
	if (strcmp(settings.init, "all") == 0 && settings.split)
		bad_usage("--split needs a thread for each rank: not with --init all");
	if (strcmp(settings.init, "grow") == 0) {
		if (settings.ranks < 2 || getenv("RANK"))
			bad_usage("--init grow takes two ranks or more that are started together");
		settings.grown = mmap(NULL, sizeof(*settings.grown), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (settings.grown == MAP_FAILED)
			bad_usage("no memory that ranks can share");
	}
	while (*at) {
		size_t n = strcspn(at, ",");
		int op = rank_op_of(at, n);

		if (op < 0 || settings.op_count == RANKS_MAX_OPS)
			bad_usage("--collectives list shows what there is, at most 16 of them");
		settings.ops[settings.op_count++] = op;
		at += n + (at[n] == ',');
	}
}

/* Prints and lets go of what the rank measured. */
static int result_print(struct rank *r, uint64_t spent_ns)
{
	uint64_t longest = 0, total = 0;

	for (uint64_t i = 0; i < r->steps; i++) {
		total += r->sync_ns[i];
		longest = r->sync_ns[i] > longest ? r->sync_ns[i] : longest;
	}
	if (r->failed)
		fprintf(stderr, "sim-nccl: rank %d: %s %d\n", r->number,
			r->failed >= 100 ? "CUDA error" : ncclGetErrorString(r->failed),
			r->failed >= 100 ? r->failed - 100 : r->failed);
	printf("{\"rank\":%d,\"nranks\":%d,\"pid\":%d,\"steps\":%llu,\"seconds\":%.6f,"
	       "\"sync_total_us\":%.1f,\"sync_p50_us\":%.1f,\"sync_max_us\":%.1f,\"error\":%d}\n",
		r->number, r->nranks, getpid(), (unsigned long long)r->steps,
		(double)spent_ns / 1e9, (double)total / 1e3,
		r->steps ? (double)workload_percentile(r->sync_ns, r->steps, 50) / 1e3 : 0.0,
		(double)longest / 1e3, r->failed);
	fflush(stdout);
	free(r->sync_ns);
	return r->failed != 0;
}

static struct rank rank_of(int number, int nranks, const ncclUniqueId *id)
{
	return (struct rank){.settings = &settings, .id = id, .number = number, .nranks = nranks};
}

static int one_run(int number, int nranks, const ncclUniqueId *id)
{
	struct rank r = rank_of(number, nranks, id);
	uint64_t start = workload_now_ns();

	rank_run(&r);
	return result_print(&r, workload_now_ns() - start);
}

static void *thread_run(void *arg)
{
	rank_run(arg);
	return NULL;
}

/* Ranks of one process: a thread each, or with --init all one thread for all. */
static int process_run(int nranks, const ncclUniqueId *id)
{
	static struct rank ranks[RANKS_MAX];
	pthread_t threads[RANKS_MAX];
	uint64_t start = workload_now_ns();
	bool all = strcmp(settings.init, "all") == 0;
	int failed = 0, made = 0;

	for (int i = 0; i < nranks; i++)
		ranks[i] = rank_of(i, nranks, id);
	if (all)
		rank_run(ranks);
	while (!all && made < nranks &&
		pthread_create(&threads[made], NULL, thread_run, &ranks[made]) == 0)
		made++;
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < nranks; i++)
		failed |= result_print(&ranks[i], workload_now_ns() - start);
	return failed;
}

/* A child's own signal comes from the parent, so that one kill ends all. */
static int processes_run(int nranks, const ncclUniqueId *id)
{
	pid_t children[RANKS_MAX];
	int failed = 0, made = 0, left, status;

	fflush(stdout);
	for (; made < nranks; made++) {
		children[made] = fork();
		if (children[made] == 0) {
			prctl(PR_SET_PDEATHSIG,
				SIGKILL); /* also where the parent was killed outright */
			exit(one_run(made, nranks, id));
		}
		if (children[made] < 0)
			return 1;
	}
	for (left = made; left > 0;) {
		if (wait(&status) > 0) {
			left--;
			failed |= status != 0;
		} else if (errno == EINTR && workload_stopped) {
			for (int i = 0; i < made; i++)
				kill(children[i], SIGTERM);
		}
	}
	return failed;
}

/* The id appears under its name when complete. */
static int id_exchange(int rank, const char *path, ncclUniqueId *ret)
{
	char tmp[4096];
	FILE *f;
	int r = 0;

	if (rank == 0) {
		snprintf(tmp, sizeof(tmp), "%s.new", path);
		if (ncclGetUniqueId(ret) != ncclSuccess || (f = fopen(tmp, "we")) == NULL)
			return -1;
		r = fwrite(ret, sizeof(*ret), 1, f) == 1 ? 0 : -1;
		r |= fclose(f);
		return r ? r : rename(tmp, path);
	}
	while (access(path, R_OK) < 0 && !workload_stopped)
		workload_sleep_until(workload_now_ns() + 5000000);
	f = fopen(path, "re");
	if (!f)
		return -1;
	r = fread(ret, sizeof(*ret), 1, f) == 1 ? 0 : -1;
	fclose(f);
	return r;
}

int main(int argc, char **argv)
{
	const char *rank = getenv("RANK"), *world = getenv("WORLD_SIZE");
	ncclUniqueId id;

	options_parse(rows, argc, argv, "ranks that meet in collectives", &settings);
	settings_check();
	workload_catch_signals();
	workload_gate(settings.wait_start);
	if (rank && world) {
		if (!settings.id_file)
			bad_usage("RANK needs --id-file");
		if (id_exchange(atoi(rank), settings.id_file, &id) < 0) {
			fprintf(stderr, "sim-nccl: %s: no unique id\n", settings.id_file);
			return 66;
		}
		return one_run(atoi(rank), atoi(world), &id);
	}
	if (ncclGetUniqueId(&id) != ncclSuccess)
		return 1;
	if (settings.threads || strcmp(settings.init, "all") == 0)
		return process_run((int)settings.ranks, &id);
	return processes_run((int)settings.ranks, &id);
}
