/* SPDX-License-Identifier: Apache-2.0 */
/* chain_precision.c - matrix products in wider numbers than the GPU is fast with: all of a job's time on the GPU, from the first
 * step on, may go into them. Known by the names of the kernels that were launched. */
#include <stdio.h>

#include "base/macros.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/kernel_type.h"
#include "diagnose/thresholds.h"

/* What runs in CUDA graphs is not counted launch by launch: there the kernels that are there at all tell, if those with
 * a type in their names have the same one. */
static bool are_all(uint32_t of_type, uint32_t known)
{
	return of_type == known && (double)known >= THRESHOLD(KERNEL_ROWS);
}

bool chain_precision(const struct chain *c, struct resource_use *ret)
{
	uint64_t by_type[KERNEL_TYPE_COUNT] = {0}, all = 0;
	uint32_t names[KERNEL_TYPE_COUNT] = {0}, known = 0;
	enum kernel_type wide;

	if (c->has_slow)
		return false;
	for (size_t i = 0; i < c->rec->kernel_count; i++) {
		const struct kernel_use *k = &c->rec->kernels[i];

		if (k->pid != c->a->pid || !kernel_is_matrix(k->name))
			continue;
		by_type[kernel_type_of(k->name)] += k->launches;
		all += k->launches;
		names[kernel_type_of(k->name)]++;
		known += kernel_type_of(k->name) != KERNEL_OF_UNKNOWN;
	}
	wide = by_type[KERNEL_OF_FP64] > by_type[KERNEL_OF_FP32] ? KERNEL_OF_FP64 : KERNEL_OF_FP32;
	if ((double)by_type[wide] < THRESHOLD(MATRIX_WIDE) * (double)all ||
		((double)all < THRESHOLD(MATRIX_LAUNCHES) && !are_all(names[wide], known)))
		return false;
	ret->resource = RESOURCE_PRECISION;
	snprintf(ret->who, sizeof(ret->who), "%s", kernel_type_text(wide));
	snprintf(ret->detail, sizeof(ret->detail), "%.0f %% of the matrix products",
		100 * (double)by_type[wide] / (double)all);
	ret->share = THRESHOLD(MATRIX_GAIN);
	return true;
}
