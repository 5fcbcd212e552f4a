/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_trace.c - `ingero trace`: follows CUDA processes, shows a live table or JSON lines, records,
 * and gives metrics away.
 *
 * The loop runs until --duration has passed or SIGINT/SIGTERM arrives (through a signalfd, so no
 * work happens in a handler); a second signal ends at once. With a command to run (trace_command.h) it is
 * that one's end that ends it; the terminal is the command's then, and ours are only a few lines on stderr. A service manager hears of it once probes
 * are in place, and of every turn of the loop that its watchdog wants: one that drains no ring is stuck. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "notify/alert/alerter.h"
#include "answer/encode/event_json.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/text.h"
#include "cli/commands.h"
#include "command/program.h"
#include "cli/live.h"
#include "cli/trace_command.h"
#include "cli/trace_settings.h"
#include "config.h"
#include "wire/names.h"

#define STEP_MS        10 /* how long a record may wait in the ring */
#define SCREEN_MAX     (1 << 20)
#define EARLIER_MAX    1024
#define JSON_BUFFER    (1 << 16)
#define STATUS_SECONDS 10 /* between lines where there is no terminal */

struct trace {
	const struct trace_settings *settings;
	struct trace_plan plan;
	struct tracer *tracer;
	struct telemetry *telemetry; /* NULL: no metrics are given away */
	struct alert_file *notify;
	struct alerter *alerter; /* NULL: nobody is told */
	struct trace_stream stream;
	struct trace_command command;
	FILE *out; /* for people */
	int signal_fd;
	bool is_signalled; /* to end */
	bool is_deserted;  /* the processes of --pid have ended */
	struct live_style style;
	struct json_writer json;
	enum gpu_state gpu_state; /* as last told in JSON */
	int drawn_lines;          /* of the live table now on the terminal */
	bool terminal;
};

static void take_event(void *arg, const struct event *e, const struct collective *c,
	const char *container_id, const struct stack *stack)
{
	struct trace *t = arg;

	trace_stream_event(&t->stream, e);
	if (t->plan.json)
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

static void take_gpu(void *arg, const struct gpu_sample *s)
{
	struct trace *t = arg;

	trace_stream_gpu(&t->stream, s);
	if (t->plan.json)
		event_json_gpu(&t->json, s, t->plan.node);
}

/* Once when it is found, once when it is over. On a terminal the lines stand above the table, which
 * is drawn anew below them. */
static void print_incident(void *arg, const struct incident *i, enum incident_change change)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCREEN_MAX);
	struct trace *t = arg;

	if (t->alerter)
		alerter_tell(t->alerter, i);
	if (change != INCIDENT_RESOLVED && (int)i->severity >= t->plan.pause_severity)
		trace_stream_incident(&t->stream, i->pid);
	if (change == INCIDENT_GROWN)
		return;
	if (t->settings->log)
		log_info("incident %s %s: %s: %s", i->id, incident_change_name(change),
			severity_name(i->severity), i->summary);
	if (t->plan.json) {
		event_json_incident(
			&t->json, i, incident_change_name(change), wall_now(), t->plan.node);
		return;
	}
	if (t->command.argv)
		return; /* all of them are told at the end */
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

static bool end_came(const struct trace *t)
{
	struct signalfd_siginfo info;

	return t->command.argv ? trace_command_is_over(&t->command)
			       : read(t->signal_fd, &info, sizeof(info)) == sizeof(info);
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

	if (t->plan.json) {
		print_gpu_state(t);
		if (second % STATUS_SECONDS == 0) {
			tracer_view(t->tracer, &v);
			view_json(&t->json, &v, t->plan.node, false);
			event_json_books(
				&t->json, &v.books, v.cpu_losses, v.now, t->plan.node, false);
		}
		fflush(stdout);
	} else if (t->terminal && !t->command.argv) {
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
		v.runtime_probes + v.driver_probes, TEXT_COUNT(hits),
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
		trace_stream_serve(&t->stream, t->tracer, r > 0);
		if (r > 0) {
			show(t, ++second);
			if (second % STATUS_SECONDS == 0)
				say_status(t, notify_status);
		}
		if (t->telemetry && telemetry_wants(t->telemetry))
			telemetry_give(t->telemetry, tracer_metrics(t->tracer));
		if (end_came(t)) {
			t->is_signalled = !t->command.argv;
			return 0;
		}
		if (t->plan.json && ferror(stdout))
			return 0; /* the reader of the lines went away */
		t->is_deserted = tracer_is_over(t->tracer);
		if (t->is_deserted)
			return 0;
		if (t->settings->duration_ns &&
			mono_now().ns - start.ns >= t->settings->duration_ns)
			return 0;
	}
}

static void print_header(struct trace *t, const struct buf *earlier)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCREEN_MAX);
	struct tracer_view v;

	tracer_view(t->tracer, &v);
	if (t->settings->log)
		log_info("tracing began: version %s, node %s, recording to %s", INGERO_VERSION,
			t->plan.node, t->plan.db_path ? t->plan.db_path : "nothing");
	if (t->command.argv) {
		live_command_header(
			&b, t->command.argv, t->plan.tracer.command_pid, t->plan.db_path);
	} else {
		live_header(&b, &v, t->plan.db_path);
		buf_puts(&b, buf_str(earlier));
	}
	fputs(buf_str(&b), t->out);
	fflush(t->out);
}

static void print_next(struct trace *t, const struct tracer_view *v, struct buf *b)
{
	if (t->command.argv) {
		live_command_end(b, v, t->plan.db_path);
		if (trace_command_is_over(&t->command) && !t->settings->pids.count)
			live_command_left(b, v);
		return;
	}
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
	if (t->plan.json) {
		view_json(&t->json, &v, t->plan.node, true);
		event_json_books(&t->json, &v.books, v.cpu_losses, v.now, t->plan.node, true);
	} else if (!t->command.argv) {
		draw(t, &v, true);
	}
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++)
		if (!account_balances(&v.books.source[s])) {
			fprintf(stderr,
				"%singero: event accounting of source %s does not balance; please report this\n",
				log_mark(LOG_LEVEL_ERROR), wire_source_name(s));
			balanced = false;
		}
	if (t->is_deserted)
		buf_puts(
			&b, "  Tracing ended because the processes given with --pid have ended.\n");
	if (!t->plan.json || t->command.argv)
		print_next(t, &v, &b);
	fputs(buf_str(&b), t->out);
	fflush(t->out);
	if (t->command.argv)
		trace_command_ended(&t->command, t->plan.db_path && live_has_calls(&v));
	return balanced;
}

static void print_telemetry(const struct trace *t)
{
	const struct trace_plan *p = &t->plan;
	FILE *out = t->out;

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

static void stop_alerts(struct trace *t)
{
	struct alerter_stats s;

	if (!t->alerter)
		return;
	s = alerter_stop(TAKE(t->alerter));
	log_info("alerts: %llu notices, %llu requests sent", (unsigned long long)s.notices,
		(unsigned long long)s.sent);
	if (s.lost || s.refused || s.waiting)
		fprintf(stderr,
			"%singero: alerts: %llu were not delivered, %llu were refused by their receiver, %llu were dropped\n",
			log_mark(LOG_LEVEL_WARNING), (unsigned long long)s.waiting,
			(unsigned long long)s.refused, (unsigned long long)s.lost);
}

/* The threads that talk to others. They start before privileges are gone, but run with next to none. */
static int start_outlets(struct trace *t, void (*begin)(void), struct errinfo *reterr)
{
	struct alerter_settings alerts = {.node = t->plan.node, .begin = begin};
	int r = 0;

	t->plan.telemetry.begin = begin;
	if (t->plan.has_telemetry)
		r = telemetry_start(&t->plan.telemetry, &t->telemetry, reterr);
	if (r < 0 || !t->notify)
		return r;
	alerts.file = t->notify;
	return alerter_start(&alerts, &t->alerter, reterr);
}

static int run_tracer(struct trace *t, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf earlier = BUF_INIT(EARLIER_MAX);
	struct errinfo stop_error = {0};
	bool balanced;
	int r, q;

	if (t->plan.db_path)
		trace_earlier(&earlier, t->plan.db_path);
	r = trace_stream_open(&t->stream, &t->plan, &t->drawn_lines, reterr);
	if (r < 0)
		return r;
	r = tracer_confine_begin(&t->plan.tracer);
	if (r < 0)
		log_warning("cannot drop all privileges: %s", strerror(-r));
	r = start_outlets(t, r < 0 ? NULL : tracer_confine_metrics, reterr);
	r = r ?: tracer_start(&t->plan.tracer, &t->tracer, reterr);
	if (r < 0) {
		if (t->telemetry)
			telemetry_stop(t->telemetry, NULL);
		stop_alerts(t);
		trace_stream_close(&t->stream, NULL);
		return r;
	}
	print_header(t, &earlier);
	if (t->telemetry)
		print_telemetry(t);
	trace_stream_say(&t->stream, t->out);
	say_status(t, notify_ready);
	if (t->command.argv)
		trace_command_ready(&t->command);
	r = follow(t, reterr);
	notify_stopping();
	q = tracer_stop(t->tracer, t->is_signalled, &stop_error);
	if (t->settings->log)
		log_info("tracing ended%s%s", q < 0 ? ": " : "", q < 0 ? stop_error.text : "");
	stop_telemetry(t);
	stop_alerts(t);
	balanced = print_end(t);
	trace_stream_close(&t->stream, t->out);
	tracer_free(t->tracer);
	if (r == 0 && q < 0) {
		*reterr = stop_error;
		r = q;
	}
	if (r == 0 && !balanced)
		r = errinfo_set_exit(reterr, EXIT_BUG, -EPROTO, "some events are unaccounted for");
	return r;
}

/* Traces until the end; the exit code. */
static int trace_all(struct trace *t, struct errinfo *reterr)
{
	struct tracer_settings *ts = &t->plan.tracer;
	int r;

	if (t->plan.json) {
		ts->stack_sink = print_stack;
		ts->coverage_sink = print_coverage;
	}
	if (t->plan.json || t->plan.has_stream) {
		ts->event_sink = take_event;
		ts->gpu_sink = take_gpu;
	}
	ts->incident_sink = print_incident;
	ts->event_arg = t;
	t->signal_fd = open_signals();
	r = run_tracer(t, reterr);
	close(t->signal_fd);
	return r < 0 ? dispatch_fail(reterr, r) : EXIT_OK;
}

/* The same beside the command, whose exit code it is then. */
static int trace_command(struct trace *t, struct errinfo *reterr)
{
	int r = trace_command_begin(&t->command, t->settings, &t->plan, reterr);

	r = r ?: trace_command_fork(&t->command, reterr);
	if (r < 0)
		return dispatch_fail(reterr, r);
	if (r > 0)
		return trace_command_supervise(&t->command, t->plan.db_path);
	r = dispatch_flush(trace_all(t, reterr));
	_exit(r);
}

static int trace_run(const struct command *c, void *settings, int argc, char **argv)
{
	static char lines[JSON_BUFFER]; /* until the process has ended */
	struct trace t = {.settings = settings,
		.command = {.argv = argc ? argv : NULL},
		.style = live_style_detect(STDOUT_FILENO),
		.json = json_writer_to_file(stdout),
		.terminal = isatty(STDOUT_FILENO)};
	struct errinfo e = {0};
	int log = -1, r;

	if (!argc)
		dispatch_serve();
	r = trace_resolve(t.settings, &t.plan, &e);
	if (r == 0 && t.settings->log)
		r = log_file_open(t.settings->log, &log, &e);
	if (r == 0 && t.plan.notify)
		r = alert_file_read(t.plan.notify, NULL, 0, &t.notify, &e);
	log_set_file(log);
	if (t.settings->verbose)
		log_set_level(LOG_LEVEL_INFO);
	t.out = t.plan.json || argc ? stderr : stdout;
	if (t.plan.json)
		setvbuf(stdout, lines, _IOFBF, sizeof(lines));
	r = r < 0 ? dispatch_fail(&e, r) : argc ? trace_command(&t, &e) : trace_all(&t, &e);
	trace_command_done(&t.command);
	trace_plan_done(&t.plan);
	if (t.notify)
		alert_file_free(t.notify);
	log_set_file(-1);
	fd_closep(&log);
	return r;
}

const struct command cmd_trace = {
	.name = "trace",
	.synopsis = "trace [flags] [-- COMMAND [ARGUMENT...]]",
	.summary = "Trace CUDA processes, or run a command and trace it, and record (needs root)",
	.details =
		"With a command: runs it as the user who called sudo, traces it and its children from the first "
		"call\non, and explains at its end why the GPU waited. The exit code is the command's.\n"
		"  sudo ingero trace -- python3 train.py\n\n"
		"Without one: traces every process that uses CUDA, running or started later; --pid and --user "
		"select\nsome. Stop it with Ctrl-C, with --pid it also ends when those processes have; `ingero explain` then\n"
		"shows why the GPU waited.",
	.options = trace_options,
	.settings_size = sizeof(struct trace_settings),
	.defaults = &trace_defaults,
	.runs_command = true,
	.tells_updates = true,
	.run = trace_run,
};
