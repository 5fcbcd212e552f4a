/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - prints incidents: title, then for each [SEVERITY] summary, root cause, fixes, place, process, how sure and
 * what a fix is worth; with -v also timeline, figures, all fixes and evidence. See report.h.
 *
 * Pure but for the time zone. Invariant: text of an incident reaches the buffer only through
 * text_escape_terminal(), so no name of a traced process can move the cursor or forge a line. */
#include "answer/encode/report.h"

#include <time.h>

#include "base/text.h"
#include "answer/encode/report_json.h"
#include "diagnose/sentences/span_text.h"

#define BOLD  "\033[1m"
#define RESET "\033[0m"

#define INCIDENTS_SHOWN  10 /* worst first; a page or two */
#define EVIDENCE_SHOWN   6
#define FIXES_SHOWN      2    /* the first ones help most */
#define LEFT_TOLD        1.1  /* times what is promised: less is within what it varies by */
#define NOT_EXPLAINED    0.01 /* of the lost time: as good as none */
#define TEXT_WIDTH_MIN   60   /* narrower terminals break lines themselves */
#define STEP_INDENT      28   /* "    [SYSTEM]  12:34:56.789  " */
#define STEP_INDENT_BARE 14   /* "    [SYSTEM]  " */

static const char *severity_color(enum severity s)
{
	switch (s) {
	case SEVERITY_CRITICAL: return "\033[1;37;41m";
	case SEVERITY_HIGH: return "\033[1;31m";
	case SEVERITY_MEDIUM: return "\033[1;33m";
	case SEVERITY_LOW: return "\033[1;36m";
	case SEVERITY_COUNT: break;
	}
	return "";
}

static bool local_time(int64_t ns, struct tm *ret)
{
	time_t s = (time_t)(ns / (int64_t)NS_PER_S);

	return ns >= 0 && localtime_r(&s, ret);
}

void report_date(struct buf *b, int64_t ns)
{
	struct tm tm;
	char text[64];

	if (local_time(ns, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm))
		buf_puts(b, text);
	else
		buf_printf(b, "(time %lld)", (long long)ns);
}

void report_range(struct buf *b, bool is_sentence, int64_t first_ns, int64_t last_ns)
{
	struct tm first, last;
	char text[64];

	if (last_ns / (int64_t)NS_PER_S <= first_ns / (int64_t)NS_PER_S) {
		buf_puts(b, is_sentence ? "At " : "at ");
		report_date(b, first_ns);
		return;
	}
	buf_puts(b, is_sentence ? "From " : "from ");
	if (local_time(first_ns, &first) && local_time(last_ns, &last) &&
		first.tm_year == last.tm_year && first.tm_yday == last.tm_yday &&
		first.tm_gmtoff == last.tm_gmtoff &&
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S to ", &first)) {
		buf_puts(b, text);
		if (strftime(text, sizeof(text), "%H:%M:%S %Z", &last))
			buf_puts(b, text);
		return;
	}
	report_date(b, first_ns);
	buf_puts(b, " to ");
	report_date(b, last_ns);
}

static void put_clock(struct buf *b, int64_t ns)
{
	struct tm tm;

	if (local_time(ns, &tm))
		buf_printf(b, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec,
			(int)(ns % (int64_t)NS_PER_S / (int64_t)NS_PER_MS));
	else
		buf_printf(b, "(time %lld)", (long long)ns);
}

/* What was not looked at is no all-clear. */
static const char *title_of_none(const struct report_scope *s)
{
	if (s->late_node)
		return "No incidents on this node";
	if (!s->events)
		return "No events to explain";
	if (s->no_gpu_calls)
		return "No CUDA calls to explain";
	return all_clear_is_known(s) ? "No incidents" : "Cannot tell whether time was lost";
}

static void put_title(struct buf *b, const struct incident *list, size_t n,
	const struct report_scope *s, bool color)
{
	size_t per[SEVERITY_COUNT] = {0};
	const char *comma = " (";

	if (color)
		buf_puts(b, BOLD);
	if (!n)
		buf_puts(b, title_of_none(s));
	else
		buf_printf(b, "INCIDENTS - %s", TEXT_PLURAL(n, "incidents"));
	for (size_t i = 0; i < n; i++)
		per[list[i].severity]++;
	for (int k = SEVERITY_COUNT - 1; k >= SEVERITY_LOW; k--) {
		if (!per[k])
			continue;
		buf_printf(b, "%s%zu %s", comma, per[k], severity_name((enum severity)k));
		comma = ", ";
	}
	buf_puts(b, n ? ")" : "");
	buf_puts(b, color ? RESET "\n" : "\n");
}

/* Lines that programs look for (a summary, a step) are only broken for a terminal. */
static size_t line_width(const struct report_scope *s)
{
	return s->columns ? (size_t)MAX(s->columns, TEXT_WIDTH_MIN) : SIZE_MAX;
}

static size_t paragraph_width(const struct report_scope *s)
{
	return MIN(line_width(s), (size_t)PARAGRAPH_WIDTH);
}

static void put_timeline(struct buf *b, const struct incident *inc, size_t width)
{
	buf_puts(b, "  Timeline:\n");
	for (int i = 0; i < inc->step_count; i++) {
		const struct incident_step *s = &inc->timeline[i];
		_cleanup_buf_ struct buf text = BUF_INIT(1024);

		buf_printf(b, "    [%s]%*s", s->layer, 8 - (int)strnlen(s->layer, 6), "");
		if (s->time.ns) {
			put_clock(b, s->time.ns);
			buf_puts(b, "  ");
		}
		buf_puts(&text, s->detail);
		if (s->dur_ns)
			buf_printf(&text, " (%s)", TEXT_DURATION(s->dur_ns));
		text_wrap(b, s->time.ns ? STEP_INDENT : STEP_INDENT_BARE, width, buf_str(&text));
	}
}

static const char *explained_text(char out[TEXT_MAX], double explained)
{
	return explained < NOT_EXPLAINED ? "none" : text_format_percent(out, explained);
}

/* Nothing recorded explains it: what is sure is that the time was lost. */
static bool is_unexplained(const struct incident *inc)
{
	return inc->excess_ns && inc->explained < NOT_EXPLAINED;
}

/* likely, 83 % */
static void put_confidence(struct buf *b, const struct incident *inc, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(256);

	buf_printf(&text, "%s, %s%s", confidence_word(inc->confidence),
		TEXT_PERCENT(inc->confidence),
		is_unexplained(inc) ? " that this time was lost; cause unknown" : "");
	paragraph_put(b, width, "  Confidence: ", buf_str(&text));
}

/* What grew beside an incident is taken to go with it (compose/gain.c): what is left if it does not, where that is much
 * more than what is promised; else 0. */
static uint64_t left_ns(const struct incident *inc)
{
	uint64_t part = inc->count ? inc->excess_ns / inc->count : 0;
	uint64_t left = inc->unit_ns - MIN(part, inc->unit_ns);

	if (inc->source != SOURCE_HOST || inc->op != HOST_LEDGER || !part ||
		(double)left < LEFT_TOLD * (double)inc->fixed_ns)
		return 0;
	return left;
}

/* steps 174 → about 46 ms (44–52); 60 ms if only this part goes */
static void put_gain(struct buf *b, const struct incident *inc, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(512);
	char gain[SPAN_GAIN_MAX], lost[SPAN_TEXT_MAX];
	uint64_t left = left_ns(inc);

	if (inc->unit_ns && inc->fixed_ns < inc->unit_ns) {
		buf_printf(&text, "%s %s", inc->unit ? inc->unit : "calls",
			span_text_gain(gain, inc->unit_ns, inc->fixed_ns, inc->fixed_least_ns,
				inc->fixed_most_ns));
		if (left)
			buf_printf(&text, "; %s if only this part goes", span_text_one(lost, left));
		paragraph_put(b, width, "  Without it: ", buf_str(&text));
	} else if (inc->excess_ns) {
		buf_printf(&text, "%s lost in %s", span_text_one(lost, inc->excess_ns),
			inc->unit ? TEXT_PLURAL(inc->count, inc->unit)
				  : TEXT_PLURAL(inc->slow_calls, "slow calls"));
		paragraph_put(b, width, "  Cost: ", buf_str(&text));
	}
}

static void put_stats(struct buf *b, const struct incident *inc, size_t width)
{
	char share[TEXT_MAX];
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	if (inc->unit) {
		buf_puts(&text, TEXT_PLURAL(inc->count, inc->unit));
		if (inc->excess_ns)
			buf_printf(&text, ", %s lost, %s of it explained",
				TEXT_DURATION(inc->excess_ns),
				explained_text(share, inc->explained));
		paragraph_put(b, width, "  Measured: ", buf_str(&text));
		return;
	}
	buf_printf(&text, "%s of %s extra time in %s slow of %s",
		explained_text(share, inc->explained), TEXT_DURATION(inc->excess_ns),
		TEXT_COUNT(inc->slow_calls), TEXT_PLURAL(inc->calls, "calls"));
	paragraph_put(b, width, "  Explained: ", buf_str(&text));
}

/* called from forward() at train.py:142, 87 % of the excess */
static void put_where(
	struct buf *b, const struct report_entry *e, const struct report_scope *scope, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 14);
	const struct incident *inc = e->incident;
	double part = e->where_share;
	struct where w;

	if (inc->place[0]) {
		paragraph_put(b, width, "  Where: ", inc->place);
		return;
	}
	buf_puts(&text, "called from ");
	if (e->where && e->where[0]) {
		buf_puts(&text, e->where);
	} else if (where_find(inc, &scope->stacks, &w)) {
		stack_text_place(&text, w.frame);
		part = w.share;
	} else {
		return;
	}
	buf_printf(&text, ", %s of the %s", TEXT_PERCENT(part),
		inc->excess_ns || !inc->unit ? "extra time" : inc->unit);
	paragraph_put(b, width, "  Where: ", buf_str(&text));
}

static void put_evidence(struct buf *b, const struct incident *inc, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	if (!inc->evidence_count && !inc->evidence_sql[0])
		return;
	if (!inc->evidence_count) {
		paragraph_put(b, width, "  Evidence: ", "--json has the SQL that finds it");
		return;
	}
	buf_puts(&text, inc->evidence_count == 1 ? "row" : "rows");
	for (int i = 0; i < MIN(inc->evidence_count, EVIDENCE_SHOWN); i++)
		buf_printf(&text, "%s %llu", i ? "," : "", (unsigned long long)inc->evidence[i]);
	buf_printf(&text, "%s (--json has %s)", inc->evidence_count > EVIDENCE_SHOWN ? ", …" : "",
		inc->evidence_count == 1 ? "the SQL that finds it"
					 : "them all, and the SQL that finds them");
	paragraph_put(b, width, "  Evidence: ", buf_str(&text));
}

/* phase=train, step=1200 … 1260 (61 values) */
static void put_labels(
	struct buf *b, const struct incident *inc, const struct report_scope *scope, size_t width)
{
	_cleanup_buf_ struct buf line = BUF_INIT(1 << 16);
	struct label_range ranges[LABELS_KEYS_MAX];
	size_t more;
	int n;

	if (!scope->with_labels)
		return;
	n = labels_during(scope->labels, scope->label_count, inc, ranges, &more);
	for (int i = 0; i < n; i++) {
		const struct label_range *r = &ranges[i];

		buf_printf(&line, "%s%s=%s", i ? ", " : "", r->key, r->values[0]);
		if (r->total > 1)
			buf_printf(&line, " %s %s (%zu values)", r->total > 2 ? "…" : "then",
				r->values[r->value_count - 1], r->total);
	}
	if (more)
		buf_printf(&line, " and more");
	paragraph_put(b, width, "  Annotations: ", n ? buf_str(&line) : "none");
}

/* Of a stored verdict in one line, as published; else a line each. */
static void put_fixes(struct buf *b, const struct report_entry *e, bool all, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 12);
	const struct incident *inc = e->incident;
	int n = all || e->stored ? inc->fix_count : MIN(inc->fix_count, FIXES_SHOWN);

	for (int i = 0; i < n; i++) {
		if (!e->stored)
			paragraph_put(b, width, i ? "       " : "  Fix: ", inc->fixes[i]);
		else
			buf_printf(&text, "%s%s", i ? "; " : "", inc->fixes[i]);
	}
	if (text.len)
		paragraph_put(b, width, "  Fix: ", buf_str(&text));
}

/* python3 (PID 101, 102 and 3 more), from 2026-03-21 13:25:10 to 13:25:30 UTC */
static void put_subject(struct buf *b, const struct incident *inc, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);
	uint32_t named = (uint32_t)MAX(inc->pid_count, 1);

	if (inc->pid) {
		buf_printf(&text, "%s%sPID %u", inc->comm, inc->comm[0] ? " (" : "", inc->pid);
		for (int i = 1; i < inc->pid_count; i++)
			buf_printf(&text, ", %u", inc->pids[i]);
		if (inc->pid_total > named)
			buf_printf(&text, " and %u more", inc->pid_total - named);
		buf_puts(&text, inc->comm[0] ? ")" : "");
	}
	if (inc->first.ns > 0) {
		buf_puts(&text, inc->pid ? ", " : "");
		report_range(&text, false, inc->first.ns, inc->last.ns);
	}
	if (text.len)
		paragraph_put(b, width, inc->pid ? "  Process: " : "  Time: ", buf_str(&text));
}

/* What a published agent knows, in its order. */
static void put_stored(
	struct buf *b, const struct report_entry *e, const struct report_scope *scope)
{
	const struct incident *inc = e->incident;
	size_t width = paragraph_width(scope);

	put_subject(b, inc, line_width(scope));
	if (inc->step_count)
		put_timeline(b, inc, line_width(scope));
	paragraph_put(b, width, "  Root cause: ", inc->root_cause);
	if (inc->explanation[0])
		paragraph_put(b, width, "  Why: ", inc->explanation);
	put_where(b, e, scope, width);
	put_fixes(b, e, true, width);
	put_evidence(b, inc, width);
}

/* Whether the title names the line. */
static bool is_placed(const struct incident *inc)
{
	size_t len = strcspn(inc->place, " ");

	return len && memmem(inc->summary, strlen(inc->summary), inc->place, len);
}

/* All but the title. */
static void put_rest(struct buf *b, const struct report_entry *e, const struct report_scope *scope)
{
	const struct incident *inc = e->incident;
	size_t width = paragraph_width(scope);
	bool verbose = e->verbose || scope->verbose;

	paragraph_put(b, width, "  Root cause: ", inc->root_cause);
	put_fixes(b, e, verbose, width);
	if (verbose || !is_placed(inc))
		put_where(b, e, scope, width);
	put_subject(b, inc, line_width(scope));
	put_labels(b, inc, scope, width);
	put_confidence(b, inc, width);
	put_gain(b, inc, width);
	if (!verbose)
		return;
	paragraph_put(b, width, "  Why: ", inc->explanation);
	put_stats(b, inc, width);
	put_timeline(b, inc, line_width(scope));
	put_evidence(b, inc, width);
}

static void put_incident(
	struct buf *b, const struct report_entry *e, const struct report_scope *scope, bool color)
{
	const struct incident *inc = e->incident;
	const char *severity = severity_name(inc->severity);
	_cleanup_buf_ struct buf title = BUF_INIT(1 << 12);

	if (color)
		buf_printf(b, "\n%s[%s]%s ", severity_color(inc->severity), severity, RESET);
	else
		buf_printf(b, "\n[%s] ", severity);
	if (e->node)
		buf_printf(&title, "[%s] ", e->node);
	buf_puts(&title, inc->summary);
	text_wrap(b, strlen(severity) + 3, line_width(scope), buf_str(&title));
	if (e->stored)
		put_stored(b, e, scope);
	else if (!e->brief)
		put_rest(b, e, scope);
	else if (!is_placed(inc))
		put_where(b, e, scope, paragraph_width(scope));
}

void report_incident(struct buf *b, const struct report_entry *e, int columns, bool color)
{
	struct report_scope scope = {.columns = columns};

	put_incident(b, e, &scope, color);
}

/* "Waited for rank 1 of node b, 17s in all: see there" */
static void put_late(struct buf *b, const struct report_scope *s)
{
	buf_printf(b, "  Waited for rank %d of node ", s->late_rank);
	text_escape_terminal(b, s->late_node);
	if (s->late_ns)
		buf_printf(b, ", %s in all", TEXT_DURATION(s->late_ns));
	buf_puts(b, ": see that node\n");
}

/* Was: [HIGH] Waiting for sha256sum in digest_of (tag.py:23): 11 of 30 ms of every step, until 03:03:40.002 */
static void put_past(struct buf *b, const struct report_scope *s, size_t width)
{
	for (size_t i = 0; i < s->past_count; i++) {
		const struct incident_row *row = s->past[i];
		_cleanup_buf_ struct buf text = BUF_INIT(1 << 12);

		buf_printf(&text, "[%s] %s, until ", row->severity, row->summary);
		put_clock(&text, row->last_ns);
		paragraph_put(b, width, i ? "           " : "  Earlier: ", buf_str(&text));
	}
	if (s->past_count)
		buf_puts(b,
			"           (reported while recording; resolved, or not confirmed by the whole recording: --chains shows more)\n");
}

static void put_nothing(struct buf *b, const struct report_scope *s)
{
	if (!s->events)
		buf_puts(b,
			"  Record while a CUDA program runs, and select a time range and processes that were recorded.\n");
	else if (s->no_gpu_calls && s->again)
		buf_puts(b,
			"  The command ended before it or its children made any. What runs elsewhere (a daemon, a container,\n  another node) is not traced with it: `sudo ingero trace` records it.\n");
	else if (s->no_gpu_calls)
		buf_puts(b,
			"  The traced processes made none, or hang in a call that began before the recording\n  (`py-spy dump --pid PID` or `gdb -p PID` shows where).\n");
	else
		all_clear_put(b, s, paragraph_width(s));
}

/* What is LOW beside something louder is a line, unless all is asked for. The loudest stands first. */
static bool is_aside(
	const struct incident *i, const struct incident *all, const struct report_scope *scope)
{
	return !scope->verbose && i->severity == SEVERITY_LOW && all[0].severity > SEVERITY_LOW;
}

static void put_next(struct buf *b, const struct report_scope *s, size_t count)
{
	if (!s->again && count)
		buf_puts(b, "-v adds figures, timeline and evidence; --json has everything\n");
	if (!s->again || s->no_gpu_calls)
		return;
	buf_puts(b, "Next: ");
	if (count)
		buf_printf(b, "ingero explain%s -v (figures, timeline, evidence), ", s->again);
	buf_printf(b, "ingero explain%s --steps (where the time of a step went)\n", s->again);
}

void report_text(struct buf *b, const struct incident *incidents, size_t count,
	const struct report_scope *scope, bool color)
{
	put_title(b, incidents, count, scope, color);
	if (scope->late_node)
		put_late(b, scope);
	else if (!count)
		put_nothing(b, scope);
	put_past(b, scope, paragraph_width(scope));
	if (!count && !scope->past_count && scope->stored_verdicts) {
		buf_printf(b, "  %s %s stored while recording: --chains shows %s\n",
			TEXT_PLURAL(scope->stored_verdicts, "incidents"),
			scope->stored_verdicts == 1 ? "was" : "were",
			scope->stored_verdicts == 1 ? "it" : "them");
	}
	for (size_t i = 0; i < MIN(count, (size_t)INCIDENTS_SHOWN); i++)
		put_incident(b,
			&(struct report_entry){.incident = &incidents[i],
				.brief = is_aside(&incidents[i], incidents, scope)},
			scope, color);
	if (count > INCIDENTS_SHOWN)
		buf_printf(b, "\n%s %s not shown; --json has them all\n",
			TEXT_PLURAL(count - INCIDENTS_SHOWN, "smaller incidents"),
			count - INCIDENTS_SHOWN == 1 ? "is" : "are");
	buf_puts(b, count ? "\n" : "");
	if (count && incidents[0].severity == SEVERITY_LOW)
		all_clear_processes(b, scope, paragraph_width(scope));
	report_looked_at(b, scope, line_width(scope));
	if (!scope->verbose)
		put_next(b, scope, count);
	if (scope->with_stacks) {
		struct stack_report stacks = {.stacks = &scope->stacks,
			.totals = scope->totals,
			.total_count = scope->total_count,
			.width = line_width(scope),
			.color = color};

		stack_report_text(b, incidents, MIN(count, (size_t)INCIDENTS_SHOWN), &stacks);
	}
}
