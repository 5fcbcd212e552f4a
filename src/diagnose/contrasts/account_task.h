/* SPDX-License-Identifier: Apache-2.0 */
/* account_task.h - the accounts of a recording and what sets their units apart, made once for all who ask,
 * beside other work if there is much to do: detectors need them last. */
#pragma once

#include <pthread.h>

#include "diagnose/accounts/account.h"
#include "model/step_account.h"

struct account_task {
	const struct recording *rec; /* NULL: not begun */
	struct account_set accounts; /* of a task that has ended */
	struct step_report report;   /* likewise */
	int result;
	bool has_thread;
	pthread_t thread;
};

/* account_task_begin - @rec must stay as it is until the task has ended. With @beside, a large one is
 * worked on by a thread of its own; else the report is there at once. */
void account_task_begin(struct account_task *t, const struct recording *rec, bool beside);

/* account_task_end - waits for the report: 0 or -ENOMEM. May be called again. */
int account_task_end(struct account_task *t);

/* account_task_done - ends it and releases what it made, unless its owner took the report. */
void account_task_done(struct account_task *t);

/* account_run - the report alone, released with step_report_done(). 0 or -ENOMEM. */
int account_run(const struct recording *rec, struct step_report *ret);

/* account_get - the accounts of @rec: of its task if it has one, else made by @own, which the caller
 * releases. 0 or -ENOMEM. */
int account_get(
	const struct recording *rec, struct account_task *own, const struct step_report **ret);
