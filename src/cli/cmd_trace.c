/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_trace.c - `ingero trace`: follows CUDA processes, shows a live table or JSON lines, records.
 *
 * The loop runs until --duration has passed or SIGINT/SIGTERM arrives (through a signalfd, so no
 * work happens in a handler); a second signal ends at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/annotate/place.h"
#include "agent/discover/identity.h"
#include "agent/probe/probe.h"
#include "agent/store/owner.h"
#include "agent/store/prune.h"
#include "agent/tracer.h"
#include "base/buf.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/dispatch.h"
#include "agent/answer/event_json.h"
#include "cli/live.h"
#include "cli/view_json.h"
#include "wire/names.h"

#define STEP_MS        10 /* how long a record may wait in the ring */
#define SCREEN_MAX     (1 << 20)
#define STATUS_SECONDS 10 /* between lines where there is no terminal */
#define BUDGET_DEFAULT 0.01

#define MAX_DB_DEFAULT (10ULL << 30)
#define NOT_GIVEN      UINT64_MAX

struct trace_settings {
	struct option_pids pids;
	const char *user, *db, *node, *cuda_lib, *method, *budget;
	uint64_t duration_ns, ring_bytes;
	bool json, record, record_all, no_io, no_net, no_tcp, no_memory, old_kernel;
	uint64_t max_db_bytes, rollover_bytes, heartbeat_ns;
	int64_t rollover_keep, deadband, annotate_gid;
	bool annotate;
	const char *annotate_socket;
	int64_t sampling_rate;
	bool stack;
	const char *py_walker;
	int64_t stack_samples;
};

struct trace {
	const struct trace_settings *settings;
	struct tracer *tracer;
	int signal_fd;
	const char *db_path; /* NULL: nothing is recorded */
	char *default_path;
	char annotate_path[ANNOTATE_PATH_MAX];
	char node[256];
	struct live_style style;
	struct json_writer json;
	enum gpu_state gpu_state; /* as last told in JSON */
	int drawn_lines;          /* of the live table now on the terminal */
	bool terminal;
};

#define OPTION(field) offsetof(struct trace_settings, field)
static const struct option_row trace_options[] = {
	{"pid", 'p', OPTION_PIDS, OPTION(pids), "N", "trace these processes and their children", 0,
		0, false},
	{"user", 'u', OPTION_STRING, OPTION(user), "NAME", "trace this user's CUDA processes", 0, 0,
		false},
	{"duration", 'd', OPTION_DURATION, OPTION(duration_ns), "TIME",
		"stop after this time (default: until Ctrl-C)", 0, 0, false},
	{"json", 0, OPTION_FLAG, OPTION(json), NULL, "print each recorded event as a line of JSON",
		0, 0, false},
	{"db", 0, OPTION_STRING, OPTION(db), "PATH",
		"record here (default: $INGERO_DB, else ~/.ingero/ingero.db)", 0, 0, false},
	{"record", 0, OPTION_FLAG, OPTION(record), NULL,
		"record to the database; --record=false only shows", 0, 0, false},
	{"record-all", 0, OPTION_FLAG, OPTION(record_all), NULL,
		"record every call, not only exceptions and samples", 0, 0, false},
	{"max-db", 0, OPTION_SIZE, OPTION(max_db_bytes), "SIZE",
		"keep the database below this by deleting the oldest rows; 0: never (default: 10g)",
		0, 0, false},
	{"db-rollover-size", 0, OPTION_SIZE, OPTION(rollover_bytes), "SIZE",
		"instead, go on in a new database at this size", 0, 0, false},
	{"db-rollover-keep", 0, OPTION_INT, OPTION(rollover_keep), "N",
		"databases rolled over to keep (default: 6)", 0, 4000, false},
	{"annotate", 0, OPTION_FLAG, OPTION(annotate), NULL,
		"take labels from workloads (`ingero annotate`) over a socket", 0, 0, false},
	{"annotate-socket-gid", 0, OPTION_INT, OPTION(annotate_gid), "GID",
		"let this group use the socket (default: -1, only this user)", -1, INT32_MAX,
		false},
	{"annotate-socket", 0, OPTION_STRING, OPTION(annotate_socket), "PATH",
		"the socket's path (default: /run/ingero/annotate.sock, or below "
		"$XDG_RUNTIME_DIR)",
		0, 0, true},
	{"deadband", 0, OPTION_INT, OPTION(deadband), "PERCENT",
		"store a reading of the host only if it changed by more than this (default: 0)", 0,
		100, false},
	{"heartbeat", 0, OPTION_DURATION, OPTION(heartbeat_ns), "TIME",
		"store one at least this often; alone: only so often (default: every second)", 0, 0,
		false},
	{"node", 0, OPTION_STRING, OPTION(node), "NAME",
		"name of this node (default: agent.node of ingero.yaml, else the host name)", 0, 0,
		false},
	{"cuda-lib", 0, OPTION_STRING, OPTION(cuda_lib), "PATH",
		"probe only this libcudart or libcuda", 0, 0, false},
	{"ringbuf-size", 0, OPTION_SIZE, OPTION(ring_bytes), "SIZE",
		"kernel buffer, a power of two (default: 8m)", 0, 0, false},
	{"no-io", 0, OPTION_FLAG, OPTION(no_io), NULL, "leave block I/O alone", 0, 0, false},
	{"overhead-budget", 0, OPTION_STRING, OPTION(budget), "PCT",
		"probe launches only part of the time to stay below (default: 1%; 0: no limit)", 0,
		0, false},
	{"sampling-rate", 0, OPTION_INT, OPTION(sampling_rate), "N",
		"of ordinary launches and copies, make every Nth a row (default: 0, adaptive); "
		"counts stay "
		"exact",
		0, 1 << 20, false},
	{"stack", 0, OPTION_FLAG, OPTION(stack), NULL,
		"record from where each call was made; --stack=false does not", 0, 0, false},
	{"py-walker", 0, OPTION_STRING, OPTION(py_walker), "NAME",
		"who walks Python's frames: auto, ebpf or userspace (default: auto)", 0, 0, false},
	{"stack-samples", 0, OPTION_INT, OPTION(stack_samples), "N",
		"of ordinary calls, record N per stack and only count the rest (default: 0, all)",
		0, INT32_MAX, false},
	{"no-net", 0, OPTION_FLAG, OPTION(no_net), NULL, "leave sockets and TCP alone", 0, 0,
		false},
	{"no-tcp", 0, OPTION_FLAG, OPTION(no_tcp), NULL, "as --no-net", 0, 0, true},
	{"no-memory", 0, OPTION_FLAG, OPTION(no_memory), NULL,
		"leave page allocation and reclaim alone", 0, 0, false},
	{"old-kernel", 0, OPTION_FLAG, OPTION(old_kernel), NULL, "use what kernels before 6.3 have",
		0, 0, true},
	{"attach-method", 0, OPTION_STRING, OPTION(method), "NAME",
		"session, multi or perf (default: the best this kernel has)", 0, 0, true},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

static const struct trace_settings trace_defaults = {.record = true,
	.stack = true,
	.max_db_bytes = NOT_GIVEN,
	.rollover_keep = 6,
	.annotate_gid = -1};

static int resolve_method(const char *name, int *ret, struct errinfo *reterr)
{
	*ret = TRACER_METHOD_AUTO;
	if (!name)
		return 0;
	for (int m = PROBE_SESSION; m <= PROBE_PERF; m++)
		if (!strcmp(name, probe_method_name((enum probe_method)m))) {
			*ret = m;
			return 0;
		}
	return errinfo_set(
		reterr, -EINVAL, "--attach-method %s: it is session, multi or perf", name);
}

static int resolve_py_walker(const char *name, enum tracer_py_walker *ret, struct errinfo *reterr)
{
	static const char *const names[] = {[TRACER_PY_AUTO] = "auto",
		[TRACER_PY_EBPF] = "ebpf",
		[TRACER_PY_USERSPACE] = "userspace"};

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum tracer_py_walker)i;
			return 0;
		}
	return name ? errinfo_set(reterr, -EINVAL, "--py-walker %s: it is auto, ebpf or userspace",
			      name)
		    : 0;
}

static int resolve_filter(
	const struct trace_settings *s, struct tracer_settings *t, struct errinfo *reterr)
{
	struct passwd *pw;

	t->filter = FILTER_ALL;
	if (s->pids.count && s->user)
		return errinfo_set(reterr, -EINVAL, "give either --pid or --user, not both");
	if (s->pids.count) {
		t->filter = FILTER_PIDS;
		t->pids = s->pids.pid;
		t->pid_count = s->pids.count;
	}
	if (s->user) {
		pw = getpwnam(s->user);
		if (!pw)
			return errinfo_set(reterr, -ENOENT, "there is no user '%s'", s->user);
		t->filter = FILTER_USER;
		t->uid = pw->pw_uid;
	}
	return 0;
}

/* --node, else agent.node of ingero.yaml, else the host's name. */
static int resolve_node(struct trace *t, struct errinfo *reterr)
{
	_cleanup_(config_freep) struct config *config = NULL;
	const char *name = t->settings->node;
	int r = config_file_load(&config, reterr);

	if (r < 0)
		return r;
	if (!name)
		name = config->node;
	if (name)
		snprintf(t->node, sizeof(t->node), "%s", name);
	else if (gethostname(t->node, sizeof(t->node) - 1) < 0)
		return -errno;
	return identity_node_check(name ? name : t->node, reterr);
}

static int resolve_ring(uint64_t bytes, uint32_t *ret, struct errinfo *reterr)
{
	if (bytes && (bytes < 4096 || bytes > (1u << 30) || (bytes & (bytes - 1))))
		return errinfo_set(reterr, -EINVAL,
			"--ringbuf-size: a power of two from 4096 bytes to 1 GiB is needed");
	*ret = (uint32_t)bytes;
	return 0;
}

static int resolve_budget(const char *text, double *ret, struct errinfo *reterr)
{
	char *end;

	*ret = BUDGET_DEFAULT;
	if (!text)
		return 0;
	*ret = strtod(text, &end);
	if (*end == '%') {
		*ret /= 100;
		end++;
	}
	if (end == text || *end || !(*ret >= 0) || *ret > 1)
		return errinfo_set(reterr, -EINVAL,
			"--overhead-budget %s: a share like 1%% or 0.01 is needed, 0 for no limit",
			text);
	return 0;
}

static int resolve_size(
	const struct trace_settings *s, struct tracer_settings *t, struct errinfo *reterr)
{
	if (s->max_db_bytes != NOT_GIVEN && s->rollover_bytes)
		return errinfo_set(
			reterr, -EINVAL, "give either --max-db or --db-rollover-size, not both");
	t->rollover_bytes = s->rollover_bytes;
	t->rollover_keep = (unsigned)s->rollover_keep;
	if (!s->rollover_bytes)
		t->max_db_bytes = s->max_db_bytes == NOT_GIVEN ? MAX_DB_DEFAULT : s->max_db_bytes;
	if ((t->max_db_bytes && t->max_db_bytes < PRUNE_LIMIT_MIN) ||
		(t->rollover_bytes && t->rollover_bytes < PRUNE_LIMIT_MIN))
		return errinfo_set(reterr, -EINVAL,
			"--max-db and --db-rollover-size: at least 1m, or 0 for no limit");
	return 0;
}

static int resolve_annotate(struct trace *t, struct tracer_settings *ts, struct errinfo *reterr)
{
	const struct trace_settings *s = t->settings;
	int r = 0;

	ts->annotate_gid = s->annotate_gid;
	if (!s->annotate)
		return 0;
	if (!s->record)
		return errinfo_set(reterr, -EINVAL,
			"--annotate stores what it takes: it does not go with --record=false");
	if (s->annotate_socket && strlen(s->annotate_socket) < sizeof(t->annotate_path))
		snprintf(t->annotate_path, sizeof(t->annotate_path), "%s", s->annotate_socket);
	else if (s->annotate_socket)
		r = errinfo_set(reterr, -EINVAL, "--annotate-socket: the path is too long");
	else
		r = annotate_place_default(t->annotate_path, reterr);
	ts->annotate_path = t->annotate_path;
	return r;
}

static void print_event(void *arg, const struct event *e, const struct collective *c,
	const char *container_id, const struct stack *stack)
{
	struct trace *t = arg;

	event_json(&t->json, e, c, t->node, container_id, stack);
}

static void print_stack(void *arg, const struct stack *s)
{
	struct trace *t = arg;

	event_json_new_stack(&t->json, s, wall_now(), t->node);
}

static void print_coverage(
	void *arg, uint32_t pid, const char *comm, const struct process_layers *l)
{
	struct trace *t = arg;

	event_json_coverage(&t->json, wall_now(), t->node, pid, comm, l);
}

static void print_gpu(void *arg, const struct gpu_sample *s)
{
	struct trace *t = arg;

	event_json_gpu(&t->json, s, t->node);
}

/* Once when it is found, once when it is over. On a terminal the lines stand above the table, which
 * is drawn anew below them. */
static void print_incident(void *arg, const struct incident *i, enum case_change change)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SCREEN_MAX);
	struct trace *t = arg;

	if (change == CASE_GROWN)
		return;
	if (t->settings->json) {
		event_json_incident(&t->json, i, case_change_name(change), wall_now(), t->node);
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
	event_json_gpu_state(&t->json, gpu_state_name(state), text, wall_now(), t->node);
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
			view_json(&t->json, &v, t->node, false);
			event_json_books(&t->json, &v.books, v.cpu_losses, v.now, t->node, false);
		}
		fflush(stdout);
	} else if (t->terminal) {
		tracer_view(t->tracer, &v);
		draw(t, &v, false);
	}
}

static int follow(struct trace *t, struct errinfo *reterr)
{
	mono_time start = mono_now();
	int64_t second = 0;

	for (;;) {
		int r = tracer_step(t->tracer, STEP_MS, reterr);

		if (r < 0)
			return r;
		if (r > 0)
			show(t, ++second);
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
	live_header(&b, &v, t->db_path);
	fputs(buf_str(&b), t->settings->json ? stderr : stdout);
	fflush(stdout);
}

static void print_next(struct trace *t, const struct tracer_view *v, struct buf *b)
{
	if (!t->db_path)
		return;
	if (!live_has_calls(v)) {
		buf_puts(b,
			"  No CUDA call was made while this ran, so there is nothing to explain.\n"
			"  `ingero check` shows the CUDA processes and libraries seen here.\n");
		return;
	}
	buf_puts(b, "  Recorded to ");
	text_escape_terminal(b, t->db_path);
	buf_puts(b, ". Next: ingero explain");
	if (t->settings->db) {
		buf_puts(b, " --db ");
		text_escape_terminal(b, t->db_path);
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
		view_json(&t->json, &v, t->node, true);
		event_json_books(&t->json, &v.books, v.cpu_losses, v.now, t->node, true);
	} else {
		draw(t, &v, true);
	}
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++)
		if (!account_balances(&v.books.source[s])) {
			fprintf(stderr,
				"ingero: the books of source %s do not balance; please report "
				"this\n",
				wire_source_name(s));
			balanced = false;
		}
	if (!t->settings->json)
		print_next(t, &v, &b);
	fputs(buf_str(&b), stdout);
	return balanced;
}

static int run_tracer(struct trace *t, const struct tracer_settings *ts, struct errinfo *reterr)
{
	struct errinfo stop_error = {0};
	bool balanced;
	int r, q;

	r = tracer_start(ts, &t->tracer, reterr);
	if (r < 0)
		return r;
	print_header(t);
	r = follow(t, reterr);
	q = tracer_stop(t->tracer, &stop_error);
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

static int resolve(struct trace *t, struct tracer_settings *ts, struct errinfo *reterr)
{
	const struct trace_settings *s = t->settings;
	int r = resolve_filter(s, ts, reterr);

	if (r == 0)
		r = resolve_node(t, reterr);
	if (r == 0)
		r = resolve_method(s->method, &ts->method, reterr);
	if (r == 0)
		r = resolve_py_walker(s->py_walker, &ts->py_walker, reterr);
	if (r == 0)
		r = resolve_ring(s->ring_bytes, &ts->ring_bytes, reterr);
	if (r == 0)
		r = resolve_budget(s->budget, &ts->overhead_budget, reterr);
	if (r == 0)
		r = resolve_size(s, ts, reterr);
	if (r == 0)
		r = resolve_annotate(t, ts, reterr);
	if (r == 0 && s->record && !s->db)
		r = store_default_path(&t->default_path, reterr);
	if (s->record)
		t->db_path = s->db ? s->db : t->default_path;
	ts->cuda_lib = s->cuda_lib;
	ts->record_all = s->record_all;
	ts->no_block = s->no_io;
	ts->no_net = s->no_net || s->no_tcp;
	ts->sampling_rate = (uint32_t)s->sampling_rate;
	ts->no_stacks = !s->stack;
	ts->stack_samples = (uint32_t)s->stack_samples;
	ts->no_memory = s->no_memory;
	ts->old_kernel = s->old_kernel;
	ts->deadband_points = (double)s->deadband;
	ts->heartbeat_ns = s->heartbeat_ns;
	ts->node = t->node;
	ts->db_path = t->db_path;
	if (s->json) {
		ts->event_sink = print_event;
		ts->stack_sink = print_stack;
		ts->coverage_sink = print_coverage;
		ts->gpu_sink = print_gpu;
	}
	ts->incident_sink = print_incident;
	ts->event_arg = t;
	return r;
}

static int trace_run(const struct command *c, void *settings, int argc, char **argv)
{
	struct trace t = {.settings = settings,
		.style = live_style_detect(STDOUT_FILENO),
		.json = json_writer_to_file(stdout),
		.terminal = isatty(STDOUT_FILENO)};
	struct tracer_settings ts = {0};
	struct errinfo e = {0};
	int r = resolve(&t, &ts, &e);

	if (r == 0) {
		t.signal_fd = open_signals();
		r = run_tracer(&t, &ts, &e);
		close(t.signal_fd);
	}
	free(t.default_path);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_trace = {
	.name = "trace",
	.synopsis = "trace [flags]",
	.summary = "Trace CUDA processes live and record them (needs root)",
	.details = "Follows every process that uses CUDA, now or later, unless --pid or --user "
		   "says which.\n"
		   "Ctrl-C stops it; `ingero explain` then says why the GPU waited.",
	.options = trace_options,
	.settings_size = sizeof(struct trace_settings),
	.defaults = &trace_defaults,
	.run = trace_run,
};
