/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - how fast a collective moved its data, as nccl-tests reckons it.
 *
 * Algorithm bandwidth is the size of the operation by its time. Bus bandwidth is that times a factor
 * of the operation and the number of ranks, so that it can be set against what links can do, whatever
 * the number of ranks. The size is what nccl-tests calls so: NCCL counts what one rank gives of an
 * all-gather, and what one rank gets of a reduce-scatter; the operation is of all ranks' parts. */
#pragma once

#include <stdint.h>

#define BANDWIDTH_CLASSES 5

/* bandwidth_size - bytes of the operation @op (of NCCL) of which one call names @bytes. */
double bandwidth_size(unsigned op, uint64_t bytes, int32_t nranks);

/* bandwidth_factor - what makes bus bandwidth of algorithm bandwidth; 0: not known. */
double bandwidth_factor(unsigned op, int32_t nranks);

/* bandwidth_class - which class of sizes @size is of, from 0; bandwidth_class_name - "1-16 MiB". */
unsigned bandwidth_class(double size);
const char *bandwidth_class_name(unsigned c);
