/* SPDX-License-Identifier: Apache-2.0 */
/* bench_calls.c - how many calls a second the cluster service matches on one core, and in how much
 * memory: 1,024 ranks on 128 nodes whose agents push once a second, with 1,000 collectives a second, in
 * one communicator of all or in many of a few ranks. Budget: 1,024,000 calls a second. By time on the
 * CPU; making the calls is not counted.
 *
 *   bench_calls [SECONDS [RANKS [COLLECTIVES_PER_SECOND]]]    of the job */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/macros.h"
#include "cluster/detect/calls.h"
#include "wire/ids.h"

#define NODE_RANKS 8
#define SECOND     INT64_C(1000000000)
#define BEGIN_NS   (INT64_C(1700000000) * SECOND)
#define TICK_NODES 4 /* a tick after so many parts of a second's pushes */

struct plan {
	const char *name;
	int group; /* ranks of a communicator; 0: all */
	int ranks, per_second;
};

static uint64_t mix(uint64_t v)
{
	v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
	return v ^ (v >> 31);
}

/* Rank 41 is 300 us late, the others within 50 us; all leave 400 us after the collective's time. */
static struct push_call call_of(const struct plan *p, int rank, int64_t second, int i)
{
	int group = p->group ? p->group : p->ranks;
	int64_t at = BEGIN_NS + second * SECOND + i * (SECOND / p->per_second);
	uint64_t seq = (uint64_t)second * (uint64_t)p->per_second + (uint64_t)i;
	int64_t skew = (int64_t)(mix((uint64_t)(rank / NODE_RANKS) + 1) % 40000000) - 20000000;
	int64_t enter = (int64_t)(mix(seq * 4099 + (uint64_t)rank) % 50000);

	if (rank == 41)
		enter += 300000;
	return (struct push_call){.comm = 1000 + (uint64_t)(rank / group),
		.seq = seq,
		.bytes = 1 << 20,
		.enter_ns = at + enter + skew,
		.leave_ns = at + 400000 + skew,
		.wait_ns = (uint64_t)(400000 - enter),
		.rank = rank % group,
		.nranks = group,
		.peer = -1,
		.world_rank = rank,
		.pid = 1000 + (uint32_t)rank,
		.op = NCCL_ALL_REDUCE,
		.datatype = 7};
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void check(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_calls: %s\n", strerror(-r));
	exit(1);
}

/* A second of one node as its agent sends it; time that was taken. */
static double push_node(
	struct calls *c, const struct plan *p, int node, int64_t second, struct push_call *items)
{
	struct push_calls b = {.batch = (uint64_t)second + 1, .items = items};
	int64_t now = BEGIN_NS + (second + 1) * SECOND;
	struct calls_taken n;
	double begin;

	for (int i = 0; i < p->per_second; i++)
		for (int r = 0; r < NODE_RANKS; r++)
			items[b.count++] = call_of(p, node * NODE_RANKS + r, second, i);
	snprintf(b.who.node, sizeof(b.who.node), "node-%d", node);
	b.who.boot = 1;
	b.sent_ns = now;
	begin = cpu_seconds();
	check(calls_take(c, &b, now, &n));
	if (n.taken != b.count) {
		fprintf(stderr, "bench_calls: %zu of %zu calls taken\n", n.taken, b.count);
		exit(1);
	}
	return cpu_seconds() - begin;
}

/* What it takes to ask who makes the job wait, at its end. */
static void blame(const struct calls *c)
{
	_cleanup_free_ struct blame_worker *workers = NULL;
	double begin = cpu_seconds();
	struct blame b;
	size_t count;

	check(calls_blame(c, &workers, &count, &b));
	printf("  blame: %.0f ms, %u steps, %zu suspects\n", (cpu_seconds() - begin) * 1e3, b.steps,
		b.suspect_count);
	blame_done(&b);
}

static void run(const struct plan *p, int seconds)
{
	struct push_call *items =
		calloc((size_t)p->per_second * NODE_RANKS, sizeof(struct push_call));
	int nodes = p->ranks / NODE_RANKS;
	_cleanup_(calls_freep) struct calls *c = NULL;
	double takes = 0, ticks = 0, worst = 0;
	struct worker_view w = {0};
	size_t cursor = 0;
	uint64_t calls;

	if (!items)
		check(-1);
	check(calls_new(&calls_defaults, &c));
	for (int64_t s = 0; s < seconds; s++)
		for (int node = 0; node < nodes; node++) {
			double begin, tick, take = push_node(c, p, node, s, items);

			takes += take;
			worst = MAX(worst, take);
			if ((node + 1) % MAX(nodes / TICK_NODES, 1) != 0)
				continue;
			begin = cpu_seconds();
			calls_tick(c, BEGIN_NS + (s + 1) * SECOND);
			tick = cpu_seconds() - begin;
			ticks += tick;
			worst = MAX(worst, tick);
		}
	calls = calls_stats(c).taken;
	while (calls_worker_next(c, &cursor, &w) && w.world_rank != 41)
		;
	printf("%s: %.2f M calls/s (%.0f ns a call: take %.0f, tick %.0f; longest step %.0f ms), "
	       "%zu MB, rank 41 last in %.1f %%\n",
		p->name, (double)calls / (takes + ticks) / 1e6,
		(takes + ticks) / (double)calls * 1e9, takes / (double)calls * 1e9,
		ticks / (double)calls * 1e9, worst * 1e3, calls_stats(c).bytes >> 20,
		100.0 * (double)w.last_count / (double)MAX(w.calls, UINT64_C(1)));
	blame(c);
	free(items);
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 8;
	int ranks = argc > 2 ? atoi(argv[2]) : 1024;
	int per_second = argc > 3 ? atoi(argv[3]) : 1000;
	const struct plan plans[] = {
		{"one communicator of all ranks", 0, ranks, per_second},
		{"communicators of 64 ranks", 64, ranks, per_second},
		{"communicators of 8 ranks", 8, ranks, per_second},
	};
	struct rusage usage;

	for (size_t i = 0; i < ARRAY_SIZE(plans); i++)
		run(&plans[i], seconds);
	getrusage(RUSAGE_SELF, &usage);
	printf("resident at most: %ld MB\n", usage.ru_maxrss >> 10);
	return 0;
}
