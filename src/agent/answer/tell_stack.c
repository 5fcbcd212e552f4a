/* SPDX-License-Identifier: Apache-2.0 */
/* tell_stack.c - where calls come from: the call stacks with most time, and all of them as one
 * tree. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/answer/event_json.h"
#include "agent/answer/flame.h"
#include "agent/answer/tell_private.h"

#define STACKS     10
#define STACKS_MAX 100
#define NODES      2000
#define NODES_MAX  10000

enum { COL_SOURCE, COL_OP, COL_HASH, COL_N, COL_NS, COL_MIN, COL_MAX, COL_COMMS, COL_ROWS };

struct sums {
	double ns;
	int64_t rows, without;
};

static struct sums add_up(const struct sql_table *s)
{
	struct sums sums = {0};

	for (size_t i = 0; i < s->row_count; i++) {
		sums.ns += tell_real(s, i, COL_NS);
		sums.rows += tell_int(s, i, COL_ROWS);
		if (!tell_int(s, i, COL_HASH))
			sums.without += tell_int(s, i, COL_ROWS);
	}
	return sums;
}

static void put_processes(struct json_writer *w, const char *names)
{
	json_key(w, "processes");
	json_begin_array(w);
	while (*names) {
		size_t len = strcspn(names, ",");

		if (len)
			json_put_string_len(w, names, len);
		names += len + (names[len] == ',');
	}
	json_end_array(w);
}

static int put_frames(
	const struct tell *t, struct json_writer *w, int64_t hash, struct errinfo *reterr)
{
	_cleanup_free_ struct stack *stack = NULL;
	int r = nodedb_look_stack(t->look, (uint64_t)hash, &stack, reterr);

	if (r < 0)
		return r;
	json_key(w, "frames");
	if (!stack) {
		json_put_null(w);
		return 0;
	}
	event_json_stack(w, stack);
	if (stack->stop && stack->stop[0])
		json_string_member(w, "stop", stack->stop);
	return 0;
}

static int put_stack(const struct tell *t, struct json_writer *w, const struct sql_table *s,
	size_t i, double all_ns, struct errinfo *reterr)
{
	int64_t hash = tell_int(s, i, COL_HASH), n = tell_int(s, i, COL_N);
	unsigned source = (unsigned)tell_int(s, i, COL_SOURCE);
	double ns = tell_real(s, i, COL_NS);
	char scratch[32], text[24];
	int r;

	json_begin_object(w);
	snprintf(text, sizeof(text), "%lld", (long long)hash);
	json_string_member(w, "hash", text);
	json_string_member(w, "source", wire_source_name(source));
	json_string_member(
		w, "op", wire_op_name(source, (unsigned)tell_int(s, i, COL_OP), scratch));
	json_int_member(w, "n", n);
	tell_us(w, "avg_us", n > 0 ? ns / (double)n : 0);
	tell_us(w, "min_us", tell_real(s, i, COL_MIN));
	tell_us(w, "max_us", tell_real(s, i, COL_MAX));
	tell_us(w, "total_us", ns);
	json_double_member(w, "share", all_ns > 0 ? ns / all_ns : 0);
	put_processes(w, tell_text(s, i, COL_COMMS));
	r = put_frames(t, w, hash, reterr);
	json_end_object(w);
	return r;
}

int tell_stacks(const struct tell *t, struct json_writer *w, struct errinfo *reterr)
{
	size_t limit = tell_limit(t->wish->limit, STACKS, STACKS_MAX), shown = 0, i;
	_cleanup_(sql_table_done) struct sql_table s = {0};
	struct sums sums;
	int r = nodedb_look_list(t->look, NODEDB_STACK_TOTALS, &t->scope, &s, reterr);

	if (r < 0)
		return r;
	sums = add_up(&s);
	json_begin_object(w);
	json_key(w, "stacks");
	json_begin_array(w);
	for (i = 0; r == 0 && i < s.row_count && shown < limit; i++)
		if (tell_int(&s, i, COL_HASH)) {
			r = put_stack(t, w, &s, i, sums.ns, reterr);
			shown++;
		}
	json_end_array(w);
	json_int_member(w, "rows", sums.rows);
	json_int_member(w, "without_stack", sums.without);
	tell_bool(w, "truncated", i < s.row_count || sums.rows >= NODEDB_STACK_ROWS);
	if (!shown)
		json_string_member(w, "note",
			sums.rows ? "no call in this time range was recorded with a stack"
				  : "no calls were recorded in this time range");
	tell_window(t, w);
	json_end_object(w);
	return r;
}

/* ---- the tree ---- */

static int grow(
	const struct tell *t, const struct sql_table *s, struct flame *f, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->row_count; i++) {
		double ns = tell_real(s, i, COL_NS);
		_cleanup_free_ struct stack *stack = NULL;

		if (tell_int(s, i, COL_HASH))
			r = nodedb_look_stack(
				t->look, (uint64_t)tell_int(s, i, COL_HASH), &stack, reterr);
		if (r == 0)
			r = flame_add(f, stack, (unsigned)tell_int(s, i, COL_SOURCE),
				(unsigned)tell_int(s, i, COL_OP),
				ns > 0 && ns < 9e18 ? (uint64_t)ns : 0);
	}
	return r == 0 ? flame_finish(f) : r;
}

static int by_total(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

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
		totals[i] = f->nodes[i].total;
	qsort(totals, f->count, sizeof(*totals), by_total);
	*ret = totals[max] + 1; /* of equals all or none */
	return 0;
}

static void put_node(struct json_writer *w, const struct flame *f, uint32_t node, int64_t parent)
{
	static const char *const kinds[] = {
		[FLAME_NATIVE] = "native", [FLAME_PYTHON] = "python", [FLAME_CALL] = "call"};

	json_begin_object(w);
	json_int_member(w, "parent", parent);
	json_string_member(w, "name", node ? flame_name_of(f, node)->text : "all");
	json_string_member(w, "kind", node ? kinds[flame_name_of(f, node)->kind] : "root");
	json_uint_member(w, "self", f->nodes[node].self);
	json_uint_member(w, "total", f->nodes[node].total);
	json_end_object(w);
}

/* Each node after its parent, whose place in the list is remembered in @places. */
static uint64_t put_tree(
	struct json_writer *w, const struct flame *f, uint64_t floor, uint32_t *places)
{
	uint64_t left_out = f->left_out;
	uint32_t node = 0, count = 0;

	put_node(w, f, 0, -1);
	places[0] = count++;
	for (node = flame_next(f, 0, false); node;) {
		bool small = f->nodes[node].total < floor;

		if (small) {
			left_out += f->nodes[node].total;
		} else {
			put_node(w, f, node, places[f->nodes[node].parent]);
			places[node] = count++;
		}
		node = flame_next(f, node, small);
	}
	return left_out;
}

int tell_flame(const struct tell *t, struct json_writer *w, struct errinfo *reterr)
{
	size_t max = tell_limit(t->wish->points, NODES, NODES_MAX);
	_cleanup_(sql_table_done) struct sql_table s = {0};
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_free_ uint32_t *places = NULL;
	uint64_t floor = 0, left_out;
	struct sums sums;
	int r = nodedb_look_list(t->look, NODEDB_STACK_TOTALS, &t->scope, &s, reterr);

	if (r == 0)
		r = grow(t, &s, &f, reterr);
	if (r == 0)
		r = find_floor(&f, max, &floor);
	places = r == 0 ? calloc(f.count + 1, sizeof(*places)) : NULL;
	if (!places)
		return r < 0 ? r : -ENOMEM;
	sums = add_up(&s);
	json_begin_object(w);
	json_string_member(w, "unit", "ns");
	json_uint_member(w, "total", f.count ? f.nodes[0].total : 0);
	json_key(w, "nodes");
	json_begin_array(w);
	left_out = f.count ? put_tree(w, &f, floor, places) : 0;
	json_end_array(w);
	json_uint_member(w, "left_out", left_out);
	json_int_member(w, "rows", sums.rows);
	tell_bool(w, "truncated", floor > 0 || s.truncated || sums.rows >= NODEDB_STACK_ROWS);
	tell_window(t, w);
	json_end_object(w);
	return 0;
}
