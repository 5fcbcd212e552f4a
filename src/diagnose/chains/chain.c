/* SPDX-License-Identifier: Apache-2.0 */
/* chain.c - see chain.h: which chain belongs to which line. */
#include "diagnose/chains/chain.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/chains/chain_private.h"
#include "wire/op_kind.h"
#include "diagnose/rows/home.h"
#include "diagnose/accounts/tracer_name.h"

#define READING_NS ((int64_t)(1200 * NS_PER_MS)) /* readings are a second apart */

bool chain_time(const struct chain *c, int64_t ns)
{
	if (ns < c->from_ns || ns >= c->to_ns)
		return false;
	return !c->has_slow || !c->a->mark_count || step_account_is_slow(c->a, ns);
}

const struct event *chain_event(
	const struct chain *c, enum wire_source source, const struct event *last)
{
	const struct event *events = c->rec->events, *end = events + c->rec->event_count;
	const struct event *e = last ? last + 1
				     : events + LOWER_BOUND(i, c->rec->event_count,
							events[i].start.ns < c->from_ns);

	for (; e < end && e->start.ns < c->to_ns; e++)
		if (e->source == source && chain_time(c, e->start.ns))
			return e;
	return NULL;
}

bool chain_around(const struct chain *c, int64_t ns)
{
	return ns >= c->from_ns - READING_NS && ns < c->to_ns + READING_NS;
}

uint64_t chain_lost_ns(const struct chain *c)
{
	uint64_t steps = c->has_slow ? c->a->slow_steps : c->a->steps;
	uint64_t more = c->d->slow_ns > c->d->ordinary_ns ? c->d->slow_ns - c->d->ordinary_ns : 0;

	return more * MAX(steps, UINT64_C(1));
}

uint64_t chain_elapsed_ns(const struct chain *c)
{
	uint64_t steps = c->a->slow_steps * c->a->slow_step_ns;
	uint64_t whole = c->to_ns > c->from_ns ? (uint64_t)(c->to_ns - c->from_ns) : 0;

	return c->has_slow && steps ? MIN(steps, whole) : whole;
}

/* Delays of several lines are followed as their lead is. */
static enum account_line line_of(const struct delay *d)
{
	if ((int)d->kind < ACCOUNT_LINES)
		return (enum account_line)d->kind;
	if (d->kind == DELAY_BY_SYNC)
		return ACCOUNT_GPU;
	if (d->kind == DELAY_BY_CHECKPOINT && (!d->lead || d->lead->line == ACCOUNT_HOST))
		return ACCOUNT_DISK;
	return d->lead ? d->lead->line : ACCOUNT_UNKNOWN;
}

static struct chain chain_init(const struct recording *rec, const struct step_account *a,
	const struct gpu_change *gpu, const struct delay *d)
{
	bool has_slow = a->lost_ns > 0 && a->slow_steps > 0;
	struct chain c = {.rec = rec,
		.a = a,
		.d = d,
		.gpu = gpu,
		.line = line_of(d),
		.has_slow = has_slow,
		.from_ns = has_slow && a->slow_first.ns ? a->slow_first.ns : a->first.ns,
		.to_ns = has_slow && a->slow_last.ns ? a->slow_last.ns : a->last.ns};

	return c;
}

static bool chain_poll(const struct chain *c, struct resource_use *ret)
{
	const struct account_entry *lead = c->d->lead;

	ret->resource = RESOURCE_POLL;
	ret->share = 1;
	return c->a->origin == STEP_BY_POLL && lead && lead->owner == OWNER_SELF;
}

typedef bool follow_fn(const struct chain *c, struct resource_use *ret);

/* By line, what to look at in turn; the first that finds something ends the chain. A limit of memory stops threads
 * wherever they are, so that it shows on several lines. */
static follow_fn *const by_line[ACCOUNT_LINES][3] = {
	[ACCOUNT_GPU] = {chain_gpu, chain_ranks, chain_precision},
	[ACCOUNT_COPY] = {chain_gpu, chain_disk_of_copy},
	[ACCOUNT_COLLECTIVE] = {chain_ranks},
	[ACCOUNT_HOST] = {chain_work},
	[ACCOUNT_CPU] = {chain_cpu},
	[ACCOUNT_DISK] = {chain_memory_limit, chain_disk},
	[ACCOUNT_MEMORY] = {chain_memory},
	[ACCOUNT_NETWORK] = {chain_memory_limit, chain_peer},
	[ACCOUNT_LOCK] = {chain_crowd, chain_peer, chain_lock},
	[ACCOUNT_GIL] = {chain_crowd, chain_lock},
	[ACCOUNT_ASLEEP] = {chain_memory_limit, chain_poll},
	[ACCOUNT_STOPPED] = {chain_stop, chain_peer},
};

void chain_follow(const struct recording *rec, const struct step_account *a,
	const struct gpu_change *gpu, struct delay *d)
{
	struct chain c = chain_init(rec, a, gpu, d);
	struct resource_use use = {0};
	bool found = false;

	/* Whatever a compiler does or waits for is compiling. */
	if (d->kind != DELAY_BY_CHECKPOINT)
		found = chain_compile(&c, &use) || chain_pickle(&c, &use);
	if (!found && (d->kind == DELAY_BY_PROCESS || d->kind == DELAY_BY_LOADER)) {
		use = (struct resource_use){0};
		found = chain_turns(&c, &use);
	}
	for (size_t i = 0; !found && d->kind != DELAY_BY_COMPILE && i < 3; i++) {
		follow_fn *follow = by_line[c.line][i];

		use = (struct resource_use){0};
		if (follow)
			found = follow(&c, &use);
	}
	/* Of another process no more may be known than that it was waited for. */
	if (!found && d->kind == DELAY_BY_PROCESS) {
		use = (struct resource_use){0};
		found = chain_peer(&c, &use);
	}
	d->end = found ? use : (struct resource_use){0};
}

/* Groups are read once a second: readings somewhat before and after the time count. */

#define QUOTA_READING_NS ((int64_t)(1200 * NS_PER_MS))

/* By its last call of CUDA until then: calls are made by the process itself. 0: not known. */
static uint64_t group_of(const struct recording *rec, uint32_t pid, int64_t to_ns)
{
	size_t i = LOWER_BOUND(k, rec->event_count, rec->events[k].start.ns <= to_ns);

	while (i--) {
		const struct event *e = &rec->events[i];

		if (e->pid == pid && e->cgroup_id && op_kind_is_gpu(e->source))
			return e->cgroup_id;
	}
	return 0;
}

/* 0: there are several. */
static uint64_t only_group(const struct recording *rec)
{
	uint64_t id = rec->container_count ? rec->containers[0].cgroup_id : 0;

	for (size_t i = 1; i < rec->container_count; i++)
		if (rec->containers[i].cgroup_id != id)
			return 0;
	return id;
}

uint64_t quota_group(const struct recording *rec, uint32_t pid, int64_t to_ns)
{
	uint64_t id = group_of(rec, pid, to_ns);

	return id ? id : only_group(rec);
}

struct quota_stop quota_find(
	const struct recording *rec, uint32_t pid, int64_t from_ns, int64_t to_ns)
{
	const struct container_sample *first = NULL, *last = NULL;
	struct quota_stop stop = {0};
	uint64_t id = rec->container_count ? quota_group(rec, pid, to_ns) : 0;

	for (size_t i = 0; id && i < rec->container_count; i++) {
		const struct container_sample *c = &rec->containers[i];

		if (c->cgroup_id != id || c->time.ns < from_ns - QUOTA_READING_NS ||
			c->time.ns > to_ns + QUOTA_READING_NS || c->throttled_us < 0)
			continue;
		if (!first)
			first = c;
		last = c;
	}
	if (!first || first->time.ns > to_ns || last->throttled_us <= first->throttled_us)
		return stop;
	stop.ns = (uint64_t)(last->throttled_us - first->throttled_us) * NS_PER_US;
	if (last->quota_us > 0 && last->period_us > 0)
		stop.cpus = (double)last->quota_us / (double)last->period_us;
	return stop;
}

bool program_has(const struct program *p, uint32_t pid)
{
	for (uint32_t i = 0; i < p->pid_count; i++)
		if (p->pids[i] == pid)
			return true;
	return false;
}

static struct program *program_named(struct program_sums *s, uint32_t pid, const char *name)
{
	struct program *p;
	int k = 0;

	while (k < s->count && strcmp(s->items[k].name, name) != 0)
		k++;
	if (k == PROGRAMS_MAX)
		return NULL;
	p = &s->items[k];
	if (k == s->count) {
		snprintf(p->name, sizeof(p->name), "%s", name);
		p->first_pid = pid;
		s->count++;
	}
	if (p->pid_count < PROGRAM_PIDS_MAX && !program_has(p, pid))
		p->pids[p->pid_count++] = pid;
	return p;
}

struct program *program_get(
	const struct recording *rec, struct program_sums *s, uint32_t pid, const char *comm)
{
	char name[PROCESS_WORDS_MAX];

	return program_named(s, pid, process_words(rec, pid, comm, name));
}

struct program *program_get_last(
	const struct recording *rec, struct program_sums *s, uint32_t pid, const char *comm)
{
	char name[PROCESS_WORDS_MAX];

	for (int k = 0; k < s->count; k++)
		if (program_has(&s->items[k], pid))
			return &s->items[k];
	return program_named(s, pid, process_words_last(rec, pid, comm, name));
}

void program_name(const struct program *p, struct resource_use *ret)
{
	snprintf(ret->who, sizeof(ret->who), "%s", p->name);
	ret->count = p->pid_count;
	ret->pid = p->pid_count == 1 ? p->first_pid : 0;
}

/* What a process is called. */

/* Whether @comm says more than the script: it is neither what the interpreter is called, nor the script's beginning. */
static bool is_own_name(const struct process_home *h, const char *comm)
{
	return comm[0] && !script_is_runner(comm) && strncmp(h->script, comm, strlen(comm)) != 0;
}

const char *process_words(
	const struct recording *rec, uint32_t pid, const char *comm, char buf[PROCESS_WORDS_MAX])
{
	const struct process_home *h = pid ? home_of(rec, pid) : NULL;
	const char *name = h && h->comm[0] ? h->comm : comm;

	if (h && h->script[0] && !is_own_name(h, h->comm))
		name = h->script;
	snprintf(buf, PROCESS_WORDS_MAX, "%s", tracer_fold(name ? name : ""));
	return buf;
}

/* A process takes its name when it has begun, which may be after it was looked at. */
const char *process_words_last(
	const struct recording *rec, uint32_t pid, const char *comm, char buf[PROCESS_WORDS_MAX])
{
	const struct process_home *h = pid ? home_of(rec, pid) : NULL;
	size_t i = h && h->script[0] ? rec->ledger_count : 0;

	while (i && (rec->ledger[i - 1].pid != pid || rec->ledger[i - 1].tid != pid))
		i--;
	if (!i || !is_own_name(h, rec->ledger[i - 1].comm))
		return process_words(rec, pid, comm, buf);
	snprintf(buf, PROCESS_WORDS_MAX, "%s", rec->ledger[i - 1].comm);
	return buf;
}
