/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - from what steps lost their time to, to the resource that was waited for and who had it.
 *
 * Only evidence from the time of the slow steps counts; where none is slow, from the time of all of them. What
 * no evidence leads to stays RESOURCE_NONE: a chain never guesses. */
#pragma once

#include "diagnose/chains/delay.h"

/* chain_follow - fills d->end; the rest of @d, which is one of the delays of @a, is only read. */
void chain_follow(const struct recording *rec, const struct step_account *a, struct delay *d);

/* chain_compiler_of - the compiler that was at work in a part of an account: by its stack, by where it was waited for, by
 * the name of the process that it is of. NULL: none. */
const char *chain_compiler_of(const struct recording *rec, const struct account_entry *e);

/* process_words - what to call process @pid: the script that it runs, else its name, else @comm. Cut to
 * @buf, which is returned. */
#define PROCESS_WORDS_MAX 64
const char *process_words(
	const struct recording *rec, uint32_t pid, const char *comm, char buf[PROCESS_WORDS_MAX]);
