/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_private.h - a question on its way, node by node; private to fanout/. */
#pragma once

#include "fanout/fanout.h"
#include "fanout/fanout_table.h"

struct fanout {
	struct loop *loop;
	struct tls *tls;
	struct http_client *client;
	struct fanout_nodes nodes;
	uint64_t timeout_ns, skew_ns;
	bool with_token;
	struct fanout_run *runs; /* under way */
};

struct fanout_leg { /* of a question: one node's */
	struct fanout_run *run;
	size_t index;
	struct http_call *call, *clock_call; /* under way; NULL: not */
	mono_time deadline;
	struct fanout_clock_sample samples[FANOUT_CLOCK_SAMPLES];
	size_t sample_count;
	bool chains;    /* it does not know incidents */
	char told[256]; /* how the node calls itself; "" */
	char clock_why[200];
	struct fanout_rows rows;
};

struct fanout_run {
	struct fanout *f;
	struct fanout_run *next;
	enum fanout_kind kind;
	size_t limit;
	bool apart, clocks, clocks_after;
	char *path, *body; /* of the request */
	char *query;       /* parameters, for a second path */
	fanout_done *done;
	void *arg;
	struct fanout_leg *legs;
	size_t under_way;       /* calls */
	bool posted, cancelled; /* its end waits on the loop */
	struct fanout_result result;
};

/* fanout_result_finish - from what the legs brought to names, table, order and warnings. */
void fanout_result_finish(struct fanout_run *run);
