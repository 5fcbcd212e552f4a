/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_added.h - kernels that a process runs only since its steps are slow. */
#pragma once

#include "diagnose/chains/kernel_change.h"

/* kernel_added_find - kernels that were launched for the first time in the first seconds of slow steps and belong to
 * these since then, by when each kernel was launched first: rows of launches may be too few to show them. Shapes choose
 * among kernels of one template, and among matrix products: those are not told. Fills ret->added, most
 * launches first. 0 or -ENOMEM. */
int kernel_added_find(
	const struct recording *rec, const struct step_account *a, struct kernel_change *ret);
