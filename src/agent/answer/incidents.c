/* SPDX-License-Identifier: Apache-2.0 */
/* incidents.c - see incidents.h. */
#include "agent/answer/incidents.h"

#include <errno.h>
#include <stdlib.h>

#define WHERE_STACKS 4096 /* the heaviest are enough to say where; 0.1 ms each to read */

struct nodedb_filter incidents_filter(const struct scope *s, bool stacks)
{
	return (struct nodedb_filter){.scope = *s,
		.thin = stacks ? NODEDB_THIN_NEVER : NODEDB_THIN_LARGE,
		.labels = true, /* numbers among them are judged */
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

void incidents_keep_asked(struct explanation *e, const struct scope *s)
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

static int load_node(struct incidents_node *n, const char *path, const struct nodedb_filter *f,
	bool stacks, struct errinfo *reterr)
{
	int r = nodedb_read(path, f, &n->content, reterr);

	if (r == 0)
		r = explain_find(&n->content, stacks, &n->e, reterr);
	if (r == 0)
		incidents_keep_asked(&n->e, &f->scope);
	return r;
}

int incidents_load(const char *path, const struct nodedb_filter *f, bool stacks,
	struct incidents_answer *ret, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	struct nodedb_filter one = *f;
	size_t count = 0;
	int r = f->scope.node ? 0 : nodedb_nodes(path, &nodes, &count, reterr);

	if (r < 0)
		return r;
	a.nodes = calloc(MAX(count, (size_t)1), sizeof(*a.nodes));
	if (!a.nodes)
		return -ENOMEM;
	do {
		if (count > 1)
			one.scope.node = nodes[a.node_count].name;
		r = load_node(&a.nodes[a.node_count++], path, &one, stacks, reterr);
	} while (r == 0 && a.node_count < count);
	if (r == 0)
		r = list_rows(&a);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct incidents_answer){0};
	return 0;
}

int incidents_explain(
	struct nodedb_content *c, struct incidents_answer *ret, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {
		.nodes = calloc(1, sizeof(*a.nodes)), .node_count = 1};
	int r;

	if (!a.nodes)
		return -ENOMEM;
	a.nodes[0].content = *c;
	*c = (struct nodedb_content){0};
	r = explain_find(&a.nodes[0].content, false, &a.nodes[0].e, reterr);
	if (r == 0)
		r = list_rows(&a);
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
