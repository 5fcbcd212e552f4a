/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* bound.bpf.h - indexes and sizes that the verifier of every kernel believes.
 *
 * A mask written in C is a hint to the compiler, which leaves it out where it knows the value to be small; the verifier
 * does not know, least of all before 6.8, where the OR of two unknown numbers has no bound and a spilled 32-bit number
 * loses its own. So the mask is an instruction that the compiler cannot see through, on all 64 bits; likewise a limit, which
 * it would test in one register and spill from another. */
#pragma once

#if defined(__bpf__)
#define BOUNDED(index, mask)                                                                       \
	({                                                                                         \
		__u64 bounded_ = (index);                                                          \
		asm volatile("%0 &= %1" : "+r"(bounded_) : "i"(mask));                             \
		bounded_;                                                                          \
	})
#define AT_MOST(size, limit)                                                                       \
	({                                                                                         \
		__u64 limited_ = (size);                                                           \
		asm volatile("if %0 <= %1 goto +1\n%0 = %1" : "+r"(limited_) : "i"(limit));        \
		limited_;                                                                          \
	})
#else /* a unit test in user space */
#define BOUNDED(index, mask) ((index) & (mask))
#endif
