/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_job.c - the rows of `collectives` as the communications of jobs.
 *
 * Processes are of one job if communicators bring them together, directly or through others: two jobs on one
 * machine have nothing to do with each other.
 *
 * A row says how long the synchronisation that followed it waited, and when that ended only if it waited for this call
 * alone. Else it is taken to begin with the call's end, unless the thread made its next call meanwhile and that waited
 * as long: then both share the synchronisation after it. So rows are looked at from the last to the first. The last call
 * before a synchronisation that is recorded itself ends with it (blame/ends.h).
 *
 * The rank that is told is the job's: of the process itself where it is known, else that in its
 * largest communicator. */
#include "diagnose/findings/straggler_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/accounts/path.h"
#include "diagnose/chains/delay.h"
#include "diagnose/rows/home.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "base/text.h"
#include "blame/call_rhythm.h"
#include "blame/ends.h"
#include "stat/robust.h"

#define STEPS_LEAST  4    /* marks that tell how long a step is */
#define STEPS_LOOKED 1024 /* of them, evenly */

static bool is_sure(const struct step_account *a)
{
	return a->mark_count >= STEPS_LEAST &&
	       (a->origin == STEP_BY_ANNOTATION || a->origin == STEP_BY_OPTIMIZER ||
		       a->origin == STEP_BY_BACKWARD || a->origin == STEP_BY_EXECUTE);
}

/* What a step of @pid takes, where marks say where they end; 0: not known. */
static uint64_t step_length(const struct step_report *accounts, uint32_t pid)
{
	for (size_t i = 0; accounts && i < accounts->count; i++) {
		const struct step_account *a = &accounts->items[i];
		uint64_t lengths[STEPS_LOOKED];
		size_t n = MIN(a->mark_count, (size_t)STEPS_LOOKED);

		if (a->pid != pid || !is_sure(a))
			continue;
		for (size_t k = 0; k < n; k++)
			lengths[k] = a->marks[k * a->mark_count / n].dur_ns;
		return robust_median_of(lengths, n);
	}
	return 0;
}

/* The rank in the job, and how long steps are. */
static int describe_workers(
	const struct recording *rec, const struct step_report *accounts, const struct rank_calls *c)
{
	_cleanup_free_ int32_t *largest = calloc(c->worker_count + 1, sizeof(*largest));

	if (!largest)
		return -ENOMEM;
	for (size_t w = 0; w < c->worker_count; w++) {
		const struct process_home *h = home_of(rec, c->workers[w].pid);

		c->workers[w].rank = h ? h->rank : -1;
		c->workers[w].step_ns = step_length(accounts, c->workers[w].pid);
		largest[w] = c->workers[w].rank >= 0 ? INT32_MAX : 0;
	}
	for (size_t i = 0; i < c->count; i++) {
		uint32_t w = c->calls[i].worker;

		if (c->calls[i].c.nranks <= largest[w])
			continue;
		largest[w] = c->calls[i].c.nranks;
		c->workers[w].rank = c->calls[i].c.rank;
	}
	return 0;
}

/* The later ones first, so that shared synchronisations are known. */
static int share_syncs(struct rank_calls *all)
{
	_cleanup_free_ size_t *next = calloc(all->worker_count + 1, sizeof(*next)); /* + 1 */

	if (!next)
		return -ENOMEM;
	for (size_t i = all->count; i-- > 0;) {
		uint32_t w = all->calls[i].worker;

		if (next[w] && all->rows[next[w] - 1]->tid == all->rows[i]->tid)
			ends_share(&all->calls[i].c, &all->calls[next[w] - 1].c);
		next[w] = i + 1;
	}
	return 0;
}

static bool is_sync(const struct event *e)
{
	if (e->flags & WIRE_NESTED)
		return false;
	return (e->source == SOURCE_CUDA &&
		       (e->op == CUDA_STREAM_SYNC || e->op == CUDA_DEVICE_SYNC)) ||
	       (e->source == SOURCE_DRIVER &&
		       (e->op == DRIVER_STREAM_SYNC || e->op == DRIVER_CTX_SYNC));
}

/* Calls end with the synchronisation of their process that follows them, unless one is known that waited for them alone.
 * Of several nodes only this one's are at hand: what is known of some ranks alone would make the others look late. */
static int set_ends(const struct recording *rec, struct rank_calls *j)
{
	_cleanup_(idmap_done) struct idmap workers =
		IDMAP_INIT(BLAME_WORKERS_MAX); /* ends, by pid */
	_cleanup_free_ struct ends *ends = calloc(j->worker_count + 1, sizeof(*ends));
	const char *node = rec->node ? rec->node : "";
	size_t at = 0;
	bool is_end;

	if (!ends)
		return -ENOMEM;
	for (size_t w = 0; w < j->worker_count; w++) {
		if (strcmp(j->workers[w].node, node))
			return 0;
		if (idmap_put(&workers, j->workers[w].pid, &ends[w]) == -ENOMEM)
			return -ENOMEM;
	}
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		struct ends *own;

		if (!is_sync(e))
			continue;
		for (; at < j->count && j->calls[at].c.enter_ns < e->start.ns; at++)
			if (j->rows[at]->c.span_ns > 0)
				ends[j->calls[at].worker] = (struct ends){0};
			else
				ends_call(&ends[j->calls[at].worker], &j->calls[at].c, &is_end);
		own = idmap_get(&workers, e->pid);
		if (own)
			ends_sync(own, e->start.ns, event_end_ns(e));
	}
	return 0;
}

static uint32_t find_root(uint32_t *parent, uint32_t w)
{
	while (parent[w] != w)
		w = parent[w] = parent[parent[w]];
	return w;
}

/* The job of each worker: *ret_of is the caller's. */
static int find_jobs(const struct rank_calls *all, uint32_t **ret_of, size_t *ret_count)
{
	_cleanup_(idmap_done) struct idmap first =
		IDMAP_INIT(1 << 20); /* worker + 1, by communicator */
	_cleanup_free_ uint32_t *parent = calloc(all->worker_count + 1, sizeof(*parent));
	_cleanup_free_ uint32_t *of = calloc(all->worker_count + 1, sizeof(*of));
	size_t n = 0;
	int r = 0;

	if (!parent || !of)
		return -ENOMEM;
	for (uint32_t w = 0; w < all->worker_count; w++)
		parent[w] = w;
	for (size_t i = 0; r >= 0 && i < all->count; i++) {
		uint32_t w = all->calls[i].worker;
		size_t one = (size_t)(uintptr_t)idmap_get(&first, all->calls[i].c.comm);

		if (one)
			parent[find_root(parent, w)] = find_root(parent, (uint32_t)(one - 1));
		else
			r = idmap_put(&first, all->calls[i].c.comm, (void *)(uintptr_t)(w + 1));
	}
	if (r == -ENOMEM)
		return r;
	for (uint32_t w = 0; w < all->worker_count; w++)
		if (find_root(parent, w) == w)
			of[w] = (uint32_t)n++;
	for (uint32_t w = 0; w < all->worker_count; w++)
		of[w] = of[find_root(parent, w)];
	*ret_of = TAKE(of);
	*ret_count = n;
	return 0;
}

static void job_done(struct straggler_job *j)
{
	free(j->workers);
	free(j->calls);
	free(j->rows);
	blame_done(&j->blame);
	*j = (struct straggler_job){0};
}

/* Where no rank's marks say where its steps end, the order of its calls says how long they are. */
static int set_rhythm(struct straggler_job *j)
{
	for (size_t w = 0; w < j->worker_count; w++)
		if (j->workers[w].step_ns)
			return 0;
	return call_rhythm_set(j->workers, j->worker_count, j->calls, j->call_count);
}

/* One that is too large to be looked at is blamed for nothing. */
static int blame_job(struct straggler_job *j)
{
	int r;

	if (j->worker_count < 2)
		return 0;
	r = set_rhythm(j);
	r = r < 0 ? r : blame_find(j->workers, j->worker_count, j->calls, j->call_count, &j->blame);
	return r == -ENOMEM ? r : 0;
}

/* Deals @all out to its @n jobs. */
static int deal_out(
	const struct rank_calls *all, const uint32_t *of, size_t n, struct straggler_job *jobs)
{
	_cleanup_free_ uint32_t *place = calloc(all->worker_count + 1, sizeof(*place));

	if (!place)
		return -ENOMEM;
	for (uint32_t w = 0; w < all->worker_count; w++)
		place[w] = (uint32_t)jobs[of[w]].worker_count++;
	for (size_t i = 0; i < all->count; i++)
		jobs[of[all->calls[i].worker]].call_count++;
	for (size_t i = 0; i < n; i++) {
		struct straggler_job *j = &jobs[i];

		j->workers = calloc(j->worker_count + 1, sizeof(*j->workers));
		j->calls = calloc(j->call_count + 1, sizeof(*j->calls));
		j->rows = calloc(j->call_count + 1, sizeof(*j->rows));
		if (!j->workers || !j->calls || !j->rows)
			return -ENOMEM;
		j->call_count = 0;
	}
	for (uint32_t w = 0; w < all->worker_count; w++)
		jobs[of[w]].workers[place[w]] = all->workers[w];
	for (size_t i = 0; i < all->count; i++) {
		struct straggler_job *j = &jobs[of[all->calls[i].worker]];

		j->rows[j->call_count] = all->rows[i];
		j->calls[j->call_count++] = (struct blame_call){
			.worker = place[all->calls[i].worker], .c = all->calls[i].c};
	}
	return 0;
}

static int blame_jobs(const struct rank_calls *all, struct straggler_jobs *ret)
{
	_cleanup_free_ uint32_t *of = NULL;
	size_t n = 0;
	int r = find_jobs(all, &of, &n);

	if (r < 0)
		return r;
	ret->items = calloc(n + 1, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	ret->count = n;
	r = deal_out(all, of, n, ret->items);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = blame_job(&ret->items[i]);
	return MIN(r, 0);
}

int straggler_jobs_find(
	const struct recording *rec, const struct step_report *accounts, struct straggler_jobs *ret)
{
	int r;

	*ret = (struct straggler_jobs){0};
	r = rank_calls_find(rec, &ret->calls);
	r = r < 0 ? r : describe_workers(rec, accounts, &ret->calls);
	r = r < 0 ? r : share_syncs(&ret->calls);
	r = r < 0 ? r : set_ends(rec, &ret->calls);
	return r < 0 ? r : blame_jobs(&ret->calls, ret);
}

void straggler_jobs_done(struct straggler_jobs *j)
{
	for (size_t i = 0; i < j->count; i++)
		job_done(&j->items[i]);
	free(j->items);
	rank_calls_done(&j->calls);
	*j = (struct straggler_jobs){0};
}

/* ---- what a rank does in its own time ---- */

#define TOLD_SHARE 0.3 /* of the time: less says nothing */

static const struct tally_part *largest_part(const struct tally *t, int line)
{
	const struct tally_part *best = NULL;

	for (size_t i = 0; i < t->count; i++)
		if (t->parts[i].line == line && t->parts[i].culprit[0] &&
			(!best || t->parts[i].ns > best->ns))
			best = &t->parts[i];
	return best;
}

static void describe_doing(const struct tally *t, uint64_t total, struct doing *ret)
{
	const struct tally_part *p;
	char share[TEXT_MAX], who[64] = "";
	int line = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		if (i != ACCOUNT_UNKNOWN && t->ns[i] > t->ns[line])
			line = i;
	if (!total || (double)t->ns[line] < TOLD_SHARE * (double)total) {
		snprintf(ret->text, sizeof(ret->text), "what its thread did is unknown");
		return;
	}
	ret->line = (enum account_line)line;
	p = largest_part(t, line);
	if (p && p->culprit_pid && (line == ACCOUNT_CPU || line == ACCOUNT_DISK))
		snprintf(who, sizeof(who), "%s %.15s (pid %u)",
			line == ACCOUNT_CPU ? " used by" : " behind", p->culprit, p->culprit_pid);
	snprintf(ret->text, sizeof(ret->text), "its thread was %s%s for %s of that",
		delay_text((enum delay_kind)line), who,
		text_format_percent(share, (double)t->ns[line] / (double)total));
}

int doing_describe(const struct recording *rec, uint32_t pid, const struct window *windows,
	size_t n, struct doing *ret)
{
	_cleanup_(timeline_done) struct timeline t = {0};
	_cleanup_(tally_done) struct tally sum = {0};
	uint64_t total = 0;
	int r = timeline_make(rec, &t);

	*ret = (struct doing){.line = ACCOUNT_UNKNOWN};
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct path path = {.timeline = &t, .pid = pid, .tid = windows[i].tid};

		total += (uint64_t)(windows[i].end_ns - windows[i].start_ns);
		r = path_account(&path, windows[i].start_ns, windows[i].end_ns, &sum);
	}
	if (r == 0)
		describe_doing(&sum, total, ret);
	return r;
}
