/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_other.h - recorded processes that use the GPU more while the steps of another are slow. */
#pragma once

#include "diagnose/recording.h"
#include "diagnose/rows/gpu_relation.h"
#include "model/step_account.h"

#define GPU_OTHERS_NAMED 3

enum pace { PACE_ORDINARY, PACE_SLOW, PACE_MIXED };

/* pace_at - whether the steps at @ns were slow, by the account's bars; PACE_MIXED: some, or there are none. */
enum pace pace_at(const struct step_account *a, int64_t ns);

struct gpu_other {
	uint32_t pid;
	char comm[COMM_LEN];
	double calls[2]; /* by enum pace: its time in calls, as a share of the time that passed */
	double rate[2];  /* likewise: bytes/s that it copies */
	bool is_rank;    /* of the same job, with a GPU of its own or not: it is no neighbour */
	enum gpu_relation relation;
};

struct gpu_others {
	struct gpu_other named[GPU_OTHERS_NAMED]; /* who uses it most beyond what it did, first */
	int count;                                /* all of them */
	bool is_new;                              /* the first one hardly used it before */
};

/* gpu_others_relation - of the ones that are named the surest. */
enum gpu_relation gpu_others_relation(const struct gpu_others *o);

/* gpu_others_all - likewise over all steps of @a, none of which is slow: their use is in calls[PACE_SLOW]. None, if the
 * GPU's own count says that there is no second process on it. */
void gpu_others_all(
	const struct recording *rec, const struct step_account *a, struct gpu_others *ret);

/* gpu_others_find - those that spend a tenth of the time in calls beyond what they did in ordinary steps, or copy so
 * much more that a link is busy with it. None that is known to have a GPU of its own. */
void gpu_others_find(
	const struct recording *rec, const struct step_account *a, struct gpu_others *ret);
