/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_demo.c - `ingero demo`: problems that are made, traced and explained for real on the stand-in
 * GPU; without root, recordings of such runs go through the same explain path.
 *
 * What is shown stands in demo_scenario.c. While the acts of a scenario are played, the tracer of
 * `ingero trace` runs in a process of its own, with as few rights as there; this one starts the actors, for which
 * it keeps root's. The figure at the end is measured, not written down. */
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/nodedb.h"
#include "diagnose/compose/diagnose.h"
#include "record/trace/tracer.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/demo_scenario.h"
#include "command/program.h"
#include "answer/encode/report.h"
#include "answer/explain.h"
#include "cli/explain.h"
#include "json/writer.h"

#define STEP_MS      10
#define SPEED_MIN    0.1
#define SPEED_MAX    10.0
#define SENTENCE_MAX 1024
#define STEPS_SHOWN  2 /* processes */
#define STEPS_BYTES  (64 << 10)
#define MEASURED     "measured here: "
#define REPLAYED     "measured in the recorded run: "
#define NOT_MEASURED "no such effect was measured"

struct demo_settings {
	bool json, no_gpu, gpu, stack, verbose;
	const char *db, *speed;
	uint64_t duration_ns;
};

#define OPTION(field) offsetof(struct demo_settings, field)
static const struct option_row demo_options[] = {
	OPTION_ROW(FLAG, "no-gpu", OPTION(no_gpu), NULL,
		"explain recorded runs; needs neither root nor a GPU"),
	OPTION_ROW(FLAG, "gpu", OPTION(gpu), NULL,
		"run the scenario on this machine; fail instead of using a recording"),
	OPTION_ROW(
		STRING, "speed", OPTION(speed), "N", "run N times as fast, 0.1 to 10 (default: 1)"),
	OPTION_SHORT(DURATION, "duration", 'd', OPTION(duration_ns), "TIME",
		"total duration of the scenario"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL,
		"print a JSON array: scenario, measured effect, incidents"),
	OPTION_ROW(FLAG, "stack", OPTION(stack), NULL,
		"record the call stack of each call (default: true)"),
	OPTION_SHORT(FLAG, "verbose", 'v', OPTION(verbose), NULL,
		"also print figures, timelines, evidence and the call stacks"),
	OPTION_ROW(STRING, "db", OPTION(db), "PATH",
		"keep the recording in this file (one scenario only)"),
	OPTION_END,
};

static const struct demo_settings demo_defaults = {.stack = true};

struct demo { /* one invocation */
	const struct demo_settings *settings;
	struct explain_style style;
	double speed;
	const char *replay_why; /* NULL: made here */
	size_t shown;
};

/* The process that traces, and the channel to it: it says struct told when it has begun and when it has ended, which
 * is when the channel is closed on this side. */
struct tracing {
	pid_t pid;
	int channel;
};

struct told {
	int r;
	struct errinfo error;
};

static bool is_ready_within(int channel, int ms)
{
	struct pollfd p = {.fd = channel, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static void tell(int channel, int r, const struct errinfo *e)
{
	struct told told = {.r = r, .error = *e};

	(void)!write(channel, &told, sizeof(told)); /* a reader that is gone is no matter */
}

static int hear(int channel, struct errinfo *reterr)
{
	struct told told;
	ssize_t n;

	do
		n = recv(channel, &told, sizeof(told), MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(told))
		return errinfo_set(reterr, -EIO, "the tracer ended too early");
	if (told.r < 0)
		*reterr = told.error;
	return told.r;
}

/* In that process. */
static void trace(struct tracer_settings *ts, int channel)
{
	struct errinfo e = {0}, stop_error = {0};
	struct tracer *t = NULL;
	int r = tracer_confine_begin(ts), q;

	if (r < 0)
		log_warning("cannot drop all privileges: %s", strerror(-r));
	r = tracer_start(ts, &t, &e);
	tell(channel, r, &e);
	if (r < 0)
		return;
	while (r == 0 && !is_ready_within(channel, 0))
		r = MIN(tracer_step(t, STEP_MS, &e), 0);
	q = tracer_stop(t, false, &stop_error);
	tracer_free(t);
	tell(channel, r < 0 ? r : q, r < 0 ? &e : &stop_error);
}

static void tracing_close(struct tracing *t)
{
	close(t->channel);
	while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int tracing_begin(struct tracing *t, struct tracer_settings *ts, struct errinfo *reterr)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errinfo_set(reterr, -errno, "cannot start the tracer: %s", strerror(errno));
	fflush(NULL); /* nothing that waits to be printed is printed twice */
	t->pid = fork();
	if (t->pid == 0) {
		close(pair[0]);
		trace(ts, pair[1]);
		_exit(EXIT_OK);
	}
	t->channel = pair[0];
	close(pair[1]);
	if (t->pid < 0) {
		r = errinfo_set(reterr, -errno, "cannot start the tracer: %s", strerror(errno));
		close(pair[0]);
		return r;
	}
	r = hear(t->channel, reterr);
	if (r < 0)
		tracing_close(t);
	return r;
}

/* Returns what the tracer said at its end. */
static int tracing_end(struct tracing *t, struct errinfo *reterr)
{
	int r;

	shutdown(t->channel, SHUT_WR);
	r = hear(t->channel, reterr);
	tracing_close(t);
	return r;
}

/* Ends early if the tracer does: why is what it says at its end. */
static void wait_for(const struct tracing *t, double seconds)
{
	mono_time start = mono_now();
	double left_ms;

	do
		left_ms = seconds * 1e3 - (double)(mono_now().ns - start.ns) / (double)NS_PER_MS;
	while (left_ms > 0 && !is_ready_within(t->channel, (int)MIN(ceil(left_ms), INT_MAX)));
}

/* Seconds that an act lasts, after --speed and --duration. */
static double act_seconds(
	const struct demo *d, const struct demo_scenario *sc, const struct act *act)
{
	double total = 0;

	for (const struct act *a = sc->acts; a->says; a++)
		total += a->seconds;
	if (d->settings->duration_ns)
		return act->seconds / total * (double)d->settings->duration_ns / (double)NS_PER_S;
	return act->seconds / d->speed;
}

/* Traced actors are started before the tracer and wait, so that nothing of them is missed; @pids
 * gets them. Their index is that of their act among the traced ones. */
static int start_traced(struct stage *stage, const struct demo_scenario *sc,
	uint32_t pids[STAGE_ACTORS], size_t *ret_count, struct errinfo *reterr)
{
	size_t n = 0;

	for (const struct act *a = sc->acts; a->says; a++) {
		const char *args[STAGE_ARGS + 2];
		char gate[16], ready[24];
		int k = 0, r;

		if (!a->traced)
			continue;
		snprintf(gate, sizeof(gate), "%%w/go%zu", n);
		snprintf(ready, sizeof(ready), "go%zu.ready", n);
		for (; a->args[k] && k < STAGE_ARGS - 3; k++)
			args[k] = a->args[k];
		args[k++] = "--wait-start";
		args[k++] = gate;
		args[k] = NULL;
		r = stage_start(stage, a->program, args, reterr);
		if (r >= 0)
			r = stage_wait_file(stage, ready, reterr);
		if (r < 0)
			return r;
		pids[n] = (uint32_t)stage_pid(stage, n);
		n++;
	}
	*ret_count = n;
	return 0;
}

static int play_acts(const struct demo *d, const struct demo_scenario *sc, struct stage *stage,
	const struct tracing *t, struct errinfo *reterr)
{
	int traced = 0;

	for (const struct act *a = sc->acts; a->says; a++) {
		double seconds = act_seconds(d, sc, a);
		int actor = -1;

		if (a->traced) {
			actor = traced++;
			stage_touch(stage, FORMATTED(16, "go%d", actor));
		} else if (a->program) {
			actor = stage_start(stage, a->program, a->args, reterr);
			if (actor < 0)
				return actor;
		}
		fprintf(d->settings->json ? stderr : stdout, "  %s (%.3g s)\n", a->says, seconds);
		fflush(stdout);
		wait_for(t, seconds);
		if (actor >= 0 && !a->stays)
			stage_end(stage, (size_t)actor);
	}
	return 0;
}

static int record(const struct demo *d, const struct demo_scenario *sc, struct stage *stage,
	const char *db, struct errinfo *reterr)
{
	uint32_t pids[STAGE_ACTORS];
	struct tracer_settings ts = {.filter = FILTER_PIDS,
		.pids = pids,
		.method = TRACER_METHOD_AUTO,
		.db_path = db,
		.node = "demo",
		.flags_text = "demo",
		.no_stacks = !d->settings->stack};
	struct tracing t = {0};
	int r = sc->dataset ? stage_make_dataset(stage, reterr) : 0, q;

	r = r ?: start_traced(stage, sc, pids, &ts.pid_count, reterr);
	r = r ?: tracing_begin(&t, &ts, reterr);
	if (r < 0)
		return r;
	r = play_acts(d, sc, stage, &t, reterr);
	q = tracing_end(&t, r < 0 ? &(struct errinfo){0} : reterr);
	return r < 0 ? r : q;
}

static int make_content(const struct demo *d, const struct demo_scenario *sc,
	struct nodedb_content *ret, struct errinfo *reterr)
{
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_USED, .ledger = true, .kernels = true};
	struct stage stage;
	char db[128];
	int r = stage_open(&stage, reterr);

	if (r < 0)
		return r;
	snprintf(db, sizeof(db), "%s/demo.db", stage.work_dir);
	r = record(d, sc, &stage, d->settings->db ? d->settings->db : db, reterr);
	r = r ?: nodedb_read(d->settings->db ? d->settings->db : db, &all, ret, reterr);
	stage_close(&stage);
	return r;
}

static void measure(
	const struct demo_scenario *sc, const struct nodedb_content *c, struct buf *sentence)
{
	struct recording rec = explain_recording(c);
	_cleanup_free_ struct incident *list = NULL;
	size_t count = 0;

	if (diagnose_run(&rec, &list, &count) < 0 ||
		!measure_put(sentence, sc->measure, &rec, list, count))
		buf_clear(sentence);
}

/* {"scenario": …, "measured": …, "incidents": [ what explain --json prints ]} in an array. */
static int print_json(const struct demo *d, const struct demo_scenario *sc,
	const struct nodedb_content *c, const char *sentence, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf name = BUF_INIT(SENTENCE_MAX), said = BUF_INIT(8 * SENTENCE_MAX);
	struct json_writer w = json_writer_to_buf(&name), v = json_writer_to_buf(&said);
	int r;

	json_put_string(&w, sc->name);
	json_put_string(&v, sentence[0] ? sentence : NULL);
	printf("%s{\"scenario\": %s, \"recorded\": %s, \"measured\": %s, \"incidents\":\n",
		d->shown ? ",\n" : "[\n", buf_str(&name), d->replay_why ? "true" : "false",
		buf_str(&said));
	r = explain_content(c, d->style, reterr);
	printf("}\n");
	return r;
}

/* Of a recording without the times of threads little may be known. */
static bool says_something(const struct step_account *a)
{
	struct steps_line lines[ACCOUNT_LINES];

	return steps_lines(a, lines) && lines[0].line != ACCOUNT_UNKNOWN;
}

/* Where the time of the steps went, in short. */
static int print_steps(const struct nodedb_content *c, struct errinfo *reterr)
{
	_cleanup_(steps_answer_done) struct steps_answer a = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(STEPS_BYTES);
	int r = steps_from(c, &(struct scope){0}, &a, reterr);

	for (size_t i = 0; r == 0 && i < MIN(a.count, (size_t)STEPS_SHOWN); i++)
		if (says_something(a.rows[i].account))
			steps_text_short(&b, &a.rows[i], 2);
	if (b.len)
		printf("\n  Where the time of a step went:\n%s", buf_str(&b));
	return r < 0 ? r : b.err;
}

static int show(const struct demo *d, const struct demo_scenario *sc,
	const struct nodedb_content *c, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sentence = BUF_INIT(SENTENCE_MAX),
				 safe = BUF_INIT(8 * SENTENCE_MAX);
	int r;

	measure(sc, c, &sentence);
	if (d->settings->json)
		return print_json(d, sc, c, buf_str(&sentence), reterr);
	printf("\n");
	r = explain_content(c, d->style, reterr);
	r = r ?: print_steps(c, reterr);
	if (r < 0)
		return r;
	text_escape_terminal(&safe, sentence.len ? buf_str(&sentence) : NOT_MEASURED);
	printf("\n  %s%s\n",
		!sentence.len   ? ""
		: d->replay_why ? REPLAYED
				: MEASURED,
		buf_str(&safe));
	return 0;
}

static int demo_one(struct demo *d, const struct demo_scenario *sc, struct errinfo *reterr)
{
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_USED, .ledger = true, .kernels = true};
	FILE *verbose = d->settings->json ? stderr : stdout;
	struct nodedb_content content = {0};
	int r;

	fprintf(verbose, "\n  Ingero demo %s: %s\n", sc->name, sc->title);
	if (d->replay_why)
		fprintf(verbose,
			"  This is a replay of a recorded run (%s); the explanation is "
			"computed now.\n",
			d->replay_why);
	else
		fprintf(verbose,
			"  The scenario runs, is traced and is explained on this machine, on a stand-in GPU.\n");
	fflush(verbose);
	r = d->replay_why ? nodedb_read_packed(sc->recording, &all, &content, reterr)
			  : make_content(d, sc, &content, reterr);
	if (r < 0)
		return r;
	r = show(d, sc, &content, reterr);
	nodedb_content_done(&content);
	d->shown++;
	return r;
}

/* Where to go from here; a recording that was not kept cannot be looked at again. */
static void print_next(const struct demo *d)
{
	const char *db = d->settings->db;

	printf("\n");
	if (db && !d->replay_why)
		printf("  The recording is in %s: ingero explain --db %s\n", db, db);
	printf("  Next: `ingero check` shows whether this machine can be traced, `sudo ingero trace --\n"
	       "  python3 train.py` runs your program and explains it.\n");
}

static int demo_prepare(
	struct demo *d, const char *name, const struct demo_scenario **ret, struct errinfo *reterr)
{
	const struct demo_settings *s = d->settings;
	char sim[1024], names[256] = "", *end = NULL;
	int r;

	*ret = name ? demo_scenario_find(name) : NULL;
	for (const struct demo_scenario *sc = demo_scenarios; name && !*ret && sc->name; sc++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			*names ? ", " : "", sc->name);
	if (name && !*ret)
		return errinfo_set(
			reterr, -EINVAL, "unknown demo '%s': choose one of %s", name, names);
	if (s->gpu && s->no_gpu)
		return errinfo_set(reterr, -EINVAL, "give either --gpu or --no-gpu");
	if (s->db && !name)
		return errinfo_set(reterr, -EINVAL,
			"--db keeps the recording of one scenario: name the scenario");
	d->speed = s->speed ? strtod(s->speed, &end) : 1;
	if (end && (end == s->speed || *end || !(d->speed >= SPEED_MIN && d->speed <= SPEED_MAX)))
		return errinfo_set(
			reterr, -EINVAL, "--speed %s: must be a number from 0.1 to 10", s->speed);
	r = s->no_gpu ? 0 : stage_find_sim(sim, sizeof(sim), reterr);
	d->replay_why = s->no_gpu   ? "--no-gpu"
			: geteuid() ? "tracing needs root"
			: r < 0     ? "no stand-in GPU here"
				    : NULL;
	if (s->db && d->replay_why && !s->gpu)
		return errinfo_set(reterr, -EINVAL,
			"--db: nothing is recorded here, a recorded run is explained instead (%s)",
			d->replay_why);
	if (s->gpu && geteuid())
		return errinfo_set(reterr, -EPERM, "--gpu: tracing needs root");
	return s->gpu ? r : 0;
}

static int demo_run(const struct command *c, void *settings, int argc, char **argv)
{
	struct demo d = {.settings = settings, .style = explain_style_detect(STDOUT_FILENO)};
	const struct demo_scenario *one = NULL;
	struct errinfo e = {0};
	int r = demo_prepare(&d, argc ? argv[0] : NULL, &one, &e);

	d.style.json = d.settings->json;
	d.style.stacks = d.style.verbose = d.settings->verbose;
	if (r == 0 && one)
		r = demo_one(&d, one, &e);
	for (const struct demo_scenario *sc = demo_scenarios; !one && r == 0 && sc->name; sc++)
		r = demo_one(&d, sc, &e);
	if (d.settings->json && d.shown)
		printf("]\n");
	if (r == 0 && !d.settings->json)
		print_next(&d);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_demo = {
	.name = "demo",
	.synopsis = "demo [scenario] [flags]",
	.summary = "Cause a known problem on the stand-in GPU, trace it and explain it",
	.details =
		"Scenarios: incident, cold-start, memcpy-bottleneck, periodic-spike, "
		"cpu-contention, gpu-steal\n(also gpu-contention, contention); without a name, all "
		"six. As root and with the programs of the\nstand-in GPU (build/sim), each runs on "
		"this machine for 5 to 27 seconds. Otherwise, and with\n--no-gpu, a recorded run "
		"is explained. Each ends with the measured effect.",
	.options = demo_options,
	.settings_size = sizeof(struct demo_settings),
	.defaults = &demo_defaults,
	.max_args = 1,
	.tells_updates = true,
	.run = demo_run,
};
