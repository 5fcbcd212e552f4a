/* SPDX-License-Identifier: Apache-2.0 */
/* use.c - see use.h. */
#include "record/capture/use.h"

#include "wire/op_kind.h"

/* Launches take twice the quickest one in jobs that keep their GPU waiting, and 16 to 40 times that where
 * the GPU's queue is full (H200, PyTorch): what is beyond this multiple is taken for waiting. */
#define LAUNCH_OWN 4

uint64_t use_launch_waited_ns(uint64_t calls, uint64_t sum_ns, uint64_t min_ns)
{
	uint64_t own_ns = calls * LAUNCH_OWN * min_ns;

	return sum_ns > own_ns ? sum_ns - own_ns : 0;
}

void use_add(struct use *u, struct total *v)
{
	bool is_nested = v->key.flags & WIRE_NESTED;
	uint64_t hits = v->hits - v->hits_taken;
	uint64_t calls = v->all.count - v->calls_taken, ns = v->all.sum - v->ns_taken;

	v->hits_taken = v->hits;
	v->calls_taken = v->all.count;
	v->ns_taken = v->all.sum;
	if (op_kind_is_governed(v->key.source, v->key.op)) {
		/* Nearly all nested ones are counted at entry only. */
		u->launches += is_nested ? (hits + 1) / 2 : hits;
		if (!is_nested)
			u->waited_ns += use_launch_waited_ns(calls, ns, v->all.min);
		return;
	}
	u->others += hits;
	if (!is_nested && op_kind_is_gpu_wait(v->key.source, v->key.op)) {
		u->waits += calls;
		u->waited_ns += ns;
	}
}
