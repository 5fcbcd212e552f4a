/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - what holds of every answer, whatever the recording: each lost nanosecond of a process is in at most one
 * incident, none is lost that the process did not have, and nobody is woken for a guess. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diagnose/accounts/account_task.h"
#include "diagnose/compose/correlate.h"
#include "base/macros.h"

static inline bool identity_is_time(const struct incident *i)
{
	return i->source == SOURCE_HOST && i->op == HOST_LEDGER;
}

static inline bool identity_is_whole(const struct incident *i)
{
	return strstr(i->id, "-every-") != NULL;
}

/* "cpu": what the time was lost to. */
static inline const char *identity_kind(const struct incident *i)
{
	const char *end = strrchr(i->id, '-');

	return end ? end + 1 : "";
}

static inline void identity_check_account(
	const struct step_account *a, const struct incident *list, size_t n)
{
	uint64_t slow = 0, whole = 0, all = 0;
	uint64_t observed = (uint64_t)(a->last.ns - a->first.ns);

	for (int l = 0; l < ACCOUNT_LINES; l++)
		all += a->total_ns[l];
	assert_true(all <= observed);
	for (size_t i = 0; i < n; i++) {
		if (!identity_is_time(&list[i]) || list[i].pid != a->pid)
			continue;
		assert_true(list[i].excess_ns <= observed);
		assert_true(list[i].count <= a->steps);
		*(identity_is_whole(&list[i]) ? &whole : &slow) += list[i].excess_ns;
		for (size_t k = 0; k < i; k++)
			if (identity_is_time(&list[k]) && list[k].pid == a->pid)
				assert_string_not_equal(
					identity_kind(&list[i]), identity_kind(&list[k]));
	}
	if (slow > a->lost_ns || whole > all || slow + whole > all)
		fail_msg("pid %u lost %.3f s of %.3f: incidents say %.3f slow, %.3f in all", a->pid,
			(double)a->lost_ns / 1e9, (double)all / 1e9, (double)slow / 1e9,
			(double)whole / 1e9);
}

/* identity_check - of the answer to @rec. */
static inline _unused_ void identity_check(
	const struct recording *rec, const struct incident *list, size_t n)
{
	struct step_report accounts = {0};

	for (size_t i = 0; i < n; i++) {
		if (list[i].severity >= SEVERITY_HIGH && list[i].confidence < 0.6)
			fail_msg("HIGH at %.2f: %s", list[i].confidence, list[i].summary);
		if (list[i].severity == SEVERITY_MEDIUM && list[i].confidence < 0.4)
			fail_msg("MEDIUM at %.2f: %s", list[i].confidence, list[i].summary);
		for (int k = 0; k < list[i].stack_count; k++)
			if (identity_is_time(&list[i]))
				assert_true(list[i].stacks[k].ns <= list[i].excess_ns);
		if (i > 0)
			assert_true(list[i - 1].severity >= list[i].severity);
	}
	assert_int_equal(account_run(rec, &accounts), 0);
	for (size_t i = 0; i < accounts.count; i++)
		identity_check_account(&accounts.items[i], list, n);
	step_report_done(&accounts);
}
