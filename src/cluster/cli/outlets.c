/* SPDX-License-Identifier: Apache-2.0 */
/* outlets.c - see service.h. */
#include "cluster/cli/service.h"

#include "base/log.h"
#include "base/socket_path.h"
#include "base/text.h"
#include "cluster/notify/notify.h"
#include "stream/stream.h"

#define SPOOL_BYTES (1ULL << 30)

struct outlets {
	struct outlets_settings settings;
	struct loop *loop;
	struct notify_config *config;
	struct endpoint endpoint; /* of --forward */
	struct alerts *alerts;
	struct forward *forward;
	struct stream *stream;
	char socket[SOCKET_PATH_MAX]; /* of the stream; "": none */
	unsigned left;                /* that have not finished */
	loop_fn *finished;
	void *finished_arg;
};

static int open_alerts(struct outlets *o, struct errinfo *reterr)
{
	const struct alert_receiver *receivers;
	size_t count = 0;

	if (!o->config)
		return 0;
	receivers = notify_config_alerts(o->config, &count);
	return count ? alerts_new(o->loop, receivers, count, &o->alerts, reterr) : 0;
}

/* Those of the file, and the one of the flag behind them. */
static int open_forward(struct outlets *o, struct errinfo *reterr)
{
	const struct outlets_settings *s = &o->settings;
	struct forward_target targets[FORWARD_TARGETS_MAX];
	const struct forward_target *given = NULL;
	const struct endpoint_options options = {
		.name = "--forward", .text = s->forward, .far_name = "insecure in --alerts"};
	size_t count = 0;
	int r;

	if (o->config)
		given = notify_config_forward(o->config, &count);
	if (s->forward && count == FORWARD_TARGETS_MAX)
		return errinfo_set(reterr, -E2BIG,
			"--forward: more than %d targets with those in %s", FORWARD_TARGETS_MAX,
			s->config);
	if (count)
		memcpy(targets, given, count * sizeof(*targets));
	if (s->forward) {
		r = endpoint_parse(&options, &o->endpoint, reterr);
		if (r < 0)
			return r;
		targets[count++] = (struct forward_target){.endpoint = &o->endpoint,
			.spool = s->forward_spool,
			.spool_bytes = SPOOL_BYTES};
	}
	return count ? forward_new(o->loop, targets, count, &o->forward, reterr) : 0;
}

static void on_stream(void *arg)
{
	struct outlets *o = arg;

	stream_poll(o->stream);
}

static int open_stream(struct outlets *o, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(o->socket, &before, reterr);

	r = r ?: stream_open(o->socket, SOCKET_NO_GROUP, &o->stream, reterr);
	return r < 0 ? r : loop_watch(o->loop, stream_fd(o->stream), on_stream, o);
}

int outlets_new(struct loop *l, const struct outlets_settings *s, struct outlets **ret,
	struct errinfo *reterr)
{
	_cleanup_(outlets_freep) struct outlets *o = calloc(1, sizeof(*o));
	int r = 0;

	if (!o)
		return -ENOMEM;
	o->settings = *s;
	o->loop = l;
	if (s->config)
		r = notify_config_read(s->config, NULL, 0, &o->config, reterr);
	if (r == 0 && s->remediate)
		r = socket_path_default(STREAM_CLUSTER_SOCKET, o->socket, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(o);
	return 0;
}

void outlets_rights(const struct outlets *o, struct service_rights *rights)
{
	const struct forward_target *given = NULL;
	size_t count = 0;

	if (o->config)
		given = notify_config_forward(o->config, &count);
	for (size_t i = 0; i < count; i++)
		service_rights_write(rights, given[i].spool);
	service_rights_write(rights, o->settings.forward_spool);
	service_rights_own(rights, o->socket[0] ? o->socket : NULL);
}

int outlets_open(struct outlets *o, struct errinfo *reterr)
{
	int r = open_alerts(o, reterr);

	r = r ?: open_forward(o, reterr);
	return r == 0 && o->socket[0] ? open_stream(o, reterr) : r;
}

void outlets_free(struct outlets *o)
{
	if (o->stream) {
		_cleanup_path_user_ struct path_user before = PATH_USER_INIT;

		loop_watch(o->loop, stream_fd(o->stream), NULL, NULL);
		(void)path_user_enter(o->socket, &before, NULL);
		stream_close(o->stream);
	}
	alerts_freep(&o->alerts);
	forward_freep(&o->forward);
	notify_config_freep(&o->config);
	free(o);
}

void outlets_tell(struct outlets *o, const struct fleet_notice *n)
{
	struct alert_notice alert;
	struct stream_message m;
	_cleanup_buf_ struct buf b = BUF_INIT(16384);

	/* One line a change, for the log. */
	text_escape_terminal(&b, n->episode.cluster);
	buf_printf(&b, ": %s: ", fleet_notice_id(n->kind));
	text_escape_terminal(&b, n->episode.text);
	fprintf(stderr, "%s%s\n", log_mark(LOG_LEVEL_WARNING), buf_str(&b));
	if (o->alerts) {
		notice_alert(n, &alert);
		alerts_give(o->alerts, &alert);
	}
	if (o->stream && notice_stream(n, wall_now(), &m))
		stream_publish(o->stream, &m);
}

bool outlets_want_requests(const struct outlets *o)
{
	return o->forward;
}

void outlets_forward(struct outlets *o, const struct receiver_request *q)
{
	if (o->forward)
		forward_give(o->forward, q->signal, q->json ? FORWARD_JSON : FORWARD_PROTOBUF,
			q->data, q->len);
}

static void on_finished(void *arg)
{
	struct outlets *o = arg;

	if (--o->left == 0)
		o->finished(o->finished_arg);
}

void outlets_finish(struct outlets *o, loop_fn *fn, void *arg)
{
	o->finished = fn;
	o->finished_arg = arg;
	o->left = 1; /* this function itself */
	if (o->alerts) {
		o->left++;
		alerts_finish(o->alerts, on_finished, o);
	}
	if (o->forward) {
		o->left++;
		forward_finish(o->forward, on_finished, o);
	}
	on_finished(o);
}

/* ---- metrics ---- */

METRIC_ROW(alert_requests, COUNTER, false, "ingero_fleet_alerts_total", "{request}",
	"Alerts, by receiver and result", METRIC_LABEL("receiver"), METRIC_LABEL("type"),
	METRIC_LABEL("result"));
METRIC_ROW(forwarded, COUNTER, false, "ingero_fleet_forwarded_total", "{request}",
	"Forwarded requests, by target and result", METRIC_LABEL("target"), METRIC_LABEL("result"));
METRIC_ROW(forward_waiting, GAUGE, false, "ingero_fleet_forward_waiting_bytes", "By",
	"Bytes waiting to be forwarded", METRIC_LABEL("target"));
METRIC_ROW(stream_messages, COUNTER, false, "ingero_fleet_stream_total", "{message}",
	"Messages of the remediation stream, by result", METRIC_LABEL("result"));

static void put_alerts(const struct alerts *a, struct metric_set *s)
{
	struct alert_stats t;

	for (size_t i = 0; alerts_stats(a, i, &t); i++) {
		const struct {
			const char *result;
			uint64_t count;
		} rows[] = {{"sent", t.sent}, {"retried", t.retries}, {"lost", t.lost},
			{"refused", t.refused}};

		for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
			metric_put_int(s, &alert_requests, (wall_time){0}, (int64_t)rows[k].count,
				METRIC_OF(METRIC_TEXT(t.shown), METRIC_TEXT(alert_type_id(t.type)),
					METRIC_TEXT(rows[k].result)));
	}
}

void outlets_metrics(const struct outlets *o, struct metric_set *s)
{
	if (o->alerts)
		put_alerts(o->alerts, s);
	if (o->forward) {
		struct forward_stats t;

		for (size_t i = 0; forward_stats(o->forward, i, &t); i++) {
			metric_put_int(s, &forwarded, (wall_time){0}, (int64_t)t.delivered,
				METRIC_OF(METRIC_TEXT(t.shown), METRIC_TEXT("delivered")));
			for (int k = 0; k < FORWARD_LOSS_COUNT; k++)
				metric_put_int(s, &forwarded, (wall_time){0}, (int64_t)t.lost[k],
					METRIC_OF(METRIC_TEXT(t.shown),
						METRIC_TEXT(forward_loss_id(k))));
			metric_put_count(s, &forward_waiting, t.shown, t.waiting_bytes);
		}
	}
	if (o->stream) {
		struct stream_stats t = stream_stats(o->stream);

		metric_put_count(s, &stream_messages, "sent", t.messages);
		for (int k = 0; k < STREAM_DROP_COUNT; k++)
			metric_put_count(s, &stream_messages, stream_drop_id(k), t.dropped[k]);
	}
}
