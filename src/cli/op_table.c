/* SPDX-License-Identifier: Apache-2.0 */
/* op_table.c - see live.h. Columns are counted in code points, because µ and the lines take
 * more than one byte each. Numbers stand to the right, so that sizes can be compared at a glance.
 */
#include "cli/live.h"

#include <limits.h>

#include "base/text.h"
#include "wire/names.h"

#define TAIL_FLAG_RATIO 10 /* p99 this many times p50 is worth a flag */
#define TAIL_FLAG_CALLS 10

enum edge { TOP, MIDDLE, BOTTOM };

struct glyphs {
	const char *warn, *about, *v, *h;
	const char *edges[3][3]; /* enum edge: left, cross, right */
};

static const struct glyphs glyphs_unicode = {
	"⚠", "≈", "│", "─", {{"┌", "┬", "┐"}, {"├", "┼", "┤"}, {"└", "┴", "┘"}}};
static const struct glyphs glyphs_ascii = {
	"!", "~", "|", "-", {{"+", "+", "+"}, {"+", "+", "+"}, {"+", "+", "+"}}};

static const struct glyphs *glyphs_of(struct live_style s)
{
	return s.unicode ? &glyphs_unicode : &glyphs_ascii;
}

/* Columns of the cells, their two spaces included. The first takes what the terminal leaves. */
static const int widths[] = {0, 13, 9, 9, 9, 8};
#define CELLS     ARRAY_SIZE(widths)
#define REST      (13 + 9 + 9 + 9 + 8 + (int)CELLS + 1 + 2) /* with rules and margin */
#define OP_MIN    22
#define OP_MAX    30        /* cudaLaunchCooperativeKernel */
#define COUNT_MAX 999999999 /* the widest that fits; more is shown in millions */

static int width_of(size_t cell, struct live_style style)
{
	if (cell)
		return widths[cell];
	return style.columns ? MAX(OP_MIN, MIN(OP_MAX, style.columns - 1 - REST)) : OP_MAX;
}

static void rule(struct buf *b, struct live_style style, enum edge edge)
{
	const struct glyphs *g = glyphs_of(style);
	const char *const *ends = g->edges[edge];

	buf_puts(b, "  ");
	for (size_t i = 0; i < CELLS; i++) {
		buf_puts(b, ends[i ? 1 : 0]);
		for (int k = 0; k < width_of(i, style); k++)
			buf_puts(b, g->h);
	}
	buf_puts(b, ends[2]);
	buf_puts(b, "\n");
}

static void cells(struct buf *b, struct live_style style, bool ruled, const char *const text[6])
{
	const char *v = ruled ? glyphs_of(style)->v : " ";

	buf_puts(b, "  ");
	for (size_t i = 0; i < CELLS; i++) {
		int room = width_of(i, style) - 2, pad = MAX(room - text_columns(text[i]), 0);
		bool right = i && i + 1 < CELLS;

		buf_puts(b, v);
		buf_printf(b, " %*s%.*s%*s ", right ? pad : 0, "", text_clip(text[i], room),
			text[i], right ? 0 : pad, "");
	}
	buf_puts(b, ruled ? v : "");
	buf_puts(b, "\n");
}

static void table_head(struct buf *b, struct live_style style, bool ruled)
{
	cells(b, style, ruled,
		(const char *[]){"Operation", "Count", "p50", "p95", "p99", "Flags"});
}

static void row(struct buf *b, const struct tracer_op *o, struct live_style style, bool ruled)
{
	uint64_t p50 = sketch_quantile(&o->sketch, 0.50), p99 = sketch_quantile(&o->sketch, 0.99);
	char scratch[32], number[TEXT_MAX], count[TEXT_MAX + 8], t50[TEXT_MAX], t95[TEXT_MAX],
		t99[TEXT_MAX], flag[16] = "";
	const char *name = wire_op_name(o->source, o->op, scratch);

	text_format_count(number, o->count > COUNT_MAX ? o->count / 1000000 : o->count);
	snprintf(count, sizeof(count), "%s%s%s", o->is_estimate ? glyphs_of(style)->about : "",
		number, o->count > COUNT_MAX ? " M" : "");
	if (!o->sketch.count) { /* an event without a duration */
		cells(b, style, ruled, (const char *[]){name, count, "", "", "", ""});
		return;
	}
	if (o->nested)
		snprintf(flag, sizeof(flag), "nested");
	else if (o->count >= TAIL_FLAG_CALLS && p50 && p99 / p50 >= TAIL_FLAG_RATIO)
		snprintf(flag, sizeof(flag), "%s p99", glyphs_of(style)->warn);
	text_format_duration(t50, p50);
	text_format_duration(t95, sketch_quantile(&o->sketch, 0.95));
	text_format_duration(t99, p99);
	cells(b, style, ruled, (const char *[]){name, count, t50, t95, t99, flag});
}

/* ---- of a source each ---- */

static const struct section {
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

static int section_ops(const struct tracer_view *v, const struct section *s)
{
	int n = 0;

	for (size_t i = 0; i < v->op_count; i++)
		n += v->ops[i].source == s->source;
	return n;
}

/* The title, and at the table's right edge how many events there are: "12,345, nested 678". */
static void section_title(struct buf *b, const struct tracer_view *v, const struct section *s,
	struct live_style style)
{
	uint64_t direct = 0, nested = 0;
	char line[96];
	int used = 0;

	for (size_t i = 0; i < v->op_count; i++)
		if (v->ops[i].source == s->source)
			*(v->ops[i].nested ? &nested : &direct) += v->ops[i].count;
	if (direct || !nested)
		used = snprintf(line, sizeof(line), "Events: %s", TEXT_COUNT(direct));
	if (nested)
		snprintf(line + used, sizeof(line) - (size_t)used, "%s%s",
			used ? ", nested: " : "Nested: ", TEXT_COUNT(nested));
	buf_printf(b, "  %s%*s\n", s->title, REST + width_of(0, style) - 2 - (int)strlen(s->title),
		line);
}

static void section_table(struct buf *b, const struct tracer_view *v, const struct section *s,
	struct live_style style)
{
	if (!section_ops(v, s))
		return;
	section_title(b, v, s, style);
	rule(b, style, TOP);
	table_head(b, style, true);
	rule(b, style, MIDDLE);
	for (size_t i = 0; i < v->op_count; i++)
		if (v->ops[i].source == s->source)
			row(b, &v->ops[i], style, true);
	rule(b, style, BOTTOM);
	buf_puts(b, "\n");
}

void op_table_put(struct buf *b, const struct tracer_view *v, struct live_style style)
{
	bool is_nested = false;

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		section_table(b, v, &sections[i], style);
	for (size_t i = 0; i < v->op_count; i++)
		is_nested |= v->ops[i].nested;
	if (is_nested)
		buf_puts(b, "  nested: made inside a runtime call; not added to the totals\n");
}

static int shown_ops(const struct tracer_view *v, int most)
{
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		n += MIN(section_ops(v, &sections[i]), most);
	return n;
}

void op_table_list(struct buf *b, const struct tracer_view *v, struct live_style style, int most)
{
	int hidden = shown_ops(v, INT_MAX) - shown_ops(v, most);

	table_head(b, style, false);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		int left = most;

		if (section_ops(v, &sections[i]))
			section_title(b, v, &sections[i], style);
		for (size_t k = 0; k < v->op_count && left; k++)
			if (v->ops[k].source == sections[i].source) {
				row(b, &v->ops[k], style, false);
				left--;
			}
	}
	if (hidden)
		buf_printf(b, "  and %s, shown at the end\n",
			TEXT_PLURAL((uint64_t)hidden, "more operations"));
}
