/* SPDX-License-Identifier: Apache-2.0 */
/* process_words.c - what a process is called. */
#include <stdio.h>

#include "diagnose/rows/home.h"
#include "diagnose/accounts/tracer_name.h"
#include "diagnose/chains/chain.h"

const char *process_words(
	const struct recording *rec, uint32_t pid, const char *comm, char buf[PROCESS_WORDS_MAX])
{
	const struct process_home *h = pid ? home_of(rec, pid) : NULL;
	const char *name = h && h->comm[0] ? h->comm : comm;

	if (h && h->script[0])
		name = h->script;
	snprintf(buf, PROCESS_WORDS_MAX, "%s", tracer_fold(name ? name : ""));
	return buf;
}
