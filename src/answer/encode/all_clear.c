/* SPDX-License-Identifier: Apache-2.0 */
/* all_clear.c - see report.h. Silence means little where nobody looked: each process has its units, how
 * they were found and where their time went; what else is looked at is either counted or named as missing,
 * with the reason. How much was looked at, and what was lost, thinned or pruned, is said with every report. */
#include "answer/encode/report.h"

#include "answer/stacks.h"
#include "base/text.h"
#include "diagnose/rows/place.h"

#define PROCESSES_SHOWN 4
#define LINES_SHOWN     3    /* the third only if it is not small */
#define PLACE_TOLD      0.1  /* of the time, and more: where it is spent */
#define GPU_BOUND       0.9  /* of the time, and more */
#define UNKNOWN_TOLD    0.01 /* of the time: less is not worth a reason */
#define COVER_TOLD      0.5 /* of the time between the first unit and the last: more needs no mention */

static void put_name(struct buf *b, const char *comm, uint32_t pid)
{
	text_escape_terminal_len(b, comm, strnlen(comm, COMM_LEN));
	buf_printf(b, " (PID %" PRIu32 ")", pid);
}

static uint64_t total_of(const struct step_account *a)
{
	uint64_t ns = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		ns += a->total_ns[i];
	return ns;
}

/* ", which take 335ms of 9.5s": said where units are a small part of the time from the first of them to the last. */
static void put_cover(struct buf *b, const struct report_scope *s)
{
	uint64_t covered = 0, lasted = 0;

	for (size_t i = 0; i < s->accounts.count; i++) {
		const struct step_account *a = &s->accounts.items[i];

		covered += total_of(a);
		lasted += (uint64_t)(a->last.ns - a->first.ns);
	}
	if ((double)covered < COVER_TOLD * (double)lasted)
		buf_printf(
			b, ", which take %s of %s", TEXT_DURATION(covered), TEXT_DURATION(lasted));
}

bool all_clear_is_known(const struct report_scope *s)
{
	uint64_t steps = 0;

	for (size_t i = 0; i < s->accounts.count; i++)
		steps += s->accounts.items[i].steps;
	return steps > 0;
}

void all_clear_verdict(struct buf *b, const struct report_scope *s)
{
	uint64_t steps = 0, windows = 0;

	for (size_t i = 0; i < s->accounts.count; i++) {
		const struct step_account *a = &s->accounts.items[i];

		*(a->origin == STEP_BY_TIME ? &windows : &steps) += a->steps;
	}
	if (!all_clear_is_known(s)) {
		buf_puts(b,
			"Cannot tell whether time was lost: no process used a GPU for long enough.");
		return;
	}
	buf_puts(b, "No problems found in ");
	if (steps)
		buf_puts(b, TEXT_PLURAL(steps, "steps"));
	if (windows)
		buf_printf(
			b, "%s%s", steps ? " and " : "", TEXT_PLURAL(windows, "windows of time"));
	buf_printf(b, " of %s", TEXT_PLURAL(s->accounts.count, "processes"));
	put_cover(b, s);
	buf_puts(b, ".");
}

/* ---- a process ---- */

struct top_line {
	enum account_line line;
	double share;
};

/* The lines with most time, most first. Returns how many. */
static int top_lines(const struct step_account *a, struct top_line ret[LINES_SHOWN])
{
	uint64_t all = total_of(a);
	bool taken[ACCOUNT_LINES] = {false};
	int n = 0;

	while (all && n < LINES_SHOWN) {
		int best = -1;

		for (int i = 0; i < ACCOUNT_LINES; i++)
			if (!taken[i] && a->total_ns[i] &&
				(best < 0 || a->total_ns[i] > a->total_ns[best]))
				best = i;
		if (best < 0 || (n > 1 && (double)a->total_ns[best] < PLACE_TOLD * (double)all))
			break;
		taken[best] = true;
		ret[n++] = (struct top_line){
			(enum account_line)best, (double)a->total_ns[best] / (double)all};
	}
	return n;
}

/* " in step (train.py:88)": where most of it is spent, by the program's own code; of a program without any, in general. */
static void put_line_place(struct buf *b, const struct stack_list *stacks,
	const struct step_account *a, enum account_line line)
{
	struct place_weight weights[ACCOUNT_ENTRIES];
	const struct account_entry *most = NULL;
	struct code_place place;
	char at[512];
	uint64_t most_ns = 0, known_ns = 0;
	size_t n = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		uint64_t ns = steps_entry(a, e).mean_ns;

		if (e->line != line || !e->stack_hash)
			continue;
		weights[n++] = (struct place_weight){e->stack_hash, ns};
		known_ns += ns;
		if (ns > most_ns) {
			most = e;
			most_ns = ns;
		}
	}
	if (2 * known_ns * MAX(a->steps, 1u) < a->total_ns[line])
		return; /* of most of it the place is not known */
	if (place_cover(stacks, weights, n, &place)) {
		buf_puts(b, " ");
		text_escape_terminal(b, place_at(&place, at, sizeof(at)));
	} else if (most && steps_place(stacks, most).user) {
		buf_puts(b, " in ");
		stack_text_place(b, steps_place(stacks, most).user);
	}
}

/* What the thread waits for is done on the GPU, unless ranks wait for each other there. */
static bool is_gpu_bound(const struct report_scope *s, const struct top_line *top)
{
	return top->line == ACCOUNT_GPU && top->share > GPU_BOUND && !s->examined.collectives;
}

/* ", 20 of them with other work (an evaluation, for instance), which takes 71 % of it". Such units are compared with nothing, so
 * that no incident tells what they cost. */
static void put_other(struct buf *b, const struct step_account *a)
{
	double all = (double)total_of(a), alike;

	alike = (double)a->ordinary_step_ns * a->ordinary_steps +
		(double)a->slow_step_ns * a->slow_steps;
	if (a->other_steps && all - alike >= PLACE_TOLD * all)
		buf_printf(b,
			", %" PRIu32
			" of them with other work (an evaluation, for instance), which takes %s of it",
			a->other_steps, TEXT_PERCENT((all - alike) / all));
}

/* "python3 (PID 4821): 512 steps in 61s. Step boundary: optimizer.step (92 %). Time: host code 71 %, …" */
static void put_process(struct buf *b, const struct report_scope *s, const struct step_account *a)
{
	struct top_line lines[LINES_SHOWN];
	int n = top_lines(a, lines);

	put_name(b, a->comm, a->pid);
	buf_printf(b, ": %s in %s", TEXT_PLURAL(a->steps, step_origin_units(a->origin)),
		TEXT_DURATION(total_of(a)));
	put_other(b, a);
	buf_printf(b, ". Step boundary: %s (%s).", step_origin_text(a->origin),
		TEXT_PERCENT(a->confidence));
	for (int i = 0; i < n; i++) {
		buf_printf(b, "%s%s %s", i ? ", " : " Time: ", account_line_title(lines[i].line),
			TEXT_PERCENT(lines[i].share));
		if (!i || lines[i].share >= PLACE_TOLD)
			put_line_place(b, &s->stacks, a, lines[i].line);
	}
	buf_puts(b, n ? "." : "");
	if (n && is_gpu_bound(s, &lines[0]))
		buf_puts(b, " GPU-bound: only less or faster GPU work makes it shorter.");
}

void all_clear_processes(struct buf *b, const struct report_scope *s, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);
	const char *label = "  Examined: ";

	for (size_t i = 0; i < MIN(s->accounts.count, (size_t)PROCESSES_SHOWN); i++) {
		buf_clear(&text);
		put_process(&text, s, &s->accounts.items[i]);
		paragraph_put(b, width, label, buf_str(&text));
		label = "            ";
	}
	if (s->accounts.count <= PROCESSES_SHOWN)
		return;
	buf_clear(&text);
	buf_printf(&text, "and %s: `ingero explain --steps` shows them",
		TEXT_PLURAL(s->accounts.count - PROCESSES_SHOWN, "more processes"));
	paragraph_put(b, width, label, buf_str(&text));
}

/* ---- what else ---- */

static void put_rest(struct buf *b, const struct examined *e, size_t width)
{
	const struct {
		uint64_t n;
		const char *what;
	} rows[] = {{e->calls, "calls"}, {e->stays, "off-CPU intervals"},
		{e->readings, "readings of the GPU"}, {e->collectives, "collectives"}};
	_cleanup_buf_ struct buf list = BUF_INIT(1024);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].n)
			buf_printf(&list, "%s%s", list.len ? ", " : "",
				TEXT_PLURAL(rows[i].n, rows[i].what));
	if (list.len)
		paragraph_put(b, width, "  Also examined: ", buf_str(&list));
}

/* ---- what could not be judged ---- */

typedef void put_item(void *to, const char *text);

static void tell_unknown(put_item *put, void *to, const struct step_account *a)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);
	uint64_t all = total_of(a);
	double share = all ? (double)a->total_ns[ACCOUNT_UNKNOWN] / (double)all : 0;

	if (share < UNKNOWN_TOLD)
		return;
	buf_printf(&text, "%s of the time of ", TEXT_PERCENT(share));
	put_name(&text, a->comm, a->pid);
	buf_printf(&text, " (%s)",
		a->unknown_reason && a->unknown_reason[0] ? a->unknown_reason : "not recorded");
	put(to, buf_str(&text));
}

static void tell_missing(put_item *put, void *to, const struct report_scope *s)
{
	const struct examined *e = &s->examined;
	const struct {
		bool is_missing;
		const char *what;
	} rows[] = {{!e->stays, "delays by CPUs and disks (no off-CPU intervals recorded)"},
		{!e->readings, "clocks, memory and errors of the GPU (no readings)"},
		{!e->groups, "limits of containers (no control group could be read)"},
		{!e->collectives, "ranks (no collectives recorded)"}};

	for (size_t i = 0; i < e->brief_count; i++) {
		_cleanup_buf_ struct buf text = BUF_INIT(1024);

		put_name(&text, e->brief[i].comm, e->brief[i].pid);
		buf_puts(&text, " (used a GPU too briefly)");
		put(to, buf_str(&text));
	}
	for (size_t i = 0; i < s->accounts.count; i++)
		tell_unknown(put, to, &s->accounts.items[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].is_missing)
			put(to, rows[i].what);
}

static void put_listed(void *to, const char *text)
{
	struct buf *b = to;

	buf_printf(b, "%s%s", b->len ? "; " : "", text);
}

static void put_string(void *to, const char *text)
{
	json_put_string(to, text);
}

void all_clear_put(struct buf *b, const struct report_scope *s, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(16 << 10);

	if (all_clear_is_known(s))
		all_clear_verdict(&text, s);
	else
		buf_puts(&text, "No process used a GPU for long enough.");
	paragraph_put(b, width, "  ", buf_str(&text));
	all_clear_processes(b, s, width);
	put_rest(b, &s->examined, width);
	buf_clear(&text);
	tell_missing(put_listed, &text, s);
	if (text.len)
		paragraph_put(b, width, "  Not judged: ", buf_str(&text));
}

/* ---- JSON ---- */

static void put_process_json(struct json_writer *w, const struct step_account *a)
{
	struct top_line lines[LINES_SHOWN];
	int n = top_lines(a, lines);

	json_begin_object(w);
	JSON_PUT(w, JSON_U("pid", a->pid), JSON_S("comm", a->comm), JSON_U("units", a->steps),
		JSON_S("origin", step_origin_id(a->origin)),
		JSON_S("boundary", step_origin_text(a->origin)),
		JSON_R("confidence", a->confidence), JSON_U("length_ns", total_of(a)));
	json_begin_array_member(w, "lines");
	for (int i = 0; i < n; i++)
		JSON_PUT_OBJECT(w, JSON_S("line", account_line_id(lines[i].line)),
			JSON_S("title", account_line_title(lines[i].line)),
			JSON_R("share", lines[i].share));
	json_end_array(w);
	json_end_object(w);
}

void all_clear_json(struct json_writer *w, const struct report_scope *s)
{
	json_begin_object(w);
	json_string_member(w, "node", s->node ? s->node : "");
	json_begin_array_member(w, "processes");
	for (size_t i = 0; i < s->accounts.count; i++)
		put_process_json(w, &s->accounts.items[i]);
	json_end_array(w);
	JSON_PUT(w, JSON_U("calls", s->examined.calls),
		JSON_U("off_cpu_intervals", s->examined.stays),
		JSON_U("gpu_readings", s->examined.readings),
		JSON_U("collectives", s->examined.collectives));
	json_begin_array_member(w, "not_judged");
	tell_missing(put_string, w, s);
	json_end_array(w);
	json_end_object(w);
}

/* ---- how much was looked at, and what is missing ---- */

/* What is left out, in the order in which it is said. */
static const struct {
	const char *key, *before, *noun, *after;
	size_t offset; /* of a uint64_t in struct report_scope */
} left_out[] = {
#define AT(member) offsetof(struct report_scope, member)
	{"thinned_rows", "", "rows", " of ordinary calls aggregated", AT(thinned_rows)},
	{"skipped_rows", "", "damaged rows", " omitted", AT(skipped_rows)},
	{"older_events", "", "older events", " omitted", AT(older_events)},
	{"older_ledger", "", "older ledger rows", " omitted", AT(older_ledger)},
	{"overlapping_ledger", "", "ledger rows",
		" omitted, overlapping others of the same thread (was the clock set back?)",
		AT(overlapping)},
	{"reused_pids", "", "processes", " not examined separately: a later one had the PID",
		AT(reused)},
	{"collectives_without_communicator_id", "", "collectives",
		" without communicator id, not matched between ranks", AT(nameless)},
	{"older_labels", "the oldest ", "labels", " omitted", AT(older_labels)},
	{"skipped_stacks", "", "call stacks", " omitted: damaged or over 64 KiB",
		AT(skipped_stacks)},
	{"other_stacks", "", "call stacks", " with little time omitted", AT(other_stacks)},
#undef AT
};
#define COMPLETENESS_AT 1 /* said after the first */

static uint64_t left_out_of(const struct report_scope *s, size_t i)
{
	return *(const uint64_t *)((const char *)s + left_out[i].offset);
}

static void put_looked_at(struct buf *b, const struct report_scope *s)
{
	if (s->node && s->node[0]) {
		buf_puts(b, "Node ");
		text_escape_terminal(b, s->node);
		buf_puts(b, ": ");
	}
	buf_printf(b, "%s analysed", TEXT_PLURAL(s->events, "events"));
	if (s->calls)
		buf_printf(b, ", %s%s", TEXT_PLURAL(s->calls, "calls"),
			s->mixed ? " and host events" : "");
	if (s->host_events)
		buf_printf(b, "%s%s", s->calls ? " and " : ", no calls, ",
			TEXT_PLURAL(s->host_events, "host events"));
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++) {
		if (i == COMPLETENESS_AT) {
			buf_puts(b, "; ");
			completeness_text(b, &s->completeness);
		}
		if (!left_out_of(s, i))
			continue;
		buf_printf(b, "; %s%s%s", left_out[i].before,
			TEXT_PLURAL(left_out_of(s, i), left_out[i].noun), left_out[i].after);
	}
	if (s->last_ns) {
		buf_putc(b, '\n');
		report_range(b, true, s->first_ns, s->last_ns);
	}
	if (s->pruned_before) {
		buf_puts(b, "\nEvents before ");
		report_date(b, s->pruned_before);
		buf_printf(b, " were pruned (%s)", TEXT_PLURAL(s->pruned_rows, "rows"));
	}
}

void report_looked_at(struct buf *b, const struct report_scope *s, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 16);
	char *rest, *line;

	put_looked_at(&text, s);
	buf_putc(&text, 0);
	for (line = text.err ? NULL : strtok_r(text.data, "\n", &rest); line;
		line = strtok_r(NULL, "\n", &rest))
		paragraph_put(b, width, "  ", line);
}

void report_looked_at_json(struct json_writer *w, const struct report_scope *s)
{
	json_begin_object_member(w, "data");
	JSON_PUT(w, JSON_I("first_ns", s->first_ns), JSON_I("last_ns", s->last_ns),
		JSON_U("events", s->events), JSON_U("calls", s->calls));
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		json_uint_member(w, left_out[i].key, left_out_of(s, i));
	json_uint_member(w, "pruned_rows", s->pruned_rows);
	if (s->pruned_before)
		json_int_member(w, "pruned_before_ns", s->pruned_before);
	json_bool_member(w, "no_gpu_calls", s->no_gpu_calls);
	put_completeness(w, &s->completeness);
	json_end_object(w);
}
