/* SPDX-License-Identifier: Apache-2.0 */
/* question.h - a question to the symbol process, and lists of them. Pure memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/symbol/protocol.h"
#include "base/macros.h"

struct question_file { /* as the service keeps it */
	uint32_t number;
	int fd, debug_fd; /* -1: none */
	enum protocol_source source;
	unsigned deaths;   /* children that ended at it */
	unsigned waiting;  /* questions without an answer */
	unsigned known_to; /* the last child that was asked about it */
	bool given_up, closed;
	struct question_file *next; /* of those that are closed */
};

struct question {
	struct question *next;
	struct question_file *file;
	enum protocol_kind kind;
	uint64_t number, ticket;
	uint32_t count; /* offsets or names */
	size_t body_bytes;
	_Alignas(8) uint8_t body[]; /* as protocol.h has it */
};

struct question_list { /* first in, first out */
	struct question *head, *tail;
	size_t count;
};

/* question_new - with room for @body_bytes, zeroed. NULL: no memory. Released with free(). */
struct question *question_new(struct question_file *file, enum protocol_kind kind, uint64_t ticket,
	size_t count, size_t body_bytes);

void question_append(struct question_list *l, struct question *q);
void question_put_back(struct question_list *l, struct question *q); /* before all others */
struct question *question_take(struct question_list *l);             /* NULL: none */
void question_free_all(struct question_list *l);
