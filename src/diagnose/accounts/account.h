/* SPDX-License-Identifier: Apache-2.0 */
/* step_account.h - the account of every process's steps from a recording. Pure, as correlate.h. */
#pragma once

#include "diagnose/compose/correlate.h"
#include "model/step_account.h"

#define ACCOUNTS_MAX 64 /* processes; those with most time in steps */

/* account_run - fills @ret (released with step_report_done()). A process that makes no calls, or
 * of which too little is recorded, has none. 0 or -ENOMEM. */
int account_run(const struct recording *rec, struct step_report *ret);
