/* SPDX-License-Identifier: Apache-2.0 */
/* notify_feed.c - who is told of episodes, without a cluster: for tests from outside.
 *
 *	notify-feed CONFIG SOCKET
 *
 * Opens the alerts and targets of CONFIG and a remediation stream at SOCKET, says "ready", and does
 * what the lines on standard input say until these end:
 *	began|changed|ended ID NODE RANK
 *	otlp metrics|logs|traces pb|json TEXT
 *	stats			one line of JSON
 *	finish			"finished" when everything is told, or an attempt has failed */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/socket_path.h"
#include "cluster/notify/notify.h"
#include "json/writer.h"
#include "stream/stream.h"

struct feed {
	struct loop *loop;
	struct notify_config *config;
	struct alerts *alerts;
	struct forward *forward;
	struct stream *stream;
	char in[65536];
	size_t len;
	int unfinished;
};

static void take_notice(struct feed *f, const char *word, char *line)
{
	struct fleet_notice n = {.episode = {.cluster = "test",
					 .problem = FLEET_STRAGGLER,
					 .stage = -1,
					 .score = 0.4,
					 .threshold = 0.88,
					 .signal = "throughput",
					 .cause = "its loader reads from a busy disk",
					 .cost = {.priced = true,
						 .per_hour = 12.55,
						 .currency = "USD",
						 .symbol = "$"}}};
	struct alert_notice alert;
	struct stream_message m;
	unsigned long id = 0;

	for (int k = FLEET_NOTICE_BEGAN; k <= FLEET_NOTICE_ENDED; k++)
		if (!strcmp(word, fleet_notice_id((enum fleet_notice_kind)k)))
			n.kind = (enum fleet_notice_kind)k;
	sscanf(line, "%*s %lu %127s %d", &id, n.episode.node, &n.episode.rank);
	n.episode.id = id;
	n.episode.since_ns = wall_now().ns;
	if (n.kind == FLEET_NOTICE_ENDED)
		n.episode.until_ns = n.episode.since_ns;
	snprintf(n.episode.event, sizeof(n.episode.event), "event-%lu", id);
	snprintf(n.episode.text, sizeof(n.episode.text), "rank %d on %s is late", n.episode.rank,
		n.episode.node);
	notice_alert(&n, &alert);
	alerts_give(f->alerts, &alert);
	if (notice_stream(&n, wall_now(), &m))
		stream_publish(f->stream, &m);
}

static void take_otlp(struct feed *f, const char *line)
{
	char signal[16] = "", encoding[8] = "";
	int at = 0;

	sscanf(line, "%*s %15s %7s %n", signal, encoding, &at);
	for (int s = 0; s < OTLP_SIGNAL_COUNT; s++)
		if (!strcmp(signal, otlp_signal_id((enum otlp_signal)s)))
			forward_give(f->forward, (enum otlp_signal)s,
				!strcmp(encoding, "json") ? FORWARD_JSON : FORWARD_PROTOBUF,
				line + at, strlen(line + at));
}

static void put_alerts(struct json_writer *w, const struct feed *f)
{
	struct alert_stats s;

	json_begin_array_member(w, "alerts");
	for (size_t i = 0; alerts_stats(f->alerts, i, &s); i++) {
		json_begin_object(w);
		json_string_member(w, "type", alert_type_id(s.type));
		json_uint_member(w, "notices", s.notices);
		json_uint_member(w, "sent", s.sent);
		json_uint_member(w, "retries", s.retries);
		json_uint_member(w, "refused", s.refused);
		json_uint_member(w, "lost", s.lost);
		json_uint_member(w, "brief", s.brief);
		json_uint_member(w, "waiting", s.waiting);
		json_uint_member(w, "open", s.open);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_forward(struct json_writer *w, const struct feed *f)
{
	struct forward_stats s;

	json_begin_array_member(w, "forward");
	for (size_t i = 0; forward_stats(f->forward, i, &s); i++) {
		json_begin_object(w);
		json_uint_member(w, "requests", s.requests);
		json_uint_member(w, "delivered", s.delivered);
		json_uint_member(w, "waiting", s.waiting);
		json_uint_member(w, "retries", s.retries);
		for (int l = 0; l < FORWARD_LOSS_COUNT; l++)
			json_uint_member(w, forward_loss_id((enum forward_loss)l), s.lost[l]);
		json_end_object(w);
	}
	json_end_array(w);
}

static void say_stats(const struct feed *f)
{
	struct stream_stats stream = stream_stats(f->stream);
	struct json_writer w = json_writer_to_file(stdout);

	json_begin_object(&w);
	put_alerts(&w, f);
	put_forward(&w, f);
	json_begin_object_member(&w, "stream");
	json_uint_member(&w, "messages", stream.messages);
	json_uint_member(&w, "consumers", stream.consumers);
	for (int d = 0; d < STREAM_DROP_COUNT; d++)
		json_uint_member(&w, stream_drop_id((enum stream_drop)d), stream.dropped[d]);
	json_end_object(&w);
	json_end_object(&w);
	json_finish(&w);
	fflush(stdout);
}

static void on_finished(void *arg)
{
	struct feed *f = arg;

	if (--f->unfinished)
		return;
	printf("finished\n");
	fflush(stdout);
}

static void take_line(struct feed *f, char *line)
{
	char word[16] = "";

	sscanf(line, "%15s", word);
	if (!strcmp(word, "otlp")) {
		take_otlp(f, line);
	} else if (!strcmp(word, "stats")) {
		say_stats(f);
	} else if (!strcmp(word, "finish")) {
		f->unfinished = 2;
		alerts_finish(f->alerts, on_finished, f);
		forward_finish(f->forward, on_finished, f);
	} else if (*word) {
		take_notice(f, word, line);
	}
}

static void on_input(void *arg)
{
	struct feed *f = arg;
	ssize_t n = read(0, f->in + f->len, sizeof(f->in) - 1 - f->len);
	char *line = f->in, *end;

	if (n <= 0) {
		loop_stop(f->loop);
		return;
	}
	f->len += (size_t)n;
	f->in[f->len] = 0;
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		take_line(f, line);
	}
	f->len -= (size_t)(line - f->in);
	memmove(f->in, line, f->len);
}

static void on_stream(void *arg)
{
	struct feed *f = arg;

	stream_poll(f->stream);
}

static int feed_open(struct feed *f, char **argv, struct errinfo *e)
{
	const struct forward_target *targets;
	const struct alert_receiver *receivers;
	size_t count;
	int r = notify_config_read(argv[1], NULL, 0, &f->config, e);

	if (r == 0)
		r = loop_new(&f->loop);
	if (r < 0)
		return r;
	receivers = notify_config_alerts(f->config, &count);
	r = alerts_new(f->loop, receivers, count, &f->alerts, e);
	targets = notify_config_forward(f->config, &count);
	if (r == 0)
		r = forward_new(f->loop, targets, count, &f->forward, e);
	if (r == 0)
		r = stream_open(argv[2], SOCKET_NO_GROUP, &f->stream, e);
	if (r == 0)
		r = loop_watch(f->loop, stream_fd(f->stream), on_stream, f);
	return r < 0 ? r : loop_watch(f->loop, 0, on_input, f);
}

int main(int argc, char **argv)
{
	static struct feed f;
	struct errinfo e = {0};
	int r = argc == 3 ? feed_open(&f, argv, &e) : -EINVAL;

	if (r < 0) {
		fprintf(stderr, "notify-feed: %s\n", e.text);
		return errinfo_exit_code(&e, r);
	}
	printf("ready\n");
	fflush(stdout);
	r = loop_run(f.loop);
	stream_close(f.stream);
	forward_free(f.forward);
	alerts_free(f.alerts);
	loop_free(f.loop);
	notify_config_free(f.config);
	return r < 0;
}
