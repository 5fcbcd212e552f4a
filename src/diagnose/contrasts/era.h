/* SPDX-License-Identifier: Apache-2.0 */
/* era.h - slow units that have two causes at two times: a stretch in which nearly all are slow, and the others. */
#pragma once

#include "diagnose/accounts/account.h"
#include "diagnose/contrasts/classify.h"

struct era {
	size_t from, to; /* units; from == to: all slow ones are of one kind */
};

/* era_find - the stretch of slow units that lost its time to something else than the slow units outside of it, by
 * the line that grew most. 0 or -ENOMEM. */
int era_find(const struct process_account *a, const struct step_facts *facts, struct era *ret);
