/* SPDX-License-Identifier: Apache-2.0 */
/* stack_total.c - see stack_total.h. Rows are appended, and summed up whenever the array is full,
 * so that memory is that of the different stacks and not of the calls. Sums stop at the largest
 * number.
 */
#include "answer/stack_total.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/capped.h"
#include "base/macros.h"
#include "wire/op_kind.h"

#define ROWS_MIN 4096

struct rows {
	struct stack_total *items;
	size_t count, capacity;
};

static int by_key(const void *a, const void *b)
{
	const struct stack_total *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (int)x->op - (int)y->op;
}

static int by_time(const void *a, const void *b)
{
	const struct stack_total *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return by_key(a, b);
}

static void sum_up(struct rows *r)
{
	size_t n = 0;

	if (!r->count)
		return;
	qsort(r->items, r->count, sizeof(*r->items), by_key);
	for (size_t i = 0; i < r->count; i++) {
		if (n && by_key(&r->items[n - 1], &r->items[i]) == 0) {
			r->items[n - 1].ns = capped_sum(r->items[n - 1].ns, r->items[i].ns);
			r->items[n - 1].calls =
				capped_sum(r->items[n - 1].calls, r->items[i].calls);
		} else {
			r->items[n++] = r->items[i];
		}
	}
	r->count = n;
}

static int make_room(struct rows *r)
{
	struct stack_total *bigger;
	size_t capacity;

	if (r->count < r->capacity)
		return 0;
	sum_up(r);
	if (r->capacity && r->count < r->capacity / 2)
		return 0;
	capacity = MAX(2 * r->capacity, (size_t)ROWS_MIN);
	bigger = reallocarray(r->items, capacity, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	r->items = bigger;
	r->capacity = capacity;
	return 0;
}

static bool is_wanted(const struct event *e, const struct wire_op_row *op)
{
	if (op)
		return e->source == op->source && e->op == op->op;
	return op_kind_is_gpu(e->source) && !(e->flags & WIRE_NESTED);
}

int stack_total_run(const struct event *events, size_t count, const struct wire_op_row *op,
	struct stack_total **ret, size_t *ret_count)
{
	struct rows r = {0};

	for (size_t i = 0; i < count; i++) {
		const struct event *e = &events[i];
		uint64_t weight = MAX(e->weight, 1u);

		if (!is_wanted(e, op))
			continue;
		if (make_room(&r) < 0) {
			free(r.items);
			return -ENOMEM;
		}
		r.items[r.count++] = (struct stack_total){.hash = e->stack_hash,
			.source = e->source,
			.op = e->op,
			.ns = capped_product(e->dur_ns, weight),
			.calls = weight};
	}
	sum_up(&r);
	if (r.count)
		qsort(r.items, r.count, sizeof(*r.items), by_time);
	*ret = r.items;
	*ret_count = r.count;
	return 0;
}
