/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_private.h - shared by the files of the pusher. One loop, one thread. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "model/incident.h"
#include "net/http.h"
#include "node/health/health_monitor.h"
#include "node/push/pusher.h"
#include "node/push/pusher_recording.h"
#include "push/push.h"
#include "push/push_wire.h"
#include "stream/stream.h"

/* ---- what has been delivered of a recording, in a file beside it: an agent that is started
 * again, also after kill -9, goes on where it was, so that no call is missing and none comes twice.
 *
 * Before a batch is sent for the first time it is written down whole, with its number and the row it ends
 * with; once it was answered, that there is none. What a start finds is sent again, the same bytes under the
 * same number: the receiver knows whether it had it.
 *
 *	file    slot[2], PUSHER_MARK_SLOT bytes apart; a slot is a head and the batch
 *
 * Slots are written in turn, so that one of them is whole whenever the writer ends; a checksum tells which.
 * A batch is on the disk before it is sent. That it was answered is not synced: after a power cut it is sent
 * again, and the receiver knows it. Rows that the recording itself lost with the power are not sent. */

#define PUSHER_MARK_SLOT (16u << 20)

struct pusher_note {
	uint64_t stream;           /* what the numbers count: the boot that batches carry */
	uint64_t number;           /* of the last batch */
	uint64_t count;            /* its calls */
	uint64_t lost;             /* calls that the next batch is to tell of */
	int64_t chain_ns;          /* incidents last seen before were told */
	struct pusher_position at; /* the last row of that batch */
};

struct pusher_mark {
	int fd; /* -1: none is kept */
	uint64_t serial;
	bool has_note; /* of this stream, on disk */
};

/* pusher_mark_open - makes the file if there is none. -EBUSY: another agent has it, also after @wait_ns.
 * Returns 1 and fills in *ret and @ret_batch (empty: nothing was under way); 0: nothing is known, or it is
 * damaged; else why it cannot be used, with a sentence. */
int pusher_mark_open(struct pusher_mark *m, const char *path, uint64_t wait_ns,
	struct pusher_note *ret, struct buf *ret_batch, struct errinfo *reterr);
void pusher_mark_close(struct pusher_mark *m);

/* pusher_mark_peek - the same without touching anything: for who only wants to know. */
int pusher_mark_peek(const char *path, struct pusher_note *ret, struct errinfo *reterr);

/* pusher_mark_write - 0, also if none is kept; or what pwrite(2) or fdatasync(2) gave: then the note before may be what
 * the next start finds. */
int pusher_mark_write(struct pusher_mark *m, const struct pusher_note *n, const struct buf *batch);

/* ---- which of the recording's incidents the fleet knows, and as what. Pure.
 *
 * One is told when it is found, when its words, severity or end change, and while it goes on once in
 * PUSHER_CHAIN_AGAIN_NS. */

#define PUSHER_CHAINS_MAX       16  /* of a request */
#define PUSHER_CHAINS_KNOWN     512 /* further ones push out the one that was told longest ago */
#define PUSHER_CHAIN_AGAIN_NS   (60 * UINT64_C(1000000000))
#define PUSHER_CHAIN_OVERLAP_NS (120 * INT64_C(1000000000))

struct pusher_chain {     /* as it was told */
	uint64_t id;      /* hash of it */
	uint64_t words;   /* hash of what is told at once when it changes */
	uint64_t extent;  /* hash of what may wait: count, last seen */
	uint64_t told_ns; /* monotonic */
};

struct pusher_chains {
	struct pusher_chain known[PUSHER_CHAINS_KNOWN];
	size_t count;
	struct pusher_chain sent[PUSHER_CHAINS_MAX]; /* under way */
	size_t sent_count;
	int64_t from_ns; /* those last seen before are told */
};

/* pusher_chains_want - whether it is to be told now. pusher_chains_note - it was. */
bool pusher_chains_want(const struct pusher_chains *c, const struct pusher_chain *x);
void pusher_chains_note(struct pusher_chains *c, const struct pusher_chain *x);

/* ---- what the fleet's replies say: the threshold, by header fields or as JSON, and when to
 * come again. Pure. */

enum pusher_hint {
	PUSHER_HINT_MISSING, /* no threshold with the reply: it must be asked for */
	PUSHER_HINT_TAKEN,
	PUSHER_HINT_REFUSED, /* malformed or out of bounds: the one before stays */
};

/* pusher_reply_fields - X-Ingero-Threshold and X-Ingero-Quorum-Met of a reply with any status. A fleet
 * below its quorum says 0 and false: that is taken. */
enum pusher_hint pusher_reply_fields(
	const struct http_head *h, int64_t now_ns, struct health_threshold *t);

/* pusher_reply_body - {"threshold":x,"quorum_met":b}. */
#define PUSHER_BODY_MAX 8192
enum pusher_hint pusher_reply_body(
	const char *text, size_t len, int64_t now_ns, struct health_threshold *t);

/* pusher_jitter - @ns changed by up to @share of it either way. */
uint64_t pusher_jitter(uint64_t ns, double share, uint64_t random);

/* ---- what the main thread of a process is doing now, by /proc: a few small reads ---- */

struct pusher_doing {
	enum push_doing doing;
	bool is_elsewhere; /* it is blocked, and neither by its GPU nor by a collective: asleep, a file, a peer */
	char where[96]; /* "in futex (futex_wait_queue)"; "": not known */
};

/* pusher_doing_read - @root is "" but in tests. A pid that another process has meanwhile (@start_ticks
 * differs, unless 0) is gone. */
void pusher_doing_read(
	const char *root, uint32_t pid, uint64_t start_ticks, struct pusher_doing *ret);

/* ---- the pusher ---- */

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
/* pusher_report_cause - what is sent as the cause of the incident @i. */
void pusher_report_cause(const struct recent_incident *i, char *out, size_t size);

/* ---- pusher_cause.c: why ranks that the fleet calls late are late ---- */

struct cause_looks {
	unsigned count;   /* since it is the same question */
	bool is_whole;    /* what the last one found */
	uint64_t rest_ns; /* monotonic: no look before, whatever is asked */
	uint64_t due_ns;  /* nor at the same question */
};
/* pusher_cause_looked - until @now_ns it was looked for @took_ns. */
void pusher_cause_looked(struct cause_looks *l, bool is_whole, uint64_t took_ns, uint64_t now_ns);
/* pusher_cause_is_due - whether it is time for another look; @is_new: at another question. */
bool pusher_cause_is_due(struct cause_looks *l, bool is_new, uint64_t now_ns);
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
