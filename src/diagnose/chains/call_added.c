/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/call_added.h"

#include "base/macros.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/thresholds.h"
#include "wire/op_kind.h"

#define SOURCES      2
#define BUCKET_NS    ((int64_t)(5 * NS_PER_S)) /* of aggregates */
#define CALL_SOON_NS ((int64_t)(5 * NS_PER_S)) /* after the first slow step */

struct use {
	uint64_t rows, rows_before, default_rows; /* in steps */
	uint64_t calls, calls_before;
	int64_t first_ns;
	uint64_t stack_hash, votes; /* of most rows */
};

/* What gives the GPU something to do or to wait for. */
static bool is_looked_at(unsigned source, unsigned op, unsigned flags)
{
	enum wire_ledger_line line;

	if (!op_kind_is_cuda(source) || op >= WIRE_OP_MAX || flags & WIRE_NESTED)
		return false;
	line = op_kind_line(source, op);
	return (line == LEDGER_COPY || line == LEDGER_CALL) && !op_kind_is_workless(source, op);
}

static struct use *use_of(struct use uses[SOURCES][WIRE_OP_MAX], unsigned source, unsigned op)
{
	return &uses[source == SOURCE_DRIVER][op];
}

static void vote(struct use *u, uint64_t stack_hash)
{
	if (!stack_hash)
		return;
	if (!u->votes)
		u->stack_hash = stack_hash;
	u->votes = u->stack_hash == stack_hash ? u->votes + 1 : u->votes - 1;
}

/* Returns whether the steps wait for a stream that is not the default one. */
static bool count_rows(const struct recording *rec, const struct step_account *a,
	struct use uses[SOURCES][WIRE_OP_MAX])
{
	bool has_streams = false;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		struct use *u;

		if (e->pid != a->pid || e->start.ns < a->first.ns)
			continue;
		has_streams |= op_kind_is_cuda(e->source) &&
			       op_kind_is_gpu_wait(e->source, e->op) && e->stream;
		if (!is_looked_at(e->source, e->op, e->flags))
			continue;
		u = use_of(uses, e->source, e->op);
		if (e->start.ns < a->slow_first.ns) {
			u->rows_before++;
			continue;
		}
		if (!u->rows++)
			u->first_ns = e->start.ns;
		u->default_rows += !e->stream;
		vote(u, e->stack_hash);
	}
	return has_streams;
}

static void count_calls(const struct recording *rec, const struct step_account *a,
	struct use uses[SOURCES][WIRE_OP_MAX])
{
	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *g = &rec->aggregates[i];
		struct use *u;

		if (g->pid != a->pid || !is_looked_at(g->source, g->op, g->flags) ||
			g->bucket.ns < 0 || g->bucket.ns > INT64_MAX - BUCKET_NS)
			continue;
		u = use_of(uses, g->source, g->op);
		if (g->bucket.ns + BUCKET_NS <= a->slow_first.ns)
			u->calls_before += g->sketch.count;
		else if (g->bucket.ns <= a->slow_last.ns)
			u->calls += g->sketch.count;
	}
}

/* Rows are a selection: that ordinary steps do without a call is known by a bucket of theirs alone. */
static bool has_bucket_before(const struct step_account *a)
{
	int64_t begin = (a->first.ns + BUCKET_NS - 1) / BUCKET_NS * BUCKET_NS;

	return begin + BUCKET_NS <= a->slow_first.ns;
}

static double call_in_step(const struct step_account *a, const struct use *u)
{
	return (double)u->calls / (double)MAX(a->slow_steps, 1u);
}

/* Fills are probed only while launches are: where no ordinary step shows launches, it shows no fills either. */
static bool call_is_added(
	const struct step_account *a, unsigned source, unsigned op, const struct use *u)
{
	if (op_kind_is_governed(source, op) && !(a->ordinary_launches > 0))
		return false;
	return u->rows >= THRESHOLD(IN_A_ROW) && !u->rows_before &&
	       u->first_ns <= a->slow_first.ns + CALL_SOON_NS &&
	       call_in_step(a, u) >= THRESHOLD(ADDED_IN_STEP) &&
	       (double)u->calls_before <=
		       THRESHOLD(ADDED_BEFORE) * call_in_step(a, u) * (double)a->ordinary_steps;
}

void call_added_find(
	const struct recording *rec, const struct step_account *a, struct call_added *ret)
{
	struct use uses[SOURCES][WIRE_OP_MAX] = {0};
	bool has_streams;

	*ret = (struct call_added){0};
	if (!a->slow_steps || !a->ordinary_steps || !delay_is_lasting(a) || !has_bucket_before(a))
		return;
	has_streams = count_rows(rec, a, uses);
	count_calls(rec, a, uses);
	for (unsigned i = 0; i < SOURCES * WIRE_OP_MAX; i++) {
		unsigned source = i < WIRE_OP_MAX ? SOURCE_CUDA : SOURCE_DRIVER;
		const struct use *u = use_of(uses, source, i % WIRE_OP_MAX);

		if (!call_is_added(a, source, i % WIRE_OP_MAX, u) ||
			call_in_step(a, u) <= ret->in_step)
			continue;
		*ret = (struct call_added){.source = (uint16_t)source,
			.op = (uint16_t)(i % WIRE_OP_MAX),
			.in_step = call_in_step(a, u),
			.stack_hash = u->stack_hash,
			.is_on_default_stream = has_streams && u->default_rows == u->rows};
	}
}
