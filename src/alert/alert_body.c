/* SPDX-License-Identifier: Apache-2.0 */
/* alert_body.c - see alert_body.h. Names and sentences come from nodes: JSON escapes them, and for
 * Slack '&', '<' and '>' too, which could otherwise make a link or call everybody. */
#include "alert/alert_body.h"

#include "base/text.h"
#include "json/writer.h"

#define ALERT_DIGEST_SHOW 20 /* notices of a digest that are told; the others are counted */

#define LINE_MAX_BYTES    8192
#define PAGERDUTY_SUMMARY 1024 /* what it takes */

const char *alert_type_id(enum alert_type t)
{
	return LIST_IDS(ALERT_TYPES)[t];
}

static void finish(struct json_writer *w, struct buf *b)
{
	int r = json_finish(w);

	if (r < 0 && !b->err)
		b->err = r;
}

/* The user's word, else that of the matter. */
static const char *severity_of(const struct alert_look *look, const struct alert_matter *m)
{
	return look->severity ? look->severity : m->severity ? m->severity : "warning";
}

/* Where it happened: the cluster, or a node that stands alone. */
static const char *place_of(const struct alert_matter *m)
{
	return m->cluster[0] ? m->cluster : m->node;
}

static void put_time(struct json_writer *w, const char *key, int64_t ns)
{
	char text[WHEN_UTC_MAX];

	json_string_member(w, key, when_utc(text, (wall_time){ns}));
}

static void put_text_if(struct json_writer *w, const char *key, const char *v)
{
	if (*v)
		json_string_member(w, key, v);
}

/* ---- a matter as JSON ---- */

static void put_cost(struct json_writer *w, const struct alert_cost *c)
{
	json_begin_object_member(w, "cost");
	json_bool_member(w, "priced", c->priced);
	put_text_if(w, "currency", c->currency);
	if (c->currency[0]) {
		JSON_PUT(w, JSON_R("per_hour", c->per_hour), JSON_R("total", c->total));
	}
	json_double_member(w, "gpu_seconds", c->gpu_seconds);
	if (c->watt_hours > 0)
		json_double_member(w, "watt_hours", c->watt_hours);
	put_text_if(w, "unpriced_model", c->unpriced);
	json_end_object(w);
}

static void put_matter(struct json_writer *w, const struct alert_matter *e)
{
	json_string_member(w, "event_id", e->event);
	put_text_if(w, "cluster_id", e->cluster);
	json_string_member(w, "problem", e->problem);
	put_text_if(w, "severity", e->severity ? e->severity : "");
	put_text_if(w, "node_id", e->node);
	if (e->rank >= 0)
		json_int_member(w, "rank", e->rank);
	if (e->stage >= 0)
		json_int_member(w, "stage", e->stage);
	if (e->pid)
		json_uint_member(w, "pid", e->pid);
	put_text_if(w, "process", e->process);
	json_string_member(w, "summary", e->text);
	put_text_if(w, "cause", e->cause);
	put_text_if(w, "fix", e->fix);
	put_text_if(w, "place", e->place);
	put_text_if(w, "op_type", e->op);
	put_text_if(w, "dominant_signal", e->signal);
	if (e->threshold > 0) {
		JSON_PUT(w, JSON_R("score", e->score), JSON_R("threshold", e->threshold));
	}
	if (e->lag_ns)
		json_uint_member(w, "lag_ns", e->lag_ns);
	if (e->period)
		json_uint_member(w, "period", e->period);
	if (e->seen) {
		JSON_PUT(w, JSON_U("late_steps", e->late), JSON_U("seen_steps", e->seen));
	}
	if (e->waiting) {
		JSON_PUT(w, JSON_U("waiting_ranks", e->waiting), JSON_U("waited_ns", e->waited_ns));
	}
	if (e->is_job)
		json_double_member(w, "share", e->share);
	json_double_member(w, "confidence", e->confidence);
	put_time(w, "started_at", e->since_ns);
	if (e->until_ns)
		put_time(w, "ended_at", e->until_ns);
	if (e->is_job)
		put_cost(w, &e->cost);
}

/* ---- words ---- */

static const char *word_of(const struct alert_notice *n)
{
	switch (n->kind) {
	case ALERT_BEGAN: return "Began";
	case ALERT_CHANGED: return "Changed";
	case ALERT_ENDED: return "Resolved";
	}
	return "";
}

static void put_place(struct buf *b, const struct alert_matter *e)
{
	if (e->cluster[0])
		buf_printf(b, "cluster %s", e->cluster);
	if (e->node[0])
		buf_printf(b, "%snode %s", e->cluster[0] ? ", " : "", e->node);
	if (e->pid)
		buf_printf(b, ", %s (%u)", e->process, e->pid);
	if (e->rank >= 0)
		buf_printf(b, ", rank %d", e->rank);
}

/* What the sentence has not said already. */
static void put_cost_line(struct buf *b, const struct alert_matter *e)
{
	const struct alert_cost *c = &e->cost;
	char rate[64];

	snprintf(rate, sizeof(rate), "%s%.2f/h", c->symbol, c->per_hour);
	if (c->currency[0] && c->per_hour > 0 && !strstr(e->text, rate))
		buf_printf(b, "\nCost: %s (%s)", rate, c->currency);
	if (!c->priced && c->unpriced[0])
		buf_printf(
			b, "\nUnpriced: %s (`ingero rates` says how to add a price)", c->unpriced);
}

/* The notice for a reader, in lines. */
static void put_words(struct buf *b, const struct alert_notice *n)
{
	const struct alert_matter *e = &n->matter;

	buf_printf(b, "%s: %s in ", word_of(n), e->problem);
	put_place(b, e);
	buf_printf(b, "\n%s", e->text);
	if (e->cause[0] && !strstr(e->text, e->cause)) /* a sentence says it once */
		buf_printf(b, "\nCause: %s", e->cause);
	if (e->fix[0] && n->kind != ALERT_ENDED)
		buf_printf(b, "\nFix: %s", e->fix);
	if (e->threshold > 0)
		buf_printf(b, "\nScore %.2f, threshold %.2f%s%s", e->score, e->threshold,
			e->signal[0] ? ", dominant signal " : "", e->signal);
	put_cost_line(b, e);
	buf_printf(b, "\nEvent: %s", e->event);
}

/* ---- Slack ---- */

static void put_slack(struct buf *out, const struct alert_look *look, const char *words)
{
	_cleanup_buf_ struct buf safe = BUF_INIT(6 * LINE_MAX_BYTES);
	struct json_writer w = json_writer_to_buf(out);

	for (const char *c = words; *c; c++)
		switch (*c) {
		case '&': buf_puts(&safe, "&amp;"); break;
		case '<': buf_puts(&safe, "&lt;"); break;
		case '>': buf_puts(&safe, "&gt;"); break;
		default: buf_putc(&safe, *c);
		}
	json_begin_object(&w);
	json_string_member(&w, "text", buf_str(&safe));
	if (look->channel)
		json_string_member(&w, "channel", look->channel);
	if (look->username)
		json_string_member(&w, "username", look->username);
	json_end_object(&w);
	finish(&w, out);
}

void alert_slack(struct buf *b, const struct alert_look *look, const struct alert_notice *n)
{
	_cleanup_buf_ struct buf words = BUF_INIT(LINE_MAX_BYTES);

	put_words(&words, n);
	put_slack(b, look, buf_str(&words));
}

void alert_slack_digest(struct buf *b, const struct alert_look *look,
	const struct alert_notice *const *n, size_t count)
{
	_cleanup_buf_ struct buf words = BUF_INIT(LINE_MAX_BYTES);

	buf_printf(&words, "%s at once:", TEXT_PLURAL(count, "notices"));
	for (size_t i = 0; i < count && i < ALERT_DIGEST_SHOW; i++) {
		buf_printf(&words, "\n• %s: %s in ", word_of(n[i]), n[i]->matter.problem);
		put_place(&words, &n[i]->matter);
	}
	if (count > ALERT_DIGEST_SHOW)
		buf_printf(&words, "\nand %zu more", count - ALERT_DIGEST_SHOW);
	put_slack(b, look, buf_str(&words));
}

/* ---- PagerDuty ---- */

void alert_pagerduty(struct buf *b, const struct alert_look *look, const struct alert_notice *n)
{
	const struct alert_matter *e = &n->matter;
	struct json_writer w = json_writer_to_buf(b);
	bool ended = n->kind == ALERT_ENDED;
	char summary[PAGERDUTY_SUMMARY];

	snprintf(summary, sizeof(summary), "%s: %s", place_of(e), e->text);
	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("routing_key", look->routing_key),
		JSON_S("event_action", ended ? "resolve" : "trigger"),
		JSON_S("dedup_key", e->event));
	if (!ended) {
		json_begin_object_member(&w, "payload");
		JSON_PUT(&w, JSON_S("summary", summary),
			JSON_S("source", e->node[0] ? e->node : e->cluster),
			JSON_S("severity", severity_of(look, e)));
		put_time(&w, "timestamp", e->since_ns);
		JSON_PUT(&w, JSON_S("component", "gpu"), JSON_S("group", place_of(e)),
			JSON_S("class", e->class));
		json_begin_object_member(&w, "custom_details");
		put_matter(&w, e);
		json_end_object(&w);
		json_end_object(&w);
	}
	json_end_object(&w);
	finish(&w, b);
}

/* ---- webhooks ---- */

static void put_notice(struct json_writer *w, const struct alert_notice *n)
{
	json_begin_object(w);
	json_string_member(w, "kind", LIST_IDS(ALERT_KINDS)[n->kind]);
	put_matter(w, &n->matter);
	json_end_object(w);
}

void alert_webhook(struct buf *b, const struct alert_notice *n)
{
	struct json_writer w = json_writer_to_buf(b);

	put_notice(&w, n);
	finish(&w, b);
}

void alert_webhook_digest(struct buf *b, const struct alert_notice *const *n, size_t count)
{
	struct json_writer w = json_writer_to_buf(b);

	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("kind", "digest"), JSON_U("count", count));
	json_begin_array_member(&w, "notices");
	for (size_t i = 0; i < count && i < ALERT_DIGEST_SHOW; i++)
		put_notice(&w, n[i]);
	json_end_array(&w);
	json_end_object(&w);
	finish(&w, b);
}

/* ---- Alertmanager ---- */

static void put_labels(
	struct json_writer *w, const struct alert_look *look, const struct alert_matter *first)
{
	char rank[16];

	json_begin_object_member(w, "labels");
	JSON_PUT(w, JSON_S("alertname", first->name), JSON_S("problem", first->problem),
		JSON_S("severity", severity_of(look, first)));
	put_text_if(w, "cluster_id", first->cluster);
	put_text_if(w, "node_id", first->node);
	snprintf(rank, sizeof(rank), "%d", first->rank);
	if (first->rank >= 0)
		json_string_member(w, "rank", rank);
	json_string_member(w, "event_id", first->event);
	json_end_object(w);
}

void alert_alertmanager(struct buf *b, const struct alert_look *look,
	const struct alert_episode *episodes, size_t count, wall_time until)
{
	struct json_writer w = json_writer_to_buf(b);

	json_begin_array(&w);
	for (size_t i = 0; i < count; i++) {
		const struct alert_matter *e = episodes[i].now;

		json_begin_object(&w);
		put_labels(&w, look, episodes[i].first);
		json_begin_object_member(&w, "annotations");
		json_string_member(&w, "summary", e->text);
		put_text_if(&w, "cause", e->cause);
		put_text_if(&w, "fix", e->fix);
		json_end_object(&w);
		put_time(&w, "startsAt", episodes[i].first->since_ns);
		put_time(&w, "endsAt", e->until_ns ? e->until_ns : until.ns);
		json_end_object(&w);
	}
	json_end_array(&w);
	finish(&w, b);
}
