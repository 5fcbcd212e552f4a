/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_change.h - whether slow steps run other kernels than ordinary ones. */
#pragma once

#include "diagnose/chains/kernel_type.h"
#include "diagnose/recording.h"
#include "model/step_account.h"

#define KERNELS_NAMED 3

struct kernel_share {
	const char *name; /* of the recording's; NULL: not known */
	uint32_t rows;    /* of its launches that were seen, in slow steps or in ordinary ones */
	double in_step;   /* about so many launches in a slow step; 0: not known */
};

struct kernel_change {
	uint32_t slow_rows; /* launches of slow steps that were picked by chance */
	uint32_t
		new_rows; /* of those: of kernels that ordinary steps do not run; 0: the mix is the same */
	/* The most telling first. Without new_rows: kernels that came to the same others (kernel_added.h). */
	struct kernel_share added[KERNELS_NAMED];
	int added_count;
	struct kernel_share gone; /* what slow steps do not run any more; rows 0: none is sure */
	enum kernel_type from,
		to; /* numbers of another type; both KERNEL_OF_UNKNOWN: not known to be */
};

/* kernel_change_find - compares the launches of slow steps with those of ordinary ones. Rows of launches are
 * a small selection: where they are too few to tell, or the recording has no names, *ret says that the mix
 * is the same. 0 or -ENOMEM. */
int kernel_change_find(
	const struct recording *rec, const struct step_account *a, struct kernel_change *ret);
