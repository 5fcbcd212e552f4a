/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - the inside of the symbol service: questions that wait and that were sent, answers.
 *
 * symbol.c puts files and questions in; exchange_poll() does the rest. */
#pragma once

#include "record/symbol/question.h"
#include "record/symbol/reader.h"
#include "record/symbol/symbol.h"
#include "base/buf.h"
#include "base/idmap.h"

#define EXCHANGE_SENT_MAX    16 /* enough to keep the child busy between two polls */
#define EXCHANGE_UNWINDS_MAX 8  /* of these */
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
