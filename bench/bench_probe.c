// SPDX-License-Identifier: Apache-2.0
/* bench_probe.c - what a probed launch costs its caller: ours against the published method, both in
 * the same run, and against no probes at all.
 *
 * The workload is sim-calls: cudaLaunchKernel of the stand-in runtime, which calls cuLaunchKernel
 * of the stand-in driver. published: perf-event pairs on both functions, entry times in a hash map,
 * user stacks, a record with a wake-up for each call (published.bpf.c), and a thread that reads
 * them. Ours: the agent's own object on both functions, with its default settings, a reader that
 * polls every 10 ms and what the tracer does each second.
 *
 * All kinds take turns, so that a noisy machine disturbs them alike; medians of the rounds count.
 * Two clocks: wall time, which is what the workload feels and what other processes disturb, and the
 * workload's CPU time, which they hardly do, but which leaves out the wait for a reader that took
 * the CPU. The ratio is that of the costs above bare.
 *
 *   bench_probe SIM-CALLS LIBCUDART LIBCUDA [ROUNDS] */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "record/attach/uprobe.h"
#include "record/capture/reader.h"
#include "record/capture/totals.h"
#include "record/discover/elfsym.h"
#include "record/probe/function.h"
#include "published.skel.h"
#include "workload.h"

#define ROUNDS_MAX  32
#define POLL_MS     10 /* as `ingero trace` */
#define LIMIT_RATIO 3  /* as the tracer: slower than this times the median is sent */

enum kind { BARE, PUBLISHED, SESSION, SESSION_RUNTIME, MULTI, PERF, KIND_COUNT };

static const struct {
	const char *name, *count; /* calls of a round: about 0.2 to 0.5 s each */
	enum probe_method method;
} kinds[KIND_COUNT] = {
	[BARE] = {"bare", "1000000", 0},
	[PUBLISHED] = {"published", "40000", 0},
	[SESSION] = {"session", "100000", PROBE_SESSION},
	[SESSION_RUNTIME] = {"session, runtime only", "150000", PROBE_SESSION},
	[MULTI] = {"multi", "100000", PROBE_MULTI},
	[PERF] = {"perf", "100000", PROBE_PERF},
};

static const char *sim_calls, *libcudart, *libcuda;

/* ---- where the functions are ---- */

static uint64_t offset_of(const char *path, const char *symbol)
{
	struct errinfo e = {0};
	struct elfsym *elf = NULL;
	uint64_t offset = 0;
	int r = elfsym_open(path, &elf, &e);

	if (r == 0)
		r = elfsym_offset(elf, symbol, &offset);
	if (r < 0)
		workload_die(symbol, r);
	elfsym_close(elf);
	return offset;
}

static struct uprobe_point point_of(
	const struct probe_library *lib, const char *path, const char *symbol)
{
	for (int row = 0; lib->functions[row].symbols[0]; row++)
		if (!strcmp(lib->functions[row].symbols[0], symbol))
			return (struct uprobe_point){.offset = offset_of(path, symbol),
				.cookie = probe_cookie(lib, row, 0).word};
	workload_die(symbol, ENOENT);
}

/* ---- the published method ---- */

struct published {
	struct published_bpf *skel;
	struct bpf_link *links[4];
	struct ring_buffer *rings;
	pthread_t thread;
	atomic_bool stop;
	uint64_t records;
};

static int published_take(void *arg, void *data, size_t len)
{
	struct published *p = arg;

	p->records++;
	return 0;
}

static void *published_read(void *arg)
{
	struct published *p = arg;

	while (!atomic_load(&p->stop))
		ring_buffer__poll(p->rings, POLL_MS);
	ring_buffer__consume(p->rings);
	return NULL;
}

static void published_open(struct published *p, pid_t pid)
{
	const struct {
		struct bpf_program *prog;
		const char *path, *symbol;
		bool is_return;
	} sites[] = {
		{p->skel->progs.runtime_entry, libcudart, "cudaLaunchKernel", false},
		{p->skel->progs.runtime_return, libcudart, "cudaLaunchKernel", true},
		{p->skel->progs.driver_entry, libcuda, "cuLaunchKernel", false},
		{p->skel->progs.driver_return, libcuda, "cuLaunchKernel", true},
	};
	struct {
		uint8_t capture_stack;
		uint32_t sampling_rate, pad;
	} config = {1, 0, 0};
	uint32_t key = (uint32_t)pid, zero = 0;
	uint8_t one = 1;

	if (bpf_map_update_elem(bpf_map__fd(p->skel->maps.pids), &key, &one, BPF_ANY) < 0 ||
		bpf_map_update_elem(bpf_map__fd(p->skel->maps.config), &zero, &config, BPF_ANY) < 0)
		workload_die("published maps", errno);
	p->rings = ring_buffer__new(
		bpf_map__fd(p->skel->maps.runtime_events), published_take, p, NULL);
	if (!p->rings || ring_buffer__add(p->rings, bpf_map__fd(p->skel->maps.driver_events),
				 published_take, p) < 0)
		workload_die("published rings", errno);
	if (pthread_create(&p->thread, NULL, published_read, p))
		workload_die("thread", errno);
	for (size_t i = 0; i < ARRAY_SIZE(sites); i++) {
		p->links[i] = bpf_program__attach_uprobe(sites[i].prog, sites[i].is_return, -1,
			sites[i].path, offset_of(sites[i].path, sites[i].symbol));
		if (!p->links[i])
			workload_die(sites[i].symbol, errno);
	}
}

static struct workload_result run_published(void)
{
	struct published p = {.skel = published_bpf__open_and_load()};
	struct workload_result r;
	struct workload w;
	uint64_t lost;

	if (!p.skel)
		workload_die("the published programs could not be loaded", errno);
	workload_start(
		&w, sim_calls, (const char *const[]){"--count", kinds[PUBLISHED].count, NULL});
	published_open(&p, w.pid);
	workload_go(&w);
	r = workload_wait(&w);
	atomic_store(&p.stop, true);
	pthread_join(p.thread, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(p.links); i++)
		bpf_link__destroy(p.links[i]);
	lost = p.skel->bss->lost;
	if (p.records + lost != 2 * r.calls) {
		fprintf(stderr, "bench: published: %llu calls, %llu records, %llu lost\n",
			(unsigned long long)r.calls, (unsigned long long)p.records,
			(unsigned long long)lost);
		exit(1);
	}
	ring_buffer__free(p.rings);
	published_bpf__destroy(p.skel);
	return r;
}

/* ---- ours ---- */

struct ours {
	struct probe *probe;
	struct reader *reader;
	struct totals *totals;
	struct uprobe *uprobes[2];
	size_t uprobe_count;
	struct clock_map clock;
	pthread_t thread;
	atomic_bool stop;
	uint64_t records;
};

static void ours_take(void *arg, struct event *e, const struct collective *c)
{
	struct ours *o = arg;

	o->records += e->source == SOURCE_CUDA || e->source == SOURCE_DRIVER;
}

static void ours_take_ledger(void *arg, const struct ledger_row *row)
{
}

static void ours_limits(struct ours *o)
{
	const struct total *v;
	size_t cursor = 0;

	totals_read(o->totals);
	while ((v = totals_next(o->totals, &cursor))) {
		struct sketch calls = {0};

		sparse_merge(&calls, &v->all);
		if (v->key.source != SOURCE_HOST && calls.count >= 100)
			probe_limit_set(o->probe, v->key.source, v->key.op,
				LIMIT_RATIO * sketch_quantile(&calls, 0.5));
	}
}

static void *ours_read(void *arg)
{
	struct ours *o = arg;
	uint64_t due = 0;

	while (!atomic_load(&o->stop)) {
		reader_wait(o->reader, -1, POLL_MS);
		reader_consume(o->reader);
		if (mono_now().ns < due)
			continue;
		ours_limits(o);
		due = mono_now().ns + 100 * NS_PER_MS; /* often, because a round is short */
	}
	return NULL;
}

static void ours_attach(
	struct ours *o, const struct probe_library *lib, const char *path, const char *symbol)
{
	struct uprobe_point point = point_of(lib, path, symbol);
	struct errinfo e = {0};
	int r = uprobe_attach(o->probe, path, &point, 1, &o->uprobes[o->uprobe_count], &e);

	if (r < 0)
		workload_die(e.text, r);
	o->uprobe_count++;
}

static void ours_open(struct ours *o, enum kind k, pid_t pid)
{
	struct probe_settings s = {.method = kinds[k].method, .filter = FILTER_PIDS};
	struct errinfo e = {0};
	int r = probe_open(&s, &o->probe, &e);

	if (r < 0)
		workload_die(e.text, r);
	clock_map_init(&o->clock);
	r = reader_new(o->probe, &o->clock, ours_take, ours_take_ledger, o, &o->reader);
	if (r == 0)
		r = totals_new(o->probe, &o->totals);
	if (r == 0)
		r = probe_target_add(o->probe, (uint32_t)pid, geteuid());
	if (r == 0)
		r = probe_admit(o->probe);
	if (r == 0)
		r = -pthread_create(&o->thread, NULL, ours_read, o);
	if (r < 0)
		workload_die("our probes", r);
	ours_attach(o, &probe_cuda_rt, libcudart, "cudaLaunchKernel");
	if (k != SESSION_RUNTIME)
		ours_attach(o, &probe_cuda_drv, libcuda, "cuLaunchKernel");
	probe_enable(o->probe);
	probe_launches_enable(o->probe, true);
}

/* A benchmark of probes that saw nothing would be a fine number: the hits are compared. */
static void ours_verify(struct ours *o, enum kind k, uint64_t calls)
{
	struct wire_tally rt, drv;

	probe_tally(o->probe, SOURCE_CUDA, &rt);
	probe_tally(o->probe, SOURCE_DRIVER, &drv);
	if (rt.hits == calls && drv.hits == (k == SESSION_RUNTIME ? 0 : calls) && rt.aggregated)
		return;
	fprintf(stderr, "bench: %s: %llu calls, but %llu and %llu hits\n", kinds[k].name,
		(unsigned long long)calls, (unsigned long long)rt.hits,
		(unsigned long long)drv.hits);
	exit(1);
}

static struct workload_result run_ours(enum kind k)
{
	struct ours o = {0};
	struct workload_result r;
	struct workload w;

	workload_start(&w, sim_calls, (const char *const[]){"--count", kinds[k].count, NULL});
	ours_open(&o, k, w.pid);
	workload_go(&w);
	r = workload_wait(&w);
	probe_disable(o.probe);
	uprobe_detach_all(o.uprobes, o.uprobe_count);
	atomic_store(&o.stop, true);
	pthread_join(o.thread, NULL);
	ours_verify(&o, k, r.calls);
	totals_free(o.totals);
	reader_free(o.reader);
	probe_close(o.probe);
	return r;
}

static struct workload_result run_bare(void)
{
	struct workload w;

	workload_start(&w, sim_calls, (const char *const[]){"--count", kinds[BARE].count, NULL});
	workload_go(&w);
	return workload_wait(&w);
}

/* ---- rounds ---- */

static void print_costs(const char *clock, double values[KIND_COUNT][ROUNDS_MAX], size_t rounds)
{
	double m[KIND_COUNT], published;

	for (int k = 0; k < KIND_COUNT; k++)
		m[k] = workload_median(values[k], rounds);
	published = m[PUBLISHED] - m[BARE];
	for (int k = SESSION; k < KIND_COUNT; k++)
		printf("probe_%s_cost %-22s %6.0f ns per launch, %.2f of published\n", clock,
			kinds[k].name, m[k] - m[BARE], (m[k] - m[BARE]) / published);
	printf("probe_%s_ratio %.2f (ours %.0f ns, published %.0f ns, bare %.0f ns per launch; "
	       "budget 0.33)\n",
		strcmp(clock, "cpu") ? "cost" : "cpu", (m[SESSION] - m[BARE]) / published,
		m[SESSION], m[PUBLISHED], m[BARE]);
}

int main(int argc, char **argv)
{
	static double wall[KIND_COUNT][ROUNDS_MAX], cpu[KIND_COUNT][ROUNDS_MAX];
	size_t rounds = argc > 4 ? strtoul(argv[4], NULL, 10) : 7;

	if (argc < 4 || !rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_probe SIM-CALLS LIBCUDART LIBCUDA [ROUNDS]\n");
		return 64;
	}
	workload_need_root();
	sim_calls = argv[1];
	libcudart = argv[2];
	libcuda = argv[3];
	for (size_t i = 0; i < rounds; i++) {
		printf("round %zu, wall/cpu ns per launch:", i + 1);
		for (int k = 0; k < KIND_COUNT; k++) {
			struct workload_result r = k == BARE        ? run_bare()
						   : k == PUBLISHED ? run_published()
								    : run_ours((enum kind)k);

			wall[k][i] = r.wall_ns;
			cpu[k][i] = r.cpu_ns;
			printf(" %s %.0f/%.0f%s", kinds[k].name, r.wall_ns, r.cpu_ns,
				k + 1 < KIND_COUNT ? "," : "\n");
			fflush(stdout);
		}
	}
	print_costs("cpu", cpu, rounds);
	print_costs("wall", wall, rounds);
	return 0;
}
