/* SPDX-License-Identifier: Apache-2.0 */
/* account_task.c - see account_task.h. The thread reads the recording, which nobody writes meanwhile, and
 * writes the task, which nobody reads before it has ended: so nothing is locked. */
#include "diagnose/contrasts/account_task.h"

#include "diagnose/contrasts/contrast.h"
#include "base/macros.h"

#define BESIDE_EVENTS 100000 /* fewer are done before a thread is worth its start */

static void *task_main(void *arg)
{
	struct account_task *t = arg;

	t->result = account_make(t->rec, &t->accounts);
	for (size_t i = 0; t->result == 0 && i < t->accounts.count; i++)
		t->result = account_read_stacks(&t->accounts.items[i], t->rec->stacks);
	if (t->result == 0)
		t->result = contrast_all(&t->accounts, &t->report);
	return NULL;
}

void account_task_begin(struct account_task *t, const struct recording *rec, bool beside)
{
	*t = (struct account_task){.rec = rec};
	if (beside && rec->event_count >= BESIDE_EVENTS)
		t->has_thread = pthread_create(&t->thread, NULL, task_main, t) == 0;
	if (!t->has_thread)
		task_main(t);
}

int account_task_end(struct account_task *t)
{
	if (t->has_thread)
		pthread_join(t->thread, NULL);
	t->has_thread = false;
	return t->result;
}

void account_task_done(struct account_task *t)
{
	(void)account_task_end(t);
	account_set_done(&t->accounts);
	step_report_done(&t->report);
}

int account_run(const struct recording *rec, struct step_report *ret)
{
	_cleanup_(account_task_done) struct account_task t = {0};

	account_task_begin(&t, rec, false);
	if (t.result == 0) {
		*ret = t.report;
		t.report = (struct step_report){0};
	}
	return t.result;
}

int account_get(
	const struct recording *rec, struct account_task *own, const struct step_report **ret)
{
	struct account_task *t = rec->accounts;
	int r;

	if (!t) {
		account_task_begin(own, rec, false);
		t = own;
	}
	r = account_task_end(t);
	if (r == 0)
		*ret = &t->report;
	return r;
}
