/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - the symbol process's answers: reads what was asked from the file and sends it.
 *
 * Every function sends one whole answer, errors included. */
#pragma once

#include "record/symbol/protocol.h"
#include "record/symbol/image_cache.h"

struct answer { /* one being sent; .socket and .header are set by the caller */
	int socket;
	struct protocol_header header;
	size_t size; /* of what waits in message */
	bool gone;   /* the agent is: nothing more can be sent */
	uint8_t message[PROTOCOL_MESSAGE_MAX];
};

/* answer_begin - to the question @q, or with @q's kind on the child's own account. */
void answer_begin(struct answer *a, const struct protocol_header *q);

void answer_error(struct answer *a, int err, const char *text);
void answer_ready(struct answer *a, const char *text);
void answer_identity(struct answer *a, int fd);
void answer_unwind(struct answer *a, int fd);
void answer_handles(struct answer *a, int fd);
void answer_frames(struct answer *a, const struct image_cache_item *item,
	const struct protocol_offset *offsets, size_t count);
void answer_places(struct answer *a, const struct image_cache_item *item,
	const struct protocol_name *names, size_t count);
