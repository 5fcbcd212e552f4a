/* SPDX-License-Identifier: Apache-2.0 */
/* view_metric_nccl.c - the points of collectives and of the processes that use NCCL. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record/trace/metrics/metric_table.h"
#include "record/trace/metrics/view_metric.h"
#include "wire/names.h"

#define ROW(id) (&metric_table[id])
#define PREFIX  "nccl"

/* "AllReduce". */
static const char *op_type(unsigned op, char scratch[32])
{
	const char *name = wire_op_name(SOURCE_NCCL, op, scratch);

	return strncmp(name, PREFIX, strlen(PREFIX)) ? name : name + strlen(PREFIX);
}

static bool is_collective(unsigned op)
{
	struct event e = {.source = SOURCE_NCCL, .op = (uint16_t)op};

	return wire_op_find(SOURCE_NCCL, op) && collective_is_one(&e);
}

static void put_totals(const struct reading *r, struct metric_set *s)
{
	static const struct sketch none;
	wall_time start = r->view->started;

	for (unsigned op = 0; op < WIRE_OP_MAX; op++) {
		const struct sketch *wait =
			r->metric_state->waits[op] ? r->metric_state->waits[op] : &none;
		char scratch[32];

		if (!is_collective(op))
			continue;
		const struct metric_attribute name[] = {METRIC_TEXT(op_type(op, scratch))};

		metric_put_int(
			s, ROW(M_COLL_COUNT), start, (int64_t)r->collectives[op].count, name);
		metric_put_int(s, ROW(M_COLLS), start, (int64_t)r->collectives[op].count, name);
		metric_put_int(
			s, ROW(M_COLL_BYTES), start, (int64_t)r->collectives[op].bytes, name);
		metric_put_int(s, ROW(M_COLL_BARRIERS), start, (int64_t)wait->count, name);
		metric_put_sketch(s, ROW(M_COLL_WAIT), start, wait, name);
		if (r->metric_state->bus_bandwidth[op] > 0)
			metric_put_double(s, ROW(M_COLL_BUS), (wall_time){0},
				r->metric_state->bus_bandwidth[op], name);
	}
}

static struct metric_attribute number_or_none(int32_t v)
{
	return v < 0 ? METRIC_NONE : METRIC_NUMBER(v);
}

/* NCCL's own numbers of types and operations. */
static struct metric_attribute name_or_none(const char *const *names, size_t count, int32_t v)
{
	if (v < 0)
		return METRIC_NONE;
	return (size_t)v < count ? METRIC_TEXT(names[v]) : METRIC_TEXT("unknown");
}

static void put_last(const struct metric_state_collective *l, struct metric_set *s)
{
	static const char *const types[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
		"float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
	static const char *const operations[] = {"sum", "prod", "max", "min", "avg"};
	char hash[17], scratch[32];

	snprintf(hash, sizeof(hash), "%016" PRIx64, l->c.comm_hash);
	const struct metric_attribute names[] = {METRIC_TEXT(op_type(l->op, scratch)),
		METRIC_TEXT(hash), number_or_none(l->c.rank), number_or_none(l->c.nranks),
		name_or_none(types, ARRAY_SIZE(types), l->c.datatype),
		name_or_none(operations, ARRAY_SIZE(operations), l->c.reduce_op),
		number_or_none(l->c.peer)};

	metric_put_double(
		s, ROW(M_COLL_LAST_MS), (wall_time){0}, (double)l->dur_ns / NS_PER_MS, names);
	if (l->c.wait_ns >= 0)
		metric_put_double(s, ROW(M_COLL_LAST_WAIT_MS), (wall_time){0},
			(double)l->c.wait_ns / NS_PER_MS, names);
	metric_put_int(s, ROW(M_COLL_LAST_BYTES), (wall_time){0}, (int64_t)l->c.bytes, names);
}

static void put_processes(const struct metric_state *f, struct metric_set *s)
{
	for (size_t i = 0; i < MIN(f->nccl_count, (size_t)METRIC_STATE_NCCL); i++) {
		const struct metric_state_nccl *n = &f->nccl[i];

		metric_put_int(s, ROW(M_NCCL_LOADED), (wall_time){0}, 1,
			METRIC_OF(METRIC_NUMBER(n->pid), METRIC_TEXT(n->comm), METRIC_TEXT(n->path),
				METRIC_TEXT(metric_state_nccl_version(n->path))));
	}
	metric_put_int(
		s, ROW(M_NCCL_PROCESSES_TOTAL), (wall_time){0}, (int64_t)f->nccl_count, NULL);
	metric_put_int(s, ROW(M_NCCL_PROCESSES), (wall_time){0}, (int64_t)f->nccl_count, NULL);
}

void view_metric_nccl(const struct reading *r, struct metric_set *s)
{
	const struct metric_state *f = r->metric_state;

	if (f->has_nccl)
		put_processes(f, s);
	put_totals(r, s);
	for (size_t i = 0; i < f->collective_count; i++)
		put_last(&f->collectives[i], s);
}
