/* SPDX-License-Identifier: Apache-2.0 */
/* receiver.c - the two ports, their life and death. See receiver.h. */
#include "cluster/ingest/receiver_private.h"

const char *receiver_reason_id(enum receiver_reason r)
{
	return LIST_IDS(RECEIVER_REASONS)[r];
}

/* fill_routes - both paths of each signal. */
static void fill_routes(
	struct http_route routes[2 * OTLP_SIGNAL_COUNT + 1], const struct receiver_settings *s)
{
	static const char *const paths[] = {
#define X(NAME, id, service, key) OTLP_HTTP_PATH(id), OTLP_GRPC_PATH(service),
		OTLP_SIGNALS(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		routes[i] = (struct http_route){
			.method = "POST",
			.path = paths[i],
			.handler = intake_handler,
			.grpc = i % 2 == 1,
			.body_max = s->body_max ? s->body_max : RECEIVER_BODY_MAX,
			.inflated_max = s->inflated_max ? s->inflated_max : RECEIVER_INFLATED_MAX,
		};
	routes[ARRAY_SIZE(paths)] = (struct http_route){.method = NULL};
}

static int open_ports(struct receiver *r, struct loop *l, const struct receiver_settings *s,
	struct errinfo *reterr)
{
	struct http_route routes[2 * OTLP_SIGNAL_COUNT + 1];
	struct http_server_settings http = s->server;
	int err = 0;

	fill_routes(routes, s);
	http.routes = routes;
	http.arg = r;
	http.refused = intake_refused;
	http.limits = &r->limits;
	if (s->grpc_address) {
		http.address = s->grpc_address;
		http.flag = s->grpc_flag ? s->grpc_flag : "--grpc-addr";
		err = http_server_new(l, &http, &r->grpc, reterr);
	}
	if (err == 0 && s->http_address) {
		http.address = s->http_address;
		http.flag = "--http-addr";
		err = http_server_new(l, &http, &r->http, reterr);
	}
	return err;
}

int receiver_new(struct loop *l, const struct receiver_settings *s, struct receiver **ret,
	struct errinfo *reterr)
{
	_cleanup_(receiver_freep) struct receiver *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->sink = s->sink;
	r->limits = HTTP_LIMITS;
	r->limits.bodies = RECEIVER_BODIES_MAX;
	if (s->server.limits)
		r->limits = *s->server.limits;
	err = s->sink.health ? decoder_new(l, &r->decoder) : 0;
	err = err < 0 ? err : open_ports(r, l, s, reterr);
	if (err < 0)
		return err;
	*ret = TAKE(r);
	return 0;
}

void receiver_free(struct receiver *r)
{
	http_server_freep(&r->grpc);
	http_server_freep(&r->http);
	r->grpc = r->http = NULL;
	r->closed = true;
	if (r->decoder)
		decoder_free(TAKE(r->decoder));
	if (!r->waiting)
		free(r);
}

void receiver_release(struct receiver *r)
{
	if (--r->waiting == 0 && r->closed)
		free(r);
}

const char *receiver_grpc_address(const struct receiver *r)
{
	return r->grpc ? http_server_address(r->grpc) : NULL;
}

const char *receiver_http_address(const struct receiver *r)
{
	return r->http ? http_server_address(r->http) : NULL;
}

static void on_drained(void *arg)
{
	struct receiver *r = arg;

	if (--r->left == 0)
		r->drained(r->drained_arg);
}

void receiver_drain(struct receiver *r, loop_fn *done, void *arg)
{
	r->draining = true;
	r->drained = done;
	r->drained_arg = arg;
	r->left = !!r->grpc + !!r->http;
	if (r->grpc)
		http_server_drain(r->grpc, on_drained, r);
	if (r->http)
		http_server_drain(r->http, on_drained, r);
}

static void add_http(struct http_server_stats *sum, const struct http_server *s)
{
	struct http_server_stats f;

	if (!s)
		return;
	f = http_server_stats(s);
	sum->requests += f.requests;
	sum->rejected += f.rejected;
	sum->connections += f.connections;
	sum->open_connections += f.open_connections;
	sum->late += f.late;
	sum->evicted += f.evicted;
	sum->bombs += f.bombs;
	sum->bodies += f.bodies;
}

struct receiver_stats receiver_stats(const struct receiver *r)
{
	struct receiver_stats s = r->stats;

	add_http(&s.http, r->grpc);
	add_http(&s.http, r->http);
	return s;
}
