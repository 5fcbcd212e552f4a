/* SPDX-License-Identifier: Apache-2.0 */
/* incidents.c - see incidents.h. */
#include "answer/incidents.h"

#include <errno.h>
#include <stdlib.h>

#include "answer/contents.h"
#include "answer/kernel_names.h"

#define WHERE_STACKS 4096 /* the heaviest are enough to say where; 0.1 ms each to read */

struct nodedb_filter incidents_filter(const struct scope *s, bool stacks)
{
	return (struct nodedb_filter){.scope = *s,
		.thin = stacks ? NODEDB_THIN_NEVER : NODEDB_THIN_LARGE,
		.labels = true, /* numbers among them are judged */
		.ledger = true,
		.kernels = true,
		.stacks = NODEDB_STACKS_USED,
		.stacks_max = stacks ? 0 : WHERE_STACKS};
}

static bool is_asked(const struct incident *i, const struct scope *s)
{
	for (size_t k = 0; k < s->pid_count; k++)
		if (i->pid == s->pids[k])
			return true;
	return !s->pid_count || !i->pid;
}

/* Incidents of no process in particular stay. */
static void keep_asked(struct explanation *e, const struct scope *s)
{
	size_t n = 0;

	for (size_t i = 0; i < e->count; i++)
		if (is_asked(&e->incidents[i], s))
			e->incidents[n++] = e->incidents[i];
	e->count = n;
}

static int worst_first(const void *a, const void *b)
{
	const struct incident *x = ((const struct incidents_row *)a)->incident;
	const struct incident *y = ((const struct incidents_row *)b)->incident;

	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* The engine's own order stands where there is one node. */
static int list_rows(struct incidents_answer *a)
{
	size_t total = 0;

	for (size_t i = 0; i < a->node_count; i++)
		total += a->nodes[i].e.count;
	a->rows = calloc(total + 1, sizeof(*a->rows));
	if (!a->rows)
		return -ENOMEM;
	for (size_t i = 0; i < a->node_count; i++)
		for (size_t k = 0; k < a->nodes[i].e.count; k++)
			a->rows[a->count++] = (struct incidents_row){
				&a->nodes[i].e.incidents[k], &a->nodes[i].e.scope};
	if (a->node_count > 1)
		qsort(a->rows, a->count, sizeof(*a->rows), worst_first);
	return 0;
}

/* Explains what is in a->nodes. */
static int explain_nodes(
	struct incidents_answer *a, bool stacks, const struct scope *asked, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->node_count; i++) {
		r = explain_find(&a->nodes[i].content, stacks, &a->nodes[i].e, reterr);
		if (r < 0)
			break;
		keep_asked(&a->nodes[i].e, asked);
		kernel_names_put(&a->nodes[i].content, &a->nodes[i].e);
	}
	return r == 0 ? list_rows(a) : r;
}

/* The contents of @c become @a's. */
static int take_contents(struct incidents_answer *a, struct contents *c)
{
	a->nodes = calloc(c->count, sizeof(*a->nodes));
	if (!a->nodes)
		return -ENOMEM;
	for (; a->node_count < c->count; a->node_count++) {
		a->nodes[a->node_count].content = c->items[a->node_count];
		c->items[a->node_count] = (struct nodedb_content){0};
	}
	return 0;
}

int incidents_load(const char *path, const struct nodedb_filter *f, bool stacks,
	struct incidents_answer *ret, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	_cleanup_(contents_done) struct contents c = {0};
	int r = contents_load(path, f, &c, reterr);

	if (r == 0)
		r = take_contents(&a, &c);
	if (r == 0)
		r = explain_nodes(&a, stacks, &f->scope, reterr);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct incidents_answer){0};
	return 0;
}

int incidents_explain(
	struct nodedb_content *c, struct incidents_answer *ret, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	int r = take_contents(&a, &(struct contents){c, 1});

	if (r == 0)
		r = explain_nodes(&a, false, &(struct scope){0}, reterr);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct incidents_answer){0};
	return 0;
}

struct report_scope incidents_scope(const struct incidents_answer *a)
{
	struct report_scope sum = a->nodes[0].e.scope;

	for (size_t i = 1; i < a->node_count; i++) {
		const struct report_scope *s = &a->nodes[i].e.scope;

		if (s->first_ns && (!sum.first_ns || s->first_ns < sum.first_ns))
			sum.first_ns = s->first_ns;
		sum.last_ns = MAX(sum.last_ns, s->last_ns);
		sum.events += s->events;
		sum.calls += s->calls;
		sum.skipped_rows += s->skipped_rows;
		sum.older_events += s->older_events;
		sum.older_ledger += s->older_ledger;
		sum.thinned_rows += s->thinned_rows;
		sum.pruned_rows = MAX(sum.pruned_rows, s->pruned_rows);
		sum.pruned_before = MAX(sum.pruned_before, s->pruned_before);
		sum.no_gpu_calls = sum.no_gpu_calls && s->no_gpu_calls;
		sum.completeness.known = sum.completeness.known && s->completeness.known;
		sum.completeness.hits += s->completeness.hits;
		sum.completeness.stored += s->completeness.stored;
		sum.completeness.aggregated += s->completeness.aggregated;
		sum.completeness.lost += s->completeness.lost;
		sum.completeness.books.unclean += s->completeness.books.unclean;
	}
	return sum;
}

void incidents_answer_done(struct incidents_answer *a)
{
	for (size_t i = 0; a->nodes && i < a->node_count; i++) {
		explanation_done(&a->nodes[i].e);
		nodedb_content_done(&a->nodes[i].content);
	}
	free(a->nodes);
	free(a->rows);
	*a = (struct incidents_answer){0};
}
