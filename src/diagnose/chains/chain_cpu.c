/* SPDX-License-Identifier: Apache-2.0 */
/* chain_cpu.c - who had the CPUs: the container's quota, a mask that leaves it few, threads of the job itself, or
 * other programs, summed by program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/accounts/kernel_thread.h"
#include "diagnose/accounts/tracer_name.h"
#include "diagnose/rows/home.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/chain.h"
#include "diagnose/thresholds.h"

#define GUESS_CPUS                                                                                 \
	4 /* of fewer CPUs, or with more of them in use, a thread may stay on one by itself */
#define CPUS_SEEN 64 /* further ones: it may run anywhere */

struct waits {
	struct program_sums programs;
	uint64_t own_ns, other_ns, nobody_ns;
	uint64_t nobody_long_ns; /* of nobody_ns, in waits that no scheduler makes by itself */
	struct program *own;     /* the program of the job with most of own_ns */
	struct own_pids own_pids;
	struct {
		uint32_t cpu;
		uint64_t ns[2]; /* of all; of processes that may use few CPUs */
	} cpus[CPUS_SEEN];
	int cpu_count;
	uint32_t there,
		allowed; /* CPUs: of the machine, at least; of those that may use few, at most */
	uint64_t all_ns, few_ns; /* by all, by processes that may use few CPUs */
	uint32_t rows;
};

/* Whether @e is a stay of a thread that the steps waited for: those that the account names, else the job's. */
static bool is_waiting(const struct chain *c, const struct event *e)
{
	bool named = false;

	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *x = &c->a->entries[i];

		if (x->line != ACCOUNT_CPU)
			continue;
		named = true;
		if ((!x->pid || x->pid == e->pid) &&
			(!e->comm[0] || !strncmp(x->comm, e->comm, COMM_LEN)))
			return true;
	}
	return !named && e->pid == c->a->pid;
}

/* A worker of a data loader, by the account. */
static bool is_loader(const struct step_account *a, uint32_t pid)
{
	for (int i = 0; i < a->entry_count; i++)
		if (a->entries[i].pid == pid && a->entries[i].owner == OWNER_LOADER)
			return true;
	return false;
}

/* Followed are processes that use a GPU, their children, and who is waited for: one that runs what the job runs and
 * uses no GPU is a child. */
static bool is_followed_child(const struct recording *rec, uint32_t pid)
{
	bool is_followed = false;

	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *r = &rec->ledger[i];

		if (r->pid != pid)
			continue;
		if (r->launches || r->waits || r->copies)
			return false;
		is_followed = true;
	}
	return is_followed;
}

/* Whether they are the same program: by the script, of programs that are none by the name. */
static bool is_same_program(const struct process_home *a, const struct process_home *b)
{
	if (a->script[0] || b->script[0])
		return !strcmp(a->script, b->script);
	return a->comm[0] && !script_is_runner(a->comm) && !strcmp(a->comm, b->comm);
}

static bool is_spawned(const struct process_home *h)
{
	return !strncmp(h->script, SCRIPT_SPAWNED, strlen(SCRIPT_SPAWNED));
}

bool process_is_own(const struct recording *rec, const struct step_account *a,
	const struct lineage *lines, uint32_t pid)
{
	const struct process_home *job = home_of(rec, a->pid), *h = home_of(rec, pid);

	if (is_loader(a, pid) || lineage_is_from(lines, pid, a->pid, a->last.ns, true))
		return true;
	if (!job || !h || home_apart(job, h))
		return false;
	if (is_spawned(h) && (lineage_is_from(lines, pid, a->pid, a->last.ns, false) ||
				     is_followed_child(rec, pid)))
		return true;
	return is_same_program(job, h) &&
	       ((job->rank >= 0 && h->rank >= 0 && job->rank != h->rank) ||
		       is_followed_child(rec, pid));
}

bool own_pids_has(struct own_pids *o, const struct chain *c, uint32_t pid)
{
	int k = 0;

	while (k < o->count && o->known[k].pid != pid)
		k++;
	if (k == PROGRAM_PIDS_MAX)
		return lineage_is_from(&o->lines, pid, c->a->pid, c->a->last.ns, true);
	if (k == o->count) {
		o->known[k].pid = pid;
		o->known[k].is_own = process_is_own(c->rec, c->a, &o->lines, pid);
		o->count++;
	}
	return o->known[k].is_own;
}

/* Whoever waits may have been given fewer CPUs than the job: workers inherit a mask that it no longer has. */
static void note_cpu(const struct chain *c, struct waits *w, const struct event *e)
{
	const struct process_home *h = home_of(c->rec, e->pid);
	bool is_few = h && h->cpus && h->cpus * 2 <= w->there;
	int k = 0;

	w->all_ns += e->wait_ns;
	w->few_ns += is_few ? e->wait_ns : 0;
	w->allowed = is_few ? MAX(w->allowed, h->cpus) : w->allowed;
	while (k < w->cpu_count && w->cpus[k].cpu != e->cpu)
		k++;
	if (k == CPUS_SEEN)
		return;
	w->cpu_count = MAX(w->cpu_count, k + 1);
	w->cpus[k].cpu = e->cpu;
	w->cpus[k].ns[0] += e->wait_ns;
	w->cpus[k].ns[1] += is_few ? e->wait_ns : 0;
}

/* The fewest CPUs with nearly all of the waiting: before a mask was set, and on the way to its CPUs, threads wait
 * elsewhere, too. @of: one of the two sums. */
static uint32_t few_cpus(struct waits *w, int of)
{
	uint64_t all = of ? w->few_ns : w->all_ns, left = all;
	uint32_t few = 0;

	for (; (double)left > THRESHOLD(FEW) * (double)all && (int)few < w->cpu_count; few++) {
		int most = 0;

		for (int i = 1; i < w->cpu_count; i++)
			most = w->cpus[i].ns[of] > w->cpus[most].ns[of] ? i : most;
		left -= MIN(left, w->cpus[most].ns[of]);
		w->cpus[most].ns[of] = 0;
	}
	return few;
}

static void add_wait(const struct chain *c, const struct event *e, struct waits *w)
{
	struct program *p;

	w->rows++;
	note_cpu(c, w, e);
	if (!e->peer_pid) {
		w->nobody_ns += e->wait_ns;
		w->nobody_long_ns += (double)e->wait_ns >= THRESHOLD(KEPT_OFF_NS) ? e->wait_ns : 0;
		return;
	}
	p = program_get(c->rec, &w->programs, e->peer_pid, e->peer_comm);
	if (own_pids_has(&w->own_pids, c, e->peer_pid)) {
		w->own_ns += e->wait_ns;
		if (p)
			p->ns[0] += e->wait_ns;
		if (p && (!w->own || p->ns[0] > w->own->ns[0]))
			w->own = p;
		return;
	}
	w->other_ns += e->wait_ns;
	if (p)
		p->ns[1] += e->wait_ns;
}

static void add_waits(const struct chain *c, struct waits *w)
{
	const struct event *e = NULL;

	while ((e = chain_event(c, SOURCE_HOST, e)))
		if (e->op == HOST_SCHED_SWITCH && e->wait_ns && is_waiting(c, e))
			add_wait(c, e, w);
}

/* How busy all CPUs were; negative: not known. */
static double machine_pct(const struct chain *c)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->rec->sample_count; i++)
		if (c->rec->samples[i].time.ns >= c->from_ns &&
			chain_around(c, c->rec->samples[i].time.ns)) {
			sum += c->rec->samples[i].cpu_pct;
			n++;
		}
	return n ? sum / (double)n : -1;
}

/* How many CPUs the machine has, at least. */
static uint32_t cpus_there(const struct chain *c)
{
	uint32_t last = 0;

	for (size_t i = 0; i < c->rec->event_count; i++)
		last = MAX(last, c->rec->events[i].cpu);
	for (size_t i = 0; i < c->rec->sample_count; i++)
		last = (uint32_t)MAX(
			(int64_t)last, MIN(c->rec->samples[i].busiest_cpu, UINT16_MAX));
	return last + 1;
}

/* Whose limit it is: a path is that of the group only where the group itself was read, else it may be of another hierarchy. */
static void put_group(const struct chain *c, bool is_read, struct resource_use *ret)
{
	const struct process_home *h = home_of(c->rec, c->a->pid);
	char text[sizeof(h->cgroup_path) + 16] = "";

	ret->resource = RESOURCE_CPU_QUOTA;
	ret->pid = c->a->pid;
	if (h && (h->container_id[0] || h->pod[0]))
		home_text(h, text, sizeof(text));
	else if (h && is_read && h->cgroup_path[1])
		snprintf(text, sizeof(text), "control group %s", h->cgroup_path);
	snprintf(ret->who, sizeof(ret->who), "%s", text);
}

static bool by_quota(const struct chain *c, struct resource_use *ret)
{
	struct quota_stop stop = quota_find(c->rec, c->a->pid, c->from_ns, c->to_ns);
	uint64_t lost = MAX(chain_lost_ns(c), UINT64_C(1));

	if ((double)stop.ns < THRESHOLD(CHAIN_PART) * (double)lost)
		return false;
	put_group(c, true, ret);
	if (stop.cpus > 0 && stop.cpus < 1)
		snprintf(ret->detail, sizeof(ret->detail), "%.3g %% of a CPU", 100 * stop.cpus);
	else if (stop.cpus > 0)
		snprintf(ret->detail, sizeof(ret->detail), "%.3g CPU%s", stop.cpus,
			stop.cpus == 1 ? "" : "s");
	ret->share = MIN((double)stop.ns / (double)lost, 1.0);
	return true;
}

/* A thread that could run is kept from CPUs on which nobody runs, for as long as a period of a quota leaves: nothing else
 * does that. How much is allowed is not known then, and who counts is not asked where the group's own count says no. */
static bool by_stopped_group(const struct chain *c, const struct waits *w, struct resource_use *ret)
{
	uint64_t all = w->own_ns + w->other_ns + w->nobody_ns;

	if (w->rows < THRESHOLD(LEAST) ||
		(double)w->nobody_long_ns < THRESHOLD(CHAIN_MOST) * (double)all)
		return false;
	put_group(c, false, ret);
	snprintf(ret->detail, sizeof(ret->detail), "not run although CPUs are idle");
	ret->share = (double)w->nobody_long_ns / (double)MAX(all, UINT64_C(1));
	return true;
}

/* Few CPUs that are waited for again and again while the others idle: those may not be used. How many may be is known
 * of a process as it was found; a thread, or a program later on, may have asked for fewer. */
static bool by_mask(const struct chain *c, struct waits *w, struct resource_use *ret)
{
	bool is_recorded = (double)w->few_ns >= THRESHOLD(MOST) * (double)w->all_ns;
	uint32_t few = few_cpus(w, is_recorded);
	double busy = machine_pct(c), others; /* other CPUs: those waited for are busy */

	is_recorded = is_recorded && few <= w->allowed;
	few = is_recorded ? w->allowed : few;
	if (w->rows < THRESHOLD(MASK_WAITS) || busy < 0 || few >= w->there)
		return false;
	others = (busy * w->there - 100.0 * few) / (w->there - few);
	if (others >= THRESHOLD(MASK_IDLE) ||
		(!is_recorded && (w->there < GUESS_CPUS || few * GUESS_CPUS > w->there ||
					 (few > 1 && w->own_ns <= w->other_ns))))
		return false;
	ret->resource = RESOURCE_CPU_MASK;
	if (w->own && w->own_ns >= w->other_ns)
		program_name(w->own, ret);
	snprintf(ret->detail, sizeof(ret->detail), "%u CPU%s, while all are %.0f %% busy", few,
		few == 1 ? "" : "s", busy);
	ret->share = 1;
	return true;
}

/* A thread of the kernel works for others, and is what runs next for a moment when one of them gives a CPU up. */
static double weight_of(const struct program *p, int side)
{
	return (double)p->ns[side] / (kernel_thread_is(p->name) ? THRESHOLD(FAR_MORE) : 1);
}

/* Among many programs the tracer, which is always there, is not the one to name unless most of it is its doing. */
static const struct program *program_with_most(const struct waits *w, int side, uint64_t all)
{
	const struct program *most = NULL;

	for (int i = 0; i < w->programs.count; i++) {
		const struct program *p = &w->programs.items[i];

		if (!p->ns[side] ||
			(tracer_is(p->name) &&
				(double)p->ns[side] < THRESHOLD(CHAIN_MOST) * (double)all))
			continue;
		if (!most || weight_of(p, side) > weight_of(most, side))
			most = p;
	}
	return most;
}

static uint32_t cpus_allowed(const struct chain *c)
{
	const struct process_home *h = home_of(c->rec, c->a->pid);
	uint32_t there = cpus_there(c);

	return h && h->cpus ? MIN(h->cpus, there) : there;
}

/* How many processes of the program take turns, the waiting one included. */
static uint32_t siblings(const struct chain *c, const struct program *p)
{
	char own[PROCESS_WORDS_MAX];
	bool is_there = strcmp(p->name, process_words(c->rec, c->a->pid, c->a->comm, own)) != 0;

	for (uint32_t i = 0; i < p->pid_count; i++)
		is_there = is_there || p->pids[i] == c->a->pid;
	return p->pid_count + !is_there;
}

static bool by_program(const struct chain *c, const struct waits *w, struct resource_use *ret)
{
	int side = w->own_ns > w->other_ns ? 0 : 1;
	uint64_t known = w->own_ns + w->other_ns;
	const struct program *most = program_with_most(w, side, side ? w->other_ns : w->own_ns);
	char own[PROCESS_WORDS_MAX];
	bool is_same;

	ret->share = (double)(side ? w->other_ns : w->own_ns) /
		     (double)MAX(known + w->nobody_ns, UINT64_C(1));
	if (!most || ret->share < THRESHOLD(CHAIN_PART))
		return false;
	ret->resource = side ? RESOURCE_CPU_PROGRAM : RESOURCE_CPU_OWN;
	program_name(most, ret);
	ret->who_share = (double)most->ns[side] / (double)(side ? w->other_ns : w->own_ns);
	is_same = !strcmp(most->name, process_words(c->rec, c->a->pid, c->a->comm, own));
	if (side && w->programs.count > 1 && !is_same)
		snprintf(ret->detail, sizeof(ret->detail), "%.0f %% of the waiting",
			100 * (double)most->ns[side] / (double)known);
	else if ((!side || is_same) && siblings(c, most) > 1)
		snprintf(ret->detail, sizeof(ret->detail),
			"%" PRIu32 " processes of %.40s share %" PRIu32 " CPU%s", siblings(c, most),
			most->name, cpus_allowed(c), cpus_allowed(c) == 1 ? "" : "s");
	return true;
}

/* More threads of one process are ready to run than there are CPUs for it, all the time, because of each other: whatever one
 * of them waits for, its holder has no CPU either. */

#define TIDS_MAX 4096

struct crowd {
	uint32_t tids[TIDS_MAX]; /* by hash; 0: free */
	uint32_t count;
	uint64_t wait_ns, own_ns;
};

static void crowd_note(struct crowd *w, const struct event *e)
{
	uint32_t at = e->tid * UINT32_C(2654435761) % TIDS_MAX;

	for (uint32_t i = 0; i < 8 && w->tids[at] != e->tid; i++) {
		if (!w->tids[at]) {
			w->tids[at] = e->tid;
			w->count++;
			return;
		}
		at = (at + 1) % TIDS_MAX;
	}
}

bool chain_crowd(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct crowd *w = calloc(1, sizeof(*w));
	uint32_t cpus = cpus_allowed(c);
	const struct event *e = NULL;

	while (w && (e = chain_event(c, SOURCE_HOST, e))) {
		if (e->op != HOST_SCHED_SWITCH || !e->wait_ns || e->pid != c->a->pid)
			continue;
		crowd_note(w, e);
		w->wait_ns += e->wait_ns;
		w->own_ns += e->peer_pid == e->pid ? e->wait_ns : 0;
	}
	if (!w || w->count <= cpus ||
		(double)w->wait_ns < (double)cpus * (double)chain_elapsed_ns(c) ||
		(double)w->own_ns < THRESHOLD(CHAIN_MOST) * (double)w->wait_ns)
		return false;
	ret->resource = RESOURCE_CPU_OWN;
	ret->pid = c->a->pid;
	process_words(c->rec, c->a->pid, c->a->comm, ret->who);
	snprintf(ret->detail, sizeof(ret->detail), "%" PRIu32 " threads on %" PRIu32 " CPU%s",
		w->count, cpus, cpus == 1 ? "" : "s");
	ret->share = 1;
	return true;
}

bool chain_cpu(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct waits *w = calloc(1, sizeof(*w));
	bool found;

	if (!w)
		return false;
	w->there = cpus_there(c);
	if (lineage_build(c->rec, &w->own_pids.lines) == 0)
		add_waits(c, w);
	found = by_quota(c, ret) || by_stopped_group(c, w, ret) || by_mask(c, w, ret) ||
		by_program(c, w, ret);
	lineage_done(&w->own_pids.lines);
	return found;
}
