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

#include "diagnose/contrasts/account_task.h"
#include "diagnose/recording.h"
#include "base/macros.h"
#include "model/incident.h"

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

/* What is wrong with what @list says of @a's process; NULL: nothing. */
static inline const char *identity_breach(
	const struct step_account *a, const struct incident *list, size_t n)
{
	uint64_t slow = 0, whole = 0, all = 0, observed = (uint64_t)(a->last.ns - a->first.ns);

	for (int l = 0; l < ACCOUNT_LINES; l++)
		all += a->total_ns[l];
	for (size_t i = 0; i < n; i++) {
		if (!identity_is_time(&list[i]) || list[i].pid != a->pid)
			continue;
		if (all > observed)
			return "an account that does not add up is believed";
		if (list[i].excess_ns > observed)
			return "an incident has more than was observed";
		if (list[i].count > a->steps)
			return "an incident has more units than there are";
		*(identity_is_whole(&list[i]) ? &whole : &slow) += list[i].excess_ns;
		for (size_t k = 0; k < i; k++)
			if (identity_is_time(&list[k]) && list[k].pid == a->pid &&
				!strcmp(identity_kind(&list[i]), identity_kind(&list[k])))
				return "two incidents of one process have the same cause";
	}
	if (slow > a->lost_ns)
		return "slow units lost less than incidents say";
	return slow + whole > all ? "incidents have more than all units" : NULL;
}

/* identity_check - of the answer to @rec. */
static inline _unused_ void identity_check(
	const struct recording *rec, const struct incident *list, size_t n)
{
	_cleanup_(account_task_done) struct account_task own = {0};
	const struct step_report *accounts = NULL;

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
	assert_int_equal(account_get(rec, &own, &accounts), 0);
	for (size_t i = 0; i < accounts->count; i++)
		if (identity_breach(&accounts->items[i], list, n))
			fail_msg("pid %u: %s", accounts->items[i].pid,
				identity_breach(&accounts->items[i], list, n));
}
