/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_report.c - why a rank is slow, in the words of the recording's newest incident, and what a rank
 * does that has come to no collective for a second: how a hang is told from a long pause. */
#include <stdio.h>
#include <string.h>

#include "node/push/pusher_doing.h"
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
	snprintf(r.cause, sizeof(r.cause), "%s", i.root_cause[0] ? i.root_cause : i.summary);
	snprintf(r.fix, sizeof(r.fix), "%s", i.fix);
	snprintf(r.incident, sizeof(r.incident), "%s", i.id);
	r.confidence = i.confidence;
	pusher_send_report(p, &r);
}

static void report_quiet(struct pusher *p, struct pusher_process *process)
{
	struct push_report r;

	pusher_report_begin(p, process->pid, &r);
	put_doing(p, process->pid, &r);
	process->told_gone = r.doing == PUSH_DOING_GONE;
	pusher_send_report(p, &r);
}

void pusher_report_step(struct pusher *p)
{
	int64_t now = (int64_t)mono_now().ns;
	struct pusher_process *process;
	size_t cursor = 0;

	while ((process = idmap_next(&p->recording.processes, &cursor, NULL)))
		if (process->last_call_ns && now - process->last_call_ns >= QUIET_NS &&
			now - process->last_call_ns < FORGET_NS && !process->told_gone)
			report_quiet(p, process);
	if (p->seconds % INCIDENT_SECONDS == 0) {
		report_incident(p);
		pusher_chain_step(p);
	}
}
