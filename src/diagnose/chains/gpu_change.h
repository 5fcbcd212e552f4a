/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_change.h - what was different about the GPU while steps were slow. */
#pragma once

#include "diagnose/chains/call_added.h"
#include "diagnose/chains/gpu_other.h"
#include "diagnose/chains/kernel_change.h"
#include "diagnose/recording.h"
#include "model/step_account.h"

enum gpu_reason {         /* why the GPU kept steps waiting longer */
	GPU_BY_NEIGHBOUR, /* another process uses it */
	GPU_BY_CLOCK,     /* its clock is lower */
	GPU_BY_WORK,      /* it has more to do */
	GPU_BY_WAITS,     /* it is waited for more often */
	GPU_BY_VARIETY,   /* now more and now less, as the work has it */
	GPU_BY_KERNELS,   /* other kernels run on it */
	GPU_BY_CALLS,     /* it is given something else to do between its kernels, or to wait for */
	GPU_BY_THREAD,    /* another thread waits for it, and the steps for that one */
	GPU_BY_NOTHING,   /* not known */
};

struct gpu_change {
	enum gpu_reason reason;
	double ordinary_clock_mhz, slow_clock_mhz; /* means; 0: not known */
	int64_t ordinary_limit_mw;                 /* of power; -1: not known */
	double ordinary_processes,
		slow_processes;      /* on the GPU, the fewest and on average; 0: not known */
	double ordinary_mw, slow_mw; /* of power that it draws, means */
	bool is_busier;              /* it draws more power, or is busy for longer, in slow steps */
	bool is_full;             /* it could not have become so: it was already in ordinary ones */
	bool is_compared;         /* there are readings of both */
	struct gpu_others others; /* recorded ones, of GPU_BY_NEIGHBOUR */
	size_t readings;          /* while steps were slow */
	struct kernel_change kernels;       /* of GPU_BY_KERNELS */
	struct call_added call;             /* of GPU_BY_CALLS */
	const struct account_entry *thread; /* of GPU_BY_THREAD: its part of the account */
};

/* gpu_change_find - compares readings in bars of slow steps with those in bars of ordinary ones,
 * and the work of their steps. 0 or -ENOMEM. */
int gpu_change_find(
	const struct recording *rec, const struct step_account *a, struct gpu_change *ret);

/* gpu_change_gpus - how many GPUs have readings: their numbers are below that. */
int64_t gpu_change_gpus(const struct recording *rec);

/* gpu_change_holds_copies - whether copies of as many bytes as ever take longer, too, because of what other processes
 * do: they have the link to the GPU and its copy engines in common, and a copy to memory that is not pinned waits for
 * the kernels before it. Processes that use the GPU a little more than they did may be held up themselves. */
bool gpu_change_holds_copies(const struct step_account *a, const struct gpu_change *g);
