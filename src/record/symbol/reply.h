/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - the symbol process's answers, checked. The agent's side; pure but for mapping a file.
 *
 * The process may have been taken over by a file it read, so every number is looked at before it is
 * used. -EBADMSG, with the sentence in @reterr, means that it did not keep to the protocol. Texts
 * and arrays in what is returned lie in @data or in the table's mapping. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/symbol/symbol.h"
#include "base/errinfo.h"

struct reply { /* an answer's body, all its messages together */
	uint8_t *data;
	size_t size;
};

struct reply_table { /* what keeps a struct symbol_unwind's arrays */
	void *map;
	size_t bytes;
};

int reply_identity(const struct reply *r, struct symbol_identity *ret, struct errinfo *reterr);

/* reply_unwind - @fd is the file that came along (-1: none), and stays the caller's. *ret_table is
 * released with reply_table_done(). */
int reply_unwind(const struct reply *r, int fd, struct symbol_unwind *ret,
	struct reply_table *ret_table, struct errinfo *reterr);
void reply_table_done(struct reply_table *t);

/* reply_handles - ret->vaddr lies in @r's data. */
int reply_handles(const struct reply *r, struct symbol_handles *ret, struct errinfo *reterr);

/* reply_frames, reply_places - of @count offsets or names, as many as were asked for. *ret_err is
 * what the child says of the file; all of @out is then empty. */
int reply_frames(const struct reply *r, struct symbol_frames *out, size_t count, int *ret_err,
	struct errinfo *reterr);
int reply_places(const struct reply *r, struct symbol_place *out, size_t count, int *ret_err,
	struct errinfo *reterr);
