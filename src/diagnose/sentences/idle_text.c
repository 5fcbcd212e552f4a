/* SPDX-License-Identifier: Apache-2.0 */
/* idle_text.c - the words for pauses without work for the GPU. Nothing is said that the figures do not
 * show; what was not seen is said to be so. */
#include "diagnose/sentences/idle_text.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "wire/names.h"

#define MOSTLY_SHARE 0.25 /* of the pauses' own kind: less is one of many */

const struct idle_row idle_rows[IDLE_COUNT] = {
	[IDLE_CPU] = {"other threads used the CPU of the calling thread",
		"CPU contention: the thread that feeds the GPU was waiting for a CPU", "HOST", 1},
	[IDLE_READ] = {"the calling thread waits for its reads from disk",
		"input: the thread that feeds the GPU reads from disk itself", "IO", 1},
	[IDLE_WRITE] = {"the calling thread waits for its writes to disk",
		"output: the thread that feeds the GPU waits for its writes to disk", "IO", 1},
	[IDLE_FILES] = {"the calling thread is blocked in the kernel, as on a network file system",
		"files: the thread that feeds the GPU waits for a network file system (NFS), or for a file system that works in other names",
		"IO", 0.8},
	[IDLE_NETWORK] = {"the calling thread waits for the network in socket calls",
		"network: the thread that feeds the GPU waits for network replies", "NET", 1},
	[IDLE_RECLAIM] = {"the kernel makes the calling thread reclaim memory",
		"memory pressure: the thread that feeds the GPU has to reclaim memory", "HOST", 1},
	[IDLE_ASLEEP] = {"the calling thread sleeps, as when it waits for a loader or a lock",
		"input: the thread that feeds the GPU sleeps until it gets its next batch", "HOST",
		0.6},
	[IDLE_HOST_CODE] = {"host code runs in the calling thread",
		"host code: the thread that feeds the GPU computes between its calls", "HOST", 0.8},
	[IDLE_UNKNOWN] = {"the recording does not show what the calling thread did",
		"unexplained: no recorded event covers most of the pauses", "CUDA", 0.6},
};

static bool is_of_kind(enum cause c, enum idle idle)
{
	switch (idle) {
	case IDLE_CPU: return c == CAUSE_PREEMPTED || c == CAUSE_RUN_QUEUE;
	case IDLE_READ:
	case IDLE_FILES:
	case IDLE_WRITE: return c == CAUSE_BLOCK_IO;
	case IDLE_NETWORK: return c == CAUSE_NETWORK;
	case IDLE_RECLAIM: return c == CAUSE_RECLAIM;
	case IDLE_ASLEEP: return c == CAUSE_ASLEEP;
	case IDLE_HOST_CODE: return c == CAUSE_HOST_CODE;
	default: return c == CAUSE_UNEXPLAINED;
	}
}

double idle_share(const struct incident *inc, enum idle idle)
{
	uint64_t ns = 0;

	for (int i = 0; i < inc->cause_count; i++)
		if (is_of_kind(inc->causes[i].cause, idle))
			ns += inc->causes[i].ns;
	return inc->excess_ns ? (double)ns / (double)inc->excess_ns : 0;
}

/* ", mostly sim-cpu-hog (pid 8821)" where somebody else did it, and most of it. */
static void who_text(const struct incident *inc, enum idle idle, char *out, size_t size)
{
	double all = idle_share(inc, idle) * (double)inc->excess_ns;

	out[0] = 0;
	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];

		if (!is_of_kind(c->cause, idle) || !c->culprit_pid || c->culprit_pid == inc->pid)
			continue;
		if ((double)c->ns >= MOSTLY_SHARE * all)
			snprintf(out, size, ", mostly %s (pid %u)", c->culprit, c->culprit_pid);
		else
			snprintf(out, size, ", many processes");
		return;
	}
}

static void write_summary(const struct idle_group *g, struct incident *inc)
{
	char each[TEXT_MAX], share[TEXT_MAX], bytes[TEXT_MAX], who[64], often[48] = "";

	text_format_duration(each, g->typical_ns);
	text_format_percent(share, g->share);
	who_text(inc, g->idle, who, sizeof(who));
	if (inc->period_steps)
		snprintf(often, sizeof(often), "every %u steps ", inc->period_steps);
	if (inc->problem == PROBLEM_CHECKPOINT)
		snprintf(inc->summary, sizeof(inc->summary),
			"%sthe GPU is idle for %s while %s is written to disk, %s of the "
			"time%s",
			often, each, text_format_bytes(bytes, g->bytes / g->count), share, who);
	else if (inc->problem == PROBLEM_AGENT_COST)
		snprintf(inc->summary, sizeof(inc->summary),
			"short bursts of work between waits for the network of %s: the GPU is reserved but idle for %s of the time (indirect evidence: requests are not traced)",
			each, share);
	else
		snprintf(inc->summary, sizeof(inc->summary),
			"%sthe GPU is idle for %s (median of %zu pauses), %s of the time: "
			"%s%s",
			often, each, g->count, share, idle_rows[g->idle].what, who);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s", idle_rows[g->idle].root_cause);
	if (inc->problem == PROBLEM_CHECKPOINT)
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"checkpoint: training stops until its file is on disk");
}

static void put_kind_words(const struct idle_group *g, const struct incident *inc, struct buf *b)
{
	const struct gap *first = &g->gaps->items[g->members[0]];
	const struct event *before = &g->s->rec->events[first->wait];
	const struct event *next = &g->s->rec->events[first->next];
	char a[32], c[32];

	if (g->idle == IDLE_HOST_CODE)
		buf_printf(b,
			" Host code ran between %s and %s; the stack of the latter shows where. "
			"Sleeps shorter than 1 ms count as running.%s",
			wire_op_name(before->source, before->op, a),
			wire_op_name(next->source, next->op, c),
			inc->period_steps && !strncmp(inc->comm, "python", 6)
				? " In a Python program this may be garbage collection; that is not traced."
				: "");
	if (g->idle == IDLE_ASLEEP)
		buf_puts(b, " The reason for the sleep (queue, lock, timer) is not recorded.");
	if (inc->problem == PROBLEM_AGENT_COST)
		buf_puts(b, " Tokens, requests and their cost are not traced.");
}

/* Causes of several culprits together, in the order of their largest. */
static void put_shares(const struct incident *inc, struct buf *b)
{
	bool told[CAUSE_COUNT] = {0};
	const char *comma = "";
	char part[TEXT_MAX];

	for (int i = 0; i < inc->cause_count; i++) {
		uint64_t ns = 0;

		if (told[inc->causes[i].cause])
			continue;
		told[inc->causes[i].cause] = true;
		for (int k = i; k < inc->cause_count; k++)
			ns += inc->causes[k].cause == inc->causes[i].cause ? inc->causes[k].ns : 0;
		buf_printf(b, "%s%s %s", comma, cause_words(inc->causes[i].cause),
			text_format_percent(
				part, (double)ns / (double)MAX(inc->excess_ns, UINT64_C(1))));
		comma = ", ";
	}
	buf_puts(b, ".");
}

static int write_explanation(const struct idle_group *g, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	char n[TEXT_PLURAL_MAX], excess[TEXT_MAX], span[TEXT_MAX], step[TEXT_MAX];

	buf_printf(&b,
		"%s of %s (pid %u) between the end of a wait for the GPU and the "
		"thread's next call %s longer than in a healthy loop (1 ms or 5 %% of a step), "
		"by %s in total, of %s observed.",
		text_format_plural(n, g->count, "pauses"), inc->comm, g->pid,
		g->count == 1 ? "is" : "are", text_format_duration(excess, g->excess_ns),
		text_format_duration(span, g->span_ns));
	if (g->steps)
		buf_printf(&b, " A step usually takes %s (%zu steps).",
			text_format_duration(step, g->steps->ordinary_ns), g->steps->count);
	if (inc->period_steps)
		buf_printf(&b, " They occur every %u steps (confidence %.2f).", inc->period_steps,
			inc->period_confidence);
	buf_puts(&b, " During the pauses the thread was: ");
	put_shares(inc, &b);
	put_kind_words(g, inc, &b);
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(&b));
	return b.err;
}

int idle_describe(const struct idle_group *g, struct incident *inc)
{
	write_summary(g, inc);
	return write_explanation(g, inc);
}
