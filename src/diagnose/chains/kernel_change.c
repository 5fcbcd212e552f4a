/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_change.c - see kernel_change.h.
 *
 * A kernel is new if its launches are seen in slow steps and never in ordinary ones. Rows of launches are one in
 * 256, picked by their number (WIRE_SAMPLE), and further ones that say nothing about how often a kernel runs: slow
 * ones, and the first of a process. All rows make a kernel known; only those picked by their number count as new.
 *
 * By chance a rare kernel is first seen late. The share of launches of kernels never seen so far is about that of
 * kernels seen once (Good and Turing): new rows must be far more than that. As launches are picked by their
 * number, a step of 256 launches shows the same few kernels all the time, until something shifts it: so the number
 * of launches of new kernels, which is counted another way (wire/record.h), must be that of a part of the steps.
 *
 * O(rows log kernels). */
#include "diagnose/chains/kernel_change.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/chains/kernel_added.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "base/search.h"
#include "wire/op_kind.h"
#include "diagnose/thresholds.h"

#define USES_MAX 4096 /* kernels of a process; of more nothing is said */

struct use { /* of a kernel, by its name */
	const char *name;
	uint64_t launches; /* in the whole recording */
	uint32_t seen;     /* rows in ordinary steps */
	uint32_t ordinary; /* likewise, those picked by their number */
	uint32_t later;    /* rows in slow steps */
	uint32_t slow;     /* likewise, those picked by their number */
};

struct mix {
	struct use *uses;
	size_t count;
	struct idmap by_key;
	bool is_sampled; /* rows say which of them were picked by their number; else all were */
	uint32_t seen, once, ordinary, slow;
	uint64_t launches;
};

static void mix_done(struct mix *m)
{
	free(m->uses);
	idmap_done(&m->by_key);
}

static bool is_launch(const struct event *e, uint32_t pid)
{
	return e->pid == pid && op_kind_is_launch(e->source, e->op) && e->arg0 &&
	       !(e->flags & WIRE_NESTED);
}

static bool is_chosen(const struct mix *m, const struct event *e)
{
	return m->is_sampled ? e->flags & WIRE_SAMPLE
			     : !(e->flags & (WIRE_SLOW | WIRE_AFTER_GAP)) && !e->ret;
}

/* The step that @ns is in; NULL: none. */
static const struct step_mark *step_at(const struct step_account *a, int64_t ns)
{
	size_t at = LOWER_BOUND(i, a->mark_count, a->marks[i].start.ns <= ns);
	const struct step_mark *s = at ? &a->marks[at - 1] : NULL;

	return s && ns < s->start.ns + (int64_t)s->dur_ns ? s : NULL;
}

static uint64_t key_of(const char *name, uint64_t function)
{
	return name ? hash_bytes(name, strlen(name)) : function;
}

/* 1, 0 if there are too many, or -ENOMEM. */
static int use_of(struct mix *m, const char *name, uint64_t key, struct use **ret)
{
	int r;

	*ret = idmap_get(&m->by_key, key);
	if (*ret)
		return 1;
	if (m->count == USES_MAX)
		return 0;
	*ret = &m->uses[m->count++];
	(*ret)->name = name;
	r = idmap_put(&m->by_key, key, *ret);
	return r < 0 ? -ENOMEM : 1;
}

static void count_row(struct mix *m, struct use *u, bool is_slow, bool is_chosen)
{
	if (is_slow) {
		u->later++;
		u->slow += is_chosen;
		m->slow += is_chosen;
	} else {
		u->seen++;
		u->ordinary += is_chosen;
		m->seen++;
		m->ordinary += is_chosen;
	}
}

static int count_rows(const struct recording *rec, const struct step_account *a, struct mix *m)
{
	for (size_t i = 0; i < rec->event_count && !m->is_sampled; i++)
		m->is_sampled =
			is_launch(&rec->events[i], a->pid) && rec->events[i].flags & WIRE_SAMPLE;
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		const struct step_mark *s = is_launch(e, a->pid) ? step_at(a, e->start.ns) : NULL;
		const struct kernel_use *k;
		struct use *u;
		int r;

		if (!s)
			continue;
		k = kernel_use_find(rec->kernels, rec->kernel_count, e->pid, e->arg0, e->start.ns);
		r = use_of(m, k ? k->name : NULL, key_of(k ? k->name : NULL, e->arg0), &u);
		if (r <= 0)
			return r;
		count_row(m, u, s->is_slow, is_chosen(m, e));
	}
	for (size_t i = 0; i < m->count; i++)
		m->once += m->uses[i].seen == 1;
	return 1;
}

static void count_launches(const struct recording *rec, uint32_t pid, struct mix *m)
{
	for (size_t i = 0; i < rec->kernel_count; i++) {
		const struct kernel_use *k = &rec->kernels[i];
		struct use *u =
			k->pid == pid ? idmap_get(&m->by_key, key_of(k->name, k->function)) : NULL;

		m->launches += k->pid == pid ? k->launches : 0;
		if (u)
			u->launches += k->launches;
	}
}

static bool is_new(const struct use *u)
{
	return u->slow && !u->seen;
}

/* At most so likely are @k of @n, of which each is so with probability @p. */
static double likelihood(uint32_t k, uint32_t n, double p)
{
	double all = 1;

	for (uint32_t i = 0; i < k; i++)
		all *= p * (double)(n - i) / (double)(i + 1);
	return all;
}

/* Kernels with that share of the rows in slow steps have the same share of all launches if ordinary steps run them,
 * too, and less, as slow steps are part of all steps, if they do not. */
static bool fits(
	const struct step_account *a, const struct mix *m, uint32_t rows, uint64_t launches)
{
	double share = (double)rows / (double)MAX(m->slow, 1u);
	double part = (double)a->slow_steps / (double)MAX(a->steps, 1u);

	return launches && (double)launches <= share * sqrt(part) * (double)m->launches;
}

static bool has_changed(const struct step_account *a, const struct mix *m, uint32_t *ret_rows)
{
	uint64_t launches = 0;
	uint32_t rows = 0;

	for (size_t i = 0; i < m->count; i++) {
		rows += is_new(&m->uses[i]) ? m->uses[i].slow : 0;
		launches += is_new(&m->uses[i]) ? m->uses[i].launches : 0;
	}
	*ret_rows = rows;
	return rows >= THRESHOLD(LEAST) && rows >= THRESHOLD(PART) * m->slow &&
	       fits(a, m, rows, launches) &&
	       likelihood(rows, m->slow, (double)(m->once + 1) / (double)(m->seen + 1)) <
		       THRESHOLD(CHANCE_SURE);
}

/* Matrix products first: they take the time, and their names say most. */
static bool tells_more(const struct use *x, const struct use *y)
{
	bool first = kernel_is_matrix(x->name), second = kernel_is_matrix(y->name);

	return first != second ? first : x->launches > y->launches;
}

static void name_added(const struct step_account *a, const struct mix *m, struct kernel_change *ret)
{
	const struct use *best[KERNELS_NAMED];

	for (size_t i = 0; i < m->count; i++) {
		const struct use *u = &m->uses[i];
		int at = ret->added_count;

		if (!is_new(u) || !u->name)
			continue;
		while (at && tells_more(u, best[at - 1])) {
			if (at < KERNELS_NAMED)
				best[at] = best[at - 1];
			at--;
		}
		if (at == KERNELS_NAMED)
			continue;
		best[at] = u;
		ret->added_count = MIN(ret->added_count + 1, KERNELS_NAMED);
	}
	for (int i = 0; i < ret->added_count; i++)
		ret->added[i] = (struct kernel_share){.name = best[i]->name,
			.rows = best[i]->slow,
			.in_step = (double)best[i]->launches / (double)a->slow_steps};
}

/* Which type's kernels, common in ordinary steps, are as good as gone; what new ones are of instead. */
static void find_types(const struct mix *m, uint32_t new_rows, struct kernel_change *ret)
{
	uint32_t ordinary[KERNEL_TYPE_COUNT] = {0}, slow[KERNEL_TYPE_COUNT] = {0};
	uint32_t added[KERNEL_TYPE_COUNT] = {0};
	int from = KERNEL_OF_UNKNOWN, to = KERNEL_OF_UNKNOWN;

	for (size_t i = 0; i < m->count; i++) {
		enum kernel_type t = kernel_type_of(m->uses[i].name);

		ordinary[t] += m->uses[i].ordinary;
		slow[t] += m->uses[i].slow;
		added[t] += is_new(&m->uses[i]) ? m->uses[i].slow : 0;
	}
	for (int t = 0; t < KERNEL_OF_UNKNOWN; t++) {
		double before = (double)ordinary[t] / (double)MAX(m->ordinary, 1u);
		double after = (double)slow[t] / (double)MAX(m->slow, 1u);

		if (before >= THRESHOLD(FEW) && after <= THRESHOLD(LITTLE) * before &&
			likelihood(m->slow - slow[t], m->slow, 1 - before) < THRESHOLD(CHANCE) &&
			(from == KERNEL_OF_UNKNOWN || ordinary[t] > ordinary[from]))
			from = t;
		if (added[t] > THRESHOLD(CHAIN_MOST) * new_rows)
			to = t;
	}
	if (from == KERNEL_OF_UNKNOWN || from == to || to == KERNEL_OF_UNKNOWN)
		return;
	ret->from = (enum kernel_type)from;
	ret->to = (enum kernel_type)to;
}

/* One that slow steps would show if they still ran it. Of a type that is gone all are. */
static void name_gone(const struct mix *m, struct kernel_change *ret)
{
	const struct use *best = NULL;

	for (size_t i = 0; i < m->count; i++) {
		const struct use *u = &m->uses[i];
		double share = (double)u->ordinary / (double)MAX(m->ordinary, 1u);
		bool is_gone =
			ret->from != KERNEL_OF_UNKNOWN
				? kernel_type_of(u->name) == ret->from
				: likelihood(m->slow, m->slow, 1 - share) < THRESHOLD(CHANCE);

		if (u->name && u->ordinary && !u->later && is_gone &&
			(!best || tells_more(u, best)))
			best = u;
	}
	if (best)
		ret->gone = (struct kernel_share){.name = best->name, .rows = best->ordinary};
}

int kernel_change_find(
	const struct recording *rec, const struct step_account *a, struct kernel_change *ret)
{
	_cleanup_(mix_done) struct mix m = {.by_key = IDMAP_INIT(USES_MAX)};
	uint32_t rows;
	int r;

	*ret = (struct kernel_change){.from = KERNEL_OF_UNKNOWN, .to = KERNEL_OF_UNKNOWN};
	if (!rec->kernel_count || !a->slow_steps)
		return 0;
	m.uses = calloc(USES_MAX, sizeof(*m.uses));
	if (!m.uses)
		return -ENOMEM;
	r = count_rows(rec, a, &m);
	if (r <= 0)
		return r;
	count_launches(rec, a->pid, &m);
	if (!has_changed(a, &m, &rows))
		return kernel_added_find(rec, a, ret);
	ret->slow_rows = m.slow;
	ret->new_rows = rows;
	name_added(a, &m, ret);
	find_types(&m, rows, ret);
	name_gone(&m, ret);
	return 0;
}
