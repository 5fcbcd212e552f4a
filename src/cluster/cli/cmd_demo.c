/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_demo.c - `ingero-cluster demo`: a cluster that does not exist has a straggler; it is found, priced
 * and shown, by the code that does so for real ones, and its day is kept and can be asked about. No GPU, no
 * root, nothing leaves this machine.
 *
 * The day is played at once, so that there is something to see; then time goes on as it does. Without
 * DuckDB there is no memory: only the present. */
#include <ftw.h>
#include <signal.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/answer/fleet_json.h"
#include "cluster/cli/commands.h"
#include "cluster/cli/demo_day.h"
#include "cluster/cli/echo_service.h"
#include "cluster/cli/service.h"
#include "command/program.h"
#include "duck/duck.h"
#include "net/address.h"
#include "push/push_wire.h"

#define REFRESH_NS   (NS_PER_S / 4)
#define ACT_PIECE_NS (NS_PER_S)
#define REQUEST_MAX  (8u << 20)

struct demo_flags {
	const char *api, *folder;
	bool once, json;
};

static const struct demo_flags defaults = {.api = "127.0.0.1:0"};

#define OPTION(field) offsetof(struct demo_flags, field)
static const struct option_row demo_options[] = {
	OPTION_ROW(STRING, "api-addr", OPTION(api), "HOST:PORT",
		"address of the page and the API; loopback only (default: 127.0.0.1, any port)"),
	OPTION_ROW(STRING, "db-path", OPTION(folder), "FOLDER",
		"keep the demo's data in this folder (default: a temporary one, removed at the end)"),
	OPTION_ROW(FLAG, "once", OPTION(once), NULL, "exit when the straggler is named; no page"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL,
		"print the answer of /api/v1/blame and exit; implies --once"),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

/* ---- its store: what its agents push is kept as if it had come from the network, in a folder that ends with the
 * demo ---- */

struct demo_memory {
	struct echo_service *service;
	struct keeping keeping;
	char *folder;
	bool is_ours; /* the folder */
};

static const char *memory_place(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/tmp";
}

static int remove_one(const char *path, const struct stat *st _unused_, int kind _unused_,
	struct FTW *at _unused_)
{
	return remove(path);
}

static void memory_free(struct demo_memory *m)
{
	echo_service_freep(&m->service);
	if (m->is_ours && m->folder)
		nftw(m->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(m->folder);
	free(m);
}

DEFINE_CLEANUP(struct demo_memory *, memory_free)

static int memory_new(
	struct loop *l, const char *folder, struct demo_memory **ret, struct errinfo *reterr)
{
	_cleanup_(memory_freep) struct demo_memory *m = calloc(1, sizeof(*m));
	struct echo_service_settings s = {0};
	int r;

	if (!m)
		return -ENOMEM;
	if (asprintf(&m->folder, "%s%s", folder ? folder : memory_place(),
		    folder ? "" : "/ingero-demo-XXXXXX") < 0) {
		m->folder = NULL;
		return -ENOMEM;
	}
	m->is_ours = !folder;
	if (m->is_ours && !mkdtemp(m->folder))
		return errinfo_set(
			reterr, -errno, "cannot create a temporary folder: %s", strerror(errno));
	s.folder = m->folder;
	r = echo_service_new(l, &s, &m->service, reterr);
	if (r < 0)
		return r;
	m->keeping = echo_service_keeping(m->service);
	*ret = TAKE(m);
	return 0;
}

static void on_kept(void *arg _unused_, const struct keeper_result *r _unused_)
{
}

static void memory_watch(void *arg, const struct simulation_message *message)
{
	struct demo_memory *m = arg;
	_cleanup_buf_ struct buf b = BUF_INIT(REQUEST_MAX);
	struct receiver_request q = {.signal = OTLP_LOGS};

	switch (message->kind) {
	case SIMULATION_HEALTH:
		q.signal = OTLP_METRICS;
		push_metrics_write(&b,
			&(struct push_metrics){.health = message->health,
				.detection_mode = "fleet",
				.fleet_reachable = true},
			false);
		break;
	case SIMULATION_CALLS: push_calls_protobuf(&b, message->calls); break;
	case SIMULATION_REPORT: push_report_write(&b, message->report, false); break;
	}
	q.data = b.data;
	q.len = b.len;
	if (!b.err)
		m->keeping.keep(m->keeping.arg, &q, on_kept, NULL);
}

/* ---- its day ---- */

struct demo {
	struct loop *loop;
	struct rates *rates;
	struct fleet *fleet;
	struct play *play;
	struct demo_memory *memory; /* NULL: none */
	struct api_server *api;
	struct loop_timer *timer;
	struct path_user before;
	int err;
};

static void demo_done(struct demo *d)
{
	memory_freep(&d->memory);
	api_server_freep(&d->api);
	loop_timer_freep(&d->timer);
	play_freep(&d->play);
	fleet_freep(&d->fleet);
	rates_freep(&d->rates);
	loop_freep(&d->loop);
	path_user_leave(&d->before);
}

/* What the core has found goes to the memory, if there is one. */
static void take_notices(struct demo *d, struct fleet *f, int64_t now_ns)
{
	struct fleet_notice n;

	while (fleet_notice(f, &n))
		if (d->memory)
			d->memory->keeping.tell(d->memory->keeping.arg, &n, now_ns);
}

static int open_act(struct demo *d, enum demo_act act, int64_t now_ns, struct fleet **ret_fleet,
	struct play **ret_play)
{
	struct fleet_settings core = demo_core(act, d->rates);
	struct play_settings p = demo_act(act, now_ns);
	int r = fleet_new(&core, ret_fleet);

	if (d->memory) {
		p.watch = memory_watch;
		p.watch_arg = d->memory;
	}
	return r < 0 ? r : play_new(&p, ret_play);
}

/* The act is over, and with it what was found in it. */
static void end_episodes(struct demo *d, struct fleet *f, int64_t now_ns)
{
	struct fleet_notice n = {.kind = FLEET_NOTICE_ENDED};
	size_t cursor = 0;

	while (fleet_episode_next(f, NULL, &cursor, &n.episode))
		if (!n.episode.until_ns) {
			n.episode.until_ns = now_ns;
			d->memory->keeping.tell(d->memory->keeping.arg, &n, now_ns);
		}
}

/* What is over: heard by a core of its own, remembered, and forgotten by that core. */
static int play_act(struct demo *d, enum demo_act act, int64_t now_ns)
{
	_cleanup_(fleet_freep) struct fleet *fleet = NULL;
	_cleanup_(play_freep) struct play *play = NULL;
	int r = open_act(d, act, now_ns, &fleet, &play);

	if (r < 0)
		return r;
	do {
		r = play_until(play, fleet, play_now(play) + ACT_PIECE_NS);
		take_notices(d, fleet, play_now(play));
	} while (r > 0);
	if (r == 0)
		end_episodes(d, fleet, play_now(play));
	return r;
}

/* The hours between: only remembered. */
static int play_quiet(struct demo *d, int64_t now_ns)
{
	_cleanup_(simulation_freep) struct simulation *agents = NULL;
	struct simulation_settings s = demo_quiet(now_ns);
	struct simulation_message m;
	int r = simulation_new(&s, &agents);

	if (r < 0)
		return r;
	while ((r = simulation_next(agents, &m)) > 0)
		memory_watch(d->memory, &m);
	return r;
}

static int demo_open(struct demo *d)
{
	int64_t now = wall_now().ns;
	int r = rates_builtin(&d->rates);

	if (r == 0 && d->memory)
		r = play_quiet(d, now);
	for (enum demo_act act = 0; r == 0 && d->memory && act < DEMO_NOW; act++)
		r = play_act(d, act, now);
	r = r ?: open_act(d, DEMO_NOW, now, &d->fleet, &d->play);
	r = r ?: play_until(d->play, d->fleet, now);
	if (r < 0)
		return r;
	take_notices(d, d->fleet, play_now(d->play));
	return 0;
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
		r = blame_text(&text, buf_str(&body), body.len, NULL);
	if (r < 0)
		return r;
	if (json) {
		printf("%s\n", buf_str(&body));
		return 0;
	}
	printf("A simulated cluster: %d ranks on %d nodes with %d H100 each, at Lambda's prices. They run an\n"
	       "all-reduce twice a second, but every %dth step takes longer. Their agents have pushed, and\n"
	       "`ingero-cluster blame` says:\n\n%s\n",
		DEMO_RANKS, DEMO_NODES, DEMO_PER_NODE, DEMO_PERIOD, buf_str(&text));
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
	take_notices(d, d->fleet, play_now(d->play));
	if (d->err <= 0) { /* the job has ended, or there is no memory */
		loop_stop(d->loop);
		return;
	}
	loop_timer_set(d->timer, REFRESH_NS);
}

/* One address for all: the memory's, if there is one, with the fleet's answers beside its own. */
static int listen_on(struct demo *d, const char *address, struct errinfo *reterr)
{
	struct api_server_settings s = {.fleet = d->fleet, .now = core_time, .arg = d};
	struct echo_addresses a = {.http = {.anyone = true}, .api = address};
	int r;

	s.http.anyone = true;
	if (!d->memory)
		s.http.address = address;
	r = api_server_new(d->loop, &s, &d->api, reterr);
	a.fleet = d->api;
	if (r == 0 && d->memory)
		r = echo_service_listen(d->memory->service, &a, reterr);
	if (r == 0)
		api_server_set_ready(d->api, true);
	return r;
}

static int show(struct demo *d, const char *address, struct errinfo *reterr)
{
	int r = listen_on(d, address, reterr);
	const char *at;

	r = r ?: loop_timer_new(d->loop, go_on, d, &d->timer);
	if (r < 0)
		return r;
	at = d->memory ? echo_service_addresses(d->memory->service).api
		       : api_server_address(d->api);
	printf("The demo runs for half an hour: open http://%s/ or query it:\n"
	       "  ingero-cluster blame --endpoint http://%s\n"
	       "  curl http://%s/api/v1/ranks\n",
		at, at, at);
	if (d->memory)
		printf("The last day is stored: 20 hours ago a GPU was throttled, 6 hours ago a job hung.\n"
		       "  curl 'http://%s/api/v2/tools/fleet_cluster_summary?since=24h'\n"
		       "  curl http://%s/api/v2/sql -H 'Content-Type: application/json' \\\n"
		       "    -d '{\"query\": \"SELECT kind, node_id, summary FROM incidents\"}'\n"
		       "  http://%s/mcp is for assistants\n",
			at, at, at);
	printf("Ctrl-C stops it.\n");
	fflush(stdout);
	loop_timer_set(d->timer, REFRESH_NS);
	r = loop_run(d->loop);
	return r < 0 ? r : MIN(d->err, 0);
}

/* Files with the rights of who may change their names; then everything else is given up, as a service does. */
static int take_rights(struct demo *d, const char *folder, bool has_memory, struct errinfo *reterr)
{
	struct service_rights rights = {.sql = has_memory};
	int r = 0;

	if (has_memory) {
		service_rights_write(&rights, folder);
		r = service_rights_files(&rights, &d->before, reterr);
	}
	if (r == 0)
		service_rights_confine(&rights);
	return r;
}

/* Without DuckDB the demo is the present alone. */
static int open_memory(struct demo *d, const struct demo_flags *t, struct errinfo *reterr)
{
	struct errinfo e = {0};
	bool has_memory;
	int r;

	if (!address_text_is_loopback(t->api))
		return errinfo_set(reterr, -EINVAL,
			"--api-addr: the demo listens on this machine only, for example on 127.0.0.1:8080");
	r = loop_new(&d->loop);
	if (r == 0) /* from here on: what is temporary is removed */
		r = loop_signal(d->loop, SIGINT, loop_stop, d->loop);
	r = r ?: loop_signal(d->loop, SIGTERM, loop_stop, d->loop);
	if (r < 0)
		return r;
	r = duck_load(&e);
	has_memory = r == 0;
	if (r == -ENOENT && !t->folder) {
		fprintf(stderr, "ingero-cluster: the last day is not stored: %s\n", e.text);
		r = 0;
	}
	if (r < 0) {
		*reterr = e;
		return r;
	}
	r = take_rights(d, t->folder ? t->folder : memory_place(), has_memory, reterr);
	return r < 0 || !has_memory ? r : memory_new(d->loop, t->folder, &d->memory, reterr);
}

static int demo_run(
	const struct command *cmd _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	const struct demo_flags *t = settings;
	_cleanup_(demo_done) struct demo d = {0};
	bool stays = !t->once && !t->json;
	struct errinfo e = {0};
	int r = stays ? open_memory(&d, t, &e) : 0;

	r = r ?: demo_open(&d);
	r = r ?: say(&d, t->json);
	if (r == 0 && stays)
		r = show(&d, t->api, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_cluster_demo = {
	.name = "demo",
	.synopsis = "demo [flags]",
	.summary = "Find the straggler of a simulated cluster; no GPU and no root needed",
	.details = "  ingero-cluster demo          on the terminal, then on a page\n"
		   "  ingero-cluster demo --once   on the terminal only",
	.options = demo_options,
	.settings_size = sizeof(struct demo_flags),
	.defaults = &defaults,
	.run = demo_run,
};
