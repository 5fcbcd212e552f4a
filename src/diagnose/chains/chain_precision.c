/* SPDX-License-Identifier: Apache-2.0 */
/* chain_precision.c - matrix products in wider numbers than the GPU is fast with: all of a job's time on the GPU, from the first
 * step on, may go into them. Known by the names of the kernels that were launched. */
#include <stdio.h>

#include "base/macros.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/kernel_type.h"
#include "diagnose/thresholds.h"
#include "wire/op_kind.h"

/* What runs in CUDA graphs is not counted launch by launch: there the kernels that are there at all tell, if those with
 * a type in their names have the same one. */
static bool are_all(uint32_t of_type, uint32_t known)
{
	return of_type == known && (double)known >= THRESHOLD(KERNEL_ROWS);
}

struct products { /* matrix products by type */
	uint64_t launches[KERNEL_TYPE_COUNT], all;
	uint32_t names[KERNEL_TYPE_COUNT], known;
};

static void count_products(const struct chain *c, bool is_attention, struct products *ret)
{
	for (size_t i = 0; i < c->rec->kernel_count; i++) {
		const struct kernel_use *k = &c->rec->kernels[i];
		enum kernel_type type = kernel_type_of(k->name);

		if (k->pid != c->a->pid || !kernel_is_matrix(k->name) ||
			kernel_is_attention(k->name) != is_attention)
			continue;
		ret->launches[type] += k->launches;
		ret->all += k->launches;
		ret->names[type]++;
		ret->known += type != KERNEL_OF_UNKNOWN;
	}
}

static bool are_most(const struct products *p, uint64_t launches)
{
	return (double)launches >= THRESHOLD(MATRIX_WIDE) * (double)p->all &&
	       (double)p->all >= THRESHOLD(MATRIX_LAUNCHES);
}

/* Where the program launches attention's kernels. */
static uint64_t attention_stack(const struct chain *c)
{
	for (size_t i = 0; i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];
		const struct kernel_use *k;

		if (e->pid != c->a->pid || !e->stack_hash || !op_kind_is_launch(e->source, e->op))
			continue;
		k = kernel_use_find(
			c->rec->kernels, c->rec->kernel_count, e->pid, e->arg0, e->start.ns);
		if (k && kernel_is_attention(k->name))
			return e->stack_hash;
	}
	return 0;
}

/* The rest of the job is in 16 bits: that attention is not is nobody's wish. A tensor in 32 bits is all it takes, and the
 * kernels that are made for 16 are out. */
static bool by_attention(
	const struct chain *c, const struct products *rest, struct resource_use *ret)
{
	uint64_t narrow = rest->launches[KERNEL_OF_BF16] + rest->launches[KERNEL_OF_FP16] +
			  rest->launches[KERNEL_OF_FP8];
	struct products attention = {0};

	count_products(c, true, &attention);
	if (!are_most(&attention, attention.launches[KERNEL_OF_FP32]) || !are_most(rest, narrow))
		return false;
	ret->resource = RESOURCE_ATTENTION;
	snprintf(ret->who, sizeof(ret->who), "%s", kernel_type_text(KERNEL_OF_FP32));
	snprintf(ret->detail, sizeof(ret->detail), "%.0f %%",
		100 * (double)narrow / (double)rest->all);
	ret->share = THRESHOLD(MATRIX_GAIN);
	ret->stack_hash = attention_stack(c);
	return true;
}

bool chain_precision(const struct chain *c, struct resource_use *ret)
{
	struct products all = {0};
	enum kernel_type wide;

	if (c->has_slow)
		return false;
	count_products(c, false, &all);
	if (by_attention(c, &all, ret))
		return true;
	count_products(c, true, &all);
	wide = all.launches[KERNEL_OF_FP64] > all.launches[KERNEL_OF_FP32] ? KERNEL_OF_FP64
									   : KERNEL_OF_FP32;
	if (!are_most(&all, all.launches[wide]) &&
		!((double)all.launches[wide] >= THRESHOLD(MATRIX_WIDE) * (double)all.all &&
			are_all(all.names[wide], all.known)))
		return false;
	ret->resource = RESOURCE_PRECISION;
	snprintf(ret->who, sizeof(ret->who), "%s", kernel_type_text(wide));
	snprintf(ret->detail, sizeof(ret->detail), "%.0f %% of the matrix products",
		100 * (double)all.launches[wide] / (double)all.all);
	ret->share = THRESHOLD(MATRIX_GAIN);
	return true;
}
