/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - one request under way: what it brings besides its arguments, and what a tool says. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "base/macros.h"
#include "mcp/revision.h"

/* A notification of this request, one line of JSON without its end; before the reply. */
typedef void call_notify(void *arg, const char *text, size_t len);

struct registry_tool;

struct call {
	void *arg;                        /* the request's; without one the registry's */
	const struct registry_tool *tool; /* that runs; NULL: none does */
	const struct revision *revision;  /* that the client speaks */
	const json_t *capabilities;       /* of the client; NULL: not told */
	const json_t *progress_token;     /* NULL: it wants no word of progress */
	call_notify *notify;              /* NULL: there is no way */
	void *notify_arg;
};

/* call_progress - tells how far it is, if the client wants to know. */
void call_progress(const struct call *c, double done, double total, const char *message);

struct answer {             /* of a tool */
	json_t *content;    /* array of blocks */
	json_t *structured; /* NULL: none */
	bool failed;        /* the text says why */
};

int answer_init(struct answer *a); /* -ENOMEM */
void answer_done(struct answer *a);

/* answer_text - adds a block; @text is UTF-8 or becomes so. */
void answer_text(struct answer *a, const char *text);

/* answer_structured_as_text - what a client of a revision without structured content gets instead; between
 * [@mark] and [/@mark], unless it is NULL. */
void answer_structured_as_text(struct answer *a, const char *mark);

/* answer_fail - what is there is dropped for one sentence about what went wrong and what to do. */
void answer_fail(struct answer *a, const char *fmt, ...) _printf_(2, 3);
