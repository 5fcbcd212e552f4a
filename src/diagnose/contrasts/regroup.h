/* SPDX-License-Identifier: Apache-2.0 */
/* regroup.h - the program's own rhythm: where every so many units one does other and more work (a rollout between
 * updates, an evaluation), all units from one such to the next are one. */
#pragma once

#include "diagnose/accounts/account.h"
#include "model/step_account.h"

/* regroup_is_needed - whether the slow units of @found, which was made from @a, are such ones. */
bool regroup_is_needed(const struct step_account *found);

/* regroup - *ret is @a with such units put together: it borrows all but its units (released with regroup_done(), also
 * after a failure). 0 or -ENOMEM. */
int regroup(const struct process_account *a, const struct step_account *found,
	struct process_account *ret);
void regroup_done(struct process_account *a);
