/* SPDX-License-Identifier: Apache-2.0 */
/* ordinary.c - see ordinary.h. Pure: no I/O; one table belongs to one thread.
 *
 * The ordinary duration is, as in diagnose/rows/baseline.c, the 25th percentile of the buckets'
 * medians. Left out is what takes at most 1.1 times as long, or 100 us longer: half of what is
 * called slow there (1.2 times and 200 us), so that the verdict is never reached here. */
#include "store/ordinary.h"

#include "base/search.h"
#include "wire/op_kind.h"
#include "stat/robust.h"

#define CALM_QUANTILE  0.25
#define BUCKET_CALLS   4 /* a bucket with fewer calls has no median worth the name */
#define ORDINARY_RATIO 1.1
#define ORDINARY_NS    (100 * NS_PER_US)
#define LIMIT_MAX_NS   (UINT64_C(1) << 40) /* 18 minutes: whatever took longer is looked at */
#define TIME_MAX_NS    (INT64_C(1) << 62)

const char *const ordinary_columns[ORDINARY_COUNT] = {
	[ORDINARY_SEQ] = "seq",
	[ORDINARY_TIMESTAMP] = "timestamp",
	[ORDINARY_PID] = "pid",
	[ORDINARY_SOURCE] = "source",
	[ORDINARY_OP] = "op",
	[ORDINARY_DURATION] = "duration",
	[ORDINARY_RET] = "ret_code",
	[ORDINARY_FLAGS] = "flags",
};

struct bucket_median {
	uint64_t key, median;
	bool is_small;
};

static uint64_t key_of(uint64_t pid, unsigned source, bool nested, unsigned op)
{
	return pid << 32 | (uint64_t)source << 24 | (uint64_t)nested << 16 | op;
}

static size_t key_slot(const struct ordinary *o, uint64_t key)
{
	return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & o->slot_mask;
}

static struct ordinary_op *op_find(const struct ordinary *o, uint64_t key)
{
	for (size_t at = key_slot(o, key); o->slots[at]; at = (at + 1) & o->slot_mask)
		if (o->ops[o->slots[at] - 1].key == key)
			return &o->ops[o->slots[at] - 1];
	return NULL;
}

ORDER(by_key_small_last, struct bucket_median, ASCENDING(key) ?: ASCENDING(is_small) ?: ASCENDING(median))

/* @rows are one op's, in order; buckets with enough calls come first, by median. */
static uint64_t limit_of(const struct bucket_median *rows, size_t n, uint64_t *values)
{
	size_t used = 0;
	uint64_t calm;

	while (used < n && rows[used].is_small == rows[0].is_small) {
		values[used] = rows[used].median;
		used++;
	}
	calm = MIN(robust_quantile(values, used, CALM_QUANTILE), LIMIT_MAX_NS);
	return MIN(
		MAX((uint64_t)(ORDINARY_RATIO * (double)calm), calm + ORDINARY_NS), LIMIT_MAX_NS);
}

static struct ordinary_op op_new(uint64_t key, uint64_t limit_ns)
{
	return (struct ordinary_op){
		.key = key, .limit_ns = limit_ns, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
}

static void op_add(struct ordinary *o, uint64_t key, uint64_t limit_ns)
{
	size_t at = key_slot(o, key);

	while (o->slots[at])
		at = (at + 1) & o->slot_mask;
	o->ops[o->count] = op_new(key, limit_ns);
	o->slots[at] = (uint32_t)++o->count;
}

static size_t medians_of(
	const struct aggregate *aggregates, size_t n, struct bucket_median *ret, size_t *ret_ops)
{
	size_t used = 0, ops = 0;

	for (size_t i = 0; i < n; i++) {
		const struct aggregate *a = &aggregates[i];

		if (!op_kind_is_cuda(a->source) || !a->sketch.count)
			continue;
		ret[used++] = (struct bucket_median){
			.key = key_of(a->pid, a->source,
				a->source == SOURCE_DRIVER && (a->flags & WIRE_NESTED), a->op),
			.median = sketch_quantile(&a->sketch, 0.5),
			.is_small = a->sketch.count < BUCKET_CALLS,
		};
	}
	SORT(ret, used, by_key_small_last);
	for (size_t i = 0; i < used; i++)
		ops += i == 0 || ret[i].key != ret[i - 1].key;
	*ret_ops = ops;
	return used;
}

static int table_new(struct ordinary *o, size_t ops)
{
	size_t slots = 64;

	while (slots < 2 * ops)
		slots *= 2;
	*o = (struct ordinary){.slot_mask = slots - 1};
	o->ops = calloc(ops + 1, sizeof(*o->ops));
	o->slots = calloc(slots, sizeof(*o->slots));
	if (o->ops && o->slots)
		return 0;
	ordinary_done(o);
	return -ENOMEM;
}

int ordinary_init(struct ordinary *o, const struct aggregate *aggregates, size_t n)
{
	_cleanup_free_ struct bucket_median *rows = calloc(n + 1, sizeof(*rows));
	_cleanup_free_ uint64_t *values = calloc(n + 1, sizeof(*values));
	size_t used, ops, next;

	if (!rows || !values)
		return -ENOMEM;
	used = medians_of(aggregates, n, rows, &ops);
	if (table_new(o, ops) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < used; i = next) {
		for (next = i + 1; next < used && rows[next].key == rows[i].key;)
			next++;
		op_add(o, rows[i].key, limit_of(rows + i, next - i, values));
	}
	return 0;
}

int ordinary_clone(struct ordinary *o, const struct ordinary *from)
{
	if (table_new(o, from->count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < from->count; i++)
		op_add(o, from->ops[i].key, from->ops[i].limit_ns);
	o->from_ns = from->from_ns;
	o->to_ns = from->to_ns;
	return 0;
}

void ordinary_reset(struct ordinary *o)
{
	for (size_t i = 0; i < o->count; i++)
		o->ops[i] = op_new(o->ops[i].key, o->ops[i].limit_ns);
}

void ordinary_done(struct ordinary *o)
{
	free(o->ops);
	free(o->slots);
	*o = (struct ordinary){0};
}

static void note_edges(struct ordinary_op *op, int64_t start_ns, int64_t end_ns, uint64_t seq)
{
	if (start_ns < op->first_ns || (start_ns == op->first_ns && seq < op->first_seq)) {
		op->first_ns = start_ns;
		op->first_seq = seq;
	}
	if (end_ns > op->last_ns || (end_ns == op->last_ns && seq > op->last_seq)) {
		op->last_ns = end_ns;
		op->last_seq = seq;
	}
}

bool ordinary_keeps(struct ordinary *o, const int64_t row[ORDINARY_COUNT])
{
	int64_t start_ns = row[ORDINARY_TIMESTAMP], source = row[ORDINARY_SOURCE];
	bool nested = source == SOURCE_DRIVER && (row[ORDINARY_FLAGS] & WIRE_NESTED);
	struct ordinary_op *op;

	if (!op_kind_is_cuda((unsigned)source) || row[ORDINARY_RET] != 0)
		return true;
	/* What makes no sense is kept, so that the reader sees and counts it. (A number below 0 is above all others
	 * without its sign.) */
	if ((uint64_t)row[ORDINARY_OP] >= WIRE_OP_MAX || (uint64_t)row[ORDINARY_PID] > UINT32_MAX ||
		row[ORDINARY_DURATION] < 0 || start_ns < 1 || start_ns > TIME_MAX_NS ||
		(uint64_t)row[ORDINARY_FLAGS] > UINT16_MAX)
		return true;
	if (row[ORDINARY_FLAGS] & WIRE_AFTER_GAP) /* a pause shows in it alone */
		return true;
	/* A nested call is part of a runtime call that is kept itself if it matters. */
	if (!nested && op_kind_marks((unsigned)source, (unsigned)row[ORDINARY_OP]))
		return true;
	if ((o->from_ns && start_ns < o->from_ns) || (o->to_ns && start_ns > o->to_ns))
		return true;
	op = op_find(o, key_of((uint64_t)row[ORDINARY_PID], (unsigned)source, nested,
				(unsigned)row[ORDINARY_OP]));
	if (!op || (uint64_t)row[ORDINARY_DURATION] > op->limit_ns)
		return true;
	note_edges(op, start_ns, start_ns + row[ORDINARY_DURATION], (uint64_t)row[ORDINARY_SEQ]);
	op->thinned++;
	return false;
}

void ordinary_merge(struct ordinary *o, const struct ordinary *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct ordinary_op *op = &from->ops[i];
		struct ordinary_op *mine = op_find(o, op->key);

		if (!mine || !op->thinned)
			continue;
		mine->thinned += op->thinned;
		if (op->first_ns < mine->first_ns ||
			(op->first_ns == mine->first_ns && op->first_seq < mine->first_seq)) {
			mine->first_ns = op->first_ns;
			mine->first_seq = op->first_seq;
		}
		if (op->last_ns > mine->last_ns ||
			(op->last_ns == mine->last_ns && op->last_seq > mine->last_seq)) {
			mine->last_ns = op->last_ns;
			mine->last_seq = op->last_seq;
		}
	}
}

ORDER(by_number, uint64_t, COMPARE(*x, *y))

size_t ordinary_edges(const struct ordinary *o, uint64_t *ret)
{
	size_t n = 0, distinct = 0;

	for (size_t i = 0; i < o->count; i++)
		if (o->ops[i].thinned) {
			ret[n++] = o->ops[i].first_seq;
			ret[n++] = o->ops[i].last_seq;
		}
	SORT(ret, n, by_number);
	for (size_t i = 0; i < n; i++)
		if (!distinct || ret[distinct - 1] != ret[i])
			ret[distinct++] = ret[i];
	return distinct;
}

uint64_t ordinary_thinned(const struct ordinary *o)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < o->count; i++)
		sum += o->ops[i].thinned;
	return sum;
}
