/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_fixture.c - the receiver of OTLP with a sink that prints what it is given.
 *
 *	receiver-fixture GRPC-ADDRESS HTTP-ADDRESS [key=value…]
 *
 * Keys as in server_options.h; tokens may be in RECEIVER_TOKEN. Each line of its output is one value of
 * JSON: first where it listens; then each health, batch of calls and report, and of each request that is to
 * be forwarded its signal, encoding and the names of metrics or the bodies of log records in it; at
 * SIGUSR1 its figures. The cluster "c1" is known and has the threshold 0.9; the node "full" is refused.
 * Ends at SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cluster/ingest/receiver.h"
#include "json/writer.h"
#include "otlp/otlp_read.h"
#include "server_options.h"

static struct json_writer line_begin(const char *kind)
{
	struct json_writer w = json_writer_to_file(stdout);

	json_begin_object(&w);
	json_string_member(&w, "kind", kind);
	return w;
}

static void line_end(struct json_writer *w)
{
	json_end_object(w);
	json_finish(w);
	fflush(stdout);
}

/* ---- the sink ---- */

static bool get_threshold(void *arg, const char *cluster, struct threshold *ret)
{
	*ret = (struct threshold){.value = 0.9, .quorum_met = true};
	return strcmp(cluster, "c1") == 0;
}

static enum nodes_refusal take_health(
	void *arg, const struct push_health *h, uint64_t credential, struct threshold *ret)
{
	struct json_writer w;

	*ret = (struct threshold){.value = 0.9, .quorum_met = true};
	if (h->score != h->score)
		return NODES_NOT_FINITE;
	if (strcmp(h->who.node, "full") == 0)
		return NODES_TOO_MANY_NODES;
	w = line_begin("health");
	json_string_member(&w, "cluster", h->who.cluster);
	json_string_member(&w, "node", h->who.node);
	json_double_member(&w, "score", h->score);
	json_string_member(&w, "state", push_state_id(h->state));
	json_bool_member(&w, "credential", credential != 0);
	line_end(&w);
	return NODES_NONE;
}

static int take_straggler(void *arg, const struct push_who *who, const struct push_straggler *s)
{
	struct json_writer w = line_begin("straggler");

	json_string_member(&w, "node", who->node);
	line_end(&w);
	return 0;
}

static int take_calls(void *arg, const struct push_calls *c)
{
	struct json_writer w = line_begin("calls");

	json_string_member(&w, "node", c->who.node);
	json_uint_member(&w, "count", c->count);
	line_end(&w);
	return 0;
}

static int take_report(void *arg, const struct push_report *r)
{
	struct json_writer w = line_begin("report");

	json_string_member(&w, "node", r->who.node);
	json_string_member(&w, "cause", r->cause);
	line_end(&w);
	return 0;
}

static int put_point(void *arg, const struct otlp_point *p)
{
	json_put_string_len(arg, p->name, p->name_len);
	return 0;
}

static int put_record(void *arg, const struct otlp_record *r)
{
	json_put_string_len(arg, r->body.text, r->body.kind == OTLP_TEXT ? r->body.len : 0);
	return 0;
}

static void forward(void *arg, const struct receiver_request *q)
{
	struct json_writer w = line_begin("request");
	const struct otlp_visitor v = {.arg = &w, .point = put_point, .record = put_record};
	struct otlp_walk walk;

	json_string_member(&w, "signal", otlp_signal_id(q->signal));
	json_bool_member(&w, "json", q->json);
	json_uint_member(&w, "bytes", q->len);
	json_begin_array_member(&w, "names");
	if (q->signal == OTLP_METRICS || q->signal == OTLP_LOGS)
		otlp_read(q->signal, q->json, q->data, q->len, &v, &walk, NULL);
	json_end_array(&w);
	line_end(&w);
}

/* ---- the program ---- */

struct program {
	struct loop *loop;
	struct receiver *receiver;
};

static void print_figures(void *arg)
{
	struct program *p = arg;
	struct receiver_stats s = receiver_stats(p->receiver);
	struct json_writer w = line_begin("figures");

	for (int i = 0; i < OTLP_SIGNAL_COUNT; i++)
		json_uint_member(&w, otlp_signal_id((enum otlp_signal)i), s.requests[i]);
	for (int i = 0; i < RECEIVER_REASON_COUNT; i++)
		json_uint_member(&w, receiver_reason_id((enum receiver_reason)i), s.refused[i]);
	json_uint_member(&w, "taken", s.taken);
	json_uint_member(&w, "rejected", s.rejected);
	json_uint_member(&w, "foreign", s.foreign);
	json_uint_member(&w, "late", s.http.late);
	json_uint_member(&w, "evicted", s.http.evicted);
	json_uint_member(&w, "bombs", s.http.bombs);
	json_uint_member(&w, "bodies", s.http.bodies);
	json_uint_member(&w, "open", s.http.open_connections);
	line_end(&w);
}

static void drained(void *arg)
{
	loop_stop(((struct program *)arg)->loop);
}

static void stop(void *arg)
{
	struct program *p = arg;

	receiver_drain(p->receiver, drained, p);
}

static int serve(struct server_options *o, struct receiver_settings *s)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_(tls_freep) struct tls *tls = NULL;
	_cleanup_(token_set_freep) struct token_set *tokens = NULL;
	_cleanup_(receiver_freep) struct receiver *receiver = NULL;
	struct errinfo e = {.text = "no memory"};
	struct json_writer w;
	struct program p;
	int r = loop_new(&loop);

	if (r == 0)
		r = server_options_open(o, "RECEIVER_TOKEN", &tls, &tokens, &e);
	s->server = o->server;
	if (r == 0)
		r = receiver_new(loop, s, &receiver, &e);
	if (r < 0) {
		fprintf(stderr, "receiver-fixture: %s\n", e.text);
		return 1;
	}
	p = (struct program){.loop = loop, .receiver = receiver};
	loop_signal(loop, SIGUSR1, print_figures, &p);
	loop_signal(loop, SIGTERM, stop, &p);
	w = line_begin("listening");
	json_string_member(&w, "grpc", receiver_grpc_address(receiver));
	json_string_member(&w, "http", receiver_http_address(receiver));
	line_end(&w);
	loop_run(loop);
	return 0;
}

int main(int argc, char **argv)
{
	struct server_options o = {.limits = HTTP_LIMITS};
	struct receiver_settings s = {
		.sink = {.health = take_health,
			.straggler = take_straggler,
			.calls = take_calls,
			.report = take_report,
			.threshold = get_threshold,
			.forward = forward},
	};

	if (argc < 3 || !server_options_read(&o, argv + 3))
		return 64;
	s.grpc_address = argv[1];
	s.http_address = argv[2];
	return serve(&o, &s);
}
