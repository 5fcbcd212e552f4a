/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* arguments.bpf.h - the argument words of a probed call, on either architecture. */
#pragma once

#include "record/probe/kernel.bpf.h"
#include "wire/record.h"

/* On x86-64 the call instruction has pushed the return address, which the return has popped. */
#if defined(__TARGET_ARCH_x86)
#define RETURN_ADDRESS_BYTES 8
#else
#define RETURN_ADDRESS_BYTES 0
#endif

/* Where the call returns to. It may be the kernel's trampoline: a function that a probed one jumps
 * to at its end; the walk replaces it. */
static __always_inline __u64 return_address(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	__u64 address = 0;

	bpf_probe_read_user(&address, sizeof(address), (void *)ctx->rsp);
	return address;
#else
	return PT_REGS_RET(ctx);
#endif
}

/* The first eleven argument words, counted from 1; words[0] is 0 and stands for "no argument".
 * Loaded one by one, because the verifier wants constant offsets into the registers. */
struct arguments {
	__u64 words[16];      /* a power of two, so that an index can be masked */
	__u64 return_address; /* see return_address() */
};

/* arguments_load - @deepest is the highest word that will be asked for: those that were passed on
 * the stack are read only if need be. */
static __always_inline void arguments_load(struct pt_regs *ctx, __u32 deepest, struct arguments *a)
{
	__builtin_memset(a, 0, sizeof(*a));
#if defined(__TARGET_ARCH_x86)
	/* The return address lies below the words on the stack: one read takes both. */
	if (deepest > 6) {
		bpf_probe_read_user(&a->words[6], 48, (void *)ctx->rsp);
		a->return_address = a->words[6];
	} else {
		a->return_address = return_address(ctx);
	}
	a->words[1] = ctx->rdi;
	a->words[2] = ctx->rsi;
	a->words[3] = ctx->rdx;
	a->words[4] = ctx->rcx;
	a->words[5] = ctx->r8;
	a->words[6] = ctx->r9;
#else
	struct user_pt_regs *regs = (struct user_pt_regs *)ctx;

	a->words[1] = regs->regs[0];
	a->words[2] = regs->regs[1];
	a->words[3] = regs->regs[2];
	a->words[4] = regs->regs[3];
	a->words[5] = regs->regs[4];
	a->words[6] = regs->regs[5];
	a->words[7] = regs->regs[6];
	a->words[8] = regs->regs[7];
	if (deepest > 8)
		bpf_probe_read_user(&a->words[9], 24, (void *)regs->sp);
	a->return_address = return_address(ctx);
#endif
}

static __always_inline __u64 argument_word(const struct arguments *a, __u32 n)
{
	return a->words[BOUNDED(n, 15)];
}
