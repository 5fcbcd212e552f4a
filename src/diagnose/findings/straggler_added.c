/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_added.c - what ranks have more of since their steps are slow, all hosts being in time.
 *
 * Kernels that one rank alone runs, and nobody ran before, tell most. Where some or all make more collectives than before
 * it is these. A rank whose threads wait for CPUs is late with its part of the collectives. If nothing of the kind is seen
 * and the GPUs' memory is less busy than before and they draw less power, they wait for each other: what carries the collectives is slow. */
#include "diagnose/findings/straggler_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/macros.h"

#define RANKS_MAX     WORK_RANKS_MAX
#define COUNTED_LEAST WORK_STEPS_LEAST
#define NAMES_MAX     16384
#define ONLY_SHARE    0.02 /* of its launches, of kernels that it alone runs */
#define KINDS_MAX     1024 /* communicators and operations */
#define EXTRA_CALLS   0.5  /* a step, of those that ordinary ones do not make */
#define NONE_SHARE    0.1  /* of them, in ordinary ones */
#define SAMPLES_LEAST 3    /* of GPUs, before and since */
#define IDLE_FACTOR                                                                                \
	0.8 /* of how busy their memory was, and of the power they drew: products of matrices need little memory */
#define ALIKE_SHARE    0.9 /* of what the middle one waits longer: all do, so that none is late */
#define STARVED_SHARE  0.2 /* of the time, by which threads of a rank wait longer for a CPU */
#define STARVED_FACTOR 2   /* likewise, times what they did before */

struct name { /* of kernels, all ranks together */
	int64_t first_ns;
	size_t rank; /* that runs it */
	bool is_shared;
};

static size_t rank_of(const struct work_rank *ranks, size_t n, uint32_t pid)
{
	size_t i = 0;

	while (i < n && ranks[i].a->pid != pid)
		i++;
	return i;
}

static uint64_t name_key(const char *name)
{
	return hash_bytes(name, strlen(name)) | 1;
}

static int list_names(const struct recording *rec, const struct work_rank *ranks, size_t n,
	struct name *list, struct idmap *at)
{
	size_t count = 0;

	for (size_t i = 0; i < rec->kernel_count; i++) {
		const struct kernel_use *k = &rec->kernels[i];
		size_t r = k->name ? rank_of(ranks, n, k->pid) : n;
		struct name *name;
		int e;

		if (r == n)
			continue;
		name = idmap_get(at, name_key(k->name));
		if (!name) {
			name = &list[count++];
			*name = (struct name){k->first.ns, r, false};
			e = idmap_put(at, name_key(k->name), name);
			if (e < 0)
				return e;
		}
		name->first_ns = MIN(name->first_ns, k->first.ns);
		name->is_shared |= name->rank != r;
	}
	return 0;
}

/* The rank that alone runs kernels which nobody ran before @since_ns. *ret_new: somebody runs new ones. */
static int find_only(const struct recording *rec, const struct work_rank *ranks, size_t n,
	int64_t since_ns, struct straggler_work *ret, bool *ret_new)
{
	_cleanup_(idmap_done) struct idmap at = IDMAP_INIT(NAMES_MAX);
	_cleanup_free_ struct name *list = calloc(rec->kernel_count + 1, sizeof(*list));
	double only[RANKS_MAX] = {0}, all[RANKS_MAX] = {0}, fresh[RANKS_MAX] = {0};
	uint64_t most[RANKS_MAX] = {0};
	const char *names[RANKS_MAX] = {0};
	size_t late;
	int r = list ? list_names(rec, ranks, n, list, &at) : -ENOMEM;

	if (r < 0)
		return r == -ENOBUFS ? 0 : r;
	for (size_t i = 0; i < rec->kernel_count; i++) {
		const struct kernel_use *k = &rec->kernels[i];
		size_t own = k->name ? rank_of(ranks, n, k->pid) : n;
		const struct name *name = own < n ? idmap_get(&at, name_key(k->name)) : NULL;

		if (!name)
			continue;
		all[own] += (double)k->launches;
		if (name->first_ns < since_ns)
			continue;
		fresh[own] += (double)k->launches;
		if (name->is_shared)
			continue;
		only[own] += (double)k->launches;
		if (k->launches > most[own]) {
			most[own] = k->launches;
			names[own] = k->name;
		}
	}
	for (size_t i = 0; i < n; i++)
		*ret_new |= fresh[i] >= ONLY_SHARE * all[i] && fresh[i] > 0;
	late = work_outlier(only, n, 1);
	if (late < n && only[late] >= ONLY_SHARE * all[late]) {
		ret->late = ranks[late].worker;
		ret->kernel = names[late];
	}
	return 0;
}

struct kind { /* collectives of one communicator and operation, of all ranks */
	const struct blame_call *first;
	uint64_t bytes;
	double calls[2];  /* in ordinary and slow steps */
	uint32_t workers; /* that take part */
};

static uint64_t kind_key(const struct push_call *c)
{
	return hash_number(c->comm ^ hash_number(c->op)) | 1;
}

/* Collectives that slow steps of @a make and others do not. */
static int find_extra(
	const struct step_account *a, const struct straggler_job *j, struct straggler_work *ret)
{
	_cleanup_(idmap_done) struct idmap at = IDMAP_INIT(KINDS_MAX);
	_cleanup_free_ struct kind *kinds = calloc(KINDS_MAX, sizeof(*kinds));
	double steps[2] = {MAX(a->ordinary_steps, 1U), a->slow_steps}, most = 0;
	size_t count = 0;

	if (!kinds)
		return -ENOMEM;
	for (size_t i = 0; i < j->call_count; i++) {
		const struct push_call *c = &j->calls[i].c;
		size_t step = work_step_of(a, c->enter_ns);
		struct kind *k = idmap_get(&at, kind_key(c));

		if (step == SIZE_MAX || c->op == NCCL_SEND || c->op == NCCL_RECV)
			continue;
		if (!k) {
			int e = count < KINDS_MAX ? idmap_put(&at, kind_key(c), &kinds[count]) : 1;

			if (e)
				return e == -ENOMEM ? e : 0;
			k = &kinds[count++];
			*k = (struct kind){.first = &j->calls[i], .workers = 1};
		}
		k->bytes = MAX(k->bytes, c->bytes);
		k->calls[a->marks[step].is_slow]++;
		if (c->nranks > (int32_t)k->workers)
			k->workers = (uint32_t)c->nranks;
	}
	for (size_t i = 0; i < count; i++) {
		const struct kind *k = &kinds[i];
		double before = k->calls[0] / steps[0] / k->workers;
		double more = k->calls[1] / steps[1] / k->workers - before;

		if (more < EXTRA_CALLS || before > NONE_SHARE * more ||
			more * (double)k->bytes <= most)
			continue;
		most = more * (double)k->bytes;
		ret->extra = (struct straggler_extra){.comm = k->first->c.comm,
			.op = k->first->c.op,
			.bytes = k->bytes,
			.calls = more,
			.worker = k->first->worker,
			.workers = k->workers};
	}
	return 0;
}

/* Whether all ranks of the job are known: one that is not may be who the others wait for. */
static bool all_are_here(const struct straggler_job *j)
{
	for (size_t i = 0; i < j->call_count; i++)
		if (j->calls[i].c.nranks > (int64_t)j->worker_count)
			return false;
	return true;
}

/* Whether all wait longer for their GPUs, and these have less to do than before. */
static bool is_idle(const struct recording *rec, const struct work_rank *ranks, size_t n,
	const struct step_account *a, uint64_t lost_ns)
{
	double busy[2] = {0}, power[2] = {0}, samples[2] = {0};

	for (size_t i = 0; i < n; i++) {
		const struct step_account *o = ranks[i].a;

		if (o->slow_steps < COUNTED_LEAST ||
			(double)(o->slow_ns[ACCOUNT_GPU] * o->slow_steps) <
				(double)(o->ordinary_ns[ACCOUNT_GPU] * o->slow_steps) +
					ALIKE_SHARE * (double)lost_ns)
			return false;
	}
	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *g = &rec->gpus[i];
		bool since = g->time.ns >= a->slow_first.ns;

		if (g->util_mem_pct < 0 || g->time.ns < a->first.ns || g->time.ns > a->slow_last.ns)
			continue;
		busy[since] += (double)g->util_mem_pct;
		power[since] += (double)MAX(g->power_mw, INT64_C(0));
		samples[since]++;
	}
	return samples[0] >= SAMPLES_LEAST && samples[1] >= SAMPLES_LEAST &&
	       busy[1] / samples[1] <= IDLE_FACTOR * busy[0] / samples[0] &&
	       power[1] / samples[1] <= IDLE_FACTOR * power[0] / samples[0];
}

/* The rank whose threads wait for a CPU far more since steps are slow, which its peers' do not: those among them that carry
 * its collectives. Its host may come in time. */
static void find_starved(const struct recording *rec, const struct work_rank *ranks, size_t n,
	const struct step_account *a, struct straggler_work *ret)
{
	double waited[RANKS_MAX][2] = {0}, more[RANKS_MAX];
	double time[2] = {(double)MAX(a->slow_first.ns - a->first.ns, INT64_C(1)),
		(double)MAX(a->slow_last.ns - a->slow_first.ns, INT64_C(1))};
	size_t late;

	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *l = &rec->ledger[i];
		size_t r = rank_of(ranks, n, l->pid);

		if (r < n && l->start.ns >= a->first.ns && l->start.ns < a->slow_last.ns)
			waited[r][l->start.ns >= a->slow_first.ns] +=
				(double)l->ns[LEDGER_CPU_WAIT];
	}
	for (size_t i = 0; i < n; i++)
		more[i] = MAX(waited[i][1] / time[1] - waited[i][0] / time[0], 0.0);
	late = work_outlier(more, n, STARVED_SHARE);
	if (late == n || waited[late][1] / time[1] < STARVED_FACTOR * waited[late][0] / time[0])
		return;
	ret->late = ranks[late].worker;
	ret->starved = waited[late][1] / time[1];
	ret->starved_before = waited[late][0] / time[0];
}

/* The account whose slow steps are those of the job: it lost most in several; NULL: none did. */
static const struct step_account *slow_account(const struct work_rank *ranks, size_t n)
{
	const struct step_account *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (ranks[i].a->slow_steps >= COUNTED_LEAST &&
			(!best || ranks[i].a->lost_ns > best->lost_ns))
			best = ranks[i].a;
	return best;
}

int work_find_added(const struct recording *rec, const struct straggler_job *j,
	const struct work_rank *ranks, size_t n, struct straggler_work *ret)
{
	const struct step_account *a = ret->lost_ns ? slow_account(ranks, n) : NULL;
	bool is_new = false;
	int r;

	if (!a)
		return 0;
	r = find_extra(a, j, ret);
	if (r == 0 && !ret->extra.comm)
		r = find_only(
			rec, ranks, n, a->slow_first.ns - (int64_t)a->slow_step_ns, ret, &is_new);
	if (r == 0 && !ret->extra.comm && !ret->kernel)
		find_starved(rec, ranks, n, a, ret);
	ret->steps = a->slow_steps;
	ret->since_ns = a->slow_first.ns;
	ret->wait_ns = a->slow_ns[ACCOUNT_GPU];
	ret->usual_wait_ns = a->ordinary_ns[ACCOUNT_GPU];
	ret->is_idle = !is_new && !ret->extra.comm && all_are_here(j) &&
		       is_idle(rec, ranks, n, a, ret->lost_ns);
	return r;
}
