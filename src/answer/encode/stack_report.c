/* SPDX-License-Identifier: Apache-2.0 */
/* stack_report.c - see report_json.h. */
#include "answer/encode/report_json.h"

#include "base/search.h"
#include "answer/encode/event_json.h"
#include "answer/encode/say.h"
#include "answer/flame.h"
#include "base/macros.h"
#include "base/text.h"

/* /api/v1/stacks: the call stacks with most time; /api/v1/flame: all of them as one
 * tree. */

#define SHOWN     10
#define SHOWN_MAX 100
#define NODES     2000
#define NAMES_MAX 64
#define NODES_MAX 10000

/* Each name once. */
static void put_processes(struct json_writer *w, const char *processes)
{
	const char *name, *seen[NAMES_MAX];
	size_t len, lens[NAMES_MAX], count = 0, k;
	uint32_t pid;

	json_begin_array_member(w, "processes");
	while (count < NAMES_MAX && stacks_next_process(&processes, &pid, &name, &len)) {
		for (k = 0; k < count && (lens[k] != len || memcmp(seen[k], name, len) != 0);)
			k++;
		if (k < count || !len)
			continue;
		seen[count] = name;
		lens[count++] = len;
		json_put_string_len(w, name, len);
	}
	json_end_array(w);
}

static int stacks_json_put_stack(const struct question *q, struct json_writer *w,
	const struct stacks_answer *a, size_t i, struct errinfo *reterr)
{
	const struct sql_table *s = &a->totals;
	int64_t hash = table_int(s, i, STACKS_HASH), n = table_int(s, i, STACKS_CALLS);
	unsigned source = (unsigned)table_int(s, i, STACKS_SOURCE);
	double ns = table_real(s, i, STACKS_NS);
	_cleanup_free_ struct stack *stack = NULL;
	int r = nodedb_snapshot_stack(q->snapshot, (uint64_t)hash, &stack, reterr);

	if (r < 0)
		return r;
	if (q->request->say && !q->request->say->len)
		say_stacks(q->request->say, a, i, stack);
	json_begin_object(w);
	JSON_PUT(w, JSON_S("hash", FORMATTED(24, "%lld", (long long)hash)),
		JSON_S("source", wire_source_name(source)),
		JSON_S("op", WIRE_OP_NAME(source, (unsigned)table_int(s, i, STACKS_OP))),
		JSON_I("n", n), JSON_US("avg_us", n > 0 ? ns / (double)n : 0),
		JSON_US("min_us", table_real(s, i, STACKS_MIN)),
		JSON_US("max_us", table_real(s, i, STACKS_LONGEST)), JSON_US("total_us", ns),
		JSON_R("share", a->ns > 0 ? ns / a->ns : 0));
	put_processes(w, table_text(s, i, STACKS_PROCESSES));
	event_json_frames(w, stack);
	json_end_object(w);
	return 0;
}

int stacks_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t limit = answer_limit(q->request->limit, SHOWN, SHOWN_MAX), shown = 0, i;
	_cleanup_(stacks_answer_done) struct stacks_answer a = {0};
	const struct sql_table *s = &a.totals;
	int r = answer_stacks(q, &a, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_array_member(w, "stacks");
	for (i = 0; r == 0 && i < s->row_count && shown < limit; i++)
		if (table_int(s, i, STACKS_HASH)) {
			r = stacks_json_put_stack(q, w, &a, i, reterr);
			shown++;
		}
	json_end_array(w);
	JSON_PUT(w, JSON_I("rows", a.rows), JSON_I("without_stack", a.without),
		JSON_B("truncated", i < s->row_count || s->truncated));
	if (!shown && q->request->say)
		say_stacks(q->request->say, &a, 0, NULL);
	if (!shown)
		json_string_member(w, "note",
			a.rows ? "no call in this time range was recorded with a stack"
			       : "no calls were recorded in this time range");
	put_window(q, w);
	json_end_object(w);
	return r;
}

/* ---- the tree ---- */

typedef int flame_adder(
	struct flame *f, const struct stack *s, unsigned source, unsigned op, uint64_t value);

static int grow(const struct question *q, const struct sql_table *s, flame_adder *add,
	struct flame *f, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->row_count; i++) {
		double ns = table_real(s, i, STACKS_NS);
		_cleanup_free_ struct stack *stack = NULL;

		if (table_int(s, i, STACKS_HASH))
			r = nodedb_snapshot_stack(q->snapshot,
				(uint64_t)table_int(s, i, STACKS_HASH), &stack, reterr);
		r = r
			    ?: add(f, stack, (unsigned)table_int(s, i, STACKS_SOURCE),
				       (unsigned)table_int(s, i, STACKS_OP),
				       ns > 0 && ns < 9e18 ? (uint64_t)ns : 0);
	}
	return r;
}

ORDER(by_total, uint64_t, COMPARE(*y, *x))

/* The value from which on nodes are few enough to be shown. A parent is never smaller than its
 * child. */
static int find_floor(const struct flame *f, size_t max, uint64_t *ret)
{
	_cleanup_free_ uint64_t *totals = NULL;

	*ret = 0;
	if (f->count <= max)
		return 0;
	totals = malloc(f->count * sizeof(*totals));
	if (!totals)
		return -ENOMEM;
	for (size_t i = 0; i < f->count; i++)
		totals[i] = MAX(f->nodes[i].total, f->nodes[i].total2);
	SORT(totals, f->count, by_total);
	*ret = totals[max] + 1; /* of equals all or none */
	return 0;
}

static void put_node(
	struct json_writer *w, const struct flame *f, uint32_t node, int64_t parent, bool compared)
{
	static const char *const kinds[] = {
		[FLAME_NATIVE] = "native", [FLAME_PYTHON] = "python", [FLAME_CALL] = "call"};

	json_begin_object(w);
	JSON_PUT(w, JSON_I("parent", parent),
		JSON_S("name", node ? flame_name_of(f, node)->text : "all"),
		JSON_S("kind", node ? kinds[flame_name_of(f, node)->kind] : "root"),
		JSON_U("self", f->nodes[node].self), JSON_U("total", f->nodes[node].total));
	if (compared)
		JSON_PUT(w, JSON_U("self2", f->nodes[node].self2),
			JSON_U("total2", f->nodes[node].total2));
	json_end_object(w);
}

/* Each node after its parent, whose place in the list is remembered in @places. */
static uint64_t put_tree(struct json_writer *w, const struct flame *f, uint64_t floor,
	uint32_t *places, bool compared)
{
	uint64_t left_out = f->left_out;
	uint32_t node = 0, count = 0;

	put_node(w, f, 0, -1, compared);
	places[0] = count++;
	for (node = flame_next(f, 0, false); node;) {
		bool small = MAX(f->nodes[node].total, f->nodes[node].total2) < floor;

		if (small) {
			left_out += f->nodes[node].total;
		} else {
			put_node(w, f, node, places[f->nodes[node].parent], compared);
			places[node] = count++;
		}
		node = flame_next(f, node, small);
	}
	return left_out;
}

static int put_flame(
	struct json_writer *w, const struct flame *f, size_t max, bool compared, bool *truncated)
{
	_cleanup_free_ uint32_t *places = NULL;
	uint64_t floor = 0, left_out;
	int r = find_floor(f, max, &floor);

	places = r == 0 ? calloc(f->count + 1, sizeof(*places)) : NULL;
	if (!places)
		return r < 0 ? r : -ENOMEM;
	JSON_PUT(w, JSON_S("unit", "ns"), JSON_U("total", f->count ? f->nodes[0].total : 0));
	if (compared)
		json_uint_member(w, "total2", f->count ? f->nodes[0].total2 : 0);
	json_begin_array_member(w, "nodes");
	left_out = f->count ? put_tree(w, f, floor, places, compared) : 0;
	json_end_array(w);
	json_uint_member(w, "left_out", left_out);
	*truncated = *truncated || floor > 0;
	return 0;
}

int flame_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t max = answer_limit(q->request->points, NODES, NODES_MAX);
	_cleanup_(stacks_answer_done) struct stacks_answer a = {0};
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	bool truncated;
	int r = answer_stacks(q, &a, reterr);

	r = r ?: grow(q, &a.totals, flame_add, &f, reterr);
	r = r ?: flame_finish(&f);
	if (r < 0)
		return r;
	truncated = a.totals.truncated;
	json_begin_object(w);
	r = put_flame(w, &f, max, false, &truncated);
	json_int_member(w, "rows", a.rows);
	return r < 0 ? r : answer_end(q, w, truncated);
}

/* Of two times: what of the first and what of the second, each to be seen beside its length. */
int flame_diff_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t max = answer_limit(q->request->points, NODES, NODES_MAX);
	_cleanup_(stacks_answer_done) struct stacks_answer a = {0};
	_cleanup_(stacks_answer_done) struct stacks_answer b = {0};
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	struct question second = *q;
	bool truncated;
	int r = answer_second_time(q, &second.scope, reterr);

	r = r ?: answer_stacks(q, &a, reterr);
	r = r ?: answer_stacks(&second, &b, reterr);
	r = r ?: grow(q, &a.totals, flame_add, &f, reterr);
	r = r ?: grow(q, &b.totals, flame_add_second, &f, reterr);
	r = r ?: flame_finish(&f);
	if (r < 0)
		return r;
	truncated = a.totals.truncated || b.totals.truncated;
	json_begin_object(w);
	r = put_flame(w, &f, max, true, &truncated);
	JSON_PUT(w, JSON_I("rows", a.rows), JSON_I("rows2", b.rows));
	JSON_PUT_INTO(w, "window2", JSON_I("from_ns", second.scope.from_ns),
		JSON_I("to_ns", second.scope.to_ns));
	return r < 0 ? r : answer_end(q, w, truncated);
}

#define INCIDENT_SHOWN 3   /* stacks of one incident in the text */
#define TOTALS_SHOWN   10  /* stacks of a recording without incidents */
#define TOTALS_JSON    100 /* in JSON */
#define INDENT         4
#define BOLD           "\033[1m"
#define RESET          "\033[0m"

static double share_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static void put_title(struct buf *b, const struct stack_report *r, const char *title)
{
	buf_printf(b, "\n%s%s%s\n", r->color ? BOLD : "", title, r->color ? RESET : "");
}

static void put_stack(struct buf *b, const struct stack_report *r, uint64_t hash)
{
	const struct stack *s = stack_find(r->stacks, hash);

	if (s)
		stack_text(b, s, INDENT, r->width);
	else
		buf_printf(b, "%*s(frames not in the recording)\n", INDENT, "");
}

/* What the list above does not show: more stacks, and slow calls without one. */
static void put_rest(struct buf *b, const struct incident *inc, int shown, uint64_t shown_ns)
{
	uint64_t more_ns = inc->stack_ns - MIN(shown_ns, inc->stack_ns);
	uint64_t none_ns = inc->excess_ns - MIN(inc->stack_ns, inc->excess_ns);

	if (inc->stack_total > (uint32_t)shown)
		buf_printf(b, "  %s: %" PRIu32 " more stacks; --json has the %d heaviest\n",
			TEXT_PERCENT(share_of(more_ns, inc->excess_ns)),
			inc->stack_total - (uint32_t)shown, INCIDENT_STACKS);
	if (none_ns)
		buf_printf(b, "  %s: of the time without a stack\n",
			TEXT_PERCENT(share_of(none_ns, inc->excess_ns)));
}

/* What has no slow calls of one operation: slow steps, or a leak, which is no matter of time. */
static void put_counted(struct buf *b, const struct incident *inc, const struct incident_stack *s)
{
	if (inc->excess_ns)
		buf_printf(b, "  %s of %s lost", TEXT_PERCENT(share_of(s->ns, inc->excess_ns)),
			TEXT_DURATION(inc->excess_ns));
	else
		buf_printf(b, "  %s", TEXT_PLURAL(s->calls, inc->unit ? inc->unit : "calls"));
	buf_printf(b, ", stack %" PRId64 "\n", (int64_t)s->hash);
}

static void put_incident(struct buf *b, const struct incident *inc, const struct stack_report *r)
{
	uint64_t shown_ns = 0;
	int shown = MIN(inc->stack_count, INCIDENT_SHOWN);

	buf_printf(b, "\n[%s] %s by ", severity_name(inc->severity),
		WIRE_OP_NAME(inc->source, inc->op));
	text_escape_terminal(b, inc->comm);
	buf_printf(b, " (pid %" PRIu32 ")\n", inc->pid);
	for (int i = 0; i < shown; i++) {
		const struct incident_stack *s = &inc->stacks[i];

		if (inc->excess_ns && inc->slow_calls)
			buf_printf(b, "  %s of %s extra time, %s of %s, stack %" PRId64 "\n",
				TEXT_PERCENT(share_of(s->ns, inc->excess_ns)),
				TEXT_DURATION(inc->excess_ns), TEXT_COUNT(s->calls),
				TEXT_PLURAL(inc->slow_calls, "slow calls"), (int64_t)s->hash);
		else
			put_counted(b, inc, s);
		put_stack(b, r, s->hash);
		shown_ns += s->ns;
	}
	put_rest(b, inc, shown, shown_ns);
}

static uint64_t sum_ns(const struct stack_report *r)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < r->total_count; i++)
		ns = capped_sum(ns, r->totals[i].ns);
	return ns;
}

static void put_totals(struct buf *b, const struct stack_report *r)
{
	uint64_t all = sum_ns(r);
	size_t shown = 0, stacks = 0;

	for (size_t i = 0; i < r->total_count; i++) {
		const struct stack_total *t = &r->totals[i];

		stacks += t->hash != 0;
		if (!t->hash || shown == TOTALS_SHOWN)
			continue;
		buf_printf(b, "\n%zu. %s, %s of the time of recorded calls: %s %s", ++shown,
			TEXT_DURATION(t->ns), TEXT_PERCENT(share_of(t->ns, all)),
			TEXT_COUNT(t->calls), WIRE_OP_NAME(t->source, t->op));
		buf_printf(b, ", stack %" PRId64 "\n", (int64_t)t->hash);
		put_stack(b, r, t->hash);
	}
	if (stacks > shown)
		buf_printf(b,
			"\n%zu more are not shown; `ingero export --format flamegraph` draws"
			" them all\n",
			stacks - shown);
}

static bool has_stacks(const struct incident *incidents, size_t count, const struct stack_report *r)
{
	return EXISTS(i, count, incidents[i].stack_count) ||
	       (!count && EXISTS(i, r->total_count, r->totals[i].hash));
}

void stack_report_text(
	struct buf *b, const struct incident *incidents, size_t count, const struct stack_report *r)
{
	if (!has_stacks(incidents, count, r)) {
		put_title(b, r, "No call stacks");
		buf_puts(b,
			count ? "  The slow calls were recorded without call stacks.\n"
			      : "  No call stacks were recorded; `ingero trace` records them unless --stack=false.\n");
		return;
	}
	put_title(b, r,
		count ? "STACKS of the incidents, innermost frame first"
		      : "STACKS with most time, innermost frame first");
	for (size_t i = 0; i < count; i++)
		put_incident(b, &incidents[i], r);
	if (!count)
		put_totals(b, r);
}

/* ---- JSON ---- */

void stack_report_incident(
	struct json_writer *w, const struct incident *inc, const struct stack_list *stacks)
{
	json_begin_array(w);
	for (int i = 0; i < inc->stack_count; i++) {
		const struct incident_stack *s = &inc->stacks[i];

		json_begin_object(w);
		JSON_PUT(w, JSON_I("hash", (int64_t)s->hash), JSON_U("ns", s->ns),
			JSON_R("share", share_of(s->ns, inc->excess_ns)),
			JSON_U("calls", s->calls));
		event_json_frames(w, stack_find(stacks, s->hash));
		json_end_object(w);
	}
	json_end_array(w);
}

void stack_report_totals(struct json_writer *w, const struct stack_report *r)
{
	uint64_t all = sum_ns(r);
	size_t shown = 0;

	json_begin_array(w);
	for (size_t i = 0; i < r->total_count && shown < TOTALS_JSON; i++) {
		const struct stack_total *t = &r->totals[i];

		if (!t->hash)
			continue;
		shown++;
		json_begin_object(w);
		JSON_PUT(w, JSON_I("hash", (int64_t)t->hash),
			JSON_S("source", wire_source_name(t->source)),
			JSON_S("op", WIRE_OP_NAME(t->source, t->op)), JSON_U("ns", t->ns),
			JSON_R("share", share_of(t->ns, all)), JSON_U("calls", t->calls));
		event_json_frames(w, stack_find(r->stacks, t->hash));
		json_end_object(w);
	}
	json_end_array(w);
}
