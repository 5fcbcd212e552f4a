/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_reply.c - see fanout_private.h. */
#include "fanout/fanout_private.h"

#include <strings.h>

#include "base/text.h"
#include "json/reader.h"
#include "json/tree.h"

/* What a question's answers come to: names of nodes, one table, one order,
 * warnings. */

void fanout_result_done(struct fanout_result *r)
{
	for (size_t i = 0; i < r->count && r->answers; i++) {
		free(r->answers[i].json);
		free(r->answers[i].hint);
		sql_table_done(&r->answers[i].table);
	}
	free(r->answers);
	free(r->warnings);
	sql_table_done(&r->table);
	fanout_incidents_done(&r->incidents);
	*r = (struct fanout_result){0};
}

static void warn(struct fanout_result *r, enum fanout_note note, const char *fmt, ...)
	_printf_(3, 4);

static void warn(struct fanout_result *r, enum fanout_note note, const char *fmt, ...)
{
	struct fanout_warning *p =
		realloc(r->warnings, (r->warning_count + 1) * sizeof(*r->warnings));
	va_list args;

	if (!p)
		return; /* the answers still say it themselves */
	r->warnings = p;
	p += r->warning_count++;
	p->note = note;
	va_start(args, fmt);
	vsnprintf(p->text, sizeof(p->text), fmt, args);
	va_end(args);
}

/* ---- names ---- */

static void rename_incidents(struct fanout_run *run, size_t i)
{
	const char *told = run->legs[i].told, *name = run->result.answers[i].name;

	for (size_t k = 0; k < run->result.incidents.count; k++) {
		struct fanout_incident *in = run->result.incidents.items[k];

		if (in->index == i && strcmp(in->node, told) == 0)
			snprintf(in->node, sizeof(in->node), "%s", name);
	}
}

static void set_names(struct fanout_run *run)
{
	struct fanout_result *r = &run->result;

	for (size_t i = 0; i < r->count; i++) {
		struct fanout_answer *a = &r->answers[i];
		struct fanout_leg *leg = &run->legs[i];

		if (!leg->told[0])
			snprintf(leg->told, sizeof(leg->told), "%s", leg->rows.name);
		if (!leg->told[0])
			snprintf(leg->told, sizeof(leg->told), "%s", a->address);
	}
	for (size_t i = 0; i < r->count; i++) {
		struct fanout_answer *a = &r->answers[i];
		const char *told = run->legs[i].told;

		snprintf(a->name, sizeof(a->name), "%s", told);
		if (!EXISTS(k, run->result.count,
			    k != i && strcmp(run->legs[i].told, run->legs[k].told) == 0))
			continue;
		snprintf(a->name, sizeof(a->name), "%.*s (%s)",
			(int)(sizeof(a->name) - 1 - strnlen(a->address, 200) - 3), told,
			a->address);
		rename_incidents(run, i);
		if (!EXISTS(k, i, strcmp(run->legs[i].told, run->legs[k].told) == 0))
			warn(r, FANOUT_NOTE_NAME,
				"several nodes have the name %s (one is %s): set names with `ingero trace --node`",
				told, a->address);
	}
}

/* ---- the table ---- */

#define NONE_ALIKE "no two nodes have the same columns: name the columns instead of *"

static void judge_rows(struct fanout_run *run, size_t i)
{
	struct fanout_answer *a = &run->result.answers[i];
	const struct fanout_rows *rows = &run->legs[i].rows;

	if (!rows->odd) {
		a->truncated = rows->truncated || rows->maybe_more;
		return;
	}
	a->ok = false;
	a->rows = 0;
	run->result.no_columns_alike |= !rows->difference[0];
	if (rows->difference[0])
		snprintf(a->why, sizeof(a->why),
			"its columns differ from the other nodes', its rows are omitted: %s",
			rows->difference);
	else
		snprintf(a->why, sizeof(a->why), NONE_ALIKE);
}

static int merge_rows(struct fanout_run *run)
{
	struct fanout_result *r = &run->result;
	_cleanup_free_ struct fanout_rows *rows = calloc(r->count, sizeof(*rows));
	_cleanup_free_ const char **names = calloc(r->count, sizeof(*names));
	int err = rows && names ? 0 : -ENOMEM;

	for (size_t i = 0; err == 0 && i < r->count; i++) {
		rows[i] = run->legs[i].rows;
		names[i] = r->answers[i].name;
		r->answers[i].rows = rows[i].table.row_count;
	}
	if (err < 0)
		return err;
	err = fanout_table_merge(rows, names, r->count, &r->table);
	for (size_t i = 0; i < r->count; i++)
		run->legs[i].rows = rows[i]; /* their tables are empty now */
	return err;
}

static void finish_table(struct fanout_run *run)
{
	struct fanout_result *r = &run->result;

	if (merge_rows(run) < 0) {
		for (size_t i = 0; i < r->count; i++) {
			r->answers[i].ok = false;
			snprintf(r->answers[i].why, sizeof(r->answers[i].why),
				"not enough memory for the rows");
		}
	} else {
		for (size_t i = 0; i < r->count; i++)
			if (r->answers[i].ok)
				judge_rows(run, i);
	}
}

static void warn_rows(struct fanout_run *run)
{
	struct fanout_result *r = &run->result;

	for (size_t i = 0; i < r->count; i++) {
		const struct fanout_answer *a = &r->answers[i];

		if (a->ok && a->truncated)
			warn(r, FANOUT_NOTE_CUT,
				"node %s: only its first %zu rows are included; %s", a->name,
				a->rows,
				run->legs[i].rows.truncated ? "it has more" : "it may have more");
	}
}

/* ---- failures and clocks ---- */

static void warn_failures(struct fanout_run *run)
{
	struct fanout_result *r = &run->result;

	for (size_t i = 0; i < r->count; i++)
		if (!r->answers[i].ok)
			warn(r, run->legs[i].rows.odd ? FANOUT_NOTE_COLUMNS : FANOUT_NOTE_FAILED,
				"node %s: %s", r->answers[i].address, r->answers[i].why);
}

static void warn_skew(struct fanout_run *run, const struct fanout_skew *s)
{
	struct fanout_result *r = &run->result;
	bool us = s->other == SIZE_MAX;

	warn(r, FANOUT_NOTE_CLOCK,
		"clock skew: node %s is %s ± %s %s %s%s (threshold %s): times of these nodes are not comparable",
		r->answers[s->node].name, TEXT_DURATION((uint64_t)llabs(s->by_ns)),
		TEXT_DURATION(s->error_ns), s->by_ns > 0 ? "ahead of" : "behind",
		us ? "this machine" : "node ", us ? "" : r->answers[s->other].name,
		TEXT_DURATION(run->f->skew_ns));
}

static void judge_clocks(struct fanout_run *run)
{
	struct fanout_result *r = &run->result;
	_cleanup_free_ struct fanout_clock *clocks = calloc(r->count, sizeof(*clocks));
	_cleanup_free_ struct fanout_skew *skews = calloc(r->count + 1, sizeof(*skews));
	size_t n;

	if (!clocks || !skews || !run->clocks)
		return;
	for (size_t i = 0; i < r->count; i++) {
		struct fanout_leg *leg = &run->legs[i];

		clocks[i] = fanout_clock_median(leg->samples, leg->sample_count);
		r->answers[i].clock = clocks[i];
		if (r->answers[i].ok && !clocks[i].known)
			warn(r, FANOUT_NOTE_CLOCK, "node %s: cannot compare its clock: %s",
				r->answers[i].name,
				leg->clock_why[0]   ? leg->clock_why
				: leg->sample_count ? "it reports an impossible time"
						    : "no time left");
	}
	n = fanout_clock_skews(clocks, r->count, run->f->skew_ns, skews, r->count + 1);
	for (size_t i = 0; i < n; i++)
		warn_skew(run, &skews[i]);
}

void fanout_result_finish(struct fanout_run *run)
{
	struct fanout_result *r = &run->result;

	set_names(run);
	if (run->kind == FANOUT_SQL && run->apart) {
		for (size_t i = 0; i < run->result.count; i++) {
			struct fanout_answer *a = &run->result.answers[i];
			struct fanout_rows *rows = &run->legs[i].rows;

			a->table = rows->table;
			rows->table = (struct sql_table){0};
			a->rows = a->table.row_count;
			a->truncated = rows->truncated || rows->maybe_more;
		}
	} else if (run->kind == FANOUT_SQL) {
		finish_table(run);
	}
	fanout_incident_sort(&r->incidents);
	for (size_t i = 0; i < r->count; i++)
		r->ok_count += r->answers[i].ok;
	warn_failures(run);
	warn_rows(run);
	if (r->incidents.left_out)
		warn(r, FANOUT_NOTE_CUT, "%zu incidents of nodes with over %d are omitted",
			r->incidents.left_out, FANOUT_INCIDENTS_MAX);
	judge_clocks(run);
}

enum exit_code fanout_verdict(const struct fanout_result *r)
{
	if (r->ok_count == r->count)
		return EXIT_OK;
	return r->ok_count ? EXIT_PARTIAL : EXIT_FAILED;
}

/* Whether every node replied, but not with an answer: then it is the question, or who asks. */
static bool is_refused(const struct fanout_result *r, int status)
{
	for (size_t i = 0; i < r->count; i++) {
		int s = r->answers[i].status;

		if (s == 0 || s == 200 || (status && s != status))
			return false;
	}
	return true;
}

void fanout_why(const struct fanout_result *r, struct errinfo *ret)
{
	bool wrong = is_refused(r, 400), refused = is_refused(r, 0), alike = true;
	enum exit_code code = wrong ? EXIT_USAGE : EXIT_FAILED;
	int err = wrong ? -EINVAL : -EIO;

	for (size_t i = 1; i < r->count; i++)
		alike &= strcmp(r->answers[i].why, r->answers[0].why) == 0;
	if (r->no_columns_alike)
		errinfo_set_exit(ret, code, err, NONE_ALIKE);
	else if (r->count == 1)
		errinfo_set_exit(
			ret, code, err, "node %s: %s", r->answers[0].address, r->answers[0].why);
	else if (alike && refused)
		errinfo_set_exit(ret, code, err, "every node refused: %s", r->answers[0].why);
	else if (alike)
		errinfo_set_exit(ret, code, err, "none of %zu nodes answered; each: %s", r->count,
			r->answers[0].why);
	else if (refused)
		errinfo_set_exit(ret, code, err, "every one of %zu nodes refused", r->count);
	else
		errinfo_set_exit(ret, code, err, "none of %zu nodes answered", r->count);
}

#define ERROR_MAX      220 /* bytes of a node's own words */
#define HINT_MAX       4096
#define TEXT_MAX_BYTES (4 << 20)

static bool is_json(const struct http_response *r)
{
	static const char json[] = "application/json";
	const char *type = http_head_get(&r->head, "content-type");

	if (!type || strncasecmp(type, json, strlen(json)) != 0)
		return false;
	return !type[strlen(json)] || strchr("; \t", type[strlen(json)]);
}

/* The node's own sentence, {"error": "…"} or another @member; "" if it gave none. */
static void read_said(const struct http_response *r, const char *member, char *out, size_t size)
{
	_cleanup_(json_reader_done) struct json_reader j;

	out[0] = 0;
	json_reader_init(&j, r->body, r->body_len, 1 << 16);
	if (!is_json(r) || json_read(&j) != JSON_READ_OBJECT)
		return;
	while (json_read(&j) == JSON_READ_KEY) {
		bool wanted = json_read_is(&j, member);
		enum json_read t = json_read(&j);

		if (wanted && t == JSON_READ_STRING)
			snprintf(out, size, "%s", buf_str(&j.text));
		if (!json_skip(&j, t))
			return;
	}
}

/* What a server of another kind says to a path that it does not have. */
static bool is_strange(int status)
{
	return status == 404 || status == 405 || status == 501;
}

int fanout_reply_check(const struct http_response *r, bool with_token, struct errinfo *reterr)
{
	const char *type = http_head_get(&r->head, "content-type");

	if (r->status != 200) {
		char said[ERROR_MAX];

		read_said(r, "error", said, sizeof(said));
		if (r->status >= 300 && r->status < 400)
			return errinfo_set(
				reterr, -EPROTO, "redirects are not followed (HTTP %d)", r->status);
		if (r->status == 401)
			return errinfo_set(reterr, -EPROTO,
				with_token
					? "invalid token (HTTP 401): set another with --token-file or INGERO_FLEET_TOKEN"
					: "a token is required (HTTP 401): set one with --token-file or INGERO_FLEET_TOKEN");
		/* Its own words are about the API, which nobody here speaks. */
		if (r->status == 408)
			return errinfo_set(reterr, -EPROTO,
				"the SQL timed out (HTTP 408): select less, or raise --timeout (fleet.timeout in ingero.yaml)");
		if (!said[0] && is_strange(r->status))
			return errinfo_set(reterr, r->status == 404 ? -ENOENT : -EPROTO,
				"unknown request (HTTP %d): is it an `ingero dashboard`?",
				r->status);
		return errinfo_set(reterr, r->status == 404 ? -ENOENT : -EPROTO, "%s%s(HTTP %d)",
			said, said[0] ? " " : "it refused ", r->status);
	}
	if (!is_json(r))
		return errinfo_set(reterr, -EPROTO,
			"it answered with %.60s instead of JSON: is it an `ingero dashboard`?",
			type && type[0] ? type : "something");
	return 0;
}

char *fanout_reply_hint(const struct http_response *r)
{
	char hint[HINT_MAX];

	read_said(r, "hint", hint, sizeof(hint));
	return hint[0] ? strdup(hint) : NULL;
}

int fanout_reply_time(const struct http_response *r, int64_t *ret_ns)
{
	_cleanup_(json_reader_done) struct json_reader j;
	bool found = false;

	json_reader_init(&j, r->body, r->body_len, 4096);
	if (json_read(&j) != JSON_READ_OBJECT)
		return -EPROTO;
	while (json_read(&j) == JSON_READ_KEY) {
		bool time = json_read_is(&j, "timestamp_ns");
		enum json_read t = json_read(&j);

		if (time && t == JSON_READ_INT) {
			*ret_ns = j.i;
			found = true;
		}
		if (!json_skip(&j, t))
			return -EPROTO;
	}
	return found && !j.err ? 0 : -EPROTO;
}

int fanout_reply_copy(const struct http_response *r, struct buf *b, struct errinfo *reterr)
{
	_cleanup_(json_reader_done) struct json_reader j;
	struct json_writer w = json_writer_to_buf(b);

	json_reader_init(&j, r->body, r->body_len, TEXT_MAX_BYTES);
	if (!json_copy_value(&j, json_read(&j), &w) || json_read(&j) != JSON_READ_END)
		return errinfo_set(reterr, -EPROTO,
			j.err == -E2BIG ? "its answer is nested too deeply"
					: "its answer is not valid JSON");
	return json_finish(&w);
}
