/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_collective.c - collectives come from their own table where there is one, because only that says which of
 * other ranks they belong to: those are joined by flows, from the rank that began first to the next. They
 * are held until the events come to their time, because lines want slices in order of their start
 * (perfetto_line.c). Beside the call, which only enqueues, its wait for the other ranks is drawn:
 * the rank that came last has the short one. */

#include "base/search.h"
#include "export/perfetto_private.h"
#include "base/hash.h"
#include "answer/steps.h"
#include "diagnose/accounts/match.h"

ORDER(by_time, struct perfetto_collective, ASCENDING(row->start.ns) ?: DESCENDING(row->dur_ns))

/* A flow from each rank of a collective to the next, by when they began. */
static void join(struct perfetto *p, const struct recording *rec, const struct match_table *t,
	const struct match *m, size_t *scratch)
{
	for (size_t k = 0; k < m->count; k++) {
		size_t row = rank_calls_row(rec, &t->calls, match_row(t, m, k)), at = k;

		for (; at &&
			rec->collectives[scratch[at - 1]].start.ns > rec->collectives[row].start.ns;
			at--)
			scratch[at] = scratch[at - 1];
		scratch[at] = row;
	}
	for (size_t k = 0; m->count > 1 && k < m->count; k++) {
		struct perfetto_collective *c = &p->collectives[scratch[k]];

		c->group = hash_number(m->comm_hash ^ hash_number(match_row(t, m, 0)->c.seq));
		c->from = k ? p->flow_ids : 0;
		c->to = k + 1 < m->count ? ++p->flow_ids : 0;
	}
}

int perfetto_collectives_hold(struct perfetto *p, struct collective_row *rows, size_t count)
{
	struct recording rec = {.collectives = rows, .collective_count = count};
	_cleanup_(match_done) struct match_table t = {0};
	_cleanup_free_ size_t *scratch = calloc(count + 1, sizeof(*scratch));
	int r;

	if (!count)
		return 0;
	p->collectives = calloc(count, sizeof(*p->collectives));
	if (!p->collectives || !scratch)
		return -ENOMEM;
	p->collective_count = count;
	for (size_t i = 0; i < count; i++)
		p->collectives[i] = (struct perfetto_collective){.row = &rows[i]};
	r = match_run(&rec, &t);
	for (size_t i = 0; r == 0 && i < t.match_count; i++)
		join(p, &rec, &t, &t.matches[i], scratch);
	SORT(p->collectives, count, by_time);
	return r;
}

/* The wait for the other ranks, from the rank's arrival. It is known from the synchronisation that
 * followed on the stream. */
static int put_wait(struct perfetto *p, const struct perfetto_track *t,
	const struct collective_row *row, const struct event_args *args)
{
	char name[48], comm[24] = "";
	struct perfetto_owner o = {.track = t, .kind = LINE_WAIT, .name = comm};
	struct perfetto_slice s = {.source = SOURCE_NCCL,
		.op = row->op,
		.name = name,
		.start_ns = row->start.ns,
		.end_ns = row->start.ns + row->c.wait_ns,
		.args = args};

	o.id = hash_number(row->c.comm_hash ^ hash_number(row->pid)) + (uint64_t)row->c.rank;
	snprintf(name, sizeof(name), "%s wait", WIRE_NCCL_NAME(row->op));
	if (row->c.comm_hash)
		snprintf(comm, sizeof(comm), "%016llx", (unsigned long long)row->c.comm_hash);
	return perfetto_slice_put(p, &o, &s);
}

static int put_collective(struct perfetto *p, const struct perfetto_collective *c)
{
	const struct collective_row *row = c->row;
	int32_t rank = perfetto_rank(p, row->node, strlen(row->node), row->pid);
	struct event_args args;
	struct perfetto_owner o = {
		.kind = LINE_THREAD, .id = row->tid, .pid = row->pid, .tid = row->tid, .name = ""};
	struct perfetto_slice s = {.source = SOURCE_NCCL,
		.op = row->op,
		.start_ns = row->start.ns,
		.args = &args,
		.group = c->from || c->to ? c->group : 0,
		.from = c->from,
		.to = c->to};
	int r = perfetto_track_find(
		p, row->node, strlen(row->node), rank >= 0 ? rank : MAX(row->c.rank, -1), &o.track);

	if (r < 0)
		return r;
	event_args_collective(row, &args);
	/* flows need a slice */
	s.end_ns = s.start_ns + MAX((int64_t)row->dur_ns, p->format->shortest_ns);
	r = perfetto_slice_put(p, &o, &s);
	return r < 0 || row->c.wait_ns <= 0 ? r : put_wait(p, o.track, row, &args);
}

int perfetto_collectives_put(struct perfetto *p, int64_t start_ns, uint64_t dur_ns)
{
	int r = 0;

	while (r == 0 && p->collective_next < p->collective_count) {
		const struct perfetto_collective *c = &p->collectives[p->collective_next];

		if (c->row->start.ns > start_ns ||
			(c->row->start.ns == start_ns && c->row->dur_ns < dur_ns))
			return 0;
		p->collective_next++;
		r = put_collective(p, c);
	}
	return r;
}

/* the steps of a process as slices, with the time of each line of their account beside
 * them. Of many steps, some that followed each other are one slice (struct account_bar). */

static const char *const line_names[] = {
#define X(NAME, id, title) [ACCOUNT_##NAME] = id "_ns",
	ACCOUNT_LINES_LIST(X)
#undef X
};

static int put_bar(
	struct perfetto *p, const struct perfetto_owner *o, const struct account_bar *bar)
{
	struct event_args args = {0};
	char name[64];
	struct perfetto_slice s = {.source = PERFETTO_STEPS,
		.name = name,
		.start_ns = bar->start.ns,
		.end_ns = bar->start.ns + (int64_t)bar->dur_ns,
		.args = &args};

	if (bar->steps == 1)
		snprintf(name, 64, "%s", bar->slow_steps ? "slow step" : "step");
	else if (bar->slow_steps)
		snprintf(name, 64, "%u steps, %u slow", bar->steps, bar->slow_steps);
	else
		snprintf(name, 64, "%u steps", bar->steps);
	event_arg_number(&args, "steps", bar->steps);
	event_arg_number(&args, "slow_steps", bar->slow_steps);
	for (int i = 0; i < ACCOUNT_LINES; i++)
		if (bar->ns[i])
			event_arg_number(&args, line_names[i], (int64_t)bar->ns[i]);
	p->stats.steps += bar->steps;
	return perfetto_slice_put(p, o, &s);
}

int perfetto_steps_put(struct perfetto *p, const char *node)
{
	const struct steps_answer *steps = p->options->steps;
	int r = 0;

	for (size_t i = 0; r == 0 && i < steps->count; i++) {
		const struct step_account *a = steps->rows[i].account;
		struct perfetto_owner o = {.kind = LINE_STEPS,
			.id = a->pid,
			.pid = a->pid,
			.tid = a->tid,
			.name = a->comm};

		if (strcmp(steps->rows[i].node, node) != 0)
			continue;
		r = perfetto_track_find(p, node, strlen(node),
			perfetto_rank(p, node, strlen(node), a->pid), &o.track);
		for (size_t k = 0; r == 0 && k < a->bar_count; k++)
			r = put_bar(p, &o, &a->bars[k]);
	}
	return r;
}
