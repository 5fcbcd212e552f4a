/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_report.c - why a rank is slow, in the words of the recording's newest incident, and what a rank
 * does that has come to no collective for a second: how a hang is told from a long pause. */
#include <sys/random.h>
#include <sys/syscall.h>

#include "base/file.h"
#include "base/socket_path.h"
#include "node/push/pusher_node.h"
#include "node/push/pusher_private.h"

#define INCIDENT_SECONDS 5                         /* between looks */
#define INCIDENT_BACK_NS (60 * (int64_t)NS_PER_S)  /* seen since */
#define QUIET_NS         ((int64_t)NS_PER_S)       /* without a collective */
#define FORGET_NS        (600 * (int64_t)NS_PER_S) /* then it has ended with them */

/* The line of a step's account (model/step_account.h) that a cause (model/incident.h) is on. */
static const char *line_of(const char *cause)
{
	static const struct {
		const char *cause, *line;
	} lines[] = {{"cpu_preempted", "cpu"}, {"cpu_run_queue", "cpu"}, {"block_io", "disk"},
		{"network_wait", "network"}, {"memory_reclaim", "memory"}, {"asleep", "asleep"},
		{"host_code", "host"}, {"cuda_call", "call"}};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strcmp(cause, lines[i].cause))
			return lines[i].line;
	return "";
}

void pusher_report_begin(struct pusher *p, uint32_t pid, struct push_report *r)
{
	const struct pusher_process *process = idmap_get(&p->recording.processes, pid);

	*r = (struct push_report){.who = pusher_who(p),
		.sent_ns = wall_now().ns,
		.pid = pid,
		.world_rank = process ? pusher_process_rank(process) : -1};
}

static void put_doing(struct pusher *p, uint32_t pid, struct push_report *r)
{
	const struct pusher_process *process = idmap_get(&p->recording.processes, pid);
	struct pusher_doing d;

	pusher_doing_read("", pid, process ? process->start_ticks : 0, &d);
	r->doing = d.doing;
	/* Its last collective was never waited for to the end, and it is not stopped, gone or asleep. */
	if (process && process->is_waiting && d.doing != PUSH_DOING_STOPPED &&
		d.doing != PUSH_DOING_GONE && !d.is_elsewhere)
		r->doing = PUSH_DOING_COLLECTIVE;
	snprintf(r->doing_where, sizeof(r->doing_where), "%s", d.where);
}

/* That a rank is late, and for which collectives, is the cluster's own finding: of a verdict about that only why is sent,
 * "Host code in load (train.py:41)" or "its thread was asleep for 100 % of that". */
void pusher_report_cause(const struct recent_incident *i, char *out, size_t size)
{
	const char *head = strstr(i->summary, ": rank "), *why = strstr(i->root_cause, ": ");

	if (head)
		snprintf(out, size, "%.*s", (int)(head - i->summary), i->summary);
	else if (why && !strncmp(i->summary, "rank ", strlen("rank ")))
		snprintf(out, size, "%s", why + strlen(": "));
	else
		snprintf(out, size, "%s", i->root_cause[0] ? i->root_cause : i->summary);
}

static void report_incident(struct pusher *p)
{
	wall_time now = wall_now();
	struct recent_incident i;
	struct push_report r;

	if (pusher_recording_incident(&p->recording, now.ns - INCIDENT_BACK_NS, &i, NULL) <= 0 ||
		(!strcmp(p->told, i.id) && p->told_last_ns == i.last_ns))
		return;
	snprintf(p->told, sizeof(p->told), "%s", i.id);
	p->told_last_ns = i.last_ns;
	pusher_report_begin(p, i.pid, &r);
	put_doing(p, i.pid, &r);
	r.step_ns = i.slow_ns;
	r.ordinary_ns = i.ordinary_ns;
	snprintf(r.line, sizeof(r.line), "%s", line_of(i.cause));
	r.line_ns = i.slow_count ? i.cause_ns / i.slow_count : 0;
	pusher_report_cause(&i, r.cause, sizeof(r.cause));
	snprintf(r.fix, sizeof(r.fix), "%s", i.fix);
	snprintf(r.incident, sizeof(r.incident), "%s", i.id);
	r.confidence = i.confidence;
	pusher_send_report(p, &r);
}

void pusher_report_step(struct pusher *p)
{
	int64_t now = (int64_t)mono_now().ns;
	struct pusher_process *process;
	size_t cursor = 0;

	while ((process = idmap_next(&p->recording.processes, &cursor, NULL)))
		if (process->last_call_ns && now - process->last_call_ns >= QUIET_NS &&
			now - process->last_call_ns < FORGET_NS && !process->told_gone) {
			struct push_report r;

			pusher_report_begin(p, process->pid, &r);
			put_doing(p, process->pid, &r);
			process->told_gone = r.doing == PUSH_DOING_GONE;
			pusher_send_report(p, &r);
		}
	if (p->seconds % INCIDENT_SECONDS == 0) {
		report_incident(p);
		pusher_chain_step(p);
	}
}

/* The times in which this node was a straggler, or degraded, as spans: sent when they end,
 * as spans are. */

static void fill_random(struct pusher *p, uint8_t *out, size_t size)
{
	if (getrandom(out, size, 0) != (ssize_t)size)
		for (size_t i = 0; i < size; i++)
			out[i] = (uint8_t)pusher_random(p);
}

static void begin_episode(struct pusher *p, int kind)
{
	struct pusher_episode *e = &p->episodes[kind];
	uint8_t random[16];

	*e = (struct pusher_episode){.is_open = true, .start_ns = wall_now().ns};
	if (kind == EPISODE_STRAGGLER) { /* the id by which the fleet and the stream know it */
		snprintf(e->event, sizeof(e->event), "%s", p->monitor.classifier.event);
		return;
	}
	fill_random(p, random, sizeof(random));
	health_event_id(random, e->event);
}

static void end_episode(struct pusher *p, int kind, bool is_resolved)
{
	struct pusher_episode *e = &p->episodes[kind];
	struct push_span s = {.who = pusher_who(p),
		.is_straggler = kind == EPISODE_STRAGGLER,
		.start_ns = e->start_ns,
		.end_ns = wall_now().ns,
		.resolved = is_resolved};

	e->is_open = false;
	memcpy(s.event, e->event, sizeof(s.event));
	snprintf(s.workload, sizeof(s.workload), "%s", pusher_workload(p));
	pusher_cohort_hash(s.workload, p->recording.job, p->recording.cgroup, s.cohort);
	snprintf(s.gpu_model, sizeof(s.gpu_model), "%s", p->reading.readings.gpu_model);
	fill_random(p, s.trace, sizeof(s.trace));
	fill_random(p, s.id, sizeof(s.id));
	pusher_send_span(p, &s);
}

void pusher_span_step(struct pusher *p)
{
	const bool now[EPISODE_COUNT] = {[EPISODE_STRAGGLER] = p->monitor.classifier.is_straggler,
		[EPISODE_DEGRADED] = p->was_degraded};

	for (int i = 0; p->settings->spans && i < EPISODE_COUNT; i++) {
		if (now[i] && !p->episodes[i].is_open)
			begin_episode(p, i);
		else if (!now[i] && p->episodes[i].is_open)
			end_episode(p, i, true);
	}
}

void pusher_span_stop(struct pusher *p)
{
	for (int i = 0; i < EPISODE_COUNT; i++)
		if (p->episodes[i].is_open)
			end_episode(p, i, false);
}

/* The node's verdict on itself, told to programs on this machine. */

static void on_stream(void *arg)
{
	struct pusher *p = arg;

	stream_poll(p->stream);
}

int pusher_stream_open(struct pusher *p, struct errinfo *reterr)
{
	char path[SOCKET_PATH_MAX];
	int r = 0;

	if (!p->settings->remediate)
		return 0;
	if (!p->settings->stream_path)
		r = socket_path_default(STREAM_AGENT_SOCKET, path, reterr);
	else if (strlen(p->settings->stream_path) >= sizeof(path))
		r = errinfo_set(reterr, -EINVAL, "--remediate-socket: the path is too long");
	else
		snprintf(path, sizeof(path), "%s", p->settings->stream_path);
	r = r ?: stream_open(path, p->settings->stream_group, &p->stream, reterr);
	if (r < 0)
		return r;
	r = loop_watch(p->loop, stream_fd(p->stream), on_stream, p);
	return r == 0 ? 0 : errinfo_set(reterr, r, "cannot watch %s: %s", path, strerror(-r));
}

void pusher_stream_close(struct pusher *p)
{
	if (!p->stream)
		return;
	loop_watch(p->loop, stream_fd(p->stream), NULL, NULL);
	stream_close(TAKE(p->stream));
}

void pusher_stream_tell(struct pusher *p, const struct push_straggler *s)
{
	const struct push_who who = pusher_who(p);
	const struct stream_node node = {.node_id = who.node,
		.cluster_id = who.cluster,
		.time = wall_now(),
		.event_id = s->event[0] ? s->event : NULL,
		.rank = who.rank >= 0 ? who.rank : STREAM_NOT_A_RANK,
		.world_size = who.world_size};
	struct stream_message m = {.type = STREAM_STRAGGLER_RESOLVED, .resolved = {node}};

	if (!p->stream)
		return;
	if (!s->resolved)
		m = (struct stream_message){.type = STREAM_STRAGGLER_STATE,
			.state = {.node = node,
				.score = s->score,
				.threshold = s->threshold,
				.detection_mode = s->mode,
				.dominant_signal = s->dominant}};
	stream_publish(p->stream, &m);
}

/* ---- what a thread is doing. One that waits for its GPU by polling memory looks as one that computes:
 * running. One that blocks in a driver's ioctl waits for the GPU. ---- */

/* System calls in which threads stay; those that only one architecture has are left out there. */
static const struct {
	long number;
	const char *name;
	enum push_doing doing;
	bool waits; /* also those that wait for their GPU, and a collective on it, stay there */
} calls[] = {
	{SYS_ioctl, "ioctl", PUSH_DOING_GPU, true},
	{SYS_futex, "futex", PUSH_DOING_BLOCKED, true},
	{SYS_read, "read", PUSH_DOING_BLOCKED, false},
	{SYS_pread64, "pread", PUSH_DOING_BLOCKED, false},
	{SYS_readv, "readv", PUSH_DOING_BLOCKED, false},
	{SYS_write, "write", PUSH_DOING_BLOCKED, false},
	{SYS_fsync, "fsync", PUSH_DOING_BLOCKED, false},
	{SYS_openat, "open", PUSH_DOING_BLOCKED, false},
	{SYS_recvfrom, "recv", PUSH_DOING_BLOCKED, false},
	{SYS_recvmsg, "recvmsg", PUSH_DOING_BLOCKED, false},
	{SYS_sendto, "send", PUSH_DOING_BLOCKED, false},
	{SYS_sendmsg, "sendmsg", PUSH_DOING_BLOCKED, false},
	{SYS_connect, "connect", PUSH_DOING_BLOCKED, false},
	{SYS_accept4, "accept", PUSH_DOING_BLOCKED, false},
	{SYS_ppoll, "ppoll", PUSH_DOING_BLOCKED, true},
	{SYS_pselect6, "pselect", PUSH_DOING_BLOCKED, true},
	{SYS_epoll_pwait, "epoll_wait", PUSH_DOING_BLOCKED, true},
	{SYS_nanosleep, "nanosleep", PUSH_DOING_BLOCKED, false},
	{SYS_clock_nanosleep, "clock_nanosleep", PUSH_DOING_BLOCKED, false},
	{SYS_wait4, "wait", PUSH_DOING_BLOCKED, false},
#ifdef SYS_poll
	{SYS_poll, "poll", PUSH_DOING_BLOCKED, true},
	{SYS_select, "select", PUSH_DOING_BLOCKED, true},
	{SYS_epoll_wait, "epoll_wait", PUSH_DOING_BLOCKED, true},
#endif
};

/* State and start of "pid (name) S …": the name may hold anything, also brackets. */
static bool parse_stat(const char *line, char *ret_state, uint64_t *ret_start)
{
	const char *p = strrchr(line, ')');

	if (!p || p[1] != ' ' || !p[2])
		return false;
	*ret_state = p[2];
	p += 2;
	for (int field = 3; field < 22; field++) {
		p = strchr(p, ' ');
		if (!p)
			return false;
		p++;
	}
	*ret_start = strtoull(p, NULL, 10);
	return true;
}

static int read_of(const char *root, uint32_t pid, const char *name, char *out, size_t size)
{
	return file_read_line(root, FORMATTED(64, "/proc/%" PRIu32 "/%s", pid, name), out, size);
}

static void read_blocked(const char *root, uint32_t pid, char state, struct pusher_doing *ret)
{
	char call[128] = "", channel[64] = "";
	const char *name = NULL;
	long number = -1;
	char *end;

	ret->doing = PUSH_DOING_BLOCKED;
	(void)read_of(root, pid, "wchan", channel, sizeof(channel));
	if (read_of(root, pid, "syscall", call, sizeof(call)) >= 0) {
		number = strtol(call, &end, 10);
		if (end == call)
			number = -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].number == number) {
			name = calls[i].name;
			ret->doing = state == 'D' ? PUSH_DOING_BLOCKED : calls[i].doing;
			ret->is_elsewhere = !calls[i].waits;
		}
	if (!strcmp(channel, "0"))
		channel[0] = 0;
	snprintf(ret->where, sizeof(ret->where), "%s%s%s%.40s%s", name ? "in " : "",
		name ? name : "", channel[0] && name ? " (" : "", channel,
		channel[0] && name ? ")" : "");
}

void pusher_doing_read(
	const char *root, uint32_t pid, uint64_t start_ticks, struct pusher_doing *ret)
{
	char line[1024], state;
	uint64_t start;
	int r = read_of(root, pid, "stat", line, sizeof(line));

	*ret = (struct pusher_doing){.doing = PUSH_DOING_UNKNOWN};
	if (r == -ENOENT || r == -ESRCH) {
		ret->doing = PUSH_DOING_GONE;
		return;
	}
	if (r < 0 || !parse_stat(line, &state, &start))
		return;
	if ((start_ticks && start != start_ticks) || strchr("ZXx", state))
		ret->doing = PUSH_DOING_GONE;
	else if (state == 'T' || state == 't')
		ret->doing = PUSH_DOING_STOPPED;
	else if (state == 'R')
		ret->doing = PUSH_DOING_RUNNING;
	else
		read_blocked(root, pid, state, ret);
}
