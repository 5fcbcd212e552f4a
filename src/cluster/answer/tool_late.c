/* SPDX-License-Identifier: Apache-2.0 */
/* tool_late.c - see tool_late.h; and the tool blame. */
#include "cluster/answer/tool_late.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cluster/answer/tool_parts.h"
#include "cluster/detect/fleet.h"
#include "wire/names.h"

#define LATE_NS    NS_PER_MS
#define LATE_SHARE 0.1
#define TOLD_MAX   100
#define LATE_CALLS 3 /* fewer say nothing */

int late_load(struct late *l, const struct tool_call *c, const struct tool_scope *s,
	const char *cluster, size_t max, struct errinfo *reterr)
{
	int r;

	*l = (struct late){.cluster = cluster};
	r = replay_load(&l->replay, c, s, cluster, max, reterr);
	return r < 0 ? r : calls_blame(l->replay.calls, &l->workers, &l->worker_count, &l->blame);
}

void late_done(struct late *l)
{
	if (l->workers)
		blame_done(&l->blame);
	free(l->workers);
	l->workers = NULL;
	replay_done(&l->replay);
}

static bool is_same(const struct blame_worker *b, const struct worker_view *w)
{
	return b->pid == w->pid && !strcmp(b->node, w->node);
}

const struct blame_suspect *late_suspect(const struct late *l, const struct worker_view *w)
{
	for (size_t i = 0; i < l->blame.suspect_count; i++)
		if (is_same(&l->workers[l->blame.suspects[i].worker], w))
			return &l->blame.suspects[i];
	return NULL;
}

bool late_is_cleared(const struct late *l, const struct worker_view *w)
{
	for (size_t i = 0; i < l->blame.cleared_count; i++)
		if (is_same(&l->workers[l->blame.cleared[i]], w))
			return true;
	return false;
}

bool late_is_often_last(const struct worker_view *w)
{
	return w->last_count >= LATE_CALLS &&
	       (double)w->last_count >= LATE_SHARE * (double)w->calls &&
	       sketch_quantile(&w->lag, 0.5) >= LATE_NS;
}

/* In the words that the service itself has for it; *e holds them. */
static const char *sentence_of(
	struct fleet_episode *e, const struct late *l, const struct blame_suspect *x)
{
	const struct blame_worker *w = &l->workers[x->worker];

	*e = (struct fleet_episode){
		.problem = l->blame.kind == BLAME_STAGE ? FLEET_STAGE : FLEET_STRAGGLER,
		.rank = w->rank,
		.pid = w->pid,
		.stage = x->stage,
		.share = x->share,
		.lag_ns = x->lag_ns,
		.late = x->late,
		.seen = x->seen,
		.period = x->period,
		.comm = x->comm,
		.seq = x->seq,
		.op = x->op};
	snprintf(e->node, sizeof(e->node), "%s", w->node);
	if (x->late && l->worker_count > 1) {
		e->waiting = (uint32_t)l->worker_count - 1;
		e->waited_ns = x->waited_ns / x->late / e->waiting;
	}
	fleet_sentence(e);
	return e->text;
}

static void put_suspect(json_t *o, const struct late *l, const struct blame_suspect *x)
{
	struct fleet_episode e;
	char comm[20], scratch[32];
	const char *op = wire_op_name(SOURCE_NCCL, x->op, scratch);

	snprintf(comm, sizeof(comm), "%016llx", (unsigned long long)x->comm);
	json_object_set_new(o, "text", tool_json_text(sentence_of(&e, l, x)));
	json_object_set_new(o, "share", json_real(x->share));
	json_object_set_new(o, "lost_ns", json_integer((json_int_t)x->lost_ns));
	json_object_set_new(o, "waited_for_it_ns", json_integer((json_int_t)x->waited_ns));
	json_object_set_new(o, "confidence", json_real(x->confidence));
	json_object_set_new(o, "late_steps", json_integer(x->late));
	json_object_set_new(o, "seen_steps", json_integer(x->seen));
	json_object_set_new(o, "period_steps", json_integer(x->period));
	json_object_set_new(o, "lag_ns", json_integer((json_int_t)x->lag_ns));
	json_object_set_new(o, "comm_id_hash", json_string(comm));
	json_object_set_new(o, "op_seq", json_integer((json_int_t)x->seq));
	json_object_set_new(o, "op_type", json_string(strncmp(op, "nccl", 4) ? op : op + 4));
	json_object_set_new(o, "since", tool_time(x->since_ns));
	if (x->stage >= 0)
		json_object_set_new(o, "stage", json_integer(x->stage));
}

json_t *late_json(const struct late *l, const struct worker_view *w)
{
	const struct blame_suspect *x = late_suspect(l, w);
	json_t *o = json_object();

	if (w->world_rank >= 0)
		json_object_set_new(o, "rank", json_integer(w->world_rank));
	json_object_set_new(o, "cluster_id", tool_json_text(l->cluster));
	json_object_set_new(o, "node_id", tool_json_text(w->node));
	json_object_set_new(o, "pid", json_integer(w->pid));
	json_object_set_new(o, "calls", json_integer((json_int_t)w->calls));
	json_object_set_new(o, "last_count", json_integer((json_int_t)w->last_count));
	json_object_set_new(
		o, "lag_p50_ns", json_integer((json_int_t)sketch_quantile(&w->lag, 0.5)));
	json_object_set_new(o, "lag_max_ns", json_integer((json_int_t)w->lag.max));
	json_object_set_new(o, "waited_ns", json_integer((json_int_t)w->waited_ns));
	json_object_set_new(o, "blamed", json_boolean(x));
	json_object_set_new(o, "cleared", json_boolean(late_is_cleared(l, w)));
	if (x)
		put_suspect(o, l, x);
	return o;
}

/* ---- blame ---- */

static const char *verdict_id(enum blame_kind k)
{
	switch (k) {
	case BLAME_WORKERS: return "ranks";
	case BLAME_STAGE: return "stage";
	case BLAME_UNEVEN: return "uneven";
	case BLAME_NONE: break;
	}
	return "none";
}

static void say_suspect(struct buf *text, const struct late *l, const struct blame_suspect *x)
{
	struct fleet_episode e;

	buf_putc(text, ' ');
	tool_say_text(text, sentence_of(&e, l, x));
	buf_putc(text, '.');
}

static void say_verdict(struct buf *text, const struct late *l)
{
	const struct blame *b = &l->blame;
	char step[TEXT_MAX];

	buf_puts(text, text->len ? "\nCluster " : "Cluster ");
	tool_say(text, l->cluster);
	buf_puts(text, ":");
	if (b->steps < 3)
		buf_puts(text, " too few steps to say who is late: ask with a longer since.");
	else if (b->kind == BLAME_NONE)
		buf_printf(text, " no straggler found in %u steps of %s.", b->steps,
			text_format_duration(step, b->step_ns));
	else if (b->kind == BLAME_UNEVEN)
		buf_puts(text,
			" the load moves between the ranks: in every step another one is slowest.");
	for (size_t i = 0; i < b->suspect_count; i++)
		say_suspect(text, l, &b->suspects[i]);
}

/* What the service itself told of @cluster in this time, newest first: the same sentences as everywhere. Returns
 * how many last. */
static size_t put_told(
	const struct sql_table *t, const char *cluster, json_t *list, struct buf *text)
{
	size_t open = 0;

	for (size_t i = 0; i < t->row_count; i++) {
		bool is_over = tool_int(t, i, INCIDENT_RESOLVED);

		if (incident_is_own(t, i) || !tool_same(t, i, INCIDENT_CLUSTER, cluster))
			continue;
		json_array_append_new(list, incident_json(t, i));
		open += !is_over;
		if (is_over)
			continue;
		buf_puts(text, text->len ? "\nCluster " : "Cluster ");
		tool_say(text, cluster);
		buf_puts(text, ": ");
		tool_say_text(text, tool_text(t, i, INCIDENT_SUMMARY));
		buf_putc(text, '.');
		if (!tool_is_null(t, i, INCIDENT_FIX) && tool_text(t, i, INCIDENT_FIX)[0]) {
			buf_puts(text, " Fix: ");
			tool_say_text(text, tool_text(t, i, INCIDENT_FIX));
			buf_putc(text, '.');
		}
	}
	return open;
}

static json_t *suspects_json(const struct late *l, bool cleared)
{
	json_t *list = json_array();
	struct worker_view w;
	size_t cursor = 0;

	while (calls_worker_next(l->replay.calls, &cursor, &w))
		if (cleared ? late_is_cleared(l, &w) : !!late_suspect(l, &w))
			json_array_append_new(list, late_json(l, &w));
	return list;
}

static json_t *verdict_json(const struct late *l)
{
	const struct blame *b = &l->blame;

	return json_pack("{s:o, s:s, s:f, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:o}", "cluster_id",
		tool_json_text(l->cluster), "verdict", verdict_id(b->kind), "confidence",
		b->confidence, "steps", (json_int_t)b->steps, "step_ns", (json_int_t)b->step_ns,
		"lost_ns", (json_int_t)b->lost_ns, "calls", (json_int_t)l->replay.rows, "cut",
		(int)l->replay.is_cut, "since", tool_time(l->replay.since_ns), "suspects",
		suspects_json(l, false), "cleared", suspects_json(l, true));
}

int tool_blame(
	const struct tool_call *c, json_t **ret, struct buf *ret_text, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table clusters = {0}, told = {0};
	json_t *verdicts = json_array(), *incidents = json_array();
	struct tool_scope s;
	int r = tool_scope_init(&s, c, 5 * TOOL_MINUTE_NS, reterr);

	if (r == 0)
		r = replay_clusters(c, &s, &clusters, reterr);
	if (r == 0)
		r = incident_ask(c, &s, TOLD_MAX, &told, reterr);
	for (size_t i = 0; r == 0 && i < clusters.row_count; i++) {
		const char *cluster = tool_text(&clusters, i, 0);
		struct late l;

		r = late_load(&l, c, &s, cluster, REPLAY_CALLS_MAX / clusters.row_count, reterr);
		if (r == 0) {
			json_array_append_new(verdicts, verdict_json(&l));
			if (!put_told(&told, cluster, incidents, ret_text))
				say_verdict(ret_text, &l);
		}
		late_done(&l);
	}
	if (r < 0) {
		json_decref(verdicts);
		json_decref(incidents);
		return r;
	}
	if (!clusters.row_count)
		buf_puts(ret_text, "No collectives are stored of this time: ask with a longer "
				   "since, or look whether agents push them.");
	return tool_done(json_pack("{s:o, s:o, s:o}", "window", tool_scope_json(&s, c), "incidents",
				 incidents, "verdicts", verdicts),
		ret);
}
