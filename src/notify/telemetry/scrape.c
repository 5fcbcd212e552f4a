/* SPDX-License-Identifier: Apache-2.0 */
/* scrape.c - see telemetry.h. Invariant: an exchange is in `waiting` or has been replied to. */
#include "notify/telemetry/telemetry.h"

#include <ctype.h>

#include "prometheus/prometheus.h"
#include "net/address.h"
#include "net/server/server.h"

#define TEXT_BYTES_MAX (32u << 20)

struct scrape {
	struct scrape_settings settings;
	struct token_set *tokens;
	struct http_server *server;
	struct loop_timer *patience;
	struct buf text; /* the last reading */
	mono_time taken; /* when it came; 0: there is none */
	struct {
		struct http_exchange *exchange;
		bool of_health; /* asks whether a reading comes, not for the reading */
	} waiting[SCRAPE_WAITING_MAX];
	size_t waiting_count;
	uint64_t scrapes;
};

static void refuse_waiting(struct scrape *l)
{
	for (size_t i = 0; i < l->waiting_count; i++)
		http_reply_error(l->waiting[i].exchange, 503,
			l->waiting[i].of_health ? "the tracer does not answer"
						: "no metrics available");
	l->waiting_count = 0;
}

void scrape_free(struct scrape *l)
{
	refuse_waiting(l);
	http_server_freep(&l->server);
	loop_timer_freep(&l->patience);
	token_set_freep(&l->tokens);
	buf_done(&l->text);
	free(l);
}

static void reply(struct scrape *l, struct http_exchange *x, bool of_health)
{
	if (of_health) {
		http_reply(x, 200, NULL, "ok\n", 3);
		return;
	}
	if (l->text.err) {
		http_reply_error(x, 500, "too many metrics for one reply");
		return;
	}
	l->scrapes++;
	http_reply(x, 200, PROMETHEUS_TYPE, buf_str(&l->text), l->text.len);
}

static void answer(struct scrape *l, struct http_exchange *x, bool of_health)
{
	if (l->taken.ns && mono_now().ns - l->taken.ns < SCRAPE_FRESH_NS) {
		reply(l, x, of_health);
		return;
	}
	if (l->waiting_count == SCRAPE_WAITING_MAX) {
		http_reply_error(x, 503, "too many scrapes at once");
		return;
	}
	if (!l->waiting_count)
		loop_timer_set(l->patience, SCRAPE_PATIENCE_NS);
	l->waiting[l->waiting_count].exchange = x;
	l->waiting[l->waiting_count++].of_health = of_health;
	l->settings.want(l->settings.arg);
}

static void on_scrape(void *arg, struct http_exchange *x, const struct http_request *q _unused_)
{
	answer(arg, x, false);
}

/* Only the thread that traces can give a reading: one that hangs, or has not begun, gives none. */
static void on_health(void *arg, struct http_exchange *x, const struct http_request *q _unused_)
{
	answer(arg, x, true);
}

static void greet(
	void *arg _unused_, struct http_exchange *x, const struct http_request *q _unused_)
{
	static const char page[] = "ingero: the metrics are at /metrics\n";

	http_reply(x, 200, "text/plain; charset=utf-8", page, sizeof(page) - 1);
}

static void on_patience(void *arg)
{
	refuse_waiting(arg);
}

/* A port alone is this machine's; loopback addresses need no permission. */
static int check_address(
	const struct scrape_settings *s, char out[256], bool *ret_is_far, struct errinfo *reterr)
{
	bool is_port = s->address[0] && strspn(s->address, "0123456789") == strlen(s->address);
	union address a;
	int r;

	if (strlen(s->address) >= 200)
		return errinfo_set(reterr, -EINVAL, "--prometheus: the address is too long");
	snprintf(out, 256, "%s%s", is_port ? "127.0.0.1:" : "", s->address);
	r = address_parse(out, &a, reterr);
	if (r < 0)
		return r;
	*ret_is_far = !address_is_loopback(&a);
	if (*ret_is_far && !s->token_file && !s->allow_remote)
		return errinfo_set_exit(reterr, EXIT_USAGE, -EPERM,
			"--prometheus %s is reachable from other machines: give --prometheus-token-file, or --prometheus-allow-remote for access without a token",
			s->address);
	return 0;
}

int scrape_new(struct loop *loop, const struct scrape_settings *s, struct scrape **ret,
	struct errinfo *reterr)
{
	static const struct http_route routes[] = {
		{.method = "GET", .path = "/metrics", .handler = on_scrape},
		{.method = "GET", .path = "/livez", .handler = on_health, .open = true},
		{.method = "GET", .path = "/readyz", .handler = on_health, .open = true},
		{.method = "GET", .path = "/", .handler = greet},
		{0},
	};
	_cleanup_(scrape_freep) struct scrape *l = calloc(1, sizeof(*l));
	struct http_server_settings server = {.flag = "--prometheus", .routes = routes, .arg = l};
	char address[256];
	bool is_far;
	int r;

	if (!l)
		return -ENOMEM;
	l->settings = *s;
	l->text = BUF_INIT(TEXT_BYTES_MAX);
	r = check_address(s, address, &is_far, reterr);
	if (r == 0 && s->token_file)
		r = token_set_new(s->token_file, NULL, &l->tokens, reterr);
	r = r ?: loop_timer_new(loop, on_patience, l, &l->patience);
	if (r < 0)
		return r;
	server.address = address;
	server.tokens = l->tokens;
	server.plain = true;
	server.anyone = s->allow_remote;
	r = http_server_new(loop, &server, &l->server, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(l);
	return 0;
}

void scrape_give(struct scrape *l, const struct metric_set *s)
{
	buf_clear(&l->text);
	prometheus_text(&l->text, s);
	l->taken = mono_now();
	loop_timer_clear(l->patience);
	for (size_t i = 0; i < l->waiting_count; i++)
		reply(l, l->waiting[i].exchange, l->waiting[i].of_health);
	l->waiting_count = 0;
}

void scrape_drain(struct scrape *l, loop_fn *fn, void *arg)
{
	http_server_drain(l->server, fn, arg);
}

const char *scrape_address(const struct scrape *l)
{
	return http_server_address(l->server);
}

uint64_t scrape_count(const struct scrape *l)
{
	return l->scrapes;
}
