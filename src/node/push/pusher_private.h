/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_private.h - shared by the files of the pusher. One loop, one thread. */
#pragma once

#include "model/incident.h"
#include "node/health/health_monitor.h"
#include "node/push/pusher.h"
#include "node/push/pusher_chain.h"
#include "node/push/pusher_mark.h"
#include "node/push/pusher_recording.h"
#include "node/push/pusher_reply.h"
#include "push/push_wire.h"
#include "stream/stream.h"

#define PUSHER_REPORTS_MAX 64 /* under way; further ones wait for the next second */
#define PUSHER_BODY_BYTES  (8u << 20)

struct pusher_batch { /* of calls, from its making until it is acknowledged or refused */
	struct buf body;
	uint64_t stream; /* what numbers count, over restarts: the boot that it is sent with */
	uint64_t number, count;
	struct pusher_position end; /* the last row in it, or in the one before */
	uint64_t refused;           /* calls of those before, which the next is to tell of */
	bool under_way;
	unsigned failures;
	uint64_t due_ns; /* monotonic */
};

struct pusher_episode { /* a time as a straggler, or degraded, for a span of it */
	bool is_open;
	int64_t start_ns;
	char event[PUSH_EVENT_MAX];
};
enum { EPISODE_STRAGGLER, EPISODE_DEGRADED, EPISODE_COUNT };

struct pusher_counts { /* what the receiver has accepted */
	uint64_t readings, collectives, lost, incidents, reports, spans;
};

struct pusher {
	const struct pusher_settings *settings;
	struct loop *loop;
	struct tls *tls;
	struct http_client *client, *spans; /* spans: NULL without a receiver of them */
	struct stream *stream;              /* NULL: nobody is told on this machine */
	struct loop_timer *tick, *look, *poll, *retry, *patience;
	char *metrics_path, *logs_path, *threshold_path;
	uint64_t random;
	struct push_who who;

	struct pusher_recording recording;
	struct pusher_reading reading;
	bool read_failed; /* the last time: said once */

	struct health_monitor monitor;
	struct health_threshold threshold;
	struct health_reach reach;
	bool was_degraded;
	bool has_mode; /* there was one to judge by, once */
	struct pusher_episode episodes[EPISODE_COUNT];
	struct pusher_counts pushed;
	char read_why[256]; /* why the last reading failed */

	/* The push of this interval. */
	struct buf body;
	bool under_way, is_retried, waits_for_retry;
	uint64_t asked_ns;  /* by the fleet: added to the next delay */
	bool has_piggyback; /* the last reply had the threshold with it */
	uint64_t skipped;   /* intervals in which the push before was still under way */

	struct pusher_batch batch;
	uint32_t reports;       /* and spans, under way */
	char told[PUSH_ID_MAX]; /* incident that was reported last */
	int64_t told_last_ns;
	uint64_t seconds, second_ns; /* done; when the next is due, monotonic */
	struct pusher_mark mark;
	bool mark_is_settled; /* it was read, or there is none to be had */
	struct pusher_chains chains;
	struct pusher_causes *causes; /* NULL: nobody was late yet */

	bool has_pushed;     /* once: then it was said */
	char complaint[256]; /* the last reason: not said again before complain_ns */
	uint64_t complain_ns;

	uint64_t replay_due_ns;  /* of the next batch, monotonic */
	unsigned chain_failures; /* in a row */
	bool stopping;
	int result; /* of --once and --replay */
	struct errinfo why;
};

uint64_t pusher_random(struct pusher *p);

/* pusher_who - this node as it is known now: what the options say wins over what is recorded. */
struct push_who pusher_who(const struct pusher *p);

/* pusher_complain - "@what: @why", at most once a minute for one reason: what fails fails every few seconds, in
 * several requests at once. */
void pusher_complain(struct pusher *p, const char *what, const char *why);

/* ---- pusher_health.c: from a reading to what is pushed ---- */

/* pusher_health_step - reads, judges, and writes the request into p->body. True: it is to be sent.
 * *ret_straggler is the node's verdict on itself, if there is one to tell. */
bool pusher_health_step(
	struct pusher *p, struct push_straggler *ret_straggler, bool *ret_has_verdict);
/* pusher_workload - "training", "inference", …; "unknown". */
const char *pusher_workload(const struct pusher *p);
int pusher_health_begin(struct pusher *p, struct errinfo *reterr); /* loads the baseline */
void pusher_health_save(struct pusher *p);
void pusher_say_ready(const struct pusher *p); /* to the service manager */

/* ---- pusher_send.c: requests and their replies ---- */

int pusher_send_open(struct pusher *p, struct errinfo *reterr);
/* pusher_reason - the sentence of a failed exchange, or of a status that is no success. */
const char *pusher_reason(const struct pusher *p, char out[256], const struct http_response *r,
	int err, const struct errinfo *e);
void pusher_send_metrics(struct pusher *p);
void pusher_send_straggler(struct pusher *p, const struct push_straggler *s);
/* pusher_send_calls - the batch that waits, or a new one of what is there, if it is time. */
void pusher_send_calls(struct pusher *p);
void pusher_send_report(struct pusher *p, const struct push_report *r);
/* pusher_send_chains - pusher_chain_sent() is told what became of them. */
void pusher_send_chains(struct pusher *p, const struct push_chain *chains, size_t count);
void pusher_send_poll(struct pusher *p);
void pusher_send_span(struct pusher *p, const struct push_span *s);

/* ---- pusher_report.c: spans of episodes ---- */

/* pusher_span_step - after a reading: begins and ends episodes. */
void pusher_span_step(struct pusher *p);
void pusher_span_stop(struct pusher *p); /* what is open ends without an outcome */

/* ---- pusher_report.c: the remediation stream of this machine ---- */

int pusher_stream_open(struct pusher *p, struct errinfo *reterr);
void pusher_stream_close(struct pusher *p);
void pusher_stream_tell(struct pusher *p, const struct push_straggler *s);

/* ---- pusher_report.c: why a rank is slow, what it is doing ---- */

void pusher_report_step(struct pusher *p);

/* ---- pusher_cause.c: why ranks that the fleet calls late are late ---- */

/* pusher_cause_ask - @pids as the reply to calls lists them: "17,18"; NULL or anything else: nobody is late. */
void pusher_cause_ask(struct pusher *p, const char *pids);
void pusher_cause_close(struct pusher *p);
/* pusher_cause_find - what the last seconds of the recording before @now_ns say about the processes @pids: a report
 * of each that there is a cause of, in @found (as many as @pids). How many, or a negative errno. */
int pusher_cause_find(const char *db, const uint32_t *pids, size_t count, int64_t now_ns,
	struct push_report *found, struct errinfo *reterr);
/* pusher_cause_line - what an incident says of the whole job: that others wait for this rank (PUSH_LINE_LATE), though the
 * fleet may not see it in its calls, or that no rank is to blame; "": nothing. */
const char *pusher_cause_line(const struct incident *i);
/* pusher_cause_is_whole - is there anything left to find out about the @asked processes: one says what the whole job waits
 * for, or there is a cause of each. */
bool pusher_cause_is_whole(const struct push_report *found, int found_count, size_t asked);

/* pusher_report_begin - a report of process @pid, with who we are. */
void pusher_report_begin(struct pusher *p, uint32_t pid, struct push_report *r);

/* ---- pusher_chain.c: incidents that are explained ---- */

void pusher_chain_step(struct pusher *p);
/* pusher_chain_sent - @is_over: they were taken, or refused for good. */
void pusher_chain_sent(struct pusher *p, bool is_over);

/* ---- pusher_replay.c: where an earlier run of the agent was ---- */

/* pusher_resume - reads what it has noted, once. -EBUSY: it is still running, with a sentence. */
int pusher_resume(struct pusher *p, struct errinfo *reterr);
/* pusher_resume_note - what is to be known after a restart: @batch is under way; NULL: none is. */
int pusher_resume_note(struct pusher *p, const struct buf *batch);

/* ---- pusher_replay.c: a finished recording ---- */

/* pusher_replay_step - sends what is due and looks again later; at the end it stops the loop. */
void pusher_replay_step(struct pusher *p);
void pusher_replay_say(const struct pusher *p);

/* ---- pusher.c ---- */

/* pusher_pushed - the push of this interval has ended: 0, or why it failed. */
void pusher_pushed(struct pusher *p, int err, const char *why);
void pusher_done(struct pusher *p);
/* pusher_sent_calls - nothing of the calls is under way any more. */
void pusher_sent_calls(struct pusher *p);
