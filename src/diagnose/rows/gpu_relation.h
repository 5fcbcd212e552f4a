/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_relation.h - whether two processes use the same GPU, as far as a recording tells. */
#pragma once

#include "diagnose/recording.h"

enum gpu_relation {
	GPU_RELATION_UNKNOWN, /* their numbers cannot be compared */
	GPU_RELATION_NUMBER,  /* it has the same number for both, which need not mean the same */
	GPU_RELATION_SAME,
	GPU_RELATION_OTHER, /* each has one of its own */
};

/* gpu_relation_of - by readings that name the processes on a GPU; else by the numbers that they gave to cudaSetDevice(), of the GPUs
 * that their environment shows them. */
enum gpu_relation gpu_relation_of(const struct recording *rec, uint32_t a, uint32_t b);
