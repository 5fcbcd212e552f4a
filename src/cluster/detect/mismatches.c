/* SPDX-License-Identifier: Apache-2.0 */
/* mismatches.c - see mismatches.h. Who is wrong is who is fewer, so both opinions are counted: the rank
 * that errs may well be the first to come. Of a third opinion only the first two are told. */
#include "cluster/detect/mismatches.h"

#include "blame/comm_join.h"

/* Both names of the broadcast are one operation. */
static uint64_t op_of(uint16_t op)
{
	return op == NCCL_BCAST ? NCCL_BROADCAST : op;
}

/* Of the others, ranks may each give or get another amount. */
static bool op_has_equal_bytes(uint16_t op)
{
	switch (op) {
	case NCCL_ALL_REDUCE:
	case NCCL_ALL_GATHER:
	case NCCL_REDUCE_SCATTER:
	case NCCL_BCAST:
	case NCCL_BROADCAST:
	case NCCL_REDUCE: return true;
	default: return false;
	}
}

static struct mismatch *find(
	struct mismatches *m, const struct collective *x, enum calls_mismatch what)
{
	uint64_t n = MIN(m->count, (uint64_t)MISMATCHES_MAX);

	for (uint64_t i = 1; i <= n; i++) {
		struct mismatch *e = &m->items[(m->count - i) % MISMATCHES_MAX];

		if (e->comm == x->comm->comm && e->seq == x->seq && e->what == what)
			return e;
	}
	return NULL;
}

struct opinion {
	uint64_t value, other; /* this call's, the first one's */
	uint32_t worker, first_worker;
	int64_t at_ns;
};

static void compare(struct mismatches *m, struct collective *x, enum calls_mismatch what,
	const struct opinion *o)
{
	struct mismatch *e;

	if (o->value == o->other && !x->is_mismatched)
		return;
	e = find(m, x, what);
	if (!e) {
		if (o->value == o->other)
			return;
		e = &m->items[m->count++ % MISMATCHES_MAX];
		*e = (struct mismatch){.comm = x->comm->comm,
			.seq = x->seq,
			.what = what,
			.value = {o->other, o->value},
			.worker = {o->first_worker, o->worker},
			.count = {x->have, 0},
			.at_ns = o->at_ns};
		x->is_mismatched = true;
	}
	for (int i = 0; i < 2; i++)
		e->count[i] += e->value[i] == o->value;
}

void mismatches_check(struct mismatches *m, struct collective *x, const struct push_call *call,
	uint32_t worker, int64_t at_ns)
{
	struct opinion o = {.worker = worker, .first_worker = x->first_worker, .at_ns = at_ns};

	/* Numbers that were made up say which calls ended together, and not that they are of one collective. */
	if (comms_is_pair(x->comm) || x->seq >= COMM_JOIN_MADE_UP)
		return;
	o.value = (uint64_t)call->nranks;
	o.other = (uint64_t)x->nranks;
	compare(m, x, CALLS_MISMATCH_NRANKS, &o);
	o.value = op_of(call->op);
	o.other = op_of(x->op);
	compare(m, x, CALLS_MISMATCH_OP, &o);
	if (op_has_equal_bytes(call->op) && op_has_equal_bytes(x->op)) {
		o.value = call->bytes;
		o.other = x->bytes;
		compare(m, x, CALLS_MISMATCH_BYTES, &o);
	}
	if (call->datatype != UINT16_MAX && x->datatype != UINT16_MAX) {
		o.value = call->datatype;
		o.other = x->datatype;
		compare(m, x, CALLS_MISMATCH_TYPE, &o);
	}
}

bool mismatches_next(const struct mismatches *m, size_t *cursor, struct mismatch_view *ret)
{
	uint64_t n = MIN(m->count, (uint64_t)MISMATCHES_MAX);
	const struct mismatch *e;
	int few;

	if (*cursor >= n)
		return false;
	e = &m->items[(m->count - n + (*cursor)++) % MISMATCHES_MAX];
	few = e->count[1] <= e->count[0];
	*ret = (struct mismatch_view){.comm = e->comm,
		.seq = e->seq,
		.what = e->what,
		.worker = e->worker[few],
		.other = e->worker[!few],
		.value = e->value[few],
		.other_value = e->value[!few],
		.is_tied = e->count[0] == e->count[1],
		.at_ns = e->at_ns};
	return true;
}
