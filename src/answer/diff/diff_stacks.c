/* SPDX-License-Identifier: Apache-2.0 */
/* diff_stacks.c - from where more time is spent. Stacks are one if their texts are: hashes know addresses, which
 * another run does not share. What finds none is tried once more without lines, which move when a file is
 * edited. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "answer/diff/diff_private.h"
#include "answer/stack_text.h"
#include "base/macros.h"
#include "base/search.h"
#include "base/text.h"

#define GROWN_NS_S NS_PER_MS /* a second */
#define NORMAL_99  2.5758

static const struct diff_stack_row *find(const struct diff_side *s, uint64_t key, bool *used)
{
	size_t at = LOWER_BOUND(i, s->stack_count, s->stacks[i].key < key);

	if (at == s->stack_count || s->stacks[at].key != key)
		return NULL;
	used[at] = true;
	return &s->stacks[at];
}

static const struct diff_stack_row *find_moved(
	const struct diff_side *s, uint64_t loose, bool *used)
{
	for (size_t i = 0; i < s->stack_count; i++)
		if (!used[i] && s->stacks[i].loose == loose) {
			used[i] = true;
			return &s->stacks[i];
		}
	return NULL;
}

/* Durations are spread about as far as they are long: a sum of n of them is known to its n-th root, twice. */
static double spread(const struct diff_stack_row *r, double seconds)
{
	return r && r->rows > 0 ? r->ns / seconds * sqrt(2 / r->rows) : 0;
}

static bool has_grown(const struct diff_stack *s, double noise)
{
	double grown = s->ns_s[1] - s->ns_s[0];

	return grown >= GROWN_NS_S && grown > DIFF_SHARE * s->ns_s[0] && grown > NORMAL_99 * noise;
}

static void put(struct diff_answer *ret, const struct diff_stack *s)
{
	double grown = s->ns_s[1] - s->ns_s[0];
	size_t at = ret->stack_count;

	while (at > 0 && grown > ret->stacks[at - 1].ns_s[1] - ret->stacks[at - 1].ns_s[0]) {
		if (at < DIFF_STACKS)
			ret->stacks[at] = ret->stacks[at - 1];
		at--;
	}
	if (at < DIFF_STACKS)
		ret->stacks[at] = *s;
	ret->stack_count = MIN(ret->stack_count + 1, (size_t)DIFF_STACKS);
}

static void put_place(struct diff_stack *s)
{
	const struct stack_frame *f = stack_user_frame(s->stack);
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 14);
	int len;

	f = f ? f : stack_place(s->stack);
	if (f)
		stack_text_place(&b, f);
	len = text_clip(buf_str(&b), DIFF_PLACE / 4 - 1);
	snprintf(s->place, sizeof(s->place), "%.*s%s", len, buf_str(&b),
		buf_str(&b)[len] ? "\xe2\x80\xa6" : "");
}

/* Exact partners first, so that what moved is looked for among the rest. */
int diff_compare_stacks(const struct diff_side sides[2], struct diff_answer *ret)
{
	const struct diff_side *a = &sides[0], *b = &sides[1];
	_cleanup_free_ bool *used = calloc(a->stack_count + 1, sizeof(*used));
	_cleanup_free_ const struct diff_stack_row **other =
		calloc(b->stack_count + 1, sizeof(struct diff_stack_row *));
	double seconds[2];

	if (!used || !other)
		return -ENOMEM;
	for (int i = 0; i < 2; i++)
		seconds[i] = (double)MAX(sides[i].time.to_ns - sides[i].time.from_ns, INT64_C(1)) /
			     (double)NS_PER_S;
	for (size_t i = 0; i < b->stack_count; i++)
		other[i] = find(a, b->stacks[i].key, used);
	for (size_t i = 0; i < b->stack_count; i++) {
		const struct diff_stack_row *row = &b->stacks[i], *o = other[i];
		struct diff_stack s = {.source = row->source,
			.op = row->op,
			.stack = row->stack,
			.ns_s[1] = row->ns / seconds[1]};

		if (!o && (o = find_moved(a, row->loose, used)))
			s.moved = true;
		s.ns_s[0] = o ? o->ns / seconds[0] : 0;
		if (!has_grown(&s, hypot(spread(row, seconds[1]), spread(o, seconds[0]))))
			continue;
		put_place(&s);
		put(ret, &s);
	}
	return 0;
}
