/* SPDX-License-Identifier: Apache-2.0 */
/* health_server.c - see health_server.h. */
#include "cluster/cli/health_server.h"

#include <errno.h>

#include "json/writer.h"

#define WHY_MAX 256

struct health_server {
	struct health_server_settings settings;
	struct http_server *http;
};

/* Who has no token learns no reason: it may name files and clusters. */
static void reply(struct http_exchange *x, bool good, const char *status)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	json_begin_object(&w);
	json_string_member(&w, "status", status);
	json_end_object(&w);
	buf_putc(&b, '\n');
	http_reply(x, good ? 200 : 503, NULL, buf_str(&b), b.len);
}

static void on_alive(void *arg _unused_, struct http_exchange *x, const struct http_request *q)
{
	(void)q;
	reply(x, true, "ok");
}

static void on_ready(void *arg, struct http_exchange *x, const struct http_request *q _unused_)
{
	const struct health_server *h = arg;
	char why[WHY_MAX] = "";
	bool good = h->settings.is_ready(h->settings.arg, why, sizeof(why));

	reply(x, good, good ? "ok" : "not ready");
}

static void on_health(void *arg, struct http_exchange *x, const struct http_request *q)
{
	const struct health_server *h = arg;
	char why[WHY_MAX] = "";

	if (h->settings.is_whole && h->settings.is_ready(h->settings.arg, why, sizeof(why)) &&
		!h->settings.is_whole(h->settings.arg))
		reply(x, true, "degraded");
	else
		on_ready(arg, x, q);
}

int health_server_new(struct loop *l, const struct health_server_settings *s,
	struct health_server **ret, struct errinfo *reterr)
{
	static const struct http_route routes[] = {
		{.method = "GET", .path = "/livez", .handler = on_alive, .open = true},
		{.method = "GET", .path = "/readyz", .handler = on_ready, .open = true},
		{.method = "GET", .path = "/healthz", .handler = on_health, .open = true},
		{.method = NULL},
	};
	_cleanup_(health_server_freep) struct health_server *h = calloc(1, sizeof(*h));
	struct http_server_settings http = {.address = s->address,
		.flag = "--health-addr",
		.routes = routes,
		.arg = h,
		.plain = true,
		.anyone = true};
	int r;

	if (!h)
		return -ENOMEM;
	h->settings = *s;
	r = http_server_new(l, &http, &h->http, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(h);
	return 0;
}

void health_server_free(struct health_server *h)
{
	if (h->http)
		http_server_free(h->http);
	free(h);
}

const char *health_server_address(const struct health_server *h)
{
	return http_server_address(h->http);
}
