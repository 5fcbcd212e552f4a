/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - which kernels were launched most, by name. Counts are of whole processes, from a sample of
 * one launch in 16: they say which are many, not exactly how many. */
#pragma once

#include "answer/answer.h"
#include "base/buf.h"

/* answer_kernels - rows of NODEDB_KERNELS, most launches first: name, origin, launches, processes. */
int answer_kernels(
	const struct question *q, size_t limit, struct sql_table *ret, struct errinfo *reterr);

/* kernels_text - a section of `query`; nothing if there are none. */
void kernels_text(struct buf *b, const struct sql_table *kernels);
