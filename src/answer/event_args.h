/* SPDX-License-Identifier: Apache-2.0 */
/* event_args.h - what is said beside a call that is drawn: its arguments by name. */
#pragma once

#include "model/collective.h"
#include "model/event.h"

struct event_arg {
	const char *name;
	int64_t number;
	char text[48];         /* instead of the number, unless it is "" */
	const char *name_text; /* instead of both, unless it is NULL: a text of any length */
};

#define EVENT_ARGS_MAX 20 /* the lines of a step are 17 */

struct event_args {
	struct event_arg list[EVENT_ARGS_MAX];
	size_t count;
};

void event_arg_number(struct event_args *a, const char *name, int64_t number);

/* event_arg_text - @text has to outlive what is drawn. */
void event_arg_text(struct event_args *a, const char *name, const char *text);

/* event_args_call - what is known of @e; @is_published: only what the published agent says. */
void event_args_call(const struct event *e, bool is_published, struct event_args *ret);
void event_args_collective(const struct collective_row *row, struct event_args *ret);
