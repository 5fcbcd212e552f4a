/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_take.c - what comes in: whether it is new and may be taken, and the rows of it. Of a large request they are
 * made by a thread, so that others are answered meanwhile.
 *
 * Invariant: whether a request or a part of it has come before is decided on the loop's thread, in the turn in
 * which it is appended: of two at once one is the duplicate. */

#include "cluster/keep/keeper_private.h"
#include "cluster/keep/rows.h"

/* ---- requests ---- */

/* not_now - why nothing is taken; NULL: nothing is in the way. */
static const char *not_now(struct keeper *k)
{
	uint64_t durable;

	if (k->finishing)
		return "shutting down";
	durable = journal_stats(k->journal).durable;
	if (durable > k->fill.visible && durable - k->fill.visible > k->backlog_max)
		return "the store lags behind: retry later";
	return NULL;
}

/* judge_rows - 0, or why the request as a whole is refused. */
static int judge_rows(const struct rows *r, struct keeper_result *ret)
{
	*ret = (struct keeper_result){.taken = r->taken, .rejected = r->rejected};
	snprintf(ret->why, sizeof(ret->why), "%s", r->why);
	if (r->waits) {
		snprintf(ret->why, sizeof(ret->why), "part of it is being written: retry later");
		return -EAGAIN;
	}
	if (r->taken || !r->rejected)
		return 0;
	return r->refused ? -EACCES : -EBADMSG;
}

static int add_key(struct rows *rows, struct pending *p, const struct seen_key *key)
{
	struct seen_key *keys;

	p->keys = rows->keys;
	p->key_count = rows->key_count;
	rows->keys = NULL;
	if (rows->untimed)
		return 0;
	keys = reallocarray(p->keys, p->key_count + 1, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	p->keys = keys;
	keys[p->key_count++] = *key;
	return 0;
}

static void take_rows(struct keeper *k, struct rows *rows, const struct seen_key *key,
	const struct keeper_result *result, keeper_done *done, void *arg)
{
	_cleanup_(pending_freep) struct pending *p = pending_new(k, done, arg);
	int r = -ENOMEM;

	if (p) {
		p->result = *result;
		r = add_key(rows, p, key);
	}
	r = r ?: keeper_append(k, p, &rows->batch);
	if (r < 0)
		keeper_refuse(k, done, arg, r, keeper_reason(r));
	else
		TAKE(p);
}

struct request_keys {
	struct seen_key whole;
	/* Of a request some of which its sender may not write, another one may write the rest: it is told by
	 * its sender, too. */
	struct seen_key part;
};

static int find_keys(const struct keeper_request *q, struct request_keys *ret)
{
	char text[SEEN_KEY + sizeof(q->sender)];
	int r = seen_key_of(otlp_signal_id(q->signal), q->data, q->len, &ret->whole);

	if (r < 0)
		return r;
	memcpy(text, ret->whole.bytes, SEEN_KEY);
	memcpy(text + SEEN_KEY, &q->sender, sizeof(q->sender));
	return seen_key_of("part", text, sizeof(text), &ret->part);
}

static bool may_write(struct keeper *k, const struct keeper_request *q, const char *cluster,
	size_t len, bool *ret_full)
{
	bool has_room;

	if (q->may_write && !q->may_write(q->may_write_arg, q->sender, cluster, len))
		return false;
	has_room =
		cluster_limit_take(&k->clusters, k->store, q->sender, cluster, len, mono_now().ns);
	*ret_full |= !has_room;
	return has_room;
}

struct asked { /* who may write, and whether there is room for one more cluster */
	struct keeper *keeper;
	const struct keeper_request *request;
	bool is_full; /* there was none */
};

static bool may_write_now(void *arg, uint64_t sender _unused_, const char *cluster, size_t len)
{
	struct asked *a = arg;

	return may_write(a->keeper, a->request, cluster, len, &a->is_full);
}

/* judge - what was read: 0, or why the request as a whole is refused, in @ret. */
static int judge(int r, const struct rows *rows, const struct errinfo *e, bool is_full,
	struct keeper_result *ret)
{
	if (r < 0) {
		snprintf(ret->why, sizeof(ret->why), "%s", *e->text ? e->text : keeper_reason(r));
		return r;
	}
	r = judge_rows(rows, ret);
	if (is_full && r != -EAGAIN)
		snprintf(ret->why, sizeof(ret->why),
			"too many new names of clusters came within an hour: give clusters fewer names");
	return is_full && r == -EACCES ? -EBADMSG : r;
}

/* take_read - a request that was not known, with what was read of it. */
static void take_read(struct keeper *k, const struct request_keys *keys, struct rows *rows, int r,
	const struct keeper_result *result, keeper_done *done, void *arg)
{
	if (r < 0)
		keeper_refuse(k, done, arg, r, result->why);
	else if (!rows->batch.row_count)
		done(arg, result);
	else
		take_rows(k, rows, rows->refused ? &keys->part : &keys->whole, result, done, arg);
}

/* is_answered - it is known already, or cannot be taken now. */
static bool is_answered(
	struct keeper *k, const struct request_keys *keys, keeper_done *done, void *arg)
{
	enum seen_state state =
		MAX(seen_find(k->seen, &keys->whole), seen_find(k->seen, &keys->part));
	const char *why = not_now(k);

	if (!why && state == SEEN_PENDING)
		why = "the same request is being written: retry later";
	if (why) {
		keeper_refuse(k, done, arg, -EAGAIN, why);
		return true;
	}
	if (state != SEEN_KEPT)
		return false;
	k->stats.duplicates++;
	done(arg, &(struct keeper_result){.duplicate = true});
	return true;
}

/* take_now - on the loop's thread from its beginning to its end. */
static void take_now(struct keeper *k, const struct keeper_request *q,
	const struct request_keys *keys, keeper_done *done, void *arg)
{
	_cleanup_(rows_done) struct rows rows = {.batch.bytes = BUF_INIT(ROWS_BYTES_MAX)};
	struct asked asked = {.keeper = k, .request = q};
	struct keeper_request guarded = *q;
	struct keeper_result result = {0};
	struct errinfo e = {0};
	int r;

	if (is_answered(k, keys, done, arg))
		return;
	guarded.may_write = may_write_now;
	guarded.may_write_arg = &asked;
	r = rows_read(&guarded, wall_now().ns, k->seen, &rows, &e);
	r = judge(r, &rows, &e, asked.is_full, &result);
	take_read(k, keys, &rows, r, &result, done, arg);
}

/* ---- large ones ---- */

struct taking { /* rows are made by the thread; what is the loop's it asks for */
	TAILQ_ENTRY(taking) link;
	struct keeper *keeper; /* NULL: it is gone */
	struct aside_work *work;
	struct keeper_request q;
	keeper_done *done;
	void *arg;
	struct rows rows;
	struct seen *known; /* the parts that had come before when rows were made; NULL: none */
	struct request_keys keys;
	bool has_keys, is_full;
	int result;
	struct errinfo err;
	/* the last question, which the next points ask again */
	const char *cluster;
	size_t cluster_len;
	char asked[ROWS_NODE_MAX];
	size_t asked_len;
	bool has_answer, may;
};

static void taking_free(struct taking *g)
{
	rows_done(&g->rows);
	seen_freep(&g->known);
	free(g);
}
DEFINE_CLEANUP(struct taking *, taking_free)

static int ask_right(void *arg)
{
	struct taking *g = arg;

	return may_write(g->keeper, &g->q, g->cluster, g->cluster_len, &g->is_full);
}

static bool may_write_aside(void *arg, uint64_t sender _unused_, const char *cluster, size_t len)
{
	struct taking *g = arg;

	if (g->has_answer && g->asked_len == len && memcmp(g->asked, cluster, len) == 0)
		return g->may;
	g->cluster = cluster;
	g->cluster_len = len;
	g->may = aside_ask(g->work, ask_right, g) > 0;
	g->has_answer = len <= sizeof(g->asked);
	if (g->has_answer)
		memcpy(g->asked, cluster, len);
	g->asked_len = len;
	return g->may;
}

static void make_rows(struct aside_work *w, void *arg)
{
	struct taking *g = arg;
	struct keeper_request guarded = g->q;

	g->work = w;
	g->result = find_keys(&g->q, &g->keys);
	g->has_keys = g->result == 0;
	if (!g->has_keys)
		return;
	guarded.may_write = may_write_aside;
	guarded.may_write_arg = g;
	g->result = rows_read(&guarded, wall_now().ns, g->known, &g->rows, &g->err);
}

/* find_known - what of it has come before, which its rows leave out; NULL: nothing. */
static int find_known(const struct keeper *k, const struct rows *rows, struct seen **ret)
{
	_cleanup_(seen_freep) struct seen *known = NULL;
	int r = 0;

	for (size_t i = 0; i < rows->key_count && r == 0; i++) {
		enum seen_state state = seen_find(k->seen, &rows->keys[i]);

		if (state != SEEN_NOT)
			r = known ? 0 : seen_new(KEEPER_SEEN_NS, &known);
		if (r == 0 && state != SEEN_NOT)
			r = seen_set(known, &rows->keys[i], state);
	}
	if (r == 0)
		*ret = TAKE(known);
	return r;
}

static aside_end on_made;

/* push - @g is the thread's, or refused. */
static void push(struct keeper *k, struct taking *g)
{
	int r;

	rows_done(&g->rows);
	g->rows = (struct rows){.batch.bytes = BUF_INIT(ROWS_BYTES_MAX)};
	g->result = -ECANCELED;
	g->has_keys = g->is_full = g->has_answer = false;
	r = aside_push(k->aside, g->q.sender, make_rows, on_made, g);
	if (r == 0) {
		TAILQ_INSERT_TAIL(&k->takings, g, link);
		return;
	}
	keeper_refuse(k, g->done, g->arg, r == -EBUSY ? -EAGAIN : r,
		r == -EBUSY ? "too many large requests at once: retry later" : keeper_reason(r));
	taking_free(g);
}

static void on_made(void *arg, bool canceled _unused_)
{
	_cleanup_(taking_freep) struct taking *g = arg;
	_cleanup_(seen_freep) struct seen *known = NULL;
	struct keeper *k = g->keeper;
	struct keeper_result result = {0};
	int r;

	if (!k)
		return;
	TAILQ_REMOVE(&k->takings, g, link);
	if (!g->has_keys) {
		keeper_refuse(k, g->done, g->arg, g->result, keeper_reason(g->result));
		return;
	}
	if (is_answered(k, &g->keys, g->done, g->arg))
		return;
	r = g->result ?: find_known(k, &g->rows, &known);
	if (known && g->known) {
		keeper_refuse(k, g->done, g->arg, -EAGAIN,
			"part of it came in another request meanwhile: retry later");
		return;
	}
	if (known) { /* its rows are other ones */
		g->known = TAKE(known);
		push(k, TAKE(g));
		return;
	}
	r = judge(r, &g->rows, &g->err, g->is_full, &result);
	take_read(k, &g->keys, &g->rows, r, &result, g->done, g->arg);
}

static void take_aside(
	struct keeper *k, const struct keeper_request *q, keeper_done *done, void *arg)
{
	const char *why = not_now(k);
	struct taking *g = why ? NULL : calloc(1, sizeof(*g));

	if (!g) {
		keeper_refuse(k, done, arg, why ? -EAGAIN : -ENOMEM, why ?: keeper_reason(-ENOMEM));
		return;
	}
	*g = (struct taking){.keeper = k, .q = *q, .done = done, .arg = arg};
	push(k, g);
}

void keeper_give_up(struct keeper *k)
{
	struct taking *g;

	while ((g = TAILQ_FIRST(&k->takings))) {
		struct keeper_result r = {0};

		TAILQ_REMOVE(&k->takings, g, link);
		g->keeper = NULL; /* the loop frees it */
		keeper_tell(g->done, g->arg, &r, -ECANCELED);
	}
}

void keeper_take(struct keeper *k, const struct keeper_request *q, keeper_done *done, void *arg)
{
	struct request_keys keys;
	int r;

	if (q->len >= KEEPER_LARGE) {
		take_aside(k, q, done, arg);
		return;
	}
	r = find_keys(q, &keys);
	if (r < 0)
		keeper_refuse(k, done, arg, r, keeper_reason(r));
	else
		take_now(k, q, &keys, done, arg);
}
