/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_trace.c - `ingero trace`: follows CUDA processes, shows a live table or JSON lines, records,
 * and gives metrics away.
 *
 * The loop runs until --duration has passed or SIGINT/SIGTERM arrives (through a signalfd, so no
 * work happens in a handler); a second signal ends at once. A service manager hears of it once probes
 * are in place, and of every turn of the loop that its watchdog wants: one that drains no ring is stuck. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/answer/encode/event_json.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/text.h"
#include "cli/commands.h"
#include "command/dispatch.h"
#include "cli/live.h"
#include "cli/trace_settings.h"
#include "cli/view_json.h"
#include "wire/names.h"

#define STEP_MS        10 /* how long a record may wait in the ring */
#define SCREEN_MAX     (1 << 20)
#define STATUS_SECONDS 10 /* between lines where there is no terminal */

struct trace {
	const struct trace_settings *settings;
	struct trace_plan plan;
	struct tracer *tracer;
	struct telemetry *telemetry; /* NULL: no metrics are given away */
	int signal_fd;
	struct live_style style;
	struct json_writer json;
	enum gpu_state gpu_state; /* as last told in JSON */
	int drawn_lines;          /* of the live table now on the terminal */
	bool terminal;
};

static void print_event(void *arg, const struct event *e, const struct collective *c,
	const char *container_id, const struct stack *stack)
{
	struct trace *t = arg;

	event_json(&t->json, e, c, t->plan.node, container_id, stack);
}

static void print_stack(void *arg, const struct stack *s)
{
	struct trace *t = arg;

	event_json_new_stack(&t->json, s, wall_now(), t->plan.node);
}

static void print_coverage(
	void *arg, uint32_t pid, const char *comm, const struct process_layers *l)
{
	struct trace *t = arg;

	event_json_coverage(&t->json, wall_now(), t->plan.node, pid, comm, l);
}

static void print_gpu(void *arg, const struct gpu_sample *s)
{
	struct trace *t = arg;

	event_json_gpu(&t->json, s, t->plan.node);
}

/* Once when it is found, once when it is over. On a terminal the lines stand above the table, which
 * is drawn anew below them. */
static void print_incident(void *arg, const struct incident *i, enum incident_change change)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCREEN_MAX);
	struct trace *t = arg;

	if (change == INCIDENT_GROWN)
		return;
	if (t->settings->json) {
		event_json_incident(
			&t->json, i, incident_change_name(change), wall_now(), t->plan.node);
		return;
	}
	if (t->drawn_lines)
		buf_printf(&b, "\x1b[%dA\r\x1b[J", t->drawn_lines);
	t->drawn_lines = 0;
	live_incident(&b, i);
	fputs(buf_str(&b), stdout);
	fflush(stdout);
}

/* A line whenever the driver begins to answer or ceases to; none on a machine without one. */
static void print_gpu_state(struct trace *t)
{
	char text[320];
	enum gpu_state state = tracer_gpu_state(t->tracer, text, sizeof(text));

	if (state == t->gpu_state || state == GPU_ABSENT)
		return;
	t->gpu_state = state;
	event_json_gpu_state(&t->json, gpu_state_name(state), text, wall_now(), t->plan.node);
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool signal_came(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info);
}

static int count_lines(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

/* The table is drawn over the previous one. After a change of the terminal's size nobody knows how
 * many rows that takes, so the screen is cleared. */
static void draw(struct trace *t, const struct tracer_view *v, bool last)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCREEN_MAX);

	if (live_style_resize(&t->style, STDOUT_FILENO) && t->drawn_lines)
		buf_puts(&b, "\x1b[H\x1b[2J");
	else if (t->drawn_lines)
		buf_printf(&b, "\x1b[%dA\r\x1b[J", t->drawn_lines);
	(last ? live_table : live_screen)(&b, v, t->style);
	fputs(buf_str(&b), stdout);
	fflush(stdout);
	t->drawn_lines = count_lines(buf_str(&b));
}

static void show(struct trace *t, int64_t second)
{
	struct tracer_view v;

	if (t->settings->json) {
		print_gpu_state(t);
		if (second % STATUS_SECONDS == 0) {
			tracer_view(t->tracer, &v);
			view_json(&t->json, &v, t->plan.node, false);
			event_json_books(
				&t->json, &v.books, v.cpu_losses, v.now, t->plan.node, false);
		}
		fflush(stdout);
	} else if (t->terminal) {
		tracer_view(t->tracer, &v);
		draw(t, &v, false);
	}
}

/* For `systemctl status`. */
static void say_status(struct trace *t, void (*say)(const char *fmt, ...))
{
	uint64_t hits = 0, lost = 0;
	char of[2][TEXT_MAX];
	struct tracer_view v;

	if (!notify_is_open())
		return;
	tracer_view(t->tracer, &v);
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		hits += v.books.source[s].hits;
		lost += account_lost(&v.books.source[s]);
	}
	say("CUDA processes: %zu, probes: %zu, events: %s, lost: %s", v.processes,
		v.runtime_probes + v.driver_probes, text_format_count(of[0], hits),
		text_format_count(of[1], lost));
}

static int follow(struct trace *t, struct errinfo *reterr)
{
	mono_time start = mono_now();
	int64_t second = 0;

	for (;;) {
		int r = tracer_step(t->tracer, STEP_MS, reterr);

		if (r < 0)
			return r;
		notify_alive(mono_now());
		if (r > 0) {
			show(t, ++second);
			if (second % STATUS_SECONDS == 0)
				say_status(t, notify_status);
		}
		if (t->telemetry && telemetry_wants(t->telemetry))
			telemetry_give(t->telemetry, tracer_metrics(t->tracer));
		if (signal_came(t->signal_fd))
			return 0;
		if (t->settings->json && ferror(stdout))
			return 0; /* the reader of the lines went away */
		if (t->settings->duration_ns &&
			mono_now().ns - start.ns >= t->settings->duration_ns)
			return 0;
	}
}

static void print_header(struct trace *t)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCREEN_MAX);
	struct tracer_view v;

	tracer_view(t->tracer, &v);
	live_header(&b, &v, t->plan.db_path);
	fputs(buf_str(&b), t->settings->json ? stderr : stdout);
	fflush(stdout);
}

static void print_next(struct trace *t, const struct tracer_view *v, struct buf *b)
{
	if (!t->plan.db_path)
		return;
	if (!live_has_calls(v)) {
		buf_puts(b,
			"  No CUDA calls were recorded, so there is nothing to explain.\n"
			"  `ingero check` lists the CUDA processes and libraries on this machine.\n");
		return;
	}
	buf_puts(b, "  Recorded to ");
	text_escape_terminal(b, t->plan.db_path);
	buf_puts(b, ". Next: ingero explain");
	if (t->settings->db) {
		buf_puts(b, " --db ");
		text_escape_terminal(b, t->plan.db_path);
	}
	buf_puts(b, "\n");
}

/* The last table, with the final books in it. Returns whether they balance. */
static bool print_end(struct trace *t)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCREEN_MAX);
	struct tracer_view v;
	bool balanced = true;

	tracer_view(t->tracer, &v);
	if (t->settings->json) {
		view_json(&t->json, &v, t->plan.node, true);
		event_json_books(&t->json, &v.books, v.cpu_losses, v.now, t->plan.node, true);
	} else {
		draw(t, &v, true);
	}
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++)
		if (!account_balances(&v.books.source[s])) {
			fprintf(stderr,
				"%singero: event accounting of source %s does not balance; please report this\n",
				log_mark(LOG_LEVEL_ERROR), wire_source_name(s));
			balanced = false;
		}
	if (!t->settings->json)
		print_next(t, &v, &b);
	fputs(buf_str(&b), stdout);
	return balanced;
}

static void print_telemetry(const struct trace *t)
{
	const struct trace_plan *p = &t->plan;
	FILE *out = t->settings->json ? stderr : stdout;

	if (telemetry_address(t->telemetry))
		fprintf(out, "  Metrics: http://%s/metrics%s\n", telemetry_address(t->telemetry),
			p->telemetry.scrape.allow_remote ? " (no authentication)" : "");
	if (p->telemetry.push.endpoint)
		fprintf(out, "  Metrics: to %s by OTLP (%s)\n", p->endpoint.shown,
			otlp_protocol_name(p->endpoint.protocol));
	fflush(out);
}

/* The last reading has the final books in it. */
static void stop_telemetry(struct trace *t)
{
	size_t left;

	if (!t->telemetry)
		return;
	left = telemetry_stop(t->telemetry, tracer_metrics(t->tracer));
	if (left)
		fprintf(stderr, "%singero: %zu metric readings were not delivered to %s\n",
			log_mark(LOG_LEVEL_WARNING), left, t->plan.endpoint.shown);
}

static int run_tracer(struct trace *t, struct errinfo *reterr)
{
	struct errinfo stop_error = {0};
	bool balanced;
	int r, q;

	r = tracer_confine_begin(&t->plan.tracer);
	if (r < 0)
		log_warning("cannot drop all privileges: %s", strerror(-r));
	else
		t->plan.telemetry.begin = tracer_confine_metrics;
	if (t->plan.has_telemetry) {
		r = telemetry_start(&t->plan.telemetry, &t->telemetry, reterr);
		if (r < 0)
			return r;
	}
	r = tracer_start(&t->plan.tracer, &t->tracer, reterr);
	if (r < 0) {
		if (t->telemetry)
			telemetry_stop(t->telemetry, NULL);
		return r;
	}
	print_header(t);
	if (t->telemetry)
		print_telemetry(t);
	say_status(t, notify_ready);
	r = follow(t, reterr);
	notify_stopping();
	q = tracer_stop(t->tracer, &stop_error);
	stop_telemetry(t);
	balanced = print_end(t);
	tracer_free(t->tracer);
	if (r == 0 && q < 0) {
		*reterr = stop_error;
		r = q;
	}
	if (r == 0 && !balanced)
		r = errinfo_set_exit(reterr, EXIT_BUG, -EPROTO, "some events are unaccounted for");
	return r;
}

static void set_sinks(struct trace *t)
{
	struct tracer_settings *ts = &t->plan.tracer;

	if (t->settings->json) {
		ts->event_sink = print_event;
		ts->stack_sink = print_stack;
		ts->coverage_sink = print_coverage;
		ts->gpu_sink = print_gpu;
	}
	ts->incident_sink = print_incident;
	ts->event_arg = t;
}

static int trace_run(const struct command *c, void *settings, int argc, char **argv)
{
	struct trace t = {.settings = settings,
		.style = live_style_detect(STDOUT_FILENO),
		.json = json_writer_to_file(stdout),
		.terminal = isatty(STDOUT_FILENO)};
	struct errinfo e = {0};
	int r;

	dispatch_serve();
	r = trace_resolve(t.settings, &t.plan, &e);
	if (r == 0) {
		set_sinks(&t);
		t.signal_fd = open_signals();
		r = run_tracer(&t, &e);
		close(t.signal_fd);
	}
	trace_plan_done(&t.plan);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_trace = {
	.name = "trace",
	.synopsis = "trace [flags]",
	.summary = "Trace CUDA processes live and record them (needs root)",
	.details =
		"Traces every process that uses CUDA, running or started later; --pid and --user "
		"select some.\n"
		"Stop it with Ctrl-C; `ingero explain` then shows why the GPU waited.",
	.options = trace_options,
	.settings_size = sizeof(struct trace_settings),
	.defaults = &trace_defaults,
	.run = trace_run,
};
