/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_demo.c - `ingero-cluster demo`: a cluster that does not exist has a straggler; it is found, priced
 * and shown, by the code that does so for real ones. No GPU, no root, nothing leaves this machine.
 *
 * The first minute is played at once, so that there is something to see; then time goes on as it does. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/answer/api_server.h"
#include "cluster/answer/fleet_json.h"
#include "cluster/cli/blame_text.h"
#include "cluster/cli/commands.h"
#include "cluster/simulate/play.h"
#include "command/dispatch.h"
#include "command/server_access.h"

#define CLUSTER    "demo"
#define RANKS      64
#define PER_NODE   8
#define LATE_RANK  41
#define LATE_NS    (80 * (uint64_t)1000000)
#define STEP_NS    NS_PER_S
#define BEFORE_NS  (60 * NS_PER_S) /* played at once */
#define LATE_STEP  30
#define PLAYED_NS  (30 * 60 * NS_PER_S)
#define REFRESH_NS (NS_PER_S / 4)

struct demo_flags {
	const char *api;
	bool once, json;
};

static const struct demo_flags defaults = {.api = "127.0.0.1:0"};

#define OPTION(field) offsetof(struct demo_flags, field)
static const struct option_row demo_options[] = {
	{"api-addr", 0, OPTION_STRING, OPTION(api), "HOST:PORT",
		"address of the page and the API; loopback only (default: 127.0.0.1, any port)", 0,
		0, false},
	{"once", 0, OPTION_FLAG, OPTION(once), NULL, "end when the straggler is named; no page", 0,
		0, false},
	{"json", 0, OPTION_FLAG, OPTION(json), NULL,
		"print the answer of /api/v1/blame, and end: implies --once", 0, 0, false},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

struct demo {
	struct loop *loop;
	struct rates *rates;
	struct fleet *fleet;
	struct play *play;
	struct api_server *api;
	struct loop_timer *timer;
	struct server_access access;
	int err;
};

static void demo_done(struct demo *d)
{
	if (d->api)
		api_server_free(d->api);
	if (d->timer)
		loop_timer_free(d->timer);
	if (d->play)
		play_free(d->play);
	if (d->fleet)
		fleet_free(d->fleet);
	if (d->rates)
		rates_free(d->rates);
	server_access_done(&d->access);
	if (d->loop)
		loop_free(d->loop);
}

static struct play_settings the_play(int64_t now_ns)
{
	static const struct push_report why = {
		.cause = "its data loader waits for a disk that rsync keeps busy (train.py:41)",
		.fix = "Copy the data set to this node's own disk, or run rsync with ionice -c 3",
		.line = "disk",
		.line_ns = LATE_NS,
		.step_ns = STEP_NS + LATE_NS,
		.ordinary_ns = STEP_NS,
		.doing = PUSH_DOING_BLOCKED,
		.confidence = 0.93};

	return (struct play_settings){.job = {.seed = 41,
					      .data = RANKS,
					      .tensor = 1,
					      .pipeline = 1,
					      .microbatches = 1,
					      .layers = 1,
					      .buckets = 2,
					      .steps = (uint32_t)(PLAYED_NS / STEP_NS),
					      .step_ns = STEP_NS - LATE_NS,
					      .jitter = 0.003,
					      .fault = JOB_LATE,
					      .faulty = {LATE_RANK},
					      .faulty_count = 1,
					      .late_ns = LATE_NS,
					      .period = 1,
					      .from_step = LATE_STEP},
		.agents = {.seed = 64,
			.cluster = CLUSTER,
			.gpus_per_node = PER_NODE,
			.gpu_model = "NVIDIA H100 80GB HBM3",
			.provider = "lambda",
			.start_ns = now_ns - (int64_t)BEFORE_NS,
			.push_ns = 5 * NS_PER_S,
			.batch_ns = REFRESH_NS,
			.latency_ns = 2000000},
		.report = &why};
}

static int demo_open(struct demo *d)
{
	struct fleet_settings s = fleet_defaults;
	struct play_settings p;
	int64_t now = wall_now().ns;
	int r = rates_builtin(&d->rates);

	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	s.nodes.interval_ns = 5 * NS_PER_S;
	s.rates = d->rates;
	s.seed = (uint64_t)now;
	p = the_play(now);
	if (r == 0)
		r = fleet_new(&s, &d->fleet);
	if (r == 0)
		r = play_new(&p, &d->play);
	if (r == 0)
		r = play_until(d->play, d->fleet, now);
	return MIN(r, 0);
}

static int blame_json(struct demo *d, struct buf *b)
{
	struct fleet_json_query q = {.now_ns = play_now(d->play)};
	struct json_writer w = json_writer_to_buf(b);

	fleet_json_blame(&w, d->fleet, &q);
	return b->err;
}

static int say(struct demo *d, bool json)
{
	_cleanup_buf_ struct buf body = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
	int r = blame_json(d, &body);

	if (r == 0 && !json)
		r = blame_text(&text, buf_str(&body), body.len);
	if (r < 0)
		return r;
	if (json) {
		printf("%s\n", buf_str(&body));
		return 0;
	}
	printf("A made-up cluster: %d ranks on %d nodes with %d H100 each, at Lambda's price. They meet in an\n"
	       "all-reduce every second. Half a minute ago something began; the agents pushed, and this is\n"
	       "what `ingero-cluster blame` says:\n\n%s\n",
		RANKS, RANKS / PER_NODE, PER_NODE, buf_str(&text));
	return 0;
}

static int64_t core_time(void *arg)
{
	const struct demo *d = arg;

	return play_now(d->play);
}

static void go_on(void *arg)
{
	struct demo *d = arg;

	d->err = play_until(d->play, d->fleet, wall_now().ns);
	if (d->err <= 0) { /* the job has ended, or there is no memory */
		loop_stop(d->loop);
		return;
	}
	loop_timer_set(d->timer, REFRESH_NS);
}

static void on_stop(void *arg)
{
	struct demo *d = arg;

	loop_stop(d->loop);
}

static int show(struct demo *d, const char *address, struct errinfo *reterr)
{
	struct server_access_options access = {
		.address = address, .variable = "INGERO_TOKEN", .no_token = true};
	struct api_server_settings s = {.fleet = d->fleet, .now = core_time, .arg = d};
	int r;

	if (!http_is_loopback(address))
		return errinfo_set(reterr, -EINVAL,
			"--api-addr: the demo listens on this machine only, for example on 127.0.0.1:8080");
	r = loop_new(&d->loop);
	if (r == 0)
		r = server_access_open(&access, &d->access, reterr);
	if (r < 0)
		return r;
	s.http.address = address;
	s.http.anyone = true;
	r = api_server_new(d->loop, &s, &d->api, reterr);
	if (r == 0)
		r = loop_timer_new(d->loop, go_on, d, &d->timer);
	if (r == 0)
		r = loop_signal(d->loop, SIGINT, on_stop, d);
	if (r == 0)
		r = loop_signal(d->loop, SIGTERM, on_stop, d);
	if (r < 0)
		return r;
	api_server_set_ready(d->api, true);
	printf("It goes on, for half an hour: look at http://%s/ or ask it yourself:\n"
	       "  ingero-cluster blame --endpoint http://%s\n"
	       "  curl http://%s/api/v1/ranks\n"
	       "Ctrl-C ends it.\n",
		api_server_address(d->api), api_server_address(d->api), api_server_address(d->api));
	fflush(stdout);
	loop_timer_set(d->timer, REFRESH_NS);
	r = loop_run(d->loop);
	return r < 0 ? r : MIN(d->err, 0);
}

static int demo_run(
	const struct command *cmd _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	const struct demo_flags *t = settings;
	_cleanup_(demo_done) struct demo d = {0};
	struct errinfo e = {0};
	int r = demo_open(&d);

	if (r == 0)
		r = say(&d, t->json);
	if (r == 0 && !t->once && !t->json)
		r = show(&d, t->api, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_cluster_demo = {
	.name = "demo",
	.synopsis = "demo [flags]",
	.summary = "Find the straggler of a made-up cluster; no GPU and no root needed",
	.details = "  ingero-cluster demo          on the terminal, then on a page\n"
		   "  ingero-cluster demo --once   on the terminal only",
	.options = demo_options,
	.settings_size = sizeof(struct demo_flags),
	.defaults = &defaults,
	.run = demo_run,
};
