/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - the inside of the symbol service: questions that wait and that were sent, answers.
 *
 * symbol.c puts files and questions in; exchange_poll() does the rest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "record/symbol/protocol.h"
#include "record/symbol/reader.h"
#include "record/symbol/symbol.h"

/* A question to the symbol process, and lists of them. Pure memory. */

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

#define EXCHANGE_SENT_MAX 16 /* enough to keep the child busy between two polls */
#define EXCHANGE_ANSWER_MAX                                                                        \
	(sizeof(struct protocol_status) + SYMBOL_OFFSETS_MAX * PROTOCOL_FRAMES_MAX)

struct symbol_settings {        /* tests have others */
	const char *child_name; /* what the child's main() sees as argv[0] */
	uint64_t patience_ns;   /* with one question */
	uint64_t longest_ns;    /* from a child's end to the next start */
	size_t files_max, questions_max;
};

struct symbol_service {
	struct symbol_settings settings;
	struct symbol_sink sink;
	struct reader reader;
	struct idmap files;           /* number -> struct question_file, of open ones */
	struct question_file *closed; /* not forgotten yet */
	size_t file_count;            /* of both */
	size_t given_up;
	uint32_t last_file;
	uint64_t last_number;
	struct question_list quick, unwind;
	struct question *sent[EXCHANGE_SENT_MAX];
	size_t sent_count;
	uint64_t head_since_ns; /* since when the child is at sent[0] */
	uint64_t polled_ns;
	bool polling;
	struct buf answer; /* to sent[0], as far as it has come */
	struct reader_message message;
	struct symbol_frames frames[SYMBOL_OFFSETS_MAX];
};

/* symbol_start_with - symbol_start() under @settings, whose text must stay. */
int symbol_start_with(const struct symbol_settings *settings, const struct symbol_sink *sink,
	struct symbol_service **ret);

size_t exchange_waiting(const struct symbol_service *s);
struct question_list *exchange_queue(struct symbol_service *s, const struct question *q);
void exchange_file_free(struct symbol_service *s, struct question_file *f);

/* exchange_poll - take what came, look after the child, send what waits. Calls the sink. */
void exchange_poll(struct symbol_service *s);
