/* SPDX-License-Identifier: Apache-2.0 */
/* steps_text.c - see report.h. A head line that says what was lost, how the steps were found, a
 * table whose lines add up, and whose time the lines that grew are.
 *
 * The table takes 80 columns; everything else is broken to fit. */
#include "answer/encode/report.h"

#include <math.h>

#include "answer/stacks.h"
#include "base/text.h"

#define BOLD  "\033[1m"
#define RESET "\033[0m"

#define SHORT_LINES    4
#define ENTRIES_SHOWN  6
#define ENTRY_MIN      0.02 /* of the difference: below, an entry is not worth a line */
#define SHARE_MIN      0.001
#define WORK_DIFFERENT 0.05 /* launches, bytes: more than that is other work */
#define LAUNCHES_MIN   1.0
#define BYTES_MIN      4096.0

struct table {
	const struct step_account *account;
	int decimals; /* of milliseconds: as many as the length of a step deserves */
};

static struct table table_of(const struct step_account *a)
{
	uint64_t ns = MAX(steps_mean_ns(a), a->slow_step_ns);

	return (struct table){a, ns >= 1000 * NS_PER_MS ? 0 : ns >= 100 * NS_PER_MS ? 1 : 2};
}

static const char *format_ms(char out[TEXT_MAX], const struct table *t, double ns)
{
	snprintf(out, TEXT_MAX, "%.*f", t->decimals, ns / (double)NS_PER_MS);
	return out;
}

static const char *format_change(char out[TEXT_MAX], const struct table *t, int64_t ns)
{
	snprintf(out, TEXT_MAX, "%+.*f", t->decimals, (double)ns / (double)NS_PER_MS);
	return out;
}

/* As text_format_percent(), of a part that may have shrunk. */
static const char *format_share(char out[TEXT_MAX], double share)
{
	if (fabs(share) < SHARE_MIN)
		return text_format_percent(out, 0);
	if (share > 0)
		return text_format_percent(out, share);
	snprintf(out, TEXT_MAX, "-%s", TEXT_PERCENT(-share));
	return out;
}

static void put_row(
	struct buf *b, const struct table *t, const char *title, const struct steps_line *l)
{
	char one[TEXT_MAX], two[TEXT_MAX], change[TEXT_MAX], share[TEXT_MAX];

	if (steps_comparable(t->account))
		buf_printf(b, "  %-37s %9s %9s %11s %8s\n", title,
			format_ms(one, t, (double)l->ordinary_ns),
			format_ms(two, t, (double)l->slow_ns),
			format_change(change, t, l->difference_ns), format_share(share, l->share));
	else
		buf_printf(b, "  %-37s %9s %8s\n", title, format_ms(one, t, (double)l->mean_ns),
			format_share(share, l->share));
}

/* Whether it would be more than a row of zeros, of what the table has columns for. */
static bool is_shown(
	const struct table *t, const struct steps_line *l, const struct steps_line *whole)
{
	double most = steps_comparable(t->account)
			      ? fmax((double)l->ordinary_ns, (double)l->slow_ns)
			      : (double)l->mean_ns;
	char text[TEXT_MAX];

	return most >= SHARE_MIN * (double)whole->mean_ns && atof(format_ms(text, t, most)) > 0;
}

static void put_table(struct buf *b, const struct step_account *a)
{
	struct steps_line lines[ACCOUNT_LINES], whole = steps_whole(a);
	struct table t = table_of(a);
	int n = steps_lines(a, lines);

	if (steps_comparable(a))
		buf_printf(b, "\n  %-37s %9s %9s %11s %8s\n", "ms per step", "ordinary", "slow",
			"difference", "share");
	else
		buf_printf(b, "\n  %-37s %9s %8s\n", "ms per step", "mean", "share");
	for (int i = 0; i < n; i++)
		if (is_shown(&t, &lines[i], &whole))
			put_row(b, &t, account_line_title(lines[i].line), &lines[i]);
	put_row(b, &t, "step", &whole);
}

/* Whose the difference is, where it is not only of the thread that runs the steps: a line of the table
 * says what was done, and a job that waits for its data loader is on the lines of the loader. */
static void put_owners(struct buf *b, const struct step_account *a, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);
	struct table t = table_of(a);
	bool others = false;
	char ms[TEXT_MAX];

	if (!steps_comparable(a))
		return;
	for (int i = 0; i < ACCOUNT_OWNERS; i++) {
		struct steps_line l = steps_owner(a, (enum account_owner)i);

		if (fabs(l.share) < ENTRY_MIN)
			continue;
		others |= i != OWNER_SELF;
		buf_printf(&text, "%s%s ms in %s", text.len ? ", " : "",
			format_change(ms, &t, l.difference_ns),
			steps_owner_title((enum account_owner)i));
	}
	if (others)
		paragraph_put(b, width, "  Of the difference: ", buf_str(&text));
}

/* ---- head ---- */

static void put_loss(struct buf *b, const struct step_account *a)
{
	uint64_t span = steps_mean_ns(a) * a->steps;

	buf_printf(b, ", %s slow: lost %s of %s (%s)", TEXT_COUNT(a->slow_steps),
		TEXT_DURATION(a->lost_ns), TEXT_DURATION(span),
		TEXT_PERCENT(span ? (double)a->lost_ns / (double)span : 0));
}

/* "python3 (PID 4821): 512 steps, 31 slow: lost 4.2s of 61s (6.9 %)" */
static void put_head(struct buf *b, const struct steps_row *row, bool with_node)
{
	const struct step_account *a = row->account;

	if (with_node) {
		text_escape_terminal(b, row->node);
		buf_puts(b, ": ");
	}
	text_escape_terminal(b, a->comm[0] ? a->comm : "process");
	buf_printf(b, " (PID %" PRIu32 "): %s", a->pid,
		TEXT_PLURAL(a->steps, step_origin_units(a->origin)));
	if (a->slow_steps)
		put_loss(b, a);
	else
		buf_printf(b, " of %s, none slow", TEXT_DURATION(steps_mean_ns(a)));
}

static void put_origin(struct buf *b, const struct step_account *a, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	buf_puts(&text, step_origin_text(a->origin));
	buf_printf(&text, " (%s)", TEXT_PERCENT(a->confidence));
	if (a->group > 1)
		buf_printf(&text,
			", %" PRIu32 " at a time: the program waits for the GPU once in %" PRIu32
			" steps",
			a->group, a->group);
	paragraph_put(b, width, "  Step boundary: ", buf_str(&text));
	buf_clear(&text);
	report_range(&text, false, a->first.ns, a->last.ns);
	paragraph_put(b, width, "  Time: ", buf_str(&text));
}

static void put_lengths(struct buf *b, const struct step_account *a, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);
	const char *comma = "";

	if (a->ordinary_steps) {
		buf_printf(&text, "%s ordinary (%s)", TEXT_COUNT(a->ordinary_steps),
			TEXT_DURATION(a->ordinary_step_ns));
		comma = ", ";
	}
	if (a->slow_steps) {
		buf_printf(&text, "%s%s slow (%s)", comma, TEXT_COUNT(a->slow_steps),
			TEXT_DURATION(a->slow_step_ns));
		comma = ", ";
	}
	if (a->other_steps)
		buf_printf(&text, "%s%s with other work (not compared)", comma,
			TEXT_COUNT(a->other_steps));
	if (text.len)
		paragraph_put(b, width, "  Steps: ", buf_str(&text));
}

static void put_course(struct buf *b, const struct step_account *a, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	if (!a->slow_steps)
		return;
	if (a->is_drift)
		buf_printf(&text, "gradually, from %s to %s, ", TEXT_DURATION(a->drift_from_ns),
			TEXT_DURATION(a->drift_to_ns));
	else if (a->period_steps)
		buf_printf(&text, "one in %" PRIu32 " steps, ", a->period_steps);
	report_range(&text, false, a->slow_first.ns, a->slow_last.ns);
	paragraph_put(b, width, "  Slow: ", buf_str(&text));
}

static bool is_different(double ordinary, double slow, double least)
{
	return fabs(slow - ordinary) > fmax(least, WORK_DIFFERENT * fmax(ordinary, slow));
}

/* Slow steps that did more are no mystery. */
static void put_work(struct buf *b, const struct steps_row *row, size_t width)
{
	const struct step_account *a = row->account;
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	if (!steps_comparable(a) || !row->is_complete)
		return;
	if (a->ordinary_launches > 0 && a->slow_launches > 0 && /* 0: not probed in any of them */
		is_different(a->ordinary_launches, a->slow_launches, LAUNCHES_MIN))
		buf_printf(&text, "slow steps launch %.0f kernels, ordinary ones %.0f",
			a->slow_launches, a->ordinary_launches);
	if (is_different(a->ordinary_bytes, a->slow_bytes, BYTES_MIN))
		buf_printf(&text, "%sslow steps copy %s, ordinary ones %s", text.len ? "; " : "",
			TEXT_SIZE((uint64_t)a->slow_bytes), TEXT_SIZE((uint64_t)a->ordinary_bytes));
	if (text.len)
		paragraph_put(b, width, "  Work: ", buf_str(&text));
}

/* ---- entries ---- */

static void put_owner(struct buf *b, const struct account_entry *e)
{
	switch (e->owner) {
	case OWNER_SELF: buf_puts(b, "in the thread that runs the steps"); return;
	case OWNER_THREAD: buf_printf(b, "in thread %s", e->comm[0] ? e->comm : "?"); return;
	case OWNER_LOADER: buf_puts(b, "in data loader worker "); break;
	case OWNER_PROCESS: buf_puts(b, "in process "); break;
	case ACCOUNT_OWNERS: return;
	}
	buf_puts(b, e->comm[0] ? e->comm : "?");
	if (e->pid)
		buf_printf(b, " (PID %" PRIu32 ")", e->pid);
	else
		buf_puts(b, " (one process after another)");
}

/* Who had what the line waited for. */
static void put_culprit(struct buf *b, const struct account_entry *e)
{
	if (!e->culprit[0] && !e->culprit_pid)
		return;
	if (e->culprit_pid == e->pid && e->culprit[0]) {
		buf_printf(b, "; because of thread %s of the same process", e->culprit);
		return;
	}
	buf_puts(b, e->line == ACCOUNT_CPU ? "; on the CPU: " : "; because of ");
	buf_puts(b, e->culprit[0] ? e->culprit : "process");
	if (e->culprit_pid)
		buf_printf(b, " (PID %" PRIu32 ")", e->culprit_pid);
}

static void put_place(struct buf *b, const struct steps_row *row, const struct account_entry *e,
	size_t indent, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 14);
	struct steps_place place = steps_place(row->stacks, e);

	if (!place.user)
		return;
	stack_text_place(&text, place.user);
	if (place.within) {
		buf_puts(&text, ", in ");
		stack_text_place(&text, place.within);
	}
	buf_printf(b, "%*s", (int)indent, "");
	text_wrap(b, indent, width, buf_str(&text));
}

static void put_entry(
	struct buf *b, const struct steps_row *row, const struct account_entry *e, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 12);
	struct table t = table_of(row->account);
	struct steps_line l = steps_entry(row->account, e);
	bool comparable = steps_comparable(row->account);
	char ms[TEXT_MAX], label[64];

	snprintf(label, sizeof(label), "  %8s ms  ",
		comparable ? format_change(ms, &t, l.difference_ns)
			   : format_ms(ms, &t, (double)l.mean_ns));
	buf_printf(&text, "%s, ", account_line_title(e->line));
	put_owner(&text, e);
	put_culprit(&text, e);
	paragraph_put(b, width, label, buf_str(&text));
	put_place(b, row, e, strlen(label), width);
}

static void put_entries(struct buf *b, const struct steps_row *row, size_t width, bool color)
{
	const struct step_account *a = row->account;
	int shown = 0;

	for (int i = 0; i < a->entry_count && shown < ENTRIES_SHOWN; i++) {
		if (steps_entry(row->account, &a->entries[i]).share < ENTRY_MIN)
			continue;
		if (!shown++)
			buf_printf(b, "\n  %s%s:%s\n", color ? BOLD : "",
				steps_comparable(a) ? "What grew" : "Most time",
				color ? RESET : "");
		put_entry(b, row, &a->entries[i], width);
	}
}

/* ---- all ---- */

static void put_account(
	struct buf *b, const struct steps_row *row, bool with_node, size_t width, bool color)
{
	const struct step_account *a = row->account;

	buf_printf(b, "\n%s", color ? BOLD : "");
	put_head(b, row, with_node);
	buf_puts(b, color ? RESET "\n" : "\n");
	put_origin(b, a, width);
	put_lengths(b, a, width);
	put_course(b, a, width);
	put_work(b, row, width);
	put_table(b, a);
	put_owners(b, a, width);
	if (a->total_ns[ACCOUNT_UNKNOWN] && a->unknown_reason && a->unknown_reason[0])
		paragraph_put(b, width, "  Unknown: ", a->unknown_reason);
	put_entries(b, row, width, color);
}

static bool has_several_nodes(const struct steps_answer *a)
{
	for (size_t i = 1; i < a->count; i++)
		if (strcmp(a->rows[i].node, a->rows[0].node) != 0)
			return true;
	return false;
}

void steps_text(struct buf *b, const struct steps_answer *a, int columns, bool color)
{
	size_t width = columns ? (size_t)MIN(MAX(columns, 60), PARAGRAPH_WIDTH) : PARAGRAPH_WIDTH;

	buf_puts(b, color ? BOLD : "");
	if (a->count)
		buf_printf(b, "STEPS - %s", TEXT_PLURAL(a->count, "processes"));
	else
		buf_puts(b, "No steps found");
	buf_puts(b, color ? RESET "\n" : "\n");
	if (!a->count)
		paragraph_put(b, width, "  ", a->reason);
	for (size_t i = 0; i < a->count; i++)
		put_account(b, &a->rows[i], has_several_nodes(a), width, color);
}

void steps_text_short(struct buf *b, const struct steps_row *row, size_t indent)
{
	const struct step_account *a = row->account;
	struct steps_line lines[ACCOUNT_LINES];
	struct table t = table_of(a);
	int n = steps_lines(a, lines);
	char ms[TEXT_MAX], share[TEXT_MAX];

	buf_printf(b, "%*s", (int)indent, "");
	put_head(b, row, false);
	buf_putc(b, '\n');
	for (int i = 0; i < MIN(n, SHORT_LINES) && lines[i].share >= ENTRY_MIN; i++)
		buf_printf(b, "%*s  %8s ms per step (%s)  %s\n", (int)indent, "",
			steps_comparable(a) ? format_change(ms, &t, lines[i].difference_ns)
					    : format_ms(ms, &t, (double)lines[i].mean_ns),
			format_share(share, lines[i].share), account_line_title(lines[i].line));
}
