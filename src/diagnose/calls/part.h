/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - what attribute.c (slow calls) and attribute_pause.c (pauses) share: looking up intervals, and
 * adding parts. */
#pragma once

#include "diagnose/calls/attribute.h"

/* interval_seek - the first interval of @key that ends after @ns; anything else in its place if
 * there is none. */
size_t interval_seek(const struct interval_list *l, uint32_t key, int64_t ns);
bool interval_has(const struct interval_list *l, uint32_t key);

int part_add(struct part_list *l, const struct part *p); /* 0 or -ENOMEM */

/* part_add_cpu - [start, end) of @v, in which the thread could have run. The idle thread (pid 0)
 * ran instead: the CPU was free, and nobody is to blame for the latency. */
int part_add_cpu(struct part_list *l, const struct interval *v, const struct event *row,
	size_t call, int64_t start_ns, int64_t end_ns);

/* part_scale - make @n parts together no more than @excess_ns. */
void part_scale(struct part *parts, size_t n, uint64_t excess_ns);
