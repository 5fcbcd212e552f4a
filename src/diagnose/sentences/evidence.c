/* SPDX-License-Identifier: Apache-2.0 */
/* evidence.c - picks the rows that prove an incident: its timeline, its evidence and the SQL for it.
 *
 * Slow calls are ranked by the time of the layer the incident is named after, then by excess. The
 * timeline is the first of them with its parts (the longest, in order of time) and the reading of
 * the host nearest to it, within two seconds: what was so elsewhere in the recording proves
 * nothing here. The evidence is the calls in this order, each followed by the rows that overlap it.
 * evidence_sql drops the last, least telling rows until it fits its field, so it always runs. */
#include "diagnose/sentences/evidence.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/compose/detector.h"
#include "base/buf.h"
#include "base/text.h"
#include "wire/names.h"

#define SAMPLE_REACH_NS ((int64_t)(2 * NS_PER_S))
#define PARTS_SHOWN     (INCIDENT_TIMELINE - 2) /* besides the host's reading and the call */
#define PARTS_PER_CALL  3                       /* rows of proof listed for each slow call */
#define SQL_MAX         (64 * 1024)

struct call_rank {
	size_t call;
	size_t first_part, part_count;
	uint64_t lead_ns, excess_ns;
};

static int by_rank(const void *a, const void *b)
{
	const struct call_rank *x = a, *y = b;

	if (x->lead_ns != y->lead_ns)
		return x->lead_ns > y->lead_ns ? -1 : 1;
	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	return (x->call > y->call) - (x->call < y->call);
}

/* Parts are in order of call, as are the slow calls of a stretch. */
static int rank_calls(const struct detection *d, const struct slow_episode *s,
	const struct part_list *l, const struct verdict *v, struct call_rank **ret)
{
	struct call_rank *ranks = calloc(s->count, sizeof(*ranks));
	const char *layer = cause_layer(v->lead->cause);
	size_t at = 0;

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++) {
		struct call_rank *r = &ranks[i];

		*r = (struct call_rank){.call = s->first + i,
			.first_part = at,
			.excess_ns = d->slow[s->first + i].excess_ns};
		for (; at < l->count && l->items[at].call == r->call; at++) {
			if (!strcmp(cause_layer(l->items[at].cause), layer))
				r->lead_ns += l->items[at].ns;
			r->part_count++;
		}
	}
	qsort(ranks, s->count, sizeof(*ranks), by_rank);
	*ret = ranks;
	return 0;
}

static int parts_by_length(const void *a, const void *b)
{
	const struct part *x = *(const struct part *const *)a, *y = *(const struct part *const *)b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x > y) - (x < y);
}

static int parts_by_time(const void *a, const void *b)
{
	const struct part *x = *(const struct part *const *)a, *y = *(const struct part *const *)b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x > y) - (x < y);
}

static const struct part **longest_parts(const struct part_list *l, const struct call_rank *r)
{
	const struct part **p = calloc(r->part_count + 1, sizeof(*p));

	for (size_t i = 0; p && i < r->part_count; i++)
		p[i] = &l->items[r->first_part + i];
	if (p)
		qsort(p, r->part_count, sizeof(*p), parts_by_length);
	return p;
}

static struct incident_step *step_add(
	struct incident *inc, const char *layer, const char *op, int64_t time_ns, uint64_t dur_ns)
{
	struct incident_step *s = &inc->timeline[inc->step_count++];

	s->time.ns = time_ns;
	s->dur_ns = dur_ns;
	snprintf(s->layer, sizeof(s->layer), "%s", layer);
	snprintf(s->op, sizeof(s->op), "%s", op);
	return s;
}

static void add_host_step(const struct recording *rec, int64_t ns, struct incident *inc)
{
	const struct host_sample *best = NULL;
	int64_t distance = SAMPLE_REACH_NS + 1;
	struct incident_step *s;

	for (size_t i = 0; i < rec->sample_count; i++) {
		int64_t delta;

		if (__builtin_sub_overflow(rec->samples[i].time.ns, ns, &delta) ||
			delta == INT64_MIN)
			continue;
		delta = delta < 0 ? -delta : delta;
		if (delta < distance) {
			best = &rec->samples[i];
			distance = delta;
		}
	}
	if (!best)
		return;
	s = step_add(inc, "SYSTEM", "host", best->time.ns, 0);
	snprintf(s->detail, sizeof(s->detail),
		"CPU %.0f %%, memory %.0f %%, load %.1f, swap %llu MB", best->cpu_pct,
		best->mem_pct, best->load1, (unsigned long long)best->swap_mb);
}

static void add_part_step(const struct recording *rec, const struct part *p, struct incident *inc)
{
	const struct event *e = &rec->events[p->event];
	char who[64], op[32];
	struct incident_step *s =
		step_add(inc, cause_layer(p->cause), wire_op_name(e->source, e->op, op),
			p->start_ns, (uint64_t)(p->end_ns - p->start_ns));

	snprintf(who, sizeof(who), "%s%spid %u%s ran instead", p->culprit,
		p->culprit[0] ? " (" : "", p->culprit_pid, p->culprit[0] ? ")" : "");
	if (p->cause == CAUSE_BLOCK_IO && e->source != SOURCE_IO) {
		snprintf(s->detail, sizeof(s->detail),
			"thread %u blocked in the kernel, without a disk request of its own",
			e->tid);
		return;
	}
	if (p->cause == CAUSE_BLOCK_IO) {
		snprintf(s->detail, sizeof(s->detail),
			"thread %u blocked on its %s of %llu KiB on device %u:%u", e->tid,
			e->op == IO_WRITE  ? "write"
			: e->op == IO_READ ? "read"
					   : "request",
			(unsigned long long)(e->arg0 / 2), e->dev >> 20, e->dev & 0xfffff);
		return;
	}
	snprintf(s->detail, sizeof(s->detail), "thread %u %s, %s", e->tid,
		p->cause == CAUSE_PREEMPTED ? "preempted" : "ready, waiting for a CPU",
		p->culprit_pid ? who : "not behind a single process");
}

static int write_timeline(const struct recording *rec, const struct detection *d,
	const struct part_list *l, const struct call_rank *r, struct incident *inc)
{
	const struct slow_call *c = &d->slow[r->call];
	_cleanup_free_ const struct part **parts = longest_parts(l, r);
	size_t shown = MIN(r->part_count, (size_t)PARTS_SHOWN);
	char op[32], base[TEXT_MAX];
	struct incident_step *s;

	if (!parts)
		return -ENOMEM;
	qsort(parts, shown, sizeof(*parts), parts_by_time);
	add_host_step(rec, c->start_ns, inc);
	for (size_t i = 0; i < shown; i++)
		add_part_step(rec, parts[i], inc);
	s = step_add(inc, inc->source == SOURCE_DRIVER ? "DRIVER" : "CUDA",
		wire_op_name(inc->source, inc->op, op), c->start_ns,
		(uint64_t)(c->end_ns - c->start_ns));
	snprintf(s->detail, sizeof(s->detail), "%s by thread %u, usually %s",
		wire_op_name(inc->source, inc->op, op), c->tid,
		text_format_duration(base, inc->baseline_ns));
	return 0;
}

static void evidence_add(struct incident *inc, const struct event *e)
{
	for (int i = 0; e->seq && i < inc->evidence_count; i++)
		if (inc->evidence[i] == e->seq)
			return;
	incident_evidence(inc, e);
}

/* The numbers are compared without the node's prefix, which works for ids of every schema; the
 * bounds on time let the index do the work. */
static void write_sql(struct buf *b, const struct recording *rec, int64_t from_ns, int64_t to_ns,
	int rows, struct incident *inc)
{
	buf_clear(b);
	buf_printf(b,
		"SELECT id, timestamp, duration, pid, tid, source, op, arg0, arg1 FROM events "
		"WHERE timestamp BETWEEN %lld AND %lld",
		(long long)from_ns, (long long)to_ns);
	if (rec->node && rec->node[0]) {
		buf_puts(b, " AND node = '");
		for (const char *p = rec->node; *p; p++) {
			buf_putc(b, *p);
			if (*p == '\'')
				buf_putc(b, *p);
		}
		buf_putc(b, '\'');
	}
	if (!rows) {
		buf_printf(b, " AND pid = %u AND source = %u AND op = %u", inc->pid, inc->source,
			inc->op);
	} else {
		buf_puts(b, " AND CAST(substr(id, instr(id, ':') + 1) AS INTEGER) IN (");
		for (int i = 0; i < rows; i++)
			buf_printf(b, "%s%lld", i ? ", " : "", (long long)inc->evidence[i]);
		buf_putc(b, ')');
	}
	buf_puts(b, " ORDER BY timestamp");
}

static int collect_evidence(const struct recording *rec, const struct detection *d,
	const struct slow_episode *s, const struct part_list *l, const struct call_rank *ranks,
	struct incident *inc)
{
	for (size_t i = 0;
		i < s->count && inc->evidence_count + inc->unnumbered < INCIDENT_EVIDENCE; i++) {
		_cleanup_free_ const struct part **parts = longest_parts(l, &ranks[i]);

		if (!parts)
			return -ENOMEM;
		evidence_add(inc, &rec->events[d->slow[ranks[i].call].event]);
		for (size_t k = 0; k < MIN(ranks[i].part_count, (size_t)PARTS_PER_CALL); k++)
			evidence_add(inc, &rec->events[parts[k]->event]);
	}
	return 0;
}

int evidence_sql_put(
	const struct recording *rec, int64_t from_ns, int64_t to_ns, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SQL_MAX);

	for (int rows = inc->evidence_count; rows >= 0; rows--) {
		write_sql(&b, rec, from_ns, to_ns, rows, inc);
		if (b.err == -ENOMEM)
			return b.err;
		if (!b.err && b.len < sizeof(inc->evidence_sql)) {
			memcpy(inc->evidence_sql, b.data, b.len + 1);
			break;
		}
	}
	return 0;
}

static int write_evidence(const struct recording *rec, const struct detection *d,
	const struct slow_episode *s, const struct part_list *l, const struct call_rank *ranks,
	struct incident *inc)
{
	int64_t from = d->slow[s->first].start_ns, to = d->slow[s->first].end_ns;
	int r;

	r = collect_evidence(rec, d, s, l, ranks, inc);
	if (r < 0)
		return r;
	for (size_t i = s->first; i < s->first + s->count; i++)
		to = MAX(to, d->slow[i].end_ns);
	for (size_t i = 0; i < l->count; i++) {
		const struct event *e = &rec->events[l->items[i].event];

		from = MIN(from, e->start.ns);
		to = MAX(to, event_end_ns(e));
	}
	return evidence_sql_put(rec, from, to, inc);
}

int evidence_put(const struct recording *rec, const struct detection *d,
	const struct slow_episode *s, const struct part_list *l, const struct verdict *v,
	struct incident *inc)
{
	_cleanup_free_ struct call_rank *ranks = NULL;
	int r;

	r = rank_calls(d, s, l, v, &ranks);
	if (r == 0)
		r = write_timeline(rec, d, l, &ranks[0], inc);
	if (r == 0)
		r = write_evidence(rec, d, s, l, ranks, inc);
	return r;
}
