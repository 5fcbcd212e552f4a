/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - the inside of the symbol service: questions that wait and that were sent, answers.
 *
 * symbol.c puts files and questions in; exchange_poll() does the rest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "record/symbol/protocol.h"
#include "record/symbol/symbol.h"

/* The symbol process as the agent holds it: begun, spoken to, ended, begun again.
 *
 * Nothing here blocks but reader_done(), which waits a moment. Times are CLOCK_MONOTONIC. */

#define READER_LONGEST_NS  NS_PER_S
#define READER_UNASKED_MAX 8 /* 4 s of trying; then it is said that there is no such process */

struct reader {
	const char *name;    /* argv[0] */
	uint64_t longest_ns; /* between an end and the next start */
	pid_t pid;           /* 0: none, or not reaped yet */
	int fd;              /* -1: none */
	int status;          /* of waitpid(2) */
	bool reaped;         /* it has ended, and reader_bury() is due */
	bool ready;          /* it has said so */
	bool condemned;      /* it was killed; last_end says why */
	unsigned births, deaths;
	unsigned failures; /* ends in a row without an answer */
	unsigned unasked;  /* ends since the last answer that no question can be blamed for */
	uint64_t started_ns, start_due_ns;
	char last_end[128], note[128];
};

struct reader_message {
	struct protocol_header header;
	uint8_t body[PROTOCOL_MESSAGE_MAX];
	size_t body_bytes;
	int fd; /* the receiver's; -1: none */
};

void reader_init(struct reader *r, const char *name, uint64_t longest_ns);
void reader_done(struct reader *r);

/* reader_start_when_due - if there is none. */
void reader_start_when_due(struct reader *r, uint64_t now_ns);

/* reader_has_ended - whether the process is over; what it said before can still be received. */
bool reader_has_ended(struct reader *r);

/* reader_bury - after its end. @asked: a question was on its way. */
void reader_bury(struct reader *r, bool asked, uint64_t now_ns);

/* reader_has_answered - what it should: the count of failures begins anew. */
void reader_has_answered(struct reader *r);

/* reader_is_hopeless - whether children end again and again before they are asked anything. */
bool reader_is_hopeless(const struct reader *r);

/* reader_condemn - end it; @why is kept for people. Nothing is received from it any more. */
void reader_condemn(struct reader *r, const char *why);

/* reader_send - a whole message, @fds going along. -EAGAIN: not now; else of sendmsg(2), and this
 * message will never go. */
int reader_send(struct reader *r, const struct protocol_header *h, const void *body,
	size_t body_bytes, const int *fds, size_t fd_count);

/* reader_receive - the next message with whole header, whatever it says; false if there is none.
 * One that is no message condemns. */
bool reader_receive(struct reader *r, struct reader_message *ret);

/* reader_take_first - what a child says before it is ready. */
void reader_take_first(struct reader *r, const struct reader_message *m);

/* reader_backoff_ns - how long to wait after the @failures-th failure in a row (from 1), at most
 * @longest_ns. */
uint64_t reader_backoff_ns(unsigned failures, uint64_t longest_ns);

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

/* The symbol process's answers, checked. The agent's side; pure but for mapping a file.
 *
 * The process may have been taken over by a file it read, so every number is looked at before it is
 * used. -EBADMSG, with the sentence in @reterr, means that it did not keep to the protocol. Texts
 * and arrays in what is returned lie in @data or in the table's mapping. */

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
