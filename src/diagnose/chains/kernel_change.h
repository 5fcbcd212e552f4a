/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_change.h - kernels that a process runs only since its steps are slow. */
#pragma once

#include "diagnose/chains/kernel_type.h"
#include "diagnose/recording.h"
#include "model/step_account.h"

#define KERNELS_NAMED 3

struct kernel_share {
	const char *name; /* of the recording's */
	double in_step;   /* about so many launches in a slow step */
};

struct kernel_change {
	struct kernel_share added[KERNELS_NAMED]; /* most launches first */
	int added_count;
	/* Matrix products came that compute with numbers of another type than nearly all before; both KERNEL_OF_UNKNOWN: not known to. */
	enum kernel_type from, to;
};

/* kernel_change_find - kernels that were launched for the first time in the first seconds of slow steps and belong to
 * these since then, by when each kernel was launched first. Shapes choose among kernels of one template, and among matrix
 * products of one type: those are not told. Where the recording has no names nothing is. 0 or -ENOMEM. */
int kernel_change_find(
	const struct recording *rec, const struct step_account *a, struct kernel_change *ret);
