/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_metric.c - gathers what metrics are made of and has them written. Runs on the tracer's
 * thread, so it only adds up what is at hand: some hundred microseconds, reported as a metric. */
#include "record/trace/tracer_private.h"

#include "record/trace/metrics/metric_table.h"
#include "record/trace/metrics/view_metric.h"
#include "wire/op_kind.h"

static void gather_copy(struct reading *r, const struct total *v)
{
	int direction = copy_direction(v->key.source, v->key.op);

	if (direction < 0)
		return;
	if (!copy_has_kind(v->key.source, v->key.op)) {
		sparse_merge(&r->copies[direction].all, &v->all);
		r->copies[direction].bytes += v->bytes;
		return;
	}
	for (unsigned i = 1; i < WIRE_KINDS; i++)
		if (v->kinds[i]) {
			sparse_merge(&r->copies[i - 1].all, &v->kinds[i]->all);
			r->copies[i - 1].bytes += v->kinds[i]->bytes;
		}
}

/* A process has totals for several launching functions. */
static void gather_launches(struct reading *r, const struct total *v)
{
	struct reading_launches *l = r->launches;

	if (!v->key.pid || v->gone || !op_kind_is_launch(v->key.source, v->key.op))
		return;
	while (l < r->launches + r->launch_count && l->pid != v->key.pid)
		l++;
	if (l == r->launches + READING_LAUNCHES_MAX) {
		r->cut++;
		return;
	}
	if (l == r->launches + r->launch_count) {
		*l = (struct reading_launches){.pid = v->key.pid, .since = v->since};
		memcpy(l->comm, v->comm, sizeof(l->comm));
		r->launch_count++;
	}
	l->since.ns = MIN(l->since.ns, v->since.ns);
	l->count += v->all.count;
}

/* Nested calls are counted in the call that they are in. */
static void gather(const struct tracer *t, struct reading *r)
{
	const struct total *v;
	size_t cursor = 0;

	while ((v = totals_next(t->totals, &cursor))) {
		if (v->key.flags & WIRE_NESTED || v->key.op >= WIRE_OP_MAX)
			continue;
		gather_copy(r, v);
		gather_launches(r, v);
		if (v->key.source == SOURCE_NCCL) {
			r->collectives[v->key.op].count += v->all.count;
			r->collectives[v->key.op].bytes += v->bytes;
		}
	}
}

static bool is_running(const struct tracer *t, uint32_t pid)
{
	const struct total *v;
	size_t cursor = 0;

	while ((v = totals_next(t->totals, &cursor)))
		if (v->key.pid == pid && !v->gone)
			return true;
	return false;
}

static void gather_steps(const struct tracer *t, struct reading *r)
{
	const struct step_counter *c = &t->metric_state->steps;

	for (size_t i = 0; i < c->count; i++)
		if (is_running(t, c->items[i].pid))
			r->steps[r->step_count++] = c->items[i];
}

struct metric_set *tracer_metrics(struct tracer *t)
{
	mono_time begin = mono_now();
	_cleanup_free_ struct reading *r = calloc(1, sizeof(*r));
	struct metric_point *series, *cut, *took;
	struct tracer_view view;
	struct metric_set *s;

	if (!r || !t->metric_state)
		return NULL;
	tracer_view(t, &view);
	s = metric_set_new(view.now);
	if (!s)
		return NULL;
	*r = (struct reading){.view = &view,
		.metric_state = t->metric_state,
		.home = roster_home,
		.roster = t->roster,
		.node = t->settings.node ? t->settings.node : "",
		.version = INGERO_VERSION,
		.has_store = t->settings.db_path != NULL,
		.pruned_rows = t->store ? store_writer_pruned(t->store) : t->pruned_rows};
	t->pruned_rows = r->pruned_rows;
	gather(t, r);
	gather_steps(t, r);
	series = metric_put_int(s, &metric_table[M_SERIES], (wall_time){0}, 0, NULL);
	cut = metric_put_int(s, &metric_table[M_SERIES_CUT], (wall_time){0}, 0, NULL);
	took = metric_put_double(s, &metric_table[M_BUILD_TIME], (wall_time){0}, 0, NULL);
	view_metric(r, s);
	if (series)
		series->value.i = (int64_t)metric_set_points(s);
	if (cut)
		cut->value.i = (int64_t)(metric_set_cut(s) + r->cut);
	if (took)
		took->value.d = (double)(mono_now().ns - begin.ns) / NS_PER_S;
	return s;
}
