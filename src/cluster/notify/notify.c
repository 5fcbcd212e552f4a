/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c - see notify.h. */
#include "cluster/notify/notify.h"

#define SPOOL_BYTES (1ULL << 30)
#define OF_FORWARD  1u

struct notify_config {
	struct alert_values values;
	struct alert_list alerts;
	struct forward_target targets[FORWARD_TARGETS_MAX];
	struct endpoint endpoints[FORWARD_TARGETS_MAX];
	struct endpoint_fields fields[FORWARD_TARGETS_MAX];
	size_t target_count;
};

struct taken { /* from an entry */
	struct forward_target t;
	const char *endpoint, *protocol, *headers;
};

#define AT(field) offsetof(struct taken, field)
static const struct alert_key rows[] = {
	{"endpoint", OF_FORWARD, 0, ALERT_TEXT, AT(endpoint)},
	{"protocol", OF_FORWARD, 0, ALERT_TEXT, AT(protocol)},
	{"insecure", OF_FORWARD, 0, ALERT_BOOL, AT(t.insecure_far)},
	{"headers", OF_FORWARD, OF_FORWARD, ALERT_TEXT, AT(headers)},
	{"spool", OF_FORWARD, 0, ALERT_PATH, AT(t.spool)},
	{"spool_size", OF_FORWARD, 0, ALERT_SIZE, AT(t.spool_bytes)},
	{"ca_cert", OF_FORWARD, 0, ALERT_PATH, AT(t.ca)},
	{"client_cert", OF_FORWARD, 0, ALERT_PATH, AT(t.cert)},
	{"client_key", OF_FORWARD, 0, ALERT_PATH, AT(t.key)},
};
#undef AT

void notify_config_free(struct notify_config *c)
{
	for (size_t i = 0; i < FORWARD_TARGETS_MAX; i++)
		endpoint_fields_done(&c->fields[i]);
	alert_values_done(&c->values);
	free(c);
}

/* ---- forwarding ---- */

static int check_endpoint(
	const struct yaml_value *entry, const struct taken *taken, struct endpoint *ret)
{
	struct endpoint_options o = {.name = "endpoint",
		.text = taken->endpoint,
		.protocol = taken->protocol,
		.insecure_far = taken->t.insecure_far};
	struct errinfo e = {0};
	int r;

	if (!o.text)
		return yaml_fail(entry, "a target of forward needs endpoint");
	r = endpoint_parse(&o, ret, &e);
	if (r == -EPERM)
		return yaml_fail(yaml_member(entry, "endpoint"),
			"the endpoint is not encrypted: use https, or add `insecure: true`");
	return r < 0 ? yaml_fail(yaml_member(entry, "endpoint"), "%s", e.text) : 0;
}

static int take_target(void *arg, const struct yaml_value *entry)
{
	struct notify_config *c = arg;
	struct endpoint *endpoint = &c->endpoints[c->target_count];
	struct endpoint_fields *fields = &c->fields[c->target_count];
	struct taken taken = {
		.t = {.endpoint = endpoint, .fields = fields, .spool_bytes = SPOOL_BYTES}};
	struct errinfo e = {0};
	int r = alert_read_entry(&c->values, entry, rows, ARRAY_SIZE(rows), OF_FORWARD, &taken);

	r = r ?: check_endpoint(entry, &taken, endpoint);
	if (r == 0 && endpoint_fields_parse(taken.headers, "headers", fields, &e) < 0)
		r = yaml_fail(entry, "%s", e.text);
	if (r == 0 && taken.t.spool_bytes < SPOOL_BYTES_MIN)
		r = yaml_fail(yaml_member(entry, "spool_size"), "spool_size must be at least 1m");
	if (r == 0 && !taken.t.cert != !taken.t.key)
		r = yaml_fail(entry, "client_cert and client_key must be given together");
	if (r == 0)
		c->targets[c->target_count++] = taken.t;
	return r;
}

/* ---- the file ---- */

static int take_file(struct notify_config *c)
{
	const struct yaml_value *root = yaml_tree_root(c->values.tree);
	int r = 0;

	if (root->kind != YAML_MAP && root->kind != YAML_NOTHING)
		return yaml_fail(root, "expected `alerts:` or `forward:` here");
	for (const struct yaml_value *v = root->first; r == 0 && v; v = v->next)
		if (!strcmp(v->key, "alerts"))
			r = alert_config_take(&c->alerts, v);
		else if (!strcmp(v->key, "forward"))
			r = alert_take_list(v, FORWARD_TARGETS_MAX, take_target, c);
		else
			r = yaml_fail(v, "unknown key '%.60s': expected alerts or forward", v->key);
	return r;
}

int notify_config_read(const char *path, const char *text, size_t len, struct notify_config **ret,
	struct errinfo *reterr)
{
	_cleanup_(notify_config_freep) struct notify_config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->alerts.values = &c->values;
	r = alert_values_read(&c->values, path, text, len, reterr);
	r = r ?: take_file(c);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

const struct alert_receiver *notify_config_alerts(const struct notify_config *c, size_t *ret_count)
{
	*ret_count = c->alerts.count;
	return c->alerts.receivers;
}

const struct forward_target *notify_config_forward(const struct notify_config *c, size_t *ret_count)
{
	*ret_count = c->target_count;
	return c->targets;
}

/* ---- notices. An episode has rows for its beginning, each change, now and then while it lasts, and its
 * end, all with its id: the newest is what is known. */

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)
#define EVERY_S        60

/* ---- alerts ---- */

static enum alert_kind kind_of(enum fleet_notice_kind k)
{
	switch (k) {
	case FLEET_NOTICE_BEGAN: return ALERT_BEGAN;
	case FLEET_NOTICE_CHANGED: return ALERT_CHANGED;
	case FLEET_NOTICE_ENDED: break;
	}
	return ALERT_ENDED;
}

void notice_alert(const struct fleet_notice *n, struct alert_notice *ret)
{
	const struct fleet_episode *e = &n->episode;
	const struct fleet_cost *c = &e->cost;
	struct alert_matter *m = &ret->matter;

	*ret = (struct alert_notice){.kind = kind_of(n->kind),
		.matter = {.id = e->id,
			.name = "IngeroStraggler",
			.class = "gpu_straggler",
			.problem = fleet_problem_id(e->problem),
			.rank = e->rank,
			.stage = e->stage,
			.is_job = true,
			.share = e->share,
			.confidence = e->confidence,
			.lag_ns = e->lag_ns,
			.period = e->period,
			.late = e->late,
			.seen = e->seen,
			.waiting = e->waiting,
			.waited_ns = e->waited_ns,
			.score = e->score,
			.threshold = e->threshold,
			.since_ns = e->since_ns,
			.until_ns = e->until_ns,
			.cost = {.priced = c->priced,
				.per_hour = c->per_hour,
				.total = c->total,
				.gpu_seconds = c->gpu_seconds,
				.watt_hours = c->watt_hours}}};
	COPY(m->event, e->event);
	COPY(m->cluster, e->cluster);
	COPY(m->node, e->node);
	COPY(m->signal, e->signal);
	COPY(m->text, e->text);
	COPY(m->cause, e->cause);
	COPY(m->fix, e->fix);
	COPY(m->place, e->place);
	for (const struct fleet_field *f = fleet_fields; f->name; f++) {
		struct fleet_value v;

		if (f->form != FLEET_FORM_OP)
			continue;
		fleet_field_get(f, e, &v);
		COPY(m->op, v.text);
	}
	COPY(m->cost.currency, c->currency);
	COPY(m->cost.symbol, c->symbol);
	COPY(m->cost.unpriced, c->unpriced);
}

/* ---- messages of the remediation stream ---- */

bool notice_stream(const struct fleet_notice *n, wall_time now, struct stream_message *ret)
{
	const struct fleet_episode *e = &n->episode;
	struct stream_node node = {.node_id = e->node,
		.cluster_id = e->cluster,
		.time = now,
		.event_id = e->event[0] ? e->event : NULL,
		.rank = e->rank};

	if (!e->node[0])
		return false;
	if (n->kind == FLEET_NOTICE_ENDED)
		*ret = (struct stream_message){
			.type = STREAM_STRAGGLER_RESOLVED, .resolved = {node}};
	else
		*ret = (struct stream_message){.type = STREAM_STRAGGLER_STATE,
			.state = {.node = node,
				.score = e->score,
				.threshold = e->threshold,
				.detection_mode = "fleet",
				.dominant_signal =
					e->signal[0] ? e->signal : fleet_problem_id(e->problem),
				.problem = fleet_problem_id(e->problem),
				.summary = e->text,
				.cause = e->cause,
				.fix = e->fix,
				.place = e->place,
				.lag_ns = e->lag_ns,
				.period_steps = e->period,
				.waiting_ranks = e->waiting,
				.waited_ns = e->waited_ns}};
	return true;
}

/* ---- rows of the table incidents ---- */

/* Of the time since it began, the share that the job lost. */
static int64_t lost_ns(const struct fleet_episode *e, int64_t now_ns)
{
	int64_t until = fleet_episode_end(e, now_ns);

	return until > e->since_ns ? (int64_t)((double)(until - e->since_ns) * e->share) : 0;
}

void notice_row(struct batch *b, const struct fleet_notice *n, int64_t now_ns)
{
	const struct fleet_episode *e = &n->episode;

	batch_row(b, TABLE_INCIDENTS);
	batch_int(b, INCIDENTS_TS, now_ns);
	batch_int(b, INCIDENTS_RECEIVED, now_ns);
	batch_text_of(b, INCIDENTS_CLUSTER, e->cluster);
	batch_text_of(b, INCIDENTS_NODE, e->node);
	batch_text_of(b, INCIDENTS_ID, e->event);
	batch_text_of(b, INCIDENTS_SOURCE, "fleet");
	batch_text_of(b, INCIDENTS_KIND, fleet_problem_id(e->problem));
	if (e->rank >= 0)
		batch_int(b, INCIDENTS_RANK, e->rank);
	batch_text_of(b, INCIDENTS_SUMMARY, e->text);
	batch_text_of(b, INCIDENTS_CAUSE, e->cause);
	batch_text_of(b, INCIDENTS_FIX, e->fix);
	batch_real(b, INCIDENTS_CONFIDENCE, e->confidence);
	batch_int(b, INCIDENTS_LOST, lost_ns(e, now_ns));
	if (e->cost.priced)
		batch_real(b, INCIDENTS_COST, e->cost.total);
	batch_int(b, INCIDENTS_RESOLVED, n->kind == FLEET_NOTICE_ENDED);
	/* INCIDENTS_PID is the first of those that model/episode_field.h lists. */
	for (int i = 0; fleet_fields[i].name; i++) {
		struct fleet_value v;

		fleet_field_get(&fleet_fields[i], e, &v);
		if (!v.known)
			continue;
		if (v.text)
			batch_text_of(b, INCIDENTS_PID + i, v.text);
		else if (v.is_real)
			batch_real(b, INCIDENTS_PID + i, v.d);
		else
			batch_int(b, INCIDENTS_PID + i, v.i);
	}
}

/* How many rows it has had @age_ns after its beginning. */
static int64_t rows_by(int64_t age_ns)
{
	int64_t s = age_ns / (int64_t)NS_PER_S, n = s / EVERY_S;

	for (int64_t power = 1; power < EVERY_S && power <= s; power *= 2)
		n++;
	return age_ns < 0 ? 0 : n;
}

bool notice_row_is_due(const struct fleet_episode *e, int64_t before_ns, int64_t now_ns)
{
	return rows_by(now_ns - e->since_ns) > rows_by(before_ns - e->since_ns);
}
