/* SPDX-License-Identifier: Apache-2.0 */
/* rows_push.c - what our agents push besides events: batches of calls, reports, causal chains. A batch
 * counts once by (cluster, node, boot, number), an incident that is told again in the same words once. */

#include "base/array.h"
#include "base/text.h"
#include "cluster/keep/rows_private.h"
#include "push/push_wire.h"
#include "wire/names.h"

#define KEYS_MAX 100000 /* of a request */

/* is_new - whether the key is not known yet; it is from here on. */
static bool is_new(struct rows_walk *x, const struct seen_key *k)
{
	struct rows *r = x->rows;
	enum seen_state state = x->seen ? seen_find(x->seen, k) : SEEN_NOT;
	uint64_t id;
	int err;

	r->waits |= state == SEEN_PENDING;
	memcpy(&id, k->bytes, sizeof(id));
	if (state != SEEN_NOT || idmap_get(&r->known, id))
		return false;
	r->known.max = KEYS_MAX;
	err = ARRAY_RESERVE(r->keys, r->key_room, r->key_count + 1, KEYS_MAX);
	err = err ?: idmap_put(&r->known, id, r);
	if (err < 0) {
		x->err = -ENOMEM;
		return false;
	}
	r->keys[r->key_count++] = *k;
	return true;
}

static bool may_write(const struct rows_walk *x, const struct push_who *w)
{
	const struct keeper_request *q = x->q;

	return !q->may_write ||
	       q->may_write(q->may_write_arg, q->sender, w->cluster, strlen(w->cluster));
}

static void begin_row(
	struct rows_walk *x, enum store_table t, int64_t ts_ns, const struct push_who *w)
{
	rows_begin(x, t, ts_ns,
		&(struct who){.cluster = w->cluster,
			.node = w->node,
			.cluster_len = strlen(w->cluster),
			.node_len = strlen(w->node)});
}

/* ---- collectives ---- */

static void put_call(struct rows_walk *x, const struct push_who *who, const struct push_call *c)
{
	struct batch *b = &x->rows->batch;

	begin_row(x, TABLE_COLLECTIVES, c->enter_ns, who);
	if (c->leave_ns)
		batch_int(b, COLLECTIVES_LEAVE, c->leave_ns);
	if (c->wait_ns <= INT64_MAX)
		batch_int(b, COLLECTIVES_WAIT, (int64_t)c->wait_ns);
	batch_text_of(b, COLLECTIVES_COMM, TEXT_HEX(c->comm));
	batch_int(b, COLLECTIVES_SEQ, push_time(c->seq));
	batch_text_of(b, COLLECTIVES_OP, WIRE_NCCL_NAME(c->op));
	if (c->rank >= 0)
		batch_int(b, COLLECTIVES_RANK, c->rank);
	if (c->nranks > 0)
		batch_int(b, COLLECTIVES_NRANKS, c->nranks);
	if (c->world_rank >= 0)
		batch_int(b, COLLECTIVES_WORLD, c->world_rank);
	if (c->peer >= 0)
		batch_int(b, COLLECTIVES_PEER, c->peer);
	batch_int(b, COLLECTIVES_BYTES, push_time(c->bytes));
	if (c->pid)
		batch_int(b, COLLECTIVES_PID, c->pid);
}

static int take_calls(void *arg, const struct push_calls *c)
{
	struct rows_walk *x = arg;
	char text[2 * PUSH_ID_MAX + 64];
	struct seen_key k;
	int r;

	if (!may_write(x, &c->who))
		return 0; /* its record was refused as an event already */
	if (c->who.boot && c->batch) {
		snprintf(text, sizeof(text), "%s\n%s\n%" PRIu64 "\n%" PRIu64, c->who.cluster,
			c->who.node, c->who.boot, c->batch);
		r = seen_key_of("calls", text, strlen(text), &k);
		if (r < 0 || !is_new(x, &k))
			return r;
	}
	for (size_t i = 0; i < c->count; i++)
		put_call(x, &c->who, &c->items[i]);
	return 0;
}

/* ---- reports ---- */

static void put_step(struct rows_walk *x, const struct push_report *r)
{
	struct batch *b = &x->rows->batch;

	begin_row(x, TABLE_STEPS, r->sent_ns ? r->sent_ns : x->now_ns, &r->who);
	if (r->world_rank >= 0)
		batch_int(b, STEPS_RANK, r->world_rank);
	if (r->pid)
		batch_int(b, STEPS_PID, r->pid);
	if (r->step_ns)
		batch_int(b, STEPS_STEP, push_time(r->step_ns));
	if (r->ordinary_ns)
		batch_int(b, STEPS_ORDINARY, push_time(r->ordinary_ns));
	batch_text_of(b, STEPS_LINE, r->line);
	if (r->line[0])
		batch_int(b, STEPS_GREW, push_time(r->line_ns));
	batch_text_of(b, STEPS_DOING, push_doing_id(r->doing));
	batch_text_of(b, STEPS_WHERE, r->doing_where);
}

static void put_incident(struct rows_walk *x, const struct push_report *r)
{
	struct batch *b = &x->rows->batch;
	bool grew = r->step_ns > r->ordinary_ns && r->ordinary_ns;

	begin_row(x, TABLE_INCIDENTS, r->sent_ns ? r->sent_ns : x->now_ns, &r->who);
	batch_text_of(b, INCIDENTS_ID, r->incident);
	batch_text_of(b, INCIDENTS_SOURCE, "node");
	batch_text_of(b, INCIDENTS_KIND, "slow");
	if (r->world_rank >= 0)
		batch_int(b, INCIDENTS_RANK, r->world_rank);
	batch_text_of(b, INCIDENTS_SUMMARY, r->cause);
	batch_text_of(b, INCIDENTS_CAUSE, r->cause);
	batch_text_of(b, INCIDENTS_FIX, r->fix);
	batch_real(b, INCIDENTS_CONFIDENCE, r->confidence);
	if (grew)
		batch_int(b, INCIDENTS_LOST, push_time(r->step_ns - r->ordinary_ns));
	batch_int(b, INCIDENTS_RESOLVED, 0);
}

static int take_report(void *arg, const struct push_report *r)
{
	struct rows_walk *x = arg;
	char text[2 * PUSH_ID_MAX + PUSH_ID_MAX + PUSH_TEXT_MAX];
	struct seen_key k;
	int e;

	if (!may_write(x, &r->who))
		return 0;
	snprintf(text, sizeof(text), "%s\n%s\n%" PRIu32 "\n%" PRId64, r->who.cluster, r->who.node,
		r->pid, r->sent_ns);
	e = r->sent_ns ? seen_key_of("report", text, strlen(text), &k) : 0;
	if (e < 0 || (r->sent_ns && !is_new(x, &k)))
		return e;
	put_step(x, r);
	if (!r->incident[0])
		return 0;
	snprintf(text, sizeof(text), "%s\n%s\n%s\n%s", r->who.cluster, r->who.node, r->incident,
		r->cause);
	e = seen_key_of("incident", text, strlen(text), &k);
	if (e == 0 && is_new(x, &k))
		put_incident(x, r);
	return e;
}

int rows_push(struct rows_walk *x, struct errinfo *reterr)
{
	const struct push_handler h = {.arg = x, .calls = take_calls, .report = take_report};
	struct push_taken t = {0};
	int r = push_receive_logs(x->q->data, x->q->len, x->q->json, &h, &t, reterr);

	if (r < 0)
		return r;
	x->unread = t.rejected;
	x->rows->rejected += t.rejected;
	if (t.rejected && !x->rows->why[0])
		snprintf(x->rows->why, sizeof(x->rows->why), "%s", t.why);
	return 0;
}

/* ---- causal chains ---- */

static bool is_attribute(const struct otlp_attribute *a, const char *key)
{
	return a->key_len == strlen(key) && memcmp(a->key, key, a->key_len) == 0;
}

/* key_is_new - of what @who says of an incident: of all of it, or of what is a row of causal_chains again. */
static bool key_is_new(struct rows_walk *x, const struct who *who, const struct otlp_record *r,
	const char *kind, bool is_all)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ROWS_BYTES_MAX);
	struct seen_key k;
	int err;

	buf_append(&b, who->cluster, who->cluster_len);
	buf_printf(&b, "%c%.*s", 0, (int)who->node_len, who->node);
	if (is_all) {
		buf_printf(&b, "%c%.*s%c%" PRIu64, 0, (int)r->event_len, r->event, 0, r->time_ns);
		if (r->body.kind == OTLP_BYTES)
			buf_append(&b, r->body.text, r->body.len);
	}
	for (size_t i = 0; i < r->attributes->count; i++) {
		const struct otlp_attribute *a = &r->attributes->item[i];

		if (is_all || is_attribute(a, "id") || is_attribute(a, "severity") ||
			is_attribute(a, "root_cause")) {
			const struct otlp_value *v = &a->value;

			buf_append(&b, a->key, a->key_len);
			buf_printf(&b, "%c%d", 0, v->kind);
			if (v->kind == OTLP_TEXT || v->kind == OTLP_BYTES)
				buf_append(&b, v->text, v->len);
			else if (v->kind == OTLP_DOUBLE)
				buf_append(&b, &v->d, sizeof(v->d));
			else
				buf_append(&b, &v->i, sizeof(v->i));
		}
	}
	err = b.err == -ENOMEM ? -ENOMEM : seen_key_of(kind, b.data, b.len, &k);
	if (err < 0)
		x->err = -ENOMEM;
	return err == 0 && is_new(x, &k);
}

bool rows_record_is_new(struct rows_walk *x, const struct who *who, const struct otlp_record *r)
{
	return key_is_new(x, who, r, "told", true);
}

static void put_text(struct batch *b, int column, const struct otlp_attributes *a, const char *key)
{
	const struct otlp_value *v = otlp_attribute_get(a, key);

	if (v && v->kind == OTLP_TEXT)
		batch_text(b, column, v->text, v->len);
}

static void put_int(struct batch *b, int column, const struct otlp_attributes *a, const char *key)
{
	const struct otlp_value *v = otlp_attribute_get(a, key);

	if (v && v->kind == OTLP_INT)
		batch_int(b, column, v->i);
}

/* What is known of it now: a row for each time that it is told. */
static void put_state(struct rows_walk *x, const struct who *who, const struct otlp_record *r)
{
	const struct otlp_attributes *a = r->attributes;
	const struct otlp_value *last = otlp_attribute_get(a, "last_seen"),
				*sure = otlp_attribute_get(a, "confidence");
	struct batch *b = &x->rows->batch;

	rows_begin(x, TABLE_INCIDENTS, last->kind == OTLP_INT ? last->i : x->now_ns, who);
	put_text(b, INCIDENTS_ID, a, "id");
	batch_text_of(b, INCIDENTS_SOURCE, "node");
	batch_text_of(b, INCIDENTS_KIND, "slow");
	put_text(b, INCIDENTS_SUMMARY, a, "summary");
	put_text(b, INCIDENTS_CAUSE, a, "root_cause");
	if (sure && sure->kind == OTLP_DOUBLE)
		batch_real(b, INCIDENTS_CONFIDENCE, sure->d);
	put_int(b, INCIDENTS_LOST, a, "excess_ns");
	batch_int(b, INCIDENTS_RESOLVED, otlp_attribute_get(a, "resolved_at") != NULL);
	put_text(b, INCIDENTS_SEVERITY, a, "severity");
	put_int(b, INCIDENTS_COUNT, a, "count");
	put_int(b, INCIDENTS_LAST, a, "last_seen");
}

void rows_chain(struct rows_walk *x, const struct who *who, const struct otlp_record *r)
{
	struct batch *b = &x->rows->batch;

	if (otlp_attribute_get(r->attributes, "last_seen")) {
		put_state(x, who, r);
		if (!key_is_new(x, who, r, "chain", false))
			return;
	}
	rows_begin(x, TABLE_CHAINS, r->time_ns ? push_time(r->time_ns) : x->now_ns, who);
	for (int i = CHAINS_ID; i < CHAINS_COLUMN_COUNT; i++) {
		const struct otlp_value *v = otlp_attribute_get(
			r->attributes, store_tables[TABLE_CHAINS].columns[i].name);

		if (!v && i == CHAINS_ID)
			v = who->told[ROLE_CHAIN];
		if (v) {
			const struct table_column *c = &store_tables[TABLE_CHAINS].columns[i];

			if (c->type == COLUMN_TEXT && v->kind == OTLP_TEXT)
				batch_text(b, i, v->text, v->len);
			else if (c->type == COLUMN_INT && v->kind == OTLP_INT)
				batch_int(b, i, v->i);
			else if (c->type == COLUMN_REAL && v->kind == OTLP_DOUBLE)
				batch_real(b, i, v->d);
			else if (c->type == COLUMN_REAL && v->kind == OTLP_INT)
				batch_real(b, i, (double)v->i);
		}
	}
}

/* ---- who a row is about, by the attributes of its point and its resource ---- */

/* The names of a role, the one that counts most first. */
static const struct name {
	const char *key;
	uint8_t len;
	uint8_t role;
	bool stays; /* in attrs: it says more than who it is about */
} names[] = {
#define NAME(text, role, stays)                                                                    \
	{                                                                                          \
		text, sizeof(text) - 1, role, stays                                                \
	}
	NAME("ingero.cluster.id", ROLE_CLUSTER, false),
	NAME("cluster_id", ROLE_CLUSTER, false),
	NAME("k8s.cluster.name", ROLE_CLUSTER, true),
	NAME("ingero.node.id", ROLE_NODE, false),
	NAME("node_id", ROLE_NODE, false),
	NAME("host.name", ROLE_NODE, true),
	NAME("k8s.node.name", ROLE_NODE, true),
	NAME("service.instance.id", ROLE_NODE, true),
	NAME("service.name", ROLE_NODE, true),
	NAME("ingero.world_rank", ROLE_RANK, false),
	NAME("ingero.node.rank", ROLE_RANK, false),
	NAME("rank", ROLE_RANK, false),
	NAME("ingero.world_size", ROLE_NRANKS, false),
	NAME("nranks", ROLE_NRANKS, false),
	NAME("world_size", ROLE_NRANKS, false),
	NAME("ingero.causal_chain_id", ROLE_CHAIN, false),
	NAME("causal_chain_id", ROLE_CHAIN, false),
	NAME("ingero.event.id", ROLE_EVENT, false),
	NAME("ingero.event_id", ROLE_EVENT, false),
	NAME("event_id", ROLE_EVENT, false),
	NAME("ingero.agent.boot", ROLE_COUNT, false),
#undef NAME
};

static const struct name *find_name(const struct otlp_attribute *a)
{
	return FIND(x, names, ARRAY_SIZE(names),
		x->len == a->key_len && memcmp(x->key, a->key, a->key_len) == 0);
}

static bool is_told(const struct otlp_value *v, enum role role)
{
	int64_t n;

	if (role == ROLE_RANK || role == ROLE_NRANKS)
		return value_int(v, &n) && n >= 0;
	return v->kind == OTLP_TEXT && v->len;
}

void who_add(struct who *w, const struct otlp_attributes *a)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct name *n = find_name(&a->item[i]);
		unsigned weight;

		if (!n || n->role == ROLE_COUNT || !is_told(&a->item[i].value, n->role))
			continue;
		weight = (unsigned)(n - names);
		if (w->told[n->role] && w->weight[n->role] < weight)
			continue;
		w->told[n->role] = &a->item[i].value;
		w->weight[n->role] = weight;
	}
}

bool who_has(const struct otlp_attribute *a)
{
	const struct name *n = find_name(a);

	return n && !n->stays && (n->role == ROLE_COUNT || is_told(&a->value, n->role));
}

bool who_int(const struct who *w, enum role role, int64_t *ret)
{
	return w->told[role] && value_int(w->told[role], ret);
}

bool value_int(const struct otlp_value *v, int64_t *ret)
{
	int64_t n = 0;

	if (v->kind == OTLP_INT) {
		*ret = v->i;
		return true;
	}
	if (v->kind != OTLP_TEXT || !v->len || v->len > 18)
		return false;
	for (size_t i = 0; i < v->len; i++) {
		if (v->text[i] < '0' || v->text[i] > '9')
			return false;
		n = 10 * n + (v->text[i] - '0');
	}
	*ret = n;
	return true;
}

/* A name is a key of tables, a folder perhaps, and shown: plain text that is not cut. */
static bool is_name(const struct otlp_value *v)
{
	return v->len < ROWS_NODE_MAX && push_is_plain(v->text, v->len);
}

void who_check(struct who *w, const struct keeper_request *q)
{
	const struct otlp_value *cluster = w->told[ROLE_CLUSTER], *node = w->told[ROLE_NODE];

	w->why = NULL;
	w->refused = false;
	if (!node)
		w->why =
			"it has no node: give the resource one of node_id, host.name, service.instance.id or service.name";
	else if (!is_name(node))
		w->why = "its node's name is longer than 127 bytes or not plain text";
	else if (cluster && !is_name(cluster))
		w->why = "its cluster's name is longer than 127 bytes or not plain text";
	if (w->why)
		return;
	w->node = node->text;
	w->node_len = node->len;
	w->cluster = cluster ? cluster->text : ROWS_CLUSTER;
	w->cluster_len = cluster ? cluster->len : strlen(ROWS_CLUSTER);
	w->refused = q->may_write &&
		     !q->may_write(q->may_write_arg, q->sender, w->cluster, w->cluster_len);
	if (w->refused)
		w->why = "tenant_scoped_bearer_refused: the token is not for its cluster";
}
