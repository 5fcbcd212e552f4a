/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_straggler_sink.c - `ingero straggler-sink`: reads the remediation stream of this machine and
 * shows it to Prometheus. It only counts (notify/sink); connecting and HTTP are here. It needs no
 * rights but to the socket. */
#include <linux/capability.h>
#include <signal.h>
#include <sys/socket.h>

#include "notify/sink/sink.h"
#include "prometheus/prometheus.h"
#include "base/confine_thread.h"
#include "base/log.h"
#include "base/socket_path.h"
#include "cli/commands.h"
#include "command/program.h"
#include "net/server/server.h"
#include "stream/stream.h"

#define METRICS_BYTES_MAX (32u << 20) /* 100,000 nodes with names of 64 bytes, and twice that */

struct sink_settings {
	const char *socket_path, *listen;
	uint64_t reconnect_delay_ns, readiness_window_ns;
	int64_t max_tracked_nodes;
};

static const struct sink_settings sink_defaults = {.listen = ":9464",
	.reconnect_delay_ns = 2 * NS_PER_S,
	.readiness_window_ns = 60 * NS_PER_S,
	.max_tracked_nodes = 10000};

#define OPTION(field) offsetof(struct sink_settings, field)
static const struct option_row sink_options[] = {
	OPTION_ROW(STRING, "socket-path", OPTION(socket_path), "PATH",
		"socket of the remediation stream (default: /run/ingero/remediate.sock, or below $XDG_RUNTIME_DIR)"),
	OPTION_ROW(STRING, "listen", OPTION(listen), "ADDRESS",
		"where to serve /metrics, /healthz and /readyz (default: :9464)"),
	OPTION_WITHIN(DURATION, "reconnect-delay", OPTION(reconnect_delay_ns), "DURATION", 1, 0,
		"pause before connecting again (default: 2s)"),
	OPTION_WITHIN(INT, "max-tracked-nodes", OPTION(max_tracked_nodes), "N", 1, 100000,
		"stragglers to remember; beyond that the oldest is forgotten (default: 10000)"),
	OPTION_ROW(DURATION, "readiness-window", OPTION(readiness_window_ns), "DURATION",
		"how long after the last message /readyz stays ready without a connection (default: 60s)"),
	OPTION_END,
};

struct service {
	const struct sink_settings *settings;
	struct loop *loop;
	struct http_server *server;
	struct loop_timer *again;
	struct sink *sink;
	int fd; /* of the stream; -1: not connected */
};

/* ---- the stream ---- */

static void connect_stream(void *arg);

static void on_data(void *arg)
{
	struct service *p = arg;
	static char data[64 << 10];
	ssize_t n = recv(p->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n > 0)
		sink_feed(p->sink, data, (size_t)n, wall_now());
	else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		(void)loop_watch(p->loop, p->fd, NULL, NULL);
		close(p->fd);
		p->fd = -1;
		sink_connected(p->sink, false);
		log_warning("the remediation stream has ended: connecting again");
		loop_timer_set(p->again, p->settings->reconnect_delay_ns);
	}
}

static void connect_stream(void *arg)
{
	struct service *p = arg;
	char path[SOCKET_PATH_MAX];
	int fd = -1;
	int r = socket_path_find(p->settings->socket_path, STREAM_AGENT_SOCKET, path, NULL);

	r = r ?: socket_path_connect(path, SOCK_NONBLOCK, &fd, NULL);
	r = r ?: loop_watch(p->loop, fd, on_data, p);
	if (r == 0) {
		p->fd = fd;
		sink_connected(p->sink, true);
		log_info("connected to %s", path);
		return;
	}
	if (fd >= 0)
		close(fd);
	log_info("no program listens at %s: %s", path, strerror(-r));
	loop_timer_set(p->again, p->settings->reconnect_delay_ns);
}

/* ---- HTTP ---- */

static void on_metrics(void *arg, struct http_exchange *x, const struct http_request *q _unused_)
{
	const struct service *p = arg;
	_cleanup_buf_ struct buf b = BUF_INIT(METRICS_BYTES_MAX);

	sink_metrics(p->sink, &b);
	if (b.err)
		http_reply_error(x, 500, "not enough memory for the metrics");
	else
		http_reply(x, 200, PROMETHEUS_TYPE, b.data, b.len);
}

static void say(struct http_exchange *x, int status, const char *word)
{
	http_reply(x, status, "text/plain; charset=utf-8", word, strlen(word));
}

static void on_health(
	void *arg _unused_, struct http_exchange *x, const struct http_request *q _unused_)
{
	say(x, 200, "ok\n");
}

static void on_ready(void *arg, struct http_exchange *x, const struct http_request *q _unused_)
{
	const struct service *p = arg;

	if (sink_is_ready(p->sink, wall_now(), p->settings->readiness_window_ns))
		say(x, 200, "ready\n");
	else
		say(x, 503, "not connected to the remediation stream\n");
}

/* ---- life ---- */

static void service_done(struct service *p)
{
	if (p->server)
		http_server_free(p->server);
	if (p->again)
		loop_timer_free(p->again);
	if (p->fd >= 0)
		close(p->fd);
	if (p->loop)
		loop_free(p->loop);
	if (p->sink)
		sink_free(p->sink);
}

static int service_open(struct service *p, struct errinfo *reterr)
{
	static const struct http_route routes[] = {
		{.method = "GET", .path = "/metrics", .handler = on_metrics},
		{.method = "GET", .path = "/healthz", .handler = on_health},
		{.method = "GET", .path = "/readyz", .handler = on_ready},
		{0},
	};
	struct http_server_settings server = {.address = p->settings->listen,
		.flag = "--listen",
		.routes = routes,
		.arg = p,
		.plain = true,
		.anyone = true};
	char path[SOCKET_PATH_MAX];
	int r = socket_path_find(p->settings->socket_path, STREAM_AGENT_SOCKET, path, reterr);

	r = r ?: sink_new((size_t)p->settings->max_tracked_nodes, &p->sink);
	r = r ?: loop_new(&p->loop);
	r = r ?: loop_timer_new(p->loop, connect_stream, p, &p->again);
	r = r ?: http_server_new(p->loop, &server, &p->server, reterr);
	r = r ?: loop_signal(p->loop, SIGTERM, loop_stop, p->loop);
	return r ?: loop_signal(p->loop, SIGINT, loop_stop, p->loop);
}

/* Before the first line of the stream and the first request: it listens already and opens no file. A socket is no file to
 * landlock; root connects to those of other users as it could before. */
static void confine(void)
{
	static const char *const none[] = {NULL};
	static const struct confine_server s = {
		.capabilities = CONFINE_CAP(CAP_DAC_OVERRIDE), .files = {.readable = none}};

	confine_server(&s);
}

static int sink_run(
	const struct command *c _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	_cleanup_(service_done) struct service p = {.settings = settings, .fd = -1};
	struct errinfo e = {0};
	int r = service_open(&p, &e);

	if (r == 0) {
		confine();
		printf("Metrics: http://%s/metrics\n", http_server_address(p.server));
		fflush(stdout);
		connect_stream(&p);
		r = loop_run(p.loop);
	}
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_straggler_sink = {
	.name = "straggler-sink",
	.synopsis = "straggler-sink [flags]",
	.summary = "Serve the stragglers of the remediation stream to Prometheus",
	.details =
		"Reads the stream of `ingero fleet-push`, or of another program that --socket-path\n"
		"names, and connects again when it ends. /metrics is for Prometheus, /healthz says\n"
		"that the program runs, /readyz whether it is connected or has heard a message\n"
		"within --readiness-window. Anyone who can reach the address can read them.",
	.options = sink_options,
	.settings_size = sizeof(struct sink_settings),
	.defaults = &sink_defaults,
	.run = sink_run,
};
