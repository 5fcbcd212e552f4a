/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - renders a tracer_view as text into a buffer; no output of its own, so it can be tested.
 * Layout as published: a system line with two bars, then a table for each kind of event. */
#include "cli/live.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "wire/names.h"

#define BAR_CELLS       20
#define TAIL_FLAG_RATIO 10 /* p99 this many times p50 is worth a flag */
#define TAIL_FLAG_CALLS 10
#define GAPS_SHOWN      8 /* processes not covered completely that have lines of their own */

struct glyphs {
	const char *full, *empty, *warn, *v, *h;
	const char *top[3], *mid[3], *bottom[3]; /* left, cross, right */
};

static const struct glyphs glyphs_unicode = {
	"█", "░", "⚠", "│", "─", {"┌", "┬", "┐"}, {"├", "┼", "┤"}, {"└", "┴", "┘"}};
static const struct glyphs glyphs_ascii = {
	"#", ".", "!", "|", "-", {"+", "+", "+"}, {"+", "+", "+"}, {"+", "+", "+"}};

static const struct glyphs *glyphs_of(struct live_style s)
{
	return s.unicode ? &glyphs_unicode : &glyphs_ascii;
}

struct live_style live_style_detect(int fd)
{
	bool tty = isatty(fd);

	setlocale(LC_CTYPE, "");
	return (struct live_style){
		.unicode = tty && !strcmp(nl_langinfo(CODESET), "UTF-8"),
		.colour = tty && !getenv("NO_COLOR"),
	};
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
		buf_puts(b, "  Target: CUDA processes as they start (none is running)\n");
	}
	if (v->libraries) {
		buf_puts(b, "  Library: ");
		text_escape_terminal(b, v->first_library);
		if (v->libraries > 1)
			buf_printf(b, " and %zu more", v->libraries - 1);
		buf_puts(b, "\n");
	} else {
		buf_puts(b, "  Library: none found yet; looking once a second\n");
	}
	buf_printf(b, "  CUDA probes: %zu attached (%s)\n", v->runtime_probes, v->method);
	buf_printf(b, "  Driver probes: %zu attached\n", v->driver_probes);
	buf_puts(b, "  Host probes: scheduler, block I/O, memory, sockets, processes\n");
	buf_puts(b, "  Recording to: ");
	if (db_path)
		text_escape_terminal(b, db_path);
	else
		buf_puts(b, "nothing (--record=false)");
	buf_puts(b, "\n");
}

static void bar(struct buf *b, const struct glyphs *g, double pct)
{
	int full = (int)(pct / 100.0 * BAR_CELLS + 0.5);

	buf_putc(b, '[');
	for (int i = 0; i < BAR_CELLS; i++)
		buf_puts(b, i < full ? g->full : g->empty);
	buf_printf(b, "] %.0f%%", pct);
}

static void system_line(struct buf *b, const struct host_sample *h, const struct glyphs *g)
{
	buf_puts(b, "  System: CPU ");
	bar(b, g, h->cpu_pct);
	buf_puts(b, h->cpu_pct > 90 ? " !" : "");
	buf_puts(b, " | Mem ");
	bar(b, g, h->mem_pct);
	buf_puts(b, h->mem_pct > 90 ? " !" : "");
	buf_printf(b, " (%.1f GB free) | Load %.1f | Swap %llu MB\n",
		(double)h->mem_avail_mb / 1024, h->load1, (unsigned long long)h->swap_mb);
}

static void cell_number(struct buf *b, int64_t v, int64_t unit)
{
	if (v == GPU_UNKNOWN)
		buf_putc(b, '?');
	else
		buf_printf(b, "%lld", (long long)((v + unit / 2) / unit));
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
	char reasons[160];

	if (!strncmp(name, maker, sizeof(maker) - 1))
		name += sizeof(maker) - 1;
	buf_printf(b, "  GPU %lld%s", (long long)s->index, name[0] ? " " : "");
	text_escape_terminal(b, name);
	buf_puts(b, ": ");
	cell_number(b, s->util_gpu_pct, 1);
	buf_puts(b, " % | ");
	cell_number(b, s->sm_clock_mhz, 1);
	buf_puts(b, " MHz | ");
	cell_number(b, s->power_mw, 1000);
	buf_putc(b, '/');
	cell_number(b, s->power_limit_mw, 1000);
	buf_puts(b, " W | ");
	cell_number(b, s->temperature_c, 1);
	buf_puts(b, " °C | ");
	cell_number(b, s->mem_used_bytes, 1 << 30);
	buf_putc(b, '/');
	cell_number(b, s->mem_total_bytes, 1 << 30);
	buf_printf(b, " GiB | throttle: %s",
		s->throttle_reasons == GPU_UNKNOWN
			? "?"
			: gpu_throttle_text(
				  (uint64_t)s->throttle_reasons, reasons, sizeof(reasons)));
	gpu_troubles(b, row);
	buf_putc(b, '\n');
}

void live_gpus(struct buf *b, const struct tracer_view *v)
{
	bool worth_a_line =
		v->gpu_state == GPU_NO_ANSWER || (v->gpu_state == GPU_ABSENT && v->has_driver);

	for (size_t i = 0; i < v->gpu_count; i++)
		gpu_line(b, &v->gpus[i]);
	if (worth_a_line) {
		buf_puts(b, "  gpu state ");
		text_escape_terminal(b, v->gpu_text);
		buf_putc(b, '\n');
	}
}

static const int widths[] = {24, 12, 10, 10, 10, 10};

static void rule(struct buf *b, const struct glyphs *g, const char *const ends[3])
{
	buf_puts(b, "  ");
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		buf_puts(b, ends[i ? 1 : 0]);
		for (int k = 0; k < widths[i]; k++)
			buf_puts(b, g->h);
	}
	buf_puts(b, ends[2]);
	buf_puts(b, "\n");
}

/* Columns are padded by code points, because µ and ⚠ take more than one byte. */
static int text_columns(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void cells(struct buf *b, const struct glyphs *g, const char *const text[6])
{
	buf_puts(b, "  ");
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		int pad = widths[i] - 1 - text_columns(text[i]);
		bool right = i == 1;

		buf_puts(b, g->v);
		buf_printf(b, "%*s", right ? MAX(pad, 0) : 1, "");
		buf_puts(b, text[i]);
		buf_printf(b, "%*s", right ? 1 : MAX(pad, 0), "");
	}
	buf_puts(b, g->v);
	buf_puts(b, "\n");
}

static void op_row(struct buf *b, const struct tracer_op *o, const struct glyphs *g)
{
	uint64_t p50 = sketch_quantile(&o->sketch, 0.50), p99 = sketch_quantile(&o->sketch, 0.99);
	char scratch[32], count[TEXT_MAX], t50[TEXT_MAX], t95[TEXT_MAX], t99[TEXT_MAX],
		flag[16] = "";
	const char *name = wire_op_name(o->source, o->op, scratch);

	text_format_count(count, o->count);
	if (!o->sketch.count) { /* an event without a duration */
		cells(b, g, (const char *[]){name, count, "", "", "", ""});
		return;
	}
	if (o->nested)
		snprintf(flag, sizeof(flag), "nested");
	else if (o->count >= TAIL_FLAG_CALLS && p50 && p99 / p50 >= TAIL_FLAG_RATIO)
		snprintf(flag, sizeof(flag), "%s p99", g->warn);
	text_format_duration(t50, p50);
	text_format_duration(t95, sketch_quantile(&o->sketch, 0.95));
	text_format_duration(t99, p99);
	cells(b, g, (const char *[]){name, count, t50, t95, t99, flag});
}

static const struct {
	const char *title;
	uint8_t source;
} sections[] = {
	{"CUDA Runtime API", SOURCE_CUDA},
	{"CUDA Driver API", SOURCE_DRIVER},
	{"CUDA Graphs", SOURCE_GRAPH},
	{"NCCL", SOURCE_NCCL},
	{"Host Context", SOURCE_HOST},
	{"Block I/O", SOURCE_IO},
	{"TCP", SOURCE_TCP},
	{"Network Socket", SOURCE_NET},
};

static void section(struct buf *b, const struct tracer_view *v, const char *title, uint8_t source,
	const struct glyphs *g)
{
	uint64_t direct = 0, nested = 0;
	char n[TEXT_MAX], line[96];

	for (size_t i = 0; i < v->op_count; i++)
		if (v->ops[i].source == source)
			*(v->ops[i].nested ? &nested : &direct) += v->ops[i].count;
	if (!direct && !nested)
		return;
	snprintf(line, sizeof(line), "Events: %s", text_format_count(n, direct));
	buf_printf(b, "  %-40s%*s\n", title, 42, line);
	rule(b, g, g->top);
	cells(b, g, (const char *[]){"Operation", "Count", "p50", "p95", "p99", "Flags"});
	rule(b, g, g->mid);
	for (size_t i = 0; i < v->op_count; i++)
		if (v->ops[i].source == source)
			op_row(b, &v->ops[i], g);
	rule(b, g, g->bottom);
	if (nested)
		buf_printf(b, "  nested: %s calls made inside runtime calls, not counted again\n",
			text_format_count(n, nested));
	buf_puts(b, "\n");
}

void live_losses(struct buf *b, const struct accounting *books)
{
	char n[TEXT_MAX], of[TEXT_MAX];

	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		const struct account *a = &books->source[s];

		for (int i = 0; i < LOSS_COUNT; i++)
			if (a->lost[i])
				buf_printf(b, "  lost: %s of %s %s events, %s (%s)\n",
					text_format_count(n, a->lost[i]),
					text_format_count(of, a->hits), wire_source_name(s),
					wire_losses[i].name, wire_losses[i].description);
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
		buf_printf(b, "  and %llu more processes that are not covered completely\n",
			(unsigned long long)(v->gap_count - MIN(v->gap_count, (size_t)GAPS_SHOWN) +
					     v->gaps_more));
}

static void footer(struct buf *b, const struct tracer_view *v)
{
	uint64_t hits = 0, stored = 0, lost = 0;
	char wall[TEXT_MAX], h[TEXT_MAX], s[TEXT_MAX], l[TEXT_MAX], size[TEXT_MAX];

	for (unsigned i = 0; i < WIRE_SOURCE_MAX; i++) {
		hits += v->books.source[i].hits;
		stored += v->books.source[i].stored;
		lost += account_lost(&v->books.source[i]);
	}
	buf_printf(b, "  Wall: %s | Events: %s | Stored: %s (%s) | Lost: %s (%.2f%%)\n",
		text_format_duration(
			wall, (uint64_t)(v->now.ns - v->started.ns) / NS_PER_S * NS_PER_S),
		text_format_count(h, hits), text_format_count(s, stored),
		text_format_bytes(size, v->db_bytes), text_format_count(l, lost),
		hits ? 100.0 * (double)lost / (double)hits : 0.0);
	buf_printf(b, "  Overhead: %s of the busiest process so far (%.1fµs a hit",
		text_format_percent(wall, v->overhead), v->hit_ns / 1000);
	if (v->overhead_budget > 0)
		buf_printf(b, "; budget %s", text_format_percent(size, v->overhead_budget));
	buf_puts(b, ")\n");
	if (v->launch_weight > 1)
		buf_printf(b,
			"  launches are probed 1/%u of the time to keep the budget; their counts "
			"are "
			"scaled up\n",
			v->launch_weight);
	live_losses(b, &v->books);
	gaps(b, v);
	if (v->store_error[0]) {
		buf_puts(b, "  the store refuses rows: ");
		text_escape_terminal(b, v->store_error);
		buf_puts(b, "\n");
	}
	if (v->clock_steps)
		buf_printf(b, "  the wall clock was stepped %u time(s) during this trace\n",
			v->clock_steps);
}

void live_table(struct buf *b, const struct tracer_view *v, struct live_style style)
{
	const struct glyphs *g = glyphs_of(style);

	buf_puts(b, "\n");
	if (v->has_host)
		system_line(b, &v->host, g);
	live_gpus(b, v);
	buf_puts(b, "\n");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		section(b, v, sections[i].title, sections[i].source, g);
	footer(b, v);
}
