/* SPDX-License-Identifier: Apache-2.0 */
/* tell_private.h - what the files that tell share. */
#pragma once

#include "agent/answer/tell.h"

struct tell_op {
	uint8_t source;
	uint16_t op;
	bool nested;
	uint64_t stored;
	struct sketch sketch;
};

struct tell_ops {
	struct tell_op *rows; /* in any order */
	size_t count;
};

/* tell_op_find - the row of the aggregate's operation, new if need be; valid until the next call.
 * -ENOBUFS, -ENOMEM. */
int tell_op_find(struct tell_ops *o, const struct aggregate *a, struct tell_op **ret);

/* tell_system - the member "system": the newest sample of the host up to the end of the time, if
 * there is one. */
int tell_system(const struct tell *t, struct json_writer *w, struct errinfo *reterr);

/* tell_books - the member "books": hits and what became of them, if the recording says. */
int tell_books(const struct tell *t, struct json_writer *w, double *ret_completeness,
	struct errinfo *reterr);

/* tell_step - whole seconds, so that the time has no more than @points of them. */
int64_t tell_step(const struct tell *t, size_t points);

/* tell_chain_texts - member @key: the strings of the JSON array in @text; what is none is left out.
 */
void tell_chain_texts(struct json_writer *w, const char *key, const char *text);
