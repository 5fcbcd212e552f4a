/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_chain.c - incidents that the recording explains, told as they are found and as they change. What was
 * not delivered is read and sent again. After a restart the last two minutes are told again in the same words,
 * by which a receiver that keeps them knows them. */
#include "node/push/pusher_private.h"

#include "base/hash.h"

#define ROWS_MAX 256                      /* that are looked at */
#define BACK_NS  (60 * (int64_t)NS_PER_S) /* before our start */

enum { COLUMN_DETECTED, COLUMN_RESOLVED, COLUMN_FIRST };

static const struct pusher_chain *find(const struct pusher_chains *c, uint64_t id)
{
	return FIND(x, c->known, c->count, x->id == id);
}

bool pusher_chains_want(const struct pusher_chains *c, const struct pusher_chain *x)
{
	const struct pusher_chain *told = find(c, x->id);

	return !told || told->words != x->words ||
	       (told->extent != x->extent && x->told_ns - told->told_ns >= PUSHER_CHAIN_AGAIN_NS);
}

void pusher_chains_note(struct pusher_chains *c, const struct pusher_chain *x)
{
	struct pusher_chain *oldest = &c->known[0];

	for (size_t i = 0; i < c->count; i++) {
		struct pusher_chain *k = &c->known[i];

		if (k->id == x->id) {
			*k = *x;
			return;
		}
		oldest = k->told_ns < oldest->told_ns ? k : oldest;
	}
	*(c->count < PUSHER_CHAINS_KNOWN ? &c->known[c->count++] : oldest) = *x;
}

/* ---- from the recording ---- */

struct chains {
	int64_t from_ns;
	struct sql_table rows;
};

static int visit_chains(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct chains *x = arg;

	return nodedb_recent_chains(l, x->from_ns, ROWS_MAX, &x->rows, reterr);
}

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

static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	return hash_number(hash ^ hash_bytes(data, len));
}

/* What is told at once when it changes: what it is, not how much of it there was. */
static bool is_word(const char *key)
{
	static const char *const words[] = {"severity", "root_cause", "resolved_at"};

	return EXISTS(i, ARRAY_SIZE(words), !strcmp(key, words[i]));
}

static struct pusher_chain known_as(const struct push_chain *c)
{
	struct pusher_chain x = {.id = hash_bytes(c->id, strlen(c->id)), .told_ns = mono_now().ns};

	for (size_t i = 0; i < c->attribute_count; i++) {
		const struct push_attribute *a = &c->attributes[i];
		uint64_t *hash = is_word(a->key) ? &x.words : &x.extent;

		*hash = a->kind == PUSH_TEXT ? mix(*hash, a->text, strlen(a->text))
					     : mix(*hash, &a->i, sizeof(a->i));
	}
	return x;
}

/* false: it has no id, so that nobody could refer to it. */
static bool chain_of(const struct sql_table *t, size_t row, struct push_chain *ret)
{
	*ret = (struct push_chain){
		.detected_ns = sql_table_int(t, row, COLUMN_DETECTED), .id = "", .summary = ""};
	for (int i = COLUMN_RESOLVED; i < t->column_count; i++)
		put_attribute(ret, t, row, i);
	return ret->id[0] != 0;
}

void pusher_chain_sent(struct pusher *p, bool is_over)
{
	struct pusher_chains *c = &p->chains;

	for (size_t i = 0; is_over && i < c->sent_count; i++)
		pusher_chains_note(c, &c->sent[i]);
	c->sent_count = 0;
}

void pusher_chain_step(struct pusher *p)
{
	struct chains x = {.from_ns = p->chains.from_ns};
	struct pusher_chains *c = &p->chains;
	struct push_chain *chains;
	wall_time now = wall_now();

	if (c->sent_count)
		return;
	x.from_ns = x.from_ns ?: p->recording.started.ns - BACK_NS;
	chains = calloc(PUSHER_CHAINS_MAX, sizeof(*chains));
	/* A failure is told by the reading of the interval. */
	if (chains && nodedb_snapshot_read(p->recording.path, visit_chains, &x, NULL) == 0) {
		for (size_t i = 0; i < x.rows.row_count && c->sent_count < PUSHER_CHAINS_MAX; i++) {
			struct push_chain *chain = &chains[c->sent_count];
			struct pusher_chain known;

			if (!chain_of(&x.rows, i, chain))
				continue;
			known = known_as(chain);
			if (pusher_chains_want(c, &known))
				c->sent[c->sent_count++] = known;
		}
		if (c->sent_count)
			pusher_send_chains(p, chains, c->sent_count);
		else
			c->from_ns = MAX(x.from_ns, now.ns - PUSHER_CHAIN_OVERLAP_NS);
	}
	free(chains);
	sql_table_done(&x.rows);
}
