/* SPDX-License-Identifier: Apache-2.0 */
/* pusher.c - see pusher.h: the life of the pusher, its timers and its end. */
#include "node/push/pusher_private.h"

#include <signal.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/text.h"

#define TICK_JITTER  0.1
#define SECOND_NS    NS_PER_S
#define BUSY_NS      (10 * NS_PER_S) /* after a call, the next is looked for often */
#define COMPLAIN_NS  (60 * NS_PER_S) /* one reason is said as often */
#define INTERVAL_MIN NS_PER_S
#define TIMEOUT_MIN  (100 * NS_PER_MS)
#define WINDOW_MIN   (2 * NODEDB_BUCKET_FINE)
#define WINDOW_MAX   (600 * NS_PER_S) /* buckets of 5 s are kept so long */

uint64_t pusher_random(struct pusher *p)
{
	p->random += 0x9e3779b97f4a7c15ULL;
	return hash_number(p->random);
}

struct push_who pusher_who(const struct pusher *p)
{
	const struct pusher_settings *s = p->settings;
	struct push_who who = p->who;

	who.rank = s->rank >= 0 ? s->rank : p->recording.rank;
	who.world_size = s->world_size ? s->world_size : p->recording.world_size;
	return who;
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return true;
	return false;
}

static int check_name(const char *option, const char *name, struct errinfo *reterr)
{
	const char *s = name;
	uint32_t point;
	int n;

	if (!*name || strlen(name) >= PUSH_ID_MAX)
		return errinfo_set(reterr, -EINVAL, "%s must be a name of 1 to %d bytes", option,
			PUSH_ID_MAX - 1);
	if (has_control(name))
		return errinfo_set(
			reterr, -EINVAL, "%s must not contain control characters", option);
	for (; *s; s += n) {
		n = text_utf8_next(s, strlen(s), &point);
		if (n < 0)
			return errinfo_set(reterr, -EINVAL, "%s must be UTF-8", option);
	}
	return 0;
}

int pusher_check(const struct pusher_settings *s, struct errinfo *reterr)
{
	int r = check_name("--cluster-id", s->cluster, reterr);

	r = r ?: check_name("--node-id", s->node, reterr);
	if (r < 0)
		return r;
	if (s->push_interval_ns < INTERVAL_MIN)
		return errinfo_set(reterr, -EINVAL, "--push-interval must be at least 1s");
	if (s->timeout_ns < TIMEOUT_MIN || s->timeout_ns > s->push_interval_ns)
		return errinfo_set(reterr, -EINVAL,
			"--timeout must be at least 100ms and at most the push interval");
	if (s->window_ns < WINDOW_MIN || s->window_ns > WINDOW_MAX)
		return errinfo_set(reterr, -EINVAL, "--signal-window must be between 10s and 10m");
	if (s->poll_interval_ns < INTERVAL_MIN)
		return errinfo_set(reterr, -EINVAL, "--poll-interval must be at least 1s");
	if (s->world_size && s->rank >= 0 && (uint32_t)s->rank >= s->world_size)
		return errinfo_set(reterr, -EINVAL,
			"--node-rank must be below --world-size: ranks count from 0");
	if (s->workload && strlen(s->workload) >= PUSH_WORD_MAX)
		return errinfo_set(reterr, -EINVAL, "--workload must be a word of 1 to %d bytes",
			PUSH_WORD_MAX - 1);
	return s->workload ? check_name("--workload", s->workload, reterr) : 0;
}

/* A failure is told by the reading of the interval. */
static void read_calls(struct pusher *p)
{
	struct errinfo e = {0};

	if (p->settings->stub)
		return;
	if (pusher_resume(p, &e) < 0)
		log_warning("%s: calls may be sent twice", e.text);
	if (p->mark_is_settled)
		(void)pusher_recording_calls(&p->recording, wall_now(), NULL);
}

/* ---- the end ---- */

static void stop_if_done(struct pusher *p)
{
	if (p->stopping && !p->under_way && !p->batch.under_way && !p->reports)
		loop_stop(p->loop);
}

/* What is left is sent, once. */
static void begin_stop(struct pusher *p)
{
	p->stopping = true;
	loop_timer_clear(p->tick);
	loop_timer_clear(p->look);
	loop_timer_clear(p->poll);
	loop_timer_clear(p->retry);
	if (p->waits_for_retry)
		pusher_send_metrics(p);
	loop_timer_set(p->patience, PUSHER_FLUSH_NS);
	read_calls(p);
	pusher_send_calls(p);
	pusher_span_stop(p);
	stop_if_done(p);
}

static void on_stop(void *arg)
{
	struct pusher *p = arg;

	if (p->stopping) {
		loop_stop(p->loop);
		return;
	}
	notify_stopping();
	if (p->settings->replay) { /* the next one goes on here */
		p->stopping = true;
		p->result = errinfo_set_exit(&p->why, EXIT_PARTIAL, -EINTR,
			"interrupted: the same command continues from here");
		loop_stop(p->loop);
		return;
	}
	pusher_health_save(p);
	begin_stop(p);
}

/* ---- timers ---- */

static void on_tick(void *arg)
{
	struct pusher *p = arg;
	struct push_straggler verdict;
	bool has_verdict = false, is_to_send;

	p->asked_ns = 0;
	loop_timer_set(p->tick,
		pusher_jitter(p->settings->push_interval_ns, TICK_JITTER, pusher_random(p)));
	if (p->under_way) { /* the fleet is slow: the next reading says more than this one */
		p->skipped++;
		log_warning("the last push is still in progress: this one is skipped");
		return;
	}
	is_to_send = pusher_health_step(p, &verdict, &has_verdict);
	if (has_verdict) {
		pusher_send_straggler(p, &verdict);
		pusher_stream_tell(p, &verdict);
	}
	if (is_to_send) {
		p->under_way = true;
		p->is_retried = false;
		pusher_send_metrics(p);
	} else if (p->settings->once) {
		pusher_pushed(p, -ENODATA,
			p->read_failed ? p->read_why : "there is no reading to push yet");
	}
	pusher_span_step(p);
}

static void on_retry(void *arg)
{
	pusher_send_metrics(arg);
}

void pusher_complain(struct pusher *p, const char *what, const char *why)
{
	uint64_t now = mono_now().ns;
	bool is_new = strncmp(p->complaint, why, sizeof(p->complaint) - 1) != 0;

	if (!is_new && now < p->complain_ns) {
		log_debug("%s: %s", what, why);
		return;
	}
	log_warning("%s: %s", what, why);
	snprintf(p->complaint, sizeof(p->complaint), "%s", why);
	p->complain_ns = now + COMPLAIN_NS;
}

void pusher_pushed(struct pusher *p, int err, const char *why)
{
	bool before = health_reach_ok(&p->reach), after;

	p->under_way = false;
	health_reach_note(&p->reach, err == 0);
	after = health_reach_ok(&p->reach);
	if (err < 0 && !p->settings->once) /* which ends with that sentence */
		pusher_complain(p, "push failed", why);
	p->pushed.readings += err == 0;
	if (err == 0 && !p->has_pushed) {
		log_info("the first push was accepted by %s, as node %s of cluster %s",
			p->settings->endpoint.shown, p->who.node, p->who.cluster);
		p->has_pushed = true;
	}
	if (before != after)
		log_info("the fleet can %sbe reached", after ? "" : "not ");
	if (p->asked_ns && !p->stopping)
		loop_timer_set(p->tick, pusher_jitter(p->settings->push_interval_ns, TICK_JITTER,
						pusher_random(p)) +
						p->asked_ns);
	if (p->settings->once && !p->stopping) {
		p->result = err;
		if (err < 0)
			errinfo_set_exit(&p->why, EXIT_FAILED, err, "%s", why);
		begin_stop(p);
		return;
	}
	stop_if_done(p);
}

/* A look at the recording: calls are sent once a second, and sooner if a rank was held up. While no rank
 * makes any, once a second is often enough. */
static void on_look(void *arg)
{
	struct pusher *p = arg;
	struct pusher_recording *r = &p->recording;
	uint64_t now = mono_now().ns;
	bool is_second = now >= p->second_ns;
	bool is_busy = r->last_call_ns && now - (uint64_t)r->last_call_ns < BUSY_NS;

	if (p->settings->replay) {
		pusher_replay_step(p);
		return;
	}
	loop_timer_set(p->look, is_busy ? PUSH_HASTE_NS : SECOND_NS);
	read_calls(p);
	if (is_second || r->is_hasty)
		pusher_send_calls(p);
	r->is_hasty = false;
	if (!is_second)
		return;
	p->second_ns = now + SECOND_NS - PUSH_HASTE_NS / 2;
	p->seconds++;
	pusher_report_step(p);
}

void pusher_sent_calls(struct pusher *p)
{
	if (p->settings->replay) /* it looks when the next is due */
		return;
	/* A full batch: there may be more. At the end one attempt must do. */
	if (!p->batch.body.len && p->recording.calls.count)
		pusher_send_calls(p);
	stop_if_done(p);
}

static void on_poll_due(void *arg)
{
	pusher_send_poll(arg);
}

/* ---- life ---- */

void pusher_done(struct pusher *p)
{
	struct loop_timer *const timers[] = {p->tick, p->look, p->poll, p->retry, p->patience};

	pusher_stream_close(p);
	pusher_cause_close(p);
	http_client_freep(&p->client);
	http_client_freep(&p->spans);
	tls_freep(&p->tls);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		if (timers[i])
			loop_timer_free(timers[i]);
	pusher_recording_done(&p->recording);
	pusher_mark_close(&p->mark);
	buf_done(&p->body);
	buf_done(&p->batch.body);
	free(p->metrics_path);
	free(p->logs_path);
	free(p->threshold_path);
	loop_freep(&p->loop);
}

/* New connections show the certificate that is there now. */
static void on_hangup(void *arg)
{
	struct pusher *p = arg;
	struct errinfo e = {0};

	if (p->tls && tls_reload(p->tls, &e) < 0)
		log_error("the previous certificate stays in use: %s", e.text);
	else if (p->tls)
		log_info("certificates reloaded");
}

static int open_timers(struct pusher *p, struct errinfo *reterr)
{
	int r = loop_timer_new(p->loop, on_tick, p, &p->tick);

	r = r ?: loop_timer_new(p->loop, on_look, p, &p->look);
	r = r ?: loop_timer_new(p->loop, on_poll_due, p, &p->poll);
	r = r ?: loop_timer_new(p->loop, on_retry, p, &p->retry);
	r = r ?: loop_timer_new(p->loop, loop_stop, p->loop, &p->patience);
	r = r ?: loop_signal(p->loop, SIGTERM, on_stop, p);
	r = r ?: loop_signal(p->loop, SIGINT, on_stop, p);
	r = r ?: loop_signal(p->loop, SIGHUP, on_hangup, p);
	return r == 0 ? 0
		      : errinfo_set(
				reterr, r, "cannot set up timers and signals: %s", strerror(-r));
}

static void begin(struct pusher *p)
{
	const struct pusher_settings *s = p->settings;
	wall_time now = wall_now();

	p->random = (uint64_t)now.ns ^ hash_bytes(s->node, strlen(s->node));
	p->who = (struct push_who){.rank = -1, .boot = (uint64_t)now.ns};
	strncpy(p->who.cluster, s->cluster, sizeof(p->who.cluster) - 1);
	strncpy(p->who.node, s->node, sizeof(p->who.node) - 1);
	if (s->provider)
		strncpy(p->who.provider, s->provider, sizeof(p->who.provider) - 1);
	if (s->replay) {
		loop_timer_set(p->look, 0);
		return;
	}
	loop_timer_set(p->tick, 0);
	if (!s->stub && !s->once)
		loop_timer_set(p->look, SECOND_NS);
	if (s->threshold.host[0] && !s->once)
		loop_timer_set(p->poll, NS_PER_S);
}

/* Said by whoever ends it, and wants to know what became of it. */
static void say_pushed(const struct pusher *p)
{
	const struct pusher_counts *c = &p->pushed;
	char nameless[TEXT_PLURAL_MAX + 40] = "";

	if (!c->readings && p->complaint[0]) {
		log_warning("nothing was accepted by %s: %s", p->settings->endpoint.shown,
			p->complaint);
		return;
	}
	if (p->recording.calls.nameless)
		snprintf(nameless, sizeof(nameless), " (%s without communicator id)",
			TEXT_PLURAL(p->recording.calls.nameless, "collectives"));
	log_info("pushed to %s: %s, %s%s, %s, %s%s%s", p->settings->endpoint.shown,
		TEXT_PLURAL(c->readings, "readings"), TEXT_PLURAL(c->collectives, "collectives"),
		nameless, TEXT_PLURAL(c->incidents, "incidents"),
		TEXT_PLURAL(c->reports, "reports"), p->settings->spans ? ", " : "",
		p->settings->spans ? TEXT_PLURAL(c->spans, "spans") : "");
}

int pusher_run(const struct pusher_settings *s, struct errinfo *reterr)
{
	_cleanup_(pusher_done) struct pusher p = {.settings = s,
		.body = BUF_INIT(PUSHER_BODY_BYTES),
		.batch.body = BUF_INIT(PUSHER_BODY_BYTES),
		.mark.fd = -1};
	int r;

	pusher_recording_init(&p.recording, s->db ? s->db : "", s->window_ns);
	r = loop_new(&p.loop);
	r = r ?: open_timers(&p, reterr);
	r = r ?: pusher_send_open(&p, reterr);
	r = r ?: pusher_health_begin(&p, reterr);
	r = r ?: pusher_stream_open(&p, reterr);
	r = r ?: pusher_resume(&p, reterr);
	if (r < 0)
		return r;
	begin(&p);
	r = loop_notify(p.loop);
	pusher_say_ready(&p);
	r = r ?: loop_run(p.loop);
	if (p.result == 0 && s->replay)
		pusher_replay_say(&p);
	else if (p.result == 0)
		say_pushed(&p);
	if (r < 0)
		return errinfo_set(reterr, r, "event loop failed: %s", strerror(-r));
	if (p.result < 0 && reterr)
		*reterr = p.why;
	return p.result;
}
