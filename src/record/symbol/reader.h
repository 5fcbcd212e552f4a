/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - the symbol process as the agent holds it: begun, spoken to, ended, begun again.
 *
 * Nothing here blocks but reader_done(), which waits a moment. Times are CLOCK_MONOTONIC. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/symbol/protocol.h"
#include "base/clock.h"

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
