/* SPDX-License-Identifier: Apache-2.0 */
/* contrast.h - what sets units of work apart from each other: slow ones against ordinary ones, by what of their
 * accounts differs. Pure: from accounts alone. */
#pragma once

#include "diagnose/accounts/account.h"

/* contrast - fills @ret from @a, which has units; ret->bars and ret->marks are the caller's, also after a
 * failure. 0 or -ENOMEM. */
int contrast(const struct process_account *a, struct step_account *ret);

/* contrast_all - of all accounts, longest first; released with step_report_done(). 0 or -ENOMEM. */
int contrast_all(const struct account_set *s, struct step_report *ret);
