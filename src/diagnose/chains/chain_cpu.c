/* SPDX-License-Identifier: Apache-2.0 */
/* chain_cpu.c - who had the CPUs: the container's quota, a mask that leaves it few, threads of the job itself, or
 * other programs, summed by program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/accounts/kernel_thread.h"
#include "diagnose/rows/home.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/chain.h"
#include "diagnose/thresholds.h"

#define GUESS_CPUS 4  /* of fewer CPUs a thread may stay on one by itself */
#define CPUS_SEEN  64 /* further ones: it may run anywhere */

struct waits {
	struct program_sums programs;
	uint64_t own_ns, other_ns, nobody_ns;
	struct program *own; /* the program of the job with most of own_ns */
	struct {
		uint32_t pid;
		bool is_own;
	} known[PROGRAM_PIDS_MAX];
	int known_count;
	uint32_t children[PROGRAM_PIDS_MAX];
	int child_count;
	uint32_t cpus[CPUS_SEEN];
	int cpu_count;
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

static bool is_worker(const struct chain *c, uint32_t pid)
{
	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *x = &c->a->entries[i];

		if (x->culprit_pid == pid && x->culprit_is_worker)
			return true;
		if (x->pid == pid && x->owner == OWNER_LOADER)
			return true;
	}
	return false;
}

/* Followed are processes that use a GPU and their children: one that does not is a child. */
static bool is_followed_child(const struct chain *c, uint32_t pid)
{
	bool is_followed = false;

	for (size_t i = 0; i < c->rec->ledger_count; i++) {
		const struct ledger_row *r = &c->rec->ledger[i];

		if (r->pid != pid)
			continue;
		if (r->launches || r->waits || r->copies)
			return false;
		is_followed = true;
	}
	return is_followed;
}

/* A process of the job: itself, a worker, a child or another rank. Children that were there before the recording, and
 * ranks, are known by the script that they run. */
static bool is_own(const struct chain *c, uint32_t pid)
{
	const struct process_home *job = home_of(c->rec, c->a->pid), *h = home_of(c->rec, pid);

	if (pid == c->a->pid || is_worker(c, pid))
		return true;
	if (!job || !h || !job->script[0] || strcmp(job->script, h->script) != 0 ||
		home_apart(job, h))
		return false;
	return (job->rank >= 0 && h->rank >= 0 && job->rank != h->rank) ||
	       is_followed_child(c, pid);
}

static bool is_child(const struct waits *w, uint32_t pid)
{
	for (int i = 0; i < w->child_count; i++)
		if (w->children[i] == pid)
			return true;
	return false;
}

static void drop_child(struct waits *w, uint32_t pid)
{
	for (int i = 0; i < w->child_count; i++)
		if (w->children[i] == pid)
			w->children[i] = w->children[--w->child_count];
}

/* Whoever the job has forked while it was recorded, and that did not become another program. */
static void add_children(const struct chain *c, struct waits *w)
{
	for (size_t i = 0; i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];

		if (e->source != SOURCE_HOST || e->flags & WIRE_THREAD)
			continue;
		if (e->op == HOST_PROCESS_EXEC)
			drop_child(w, e->pid);
		if (e->op == HOST_PROCESS_FORK && e->pid == c->a->pid &&
			w->child_count < PROGRAM_PIDS_MAX)
			w->children[w->child_count++] = e->peer_pid;
	}
}

/* Found out once for a process. */
static bool is_own_known(const struct chain *c, struct waits *w, uint32_t pid)
{
	int k = 0;

	while (k < w->known_count && w->known[k].pid != pid)
		k++;
	if (k == PROGRAM_PIDS_MAX)
		return is_child(w, pid);
	if (k == w->known_count) {
		w->known[k].pid = pid;
		w->known[k].is_own = is_child(w, pid) || is_own(c, pid);
		w->known_count++;
	}
	return w->known[k].is_own;
}

static void note_cpu(struct waits *w, uint32_t cpu)
{
	for (int i = 0; i < w->cpu_count; i++)
		if (w->cpus[i] == cpu)
			return;
	if (w->cpu_count < CPUS_SEEN)
		w->cpus[w->cpu_count++] = cpu;
}

static void add_wait(const struct chain *c, const struct event *e, struct waits *w)
{
	struct program *p;

	w->rows++;
	note_cpu(w, e->cpu);
	if (!e->peer_pid) {
		w->nobody_ns += e->wait_ns;
		return;
	}
	p = program_get(c->rec, &w->programs, e->peer_pid, e->peer_comm);
	if (is_own_known(c, w, e->peer_pid)) {
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
	const struct recording *rec = c->rec;

	for (size_t i = chain_first_event(c); i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->start.ns >= c->to_ns)
			break;
		if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH && e->wait_ns &&
			is_waiting(c, e) && chain_time(c, e->start.ns))
			add_wait(c, e, w);
	}
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

static bool by_quota(const struct chain *c, struct resource_use *ret)
{
	struct quota_stop stop = quota_find(c->rec, c->a->pid, c->from_ns, c->to_ns);
	uint64_t lost = MAX(chain_lost_ns(c), UINT64_C(1));

	if ((double)stop.ns < THRESHOLD(CHAIN_PART) * (double)lost)
		return false;
	ret->resource = RESOURCE_CPU_QUOTA;
	ret->pid = c->a->pid;
	process_words(c->rec, c->a->pid, c->a->comm, ret->who);
	if (stop.cpus > 0)
		snprintf(ret->detail, sizeof(ret->detail), "%.3g CPU%s", stop.cpus,
			stop.cpus == 1 ? "" : "s");
	ret->share = MIN((double)stop.ns / (double)lost, 1.0);
	return true;
}

/* Few CPUs that it waits for again and again while the others idle: it may not use those. How many it may use is known
 * of the process as it was found; a thread, or a program later on, may have asked for fewer. */
static bool by_mask(const struct chain *c, const struct waits *w, struct resource_use *ret)
{
	const struct process_home *h = home_of(c->rec, c->a->pid);
	uint32_t few = (uint32_t)w->cpu_count, there = cpus_there(c);
	bool is_recorded = h && h->cpus && few <= h->cpus && h->cpus * 2 <= there;
	double busy = machine_pct(c);

	if (w->rows < THRESHOLD(MASK_WAITS) || busy < 0 || busy >= THRESHOLD(MASK_IDLE))
		return false;
	if (is_recorded)
		few = h->cpus;
	else if (few > 1 || there < GUESS_CPUS)
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

static bool by_program(const struct chain *c, const struct waits *w, struct resource_use *ret)
{
	int side = w->own_ns > w->other_ns ? 0 : 1;
	const struct program *most = NULL;
	uint64_t known = w->own_ns + w->other_ns;

	for (int i = 0; i < w->programs.count; i++)
		if (w->programs.items[i].ns[side] &&
			(!most || weight_of(&w->programs.items[i], side) > weight_of(most, side)))
			most = &w->programs.items[i];
	ret->share = (double)(side ? w->other_ns : w->own_ns) /
		     (double)MAX(known + w->nobody_ns, UINT64_C(1));
	if (!most || ret->share < THRESHOLD(CHAIN_PART))
		return false;
	ret->resource = side ? RESOURCE_CPU_PROGRAM : RESOURCE_CPU_OWN;
	program_name(most, ret);
	if (w->programs.count > 1 && side)
		snprintf(ret->detail, sizeof(ret->detail), "%.0f %% of the waiting",
			100 * (double)most->ns[side] / (double)known);
	return true;
}

bool chain_cpu(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct waits *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	add_children(c, w);
	add_waits(c, w);
	return by_quota(c, ret) || by_mask(c, w, ret) || by_program(c, w, ret);
}
