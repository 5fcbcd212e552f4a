/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_chain.c - incidents that the recording explains, each told once, as it was found. What was not
 * delivered is read and sent again. */
#include "node/push/pusher_private.h"

#define CHAINS_MAX 16                       /* of a request */
#define BACK_NS    (60 * (int64_t)NS_PER_S) /* before our start */

struct chains {
	const struct pusher_recording *recording;
	struct sql_table rows;
};

static int visit_chains(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct chains *x = arg;
	const struct pusher_recording *r = x->recording;

	return nodedb_recent_chains(
		l, r->chain_row, r->started.ns - BACK_NS, CHAINS_MAX, &x->rows, reterr);
}

static int64_t int_at(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	return c->type == SQL_INT ? c->i : 0;
}

/* Of the columns after row and detected_at, each under its name. */
static void put_attribute(
	struct push_chain *chain, const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);
	struct push_attribute a = {.key = sql_table_name(t, column)};

	if (c->type == SQL_TEXT) {
		a.kind = PUSH_TEXT;
		a.text = sql_table_bytes(t, c);
	} else if (c->type == SQL_INT) {
		a.kind = PUSH_INT;
		a.i = c->i;
	} else if (c->type == SQL_REAL) {
		a.kind = PUSH_REAL;
		a.d = c->d;
	}
	if (c->type == SQL_NULL || chain->attribute_count == PUSH_ATTRIBUTES_MAX)
		return;
	if (!strcmp(a.key, "id") && a.kind == PUSH_TEXT)
		chain->id = a.text;
	if (!strcmp(a.key, "summary") && a.kind == PUSH_TEXT)
		chain->summary = a.text;
	chain->attributes[chain->attribute_count++] = a;
}

/* false: it has no id, so that nobody could refer to it. */
static bool chain_of(const struct sql_table *t, size_t row, struct push_chain *ret)
{
	*ret = (struct push_chain){.detected_ns = int_at(t, row, 1), .id = "", .summary = ""};
	for (int i = 2; i < t->column_count; i++)
		put_attribute(ret, t, row, i);
	return ret->id[0] != 0;
}

void pusher_chain_step(struct pusher *p)
{
	struct chains x = {.recording = &p->recording};
	struct push_chain *chains;
	size_t count = 0;

	if (p->chains_under_way)
		return;
	chains = calloc(CHAINS_MAX, sizeof(*chains));
	/* A failure is told by the reading of the interval. */
	if (chains && nodedb_snapshot_read(p->recording.path, visit_chains, &x, NULL) == 0) {
		for (size_t i = 0; i < x.rows.row_count; i++)
			count += chain_of(&x.rows, i, &chains[count]);
		if (count)
			pusher_send_chains(
				p, chains, count, int_at(&x.rows, x.rows.row_count - 1, 0));
	}
	free(chains);
	sql_table_done(&x.rows);
}
