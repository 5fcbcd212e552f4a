/* SPDX-License-Identifier: Apache-2.0 */
/* regroup.h - the program's own rhythm: where every so many units one does other and more work (a rollout between
 * updates, an evaluation), all units from one such to the next are one. */
#pragma once

#include "diagnose/accounts/account.h"
#include "model/step_account.h"
#include "diagnose/contrasts/classify.h"

/* regroup_is_needed - whether the slow units of @found, which was made from @a, are such ones. */
bool regroup_is_needed(const struct step_account *found);

/* regroup - *ret is @a with such units put together: it borrows all but its units (released with regroup_done(), also
 * after a failure). 0 or -ENOMEM. */
int regroup(const struct process_account *a, const struct step_account *found,
	struct process_account *ret);
void regroup_done(struct process_account *a);

/* The first slow step, where steps became much slower and stayed so. */

/* border_settle - steps that are taken for slow because of when they were, and are as short as ordinary ones, are
 * ordinary up to the first that is not: what is a little longer before a large change is not the change. */
void border_settle(struct step_facts *steps, size_t n, struct classification *found);
