/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - where the time of steps went in a part of a recording, for whoever shows it
 * (model/step_account.h is the account itself). */
#pragma once

#include "answer/answer.h"
#include "model/stack.h"
#include "model/step_account.h"
#include "store/nodedb.h"

/* What a file holds, node by node: process ids of different nodes have nothing in
 * common, so that each is looked at by itself. */

struct contents {
	struct nodedb_content *items; /* one, or one for each node of a merged recording */
	size_t count;
};

/* contents_load - reads what @f selects; of all nodes if its scope names none. */
int contents_load(const char *path, const struct nodedb_filter *f, struct contents *ret,
	struct errinfo *reterr);
void contents_done(struct contents *c);

struct steps_row {
	const struct step_account *account;
	char node[256];
	const struct stack_list *stacks; /* that its entries name; NULL: not at hand */
	bool is_complete; /* it rests on all calls, not on the rows that were stored of some */
};

struct steps_answer {
	struct contents contents;
	struct step_report *reports; /* of each of them */
	size_t report_count;
	struct steps_row *rows; /* node by node, of each the longest time in steps first */
	size_t count;
	const char *reason; /* why there is no row; "" if there is one */
};

/* answer_steps - the account of each process that @q asks for. Others are looked at too: a process
 * waits for its loader's workers and for its neighbours. */
int answer_steps(const struct question *q, struct steps_answer *ret, struct errinfo *reterr);
void steps_answer_done(struct steps_answer *a);

/* steps_release_contents - frees what was loaded, with the stacks; the accounts stay. */
void steps_release_contents(struct steps_answer *a);

/* steps_load - the same of a file and the scope that a command was given. */
int steps_load(
	const char *path, const struct scope *s, struct steps_answer *ret, struct errinfo *reterr);

/* steps_from - the same of @c, which is loaded already and outlives the answer. */
int steps_from(const struct nodedb_content *c, const struct scope *s, struct steps_answer *ret,
	struct errinfo *reterr);

/* ---- one account, as it is shown ---- */

struct steps_line {
	enum account_line line;
	uint64_t mean_ns;              /* of all steps */
	uint64_t ordinary_ns, slow_ns; /* 0 where there are none */
	int64_t difference_ns;         /* slow - ordinary; 0 where one of them is missing */
	double share; /* of the difference; of a step where steps cannot be compared */
};

uint64_t steps_mean_ns(const struct step_account *a); /* length of a step, whatever it is */

/* steps_comparable - whether there are slow steps and ordinary ones beside them. */
bool steps_comparable(const struct step_account *a);

/* steps_lines - the lines that have time, what grew most first, else the longest first. Returns how
 * many. */
int steps_lines(const struct step_account *a, struct steps_line ret[ACCOUNT_LINES]);

/* steps_whole - all lines together: of a step. */
struct steps_line steps_whole(const struct step_account *a);

/* steps_owner - all lines together, as far as the time is @o's. */
struct steps_line steps_owner(const struct step_account *a, enum account_owner o);
const char *steps_owner_title(enum account_owner o); /* "data loader workers" */

/* steps_entry - @e as a line. */
struct steps_line steps_entry(const struct step_account *a, const struct account_entry *e);

struct steps_place {                      /* where in the program; NULL: not known */
	const struct stack_frame *user;   /* the program's own line; without one the library's */
	const struct stack_frame *within; /* the library's line that it led to; NULL: none */
};
struct steps_place steps_place(const struct stack_list *stacks, const struct account_entry *e);
