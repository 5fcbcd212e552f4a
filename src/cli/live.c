/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - renders a tracer_view as text into a buffer; no output of its own, so it can be tested.
 * Layout as published: a system line with two bars, then a table for each kind of event. */
#include "cli/live.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/text.h"
#include "wire/names.h"

#define BAR_CELLS       20
#define BAR_CELLS_MIN   4
#define SYSTEM_COLUMNS  76 /* of the system line without its bars, nearly always */
#define SCREEN_MAX      (1 << 20)
#define LOSS_CPUS_SHOWN 4
#define HIDDEN_FROM     0.9 /* the low bound is below this part of the high one: both are told */
#define GAPS_SHOWN      8   /* processes not covered completely that have lines of their own */

struct live_style live_style_detect(int fd)
{
	struct live_style s = {0};

	setlocale(LC_CTYPE, "");
	s.unicode = isatty(fd) && !strcmp(nl_langinfo(CODESET), "UTF-8");
	live_style_resize(&s, fd);
	return s;
}

bool live_style_resize(struct live_style *s, int fd)
{
	struct winsize w = {0};
	int columns = s->columns, rows = s->rows;

	if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &w) == 0) {
		s->columns = w.ws_col;
		s->rows = w.ws_row;
	}
	return s->columns != columns || s->rows != rows;
}

void live_header(struct buf *b, const struct tracer_view *v, const char *db_path)
{
	buf_puts(b, "\n  Ingero Trace  -  Live CUDA Event Stream\n");
	if (v->processes == 1) {
		buf_printf(b, "  Target: PID %u (", v->first_pid);
		text_escape_terminal(b, v->first_comm);
		buf_puts(b, ")\n");
	} else if (v->processes) {
		buf_printf(b, "  Target: %zu processes, PID %u (", v->processes, v->first_pid);
		text_escape_terminal(b, v->first_comm);
		buf_puts(b, ") and others\n");
	} else {
		buf_puts(b, "  Target: CUDA processes (none running yet)\n");
	}
	if (v->libraries) {
		buf_puts(b, "  Library: ");
		text_escape_terminal(b, v->first_library);
		if (v->libraries > 1)
			buf_printf(b, " and %zu more", v->libraries - 1);
		buf_puts(b, "\n");
	} else {
		buf_puts(b, "  Library: none found yet; checking once a second\n");
	}
	buf_printf(b, "  CUDA probes: %zu attached (%s)\n", v->runtime_probes, v->method);
	buf_printf(b, "  Driver probes: %zu attached\n", v->driver_probes);
	buf_printf(b, "  Host probes: scheduler, block I/O, memory, sockets, processes%s\n",
		v->has_samples ? ", CPU samples" : "");
	for (size_t i = 0; v->missing && i < v->missing->count; i++) {
		const struct part_missing *m = &v->missing->rows[i];

		buf_printf(b, "  Not available: %s, so %s (", probe_parts[m->part].name,
			probe_parts[m->part].without);
		text_escape_terminal(b, m->why);
		buf_puts(b, ")\n");
	}
	buf_puts(b, "  Recording to: ");
	if (db_path)
		text_escape_terminal(b, db_path);
	else
		buf_puts(b, "nothing (--record=false)");
	buf_puts(b, "\n");
}

void live_command_header(struct buf *b, char *const *argv, uint32_t pid, const char *db_path)
{
	buf_puts(b, "ingero: tracing ");
	text_escape_terminal(b, argv[0]);
	buf_printf(b, " (process %u)", pid);
	if (db_path) {
		buf_puts(b, ", recording to ");
		text_escape_terminal(b, db_path);
	}
	buf_puts(b, "\n");
}

void live_command_end(struct buf *b, const struct tracer_view *v, const char *db_path)
{
	if (!live_has_calls(v))
		buf_printf(b,
			"ingero: no CUDA calls were recorded%s, so there is nothing to explain\n",
			v->libraries ? "" : " (no process loaded a CUDA library)");
	else if (!db_path)
		live_table(b, v, (struct live_style){0});
}

void live_command_left(struct buf *b, const struct tracer_view *v)
{
	if (!v->processes)
		return;
	buf_puts(b, "ingero: ");
	text_escape_terminal(b, v->first_comm);
	buf_printf(b, " (process %u)", v->first_pid);
	if (v->processes > 1)
		buf_printf(b, " and %s", TEXT_PLURAL(v->processes - 1, "other processes"));
	buf_printf(b, " still run%s, no longer traced: sudo ingero trace --pid %u\n",
		v->processes > 1 ? "" : "s", v->first_pid);
}

static void bar(struct buf *b, bool unicode, int cells, double pct)
{
	int full = (int)(pct / 100.0 * cells + 0.5);

	buf_putc(b, '[');
	for (int i = 0; i < cells; i++)
		buf_puts(b, i < full ? (unicode ? "█" : "#") : (unicode ? "░" : "."));
	buf_printf(b, "] %.0f%%", pct);
}

static void system_line(struct buf *b, const struct host_sample *h, struct live_style style)
{
	int cells = BAR_CELLS;

	if (style.columns)
		cells = MAX(BAR_CELLS_MIN, MIN(BAR_CELLS, (style.columns - SYSTEM_COLUMNS) / 2));
	buf_puts(b, "  System: CPU ");
	bar(b, style.unicode, cells, h->cpu_pct);
	buf_puts(b, h->cpu_pct > 90 ? " !" : "");
	buf_puts(b, " | Mem ");
	bar(b, style.unicode, cells, h->mem_pct);
	buf_puts(b, h->mem_pct > 90 ? " !" : "");
	buf_printf(b, " (%.1f GB free) | Load %.1f | Swap %llu MB\n",
		(double)h->mem_avail_mb / 1024, h->load1, (unsigned long long)h->swap_mb);
}

static const char *number(char out[24], int64_t v, int64_t unit)
{
	snprintf(out, 24, "%lld", (long long)((v + unit / 2) / unit));
	return v == GPU_UNKNOWN ? "?" : out;
}

static void gpu_troubles(struct buf *b, const struct gpu_row *row)
{
	const struct gpu_sample *s = &row->sample;
	time_t at = (time_t)(s->last_xid_ns / (int64_t)NS_PER_S);
	char clock[16] = "?";
	struct tm tm;

	if (s->ecc_uncorrected > 0)
		buf_printf(b, " | ECC: %lld uncorrected", (long long)s->ecc_uncorrected);
	if (s->last_xid != GPU_UNKNOWN) {
		if (localtime_r(&at, &tm))
			strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
		buf_printf(b, " | XID %lld at %s", (long long)s->last_xid, clock);
	}
	if (row->error[0]) {
		buf_puts(b, " | NVML: ");
		text_escape_terminal(b, row->error);
	}
}

static void gpu_line(struct buf *b, const struct gpu_row *row)
{
	static const char maker[] = "NVIDIA ";
	const struct gpu_sample *s = &row->sample;
	const char *name = s->name;
	char reasons[160], n[7][24];

	if (!strncmp(name, maker, sizeof(maker) - 1))
		name += sizeof(maker) - 1;
	buf_printf(b, "  GPU %lld%s", (long long)s->index, name[0] ? " " : "");
	text_escape_terminal(b, name);
	buf_printf(b, ": %s %% | %s MHz | %s/%s W | %s °C | %s/%s GiB | throttle: %s",
		number(n[0], s->util_gpu_pct, 1), number(n[1], s->sm_clock_mhz, 1),
		number(n[2], s->power_mw, 1000), number(n[3], s->power_limit_mw, 1000),
		number(n[4], s->temperature_c, 1), number(n[5], s->mem_used_bytes, 1 << 30),
		number(n[6], s->mem_total_bytes, 1 << 30),
		s->throttle_reasons == GPU_UNKNOWN
			? "?"
			: gpu_throttle_text(
				  (uint64_t)s->throttle_reasons, reasons, sizeof(reasons)));
	gpu_troubles(b, row);
	buf_putc(b, '\n');
}

/* (PID 4821 and 3 more, since 13:25:10) */
static void incident_subject(struct buf *b, const struct incident *i)
{
	time_t s = (time_t)(i->first.ns / (int64_t)NS_PER_S);
	char clock[16] = "";
	struct tm tm;

	if (!i->pid)
		return;
	buf_printf(b, " (PID %u", i->pid);
	if (i->pid_total > 1)
		buf_printf(b, " and %u more", i->pid_total - 1);
	if (i->first.ns > 0 && localtime_r(&s, &tm) &&
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm))
		buf_printf(b, ", since %s", clock);
	buf_putc(b, ')');
}

void live_incident(struct buf *b, const struct incident *i)
{
	if (i->resolved.ns) {
		buf_printf(b, "  [RESOLVED, %s ago] ",
			TEXT_DURATION((uint64_t)MAX(i->resolved.ns - i->last.ns, INT64_C(0))));
	} else {
		buf_printf(b, "  [%s] ", severity_name(i->severity));
	}
	text_escape_terminal(b, i->summary);
	incident_subject(b, i);
	buf_puts(b, "\n");
}

void live_gpus(struct buf *b, const struct tracer_view *v)
{
	bool worth_a_line =
		v->gpu_state == GPU_NO_ANSWER || (v->gpu_state == GPU_ABSENT && v->has_driver);

	for (size_t i = 0; i < v->gpu_count; i++)
		gpu_line(b, &v->gpus[i]);
	if (worth_a_line) {
		buf_puts(b, "  GPU state: ");
		text_escape_terminal(b, v->gpu_text);
		buf_putc(b, '\n');
	}
}

/* The CPUs that lost most of it, where the kernel tells. */
static void loss_cpus(struct buf *b, const struct cpu_losses *l, unsigned source, int reason)
{
	int shown = 0;

	for (uint32_t i = 0; l && i < l->count && shown <= LOSS_CPUS_SHOWN; i++) {
		if (l->rows[i].source != source || l->rows[i].reason != reason)
			continue;
		if (shown++ == LOSS_CPUS_SHOWN)
			buf_puts(b, ", …");
		else
			buf_printf(b, "%s CPU %u: %s", shown > 1 ? "," : ";", l->rows[i].cpu,
				TEXT_COUNT(l->rows[i].count));
	}
}

/* live_losses - one line for each source and reason with losses; nothing if there are none. */
static void live_losses(
	struct buf *b, const struct accounting *books, const struct cpu_losses *cpu_losses)
{
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		const struct account *a = &books->source[s];

		for (int i = 0; i < LOSS_COUNT; i++) {
			if (!a->lost[i])
				continue;
			buf_printf(b, "  lost: %s of %s %s events, %s (%s)", TEXT_COUNT(a->lost[i]),
				TEXT_COUNT(a->hits), wire_source_name(s), wire_losses[i].name,
				wire_losses[i].description);
			loss_cpus(b, cpu_losses, s, i);
			buf_puts(b, "\n");
		}
	}
}

/* A line for each layer of a process that is not seen. */
static void gaps(struct buf *b, const struct tracer_view *v)
{
	char sentence[LAYER_SENTENCE_MAX];

	for (size_t i = 0; i < MIN(v->gap_count, (size_t)GAPS_SHOWN); i++) {
		const struct roster_gap *g = &v->gaps[i];

		for (int l = 0; l < LAYER_COUNT; l++) {
			if (!layer_is_gap(&g->layers.rows[l]))
				continue;
			buf_printf(b, "  PID %u (", g->pid);
			text_escape_terminal(b, g->comm);
			buf_puts(b, g->ended ? ", ended): " : "): ");
			text_escape_terminal(b, layer_sentence((enum layer)l, &g->layers.rows[l],
							sentence, sizeof(sentence)));
			buf_puts(b, "\n");
		}
	}
	if (v->gap_count > GAPS_SHOWN || v->gaps_more)
		buf_printf(b, "  and %llu more processes with incomplete coverage\n",
			(unsigned long long)(v->gap_count - MIN(v->gap_count, (size_t)GAPS_SHOWN) +
					     v->gaps_more));
}

bool live_has_calls(const struct tracer_view *v)
{
	return v->books.source[SOURCE_CUDA].hits || v->books.source[SOURCE_DRIVER].hits;
}

/* What is known, as what it is: measured, between two bounds, or reckoned and nothing hides it. */
static void overhead_lines(struct buf *b, const struct tracer_view *v)
{
	if (v->overhead_pairs) {
		buf_printf(b, "  Overhead: %s", TEXT_PERCENT(v->overhead));
		buf_printf(b, " (%s to ", TEXT_PERCENT(v->overhead_low));
		buf_printf(b, "%s) of the busiest process (", TEXT_PERCENT(v->overhead_high));
		buf_printf(b, "its steps with and without probes, compared %s times",
			TEXT_COUNT(v->overhead_pairs));
	} else if (v->overhead_low < HIDDEN_FROM * v->overhead_high) {
		buf_printf(b, "  Overhead: %s to ", TEXT_PERCENT(v->overhead_low));
		buf_printf(b, "%s of the busiest process (", TEXT_PERCENT(v->overhead_high));
		buf_printf(b, "CPU time of calls x %.1fµs, which its waits for the GPU may hide",
			v->hit_ns / 1000);
	} else {
		buf_printf(b, "  Overhead: about %s of the busiest process (",
			TEXT_PERCENT(v->overhead));
		buf_printf(b, "calls x %.1fµs, not compared with steps without probes yet",
			v->hit_ns / 1000);
	}
	if (v->overhead_budget > 0)
		buf_printf(b, "; budget %s", TEXT_PERCENT(v->overhead_budget));
	buf_puts(b, ")\n");
}

/* What was not watched stands beside what was lost. */
static void launches_line(struct buf *b, const struct tracer_view *v)
{
	if (v->books.launch_error <= 0)
		return;
	buf_puts(b, "  Sampled: ");
	accounting_put_launches(&v->books, b);
	buf_puts(b, "\n");
}

static void stack_lines(struct buf *b, const struct tracer_view *v)
{
	const struct stacks_report *s = &v->stacks;
	uint64_t lost = s->dropped;

	for (int i = 0; i < STACK_LOSS_COUNT; i++)
		lost += s->tally.lost[i];
	if (!v->has_stacks || !s->tally.taken)
		return;
	buf_printf(b, "  Stacks: %s distinct", TEXT_COUNT(s->handed_on));
	buf_printf(b, ", %.0f%% of %s stacks complete",
		100.0 * (double)s->tally.complete / (double)s->tally.taken,
		TEXT_COUNT(s->tally.taken));
	buf_printf(b, " | %.1fµs each | unwind tables %s",
		(double)s->tally.taken_ns / (double)s->tally.taken / 1000,
		TEXT_SIZE(s->table_bytes));
	if (lost)
		buf_printf(b, " | Lost: %s", TEXT_COUNT(lost));
	buf_puts(b, "\n");
	if (s->python_refused[0]) {
		buf_puts(b, "  No Python frames: ");
		text_escape_terminal(b, s->python_refused);
		buf_puts(b, "\n");
	}
	if (s->symbols.deaths)
		buf_printf(b, "  symbol reader restarts: %u (%s)\n", s->symbols.deaths,
			s->symbols.last_end);
}

/* What no probe could hit is in no count, so it stands beside them. */
static void unseen_line(struct buf *b, const struct call_gap_sum *s)
{
	char text[CALL_GAP_SENTENCE_MAX];

	if (!s->processes)
		return;
	buf_puts(b, "  Not traced: ");
	text_escape_terminal(b, call_gap_sentence(s, text, sizeof(text)));
	buf_puts(b, "\n");
}

/* @brief: where lines are scarce. */
static void footer(struct buf *b, const struct tracer_view *v, bool brief)
{
	uint64_t hits = 0, stored = 0, counted = 0, lost = 0;
	char t[TEXT_PLURAL_MAX];

	for (unsigned i = 0; i < WIRE_SOURCE_MAX; i++) {
		hits += v->books.source[i].hits;
		stored += v->books.source[i].stored;
		counted += v->books.source[i].aggregated;
		lost += account_lost(&v->books.source[i]);
	}
	if (!live_has_calls(v))
		buf_puts(b, "  No CUDA calls yet: waiting for a CUDA program.\n");
	text_format_duration(t, v->ran_ns / NS_PER_S * NS_PER_S);
	buf_printf(b, "  Wall: %s | Events: %s | ", t, TEXT_COUNT(hits));
	text_format_count(t, lost);
	buf_printf(b, "Lost: %s (%.2f%%)\n", t, hits ? 100.0 * (double)lost / (double)hits : 0.0);
	launches_line(b, v);
	unseen_line(b, &v->books.unseen);
	if (v->names_lost)
		buf_printf(b,
			"  Lost names: %s of kernels or NVTX ranges (out of room); these are shown without a name\n",
			TEXT_COUNT(v->names_lost));
	if (v->db_bytes) {
		buf_printf(b, "  Stored: %s events, ", TEXT_COUNT(stored));
		buf_printf(b, "%s more as counts | Database: %s\n", TEXT_COUNT(counted),
			TEXT_SIZE(v->db_bytes));
	}
	overhead_lines(b, v);
	if (!brief)
		stack_lines(b, v);
	live_losses(b, &v->books, v->cpu_losses);
	gaps(b, v);
	if (v->store_error[0]) {
		buf_puts(b, "  cannot write to the database: ");
		text_escape_terminal(b, v->store_error);
		buf_puts(b, "\n");
	}
	if (v->clock_steps)
		buf_printf(b, "  wall clock stepped %s during this trace\n",
			TEXT_PLURAL(v->clock_steps, "times"));
}

static void head(struct buf *b, const struct tracer_view *v, struct live_style style)
{
	buf_puts(b, "\n");
	if (v->has_host)
		system_line(b, &v->host, style);
	live_gpus(b, v);
	buf_puts(b, "\n");
}

void live_table(struct buf *b, const struct tracer_view *v, struct live_style style)
{
	head(b, v, style);
	op_table_put(b, v, style);
	footer(b, v, false);
}

/* ---- made to fit a screen ---- */

static int text_lines(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

/* Copies @from line by line, each cut at the terminal's last column and at most @rows of them. */
static void put_clipped(struct buf *b, const char *from, struct live_style style, int rows)
{
	for (int row = 0; *from && row < rows; row++) {
		size_t len = strcspn(from, "\n");
		size_t fit = (size_t)text_clip(from, style.columns);

		buf_append(b, from, MIN(len, fit));
		buf_putc(b, '\n');
		from += len + (from[len] == '\n');
	}
}

void live_screen(struct buf *b, const struct tracer_view *v, struct live_style style)
{
	_cleanup_buf_ struct buf whole = BUF_INIT(SCREEN_MAX);
	int rows = style.rows - 1; /* the cursor stands below the last line */
	int most = (int)v->op_count;

	live_table(&whole, v, style);
	if (rows > 0 && text_lines(buf_str(&whole)) > rows) {
		do {
			buf_clear(&whole);
			head(&whole, v, style);
			op_table_list(&whole, v, style, most);
			footer(&whole, v, true);
		} while (text_lines(buf_str(&whole)) > rows && --most >= 0);
	}
	if (rows > 0 && style.columns > 0)
		put_clipped(b, buf_str(&whole), style, rows);
	else
		buf_puts(b, buf_str(&whole));
}
