/* SPDX-License-Identifier: Apache-2.0 */
/* answer_private.h - what the files that answer share. */
#pragma once

#include "answer/answer.h"

/* put_system - the member "system": the newest sample of the host up to the end of the time, if
 * there is one. */
int put_system(const struct question *q, struct json_writer *w, struct errinfo *reterr);

/* put_books - the member "books": hits and what became of them, if the recording says. */
int put_books(const struct question *q, struct json_writer *w, double *ret_completeness,
	struct errinfo *reterr);

/* answer_step - whole seconds, so that the time has no more than @points of them. */
int64_t answer_step(const struct question *q, size_t points);

/* put_chain_texts - member @key: the strings of the JSON array in @text; what is none is left out.
 */
void put_chain_texts(struct json_writer *w, const char *key, const char *text);
