/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - see export.h. */
#include "export/export.h"

#include "answer/stacks.h"
#include "base/text.h"

/* One <g> a frame: its text as <title>, which browsers show, a
 * rectangle, and as much of the name as fits. Everything is placed here; flamegraph.js only moves
 * it.
 *
 * Invariants:
 *  1. A frame is drawn only if its parent is: no child is wider.
 *  2. The same recording gives the same bytes; a frame's colour follows from its name.
 *  3. Text is XML whatever it holds: names are escaped when they enter the tree, and again here. */

#define WIDTH       1200
#define MARGIN      10
#define INNER       (WIDTH - 2 * MARGIN)
#define TOP         78 /* above the frames: title, what is shown, legend */
#define BOTTOM      34 /* below: what is not */
#define ROW         17
#define BOX         16 /* height of a frame in its row */
#define HEIGHT_MIN  300
#define NARROWEST   0.3
#define LETTER      7.25 /* widest of the usual fonts at 12 px */
#define LETTERS_MIN 3
#define TITLE_BYTES 240 /* of a name in a tooltip */
#define FRAME_BYTES 150 /* of a frame without its names */
#define ASSET_BYTES (16u << 10)
#define SHADES      8
#define ELLIPSIS    "\xe2\x80\xa6"

extern const char flamegraph_css[], flamegraph_js[];

static const struct {
	const char *class, *legend;
	int hue, saturation, light, step;           /* on white: light, light + step, … */
	int dark_saturation, dark_light, dark_step; /* on black */
} kinds[] = {
	[FLAME_PYTHON] = {"p", "Python", 212, 78, 68, 2, 45, 27, 2},
	[FLAME_NATIVE] = {"n", "native", 38, 88, 62, 2, 58, 22, 2},
	[FLAME_CALL] = {"c", "CUDA, NCCL call", 158, 48, 58, 2, 48, 20, 2},
};

/* ---- text ---- */

static void put_xml_len(struct buf *b, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		uint32_t cp;
		int n = text_utf8_next(s + i, len - i, &cp);

		if (n < 0 || (cp < 0x20 && cp != '\n') || cp == 0xfffe || cp == 0xffff)
			buf_puts(b, "?");
		else if (cp == '&' || cp == '<' || cp == '>' || cp == '"')
			buf_puts(b, cp == '&'   ? "&amp;"
				    : cp == '<' ? "&lt;"
				    : cp == '>' ? "&gt;"
						: "&quot;");
		else
			buf_append(b, s + i, (size_t)n);
		i += n < 0 ? 1 : (size_t)n;
	}
}

static void put_xml(struct buf *b, const char *s)
{
	put_xml_len(b, s, strlen(s));
}

/* Bytes of @s that @letters columns hold; wide characters take two. */
static size_t fit(const char *s, size_t letters)
{
	size_t i = 0, len = strlen(s), used = 0;

	while (i < len) {
		uint32_t cp = 0;
		int n = text_utf8_next(s + i, len - i, &cp);

		used += cp >= 0x1100 ? 2 : 1;
		if (used > letters)
			break;
		i += n < 0 ? 1 : (size_t)n;
	}
	return i;
}

static void put_cut(struct buf *b, const char *s, size_t letters)
{
	size_t len = fit(s, letters);

	if (!s[len]) {
		put_xml(b, s);
		return;
	}
	put_xml_len(b, s, fit(s, letters - 1));
	buf_puts(b, ELLIPSIS);
}

/* ---- which frames ---- */

static double width_of(const struct flame *f, uint32_t node)
{
	return INNER * ((double)f->nodes[node].total / (double)f->nodes[0].total);
}

static size_t bytes_of(const struct flame *f, uint32_t node)
{
	size_t len = strlen(flame_name_of(f, node)->text), room;
	double letters = (width_of(f, node) - 6) / LETTER;

	room = letters < LETTERS_MIN ? 0 : (size_t)letters;
	return FRAME_BYTES + 2 * (MIN(len, (size_t)TITLE_BYTES) + MIN(len, room));
}

static int by_total(const void *a, const void *b, void *arg)
{
	const struct flame *f = arg;
	uint64_t x = f->nodes[*(const uint32_t *)a].total, y = f->nodes[*(const uint32_t *)b].total;

	return x > y ? -1 : x < y;
}

/* The least total that is drawn, so that the document keeps within its bytes: widest first, and of
 * several that are equally wide all or none. *ret_width is what is too narrow. */
static int find_least(const struct flame *f, uint64_t *ret, double *ret_width)
{
	_cleanup_free_ uint32_t *order = calloc(f->count, sizeof(*order));
	size_t bytes = ASSET_BYTES, n = 0;
	uint64_t least = UINT64_MAX;

	if (!order)
		return -ENOMEM;
	*ret_width = NARROWEST;
	for (size_t i = 1; i < f->count; i++)
		if (width_of(f, (uint32_t)i) >= NARROWEST)
			order[n++] = (uint32_t)i;
	qsort_r(order, n, sizeof(*order), by_total, (void *)f);
	for (size_t i = 0; i < n;) {
		uint64_t total = f->nodes[order[i]].total;

		for (; i < n && f->nodes[order[i]].total == total; i++)
			bytes += bytes_of(f, order[i]);
		if (bytes > FLAMEGRAPH_BYTES_MAX) {
			*ret_width = INNER * ((double)least / (double)f->nodes[0].total);
			break;
		}
		least = total;
	}
	*ret = least;
	return 0;
}

/* ---- the document ---- */

static unsigned shade_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return (h ^ h >> 16) % SHADES;
}

static void put_style(struct buf *b)
{
	buf_puts(b, "<style>\n");
	buf_puts(b, flamegraph_css);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (int i = 0; i < SHADES; i++)
			buf_printf(b, ".%s%d rect{fill:hsl(%d,%d%%,%d%%)}\n", kinds[k].class, i,
				kinds[k].hue, kinds[k].saturation,
				kinds[k].light + i * kinds[k].step);
	buf_puts(b, "@media (prefers-color-scheme:dark){\n");
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (int i = 0; i < SHADES; i++)
			buf_printf(b, ".%s%d rect{fill:hsl(%d,%d%%,%d%%)}\n", kinds[k].class, i,
				kinds[k].hue, kinds[k].dark_saturation,
				kinds[k].dark_light + i * kinds[k].dark_step);
	buf_puts(b, "}\n</style>\n");
}

static void put_head(struct buf *b, const struct flamegraph *g, int height)
{
	int x = MARGIN;

	buf_printf(b,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
		" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
		WIDTH, height, WIDTH, height);
	put_xml(b, g->title);
	buf_puts(b, "\">\n");
	put_style(b);
	buf_printf(b, "<text class=\"title\" x=\"%d\" y=\"26\">", MARGIN);
	put_cut(b, g->title, 70);
	buf_printf(b, "</text>\n<text class=\"plain\" x=\"%d\" y=\"45\">", MARGIN);
	put_xml(b, g->subtitle);
	buf_puts(b, "</text>\n");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t k = i == 0 ? FLAME_PYTHON : i == 1 ? FLAME_NATIVE : FLAME_CALL;

		buf_printf(b,
			"<g class=\"%s3\"><rect x=\"%d\" y=\"55\" width=\"11\" height=\"11\"/></g>"
			"<text class=\"plain\" x=\"%d\" y=\"65\">%s</text>\n",
			kinds[k].class, x, x + 16, kinds[k].legend);
		x += 16 + 24 + 7 * (int)strlen(kinds[k].legend);
	}
	buf_printf(b, "<text class=\"plain\" id=\"details\" x=\"%d\" y=\"65\"> </text>\n", x + 20);
}

static void put_frame(
	struct buf *b, const struct flame *f, const struct flamegraph *g, uint32_t node, double x)
{
	const struct flame_node *n = &f->nodes[node];
	const char *text = node ? flame_name_of(f, node)->text : "all";
	double width = width_of(f, node), letters = (width - 6) / LETTER;
	unsigned y = TOP + n->depth * ROW;

	if (node)
		buf_printf(b, "<g class=\"f %s%u\"><title>",
			kinds[flame_name_of(f, node)->kind].class, shade_of(text));
	else
		buf_puts(b, "<g class=\"f a\"><title>");
	put_cut(b, text, TITLE_BYTES);
	buf_putc(b, '\n');
	if (g->is_count)
		buf_puts(b, TEXT_PLURAL(n->total, "calls"));
	else
		buf_puts(b, TEXT_DURATION(n->total));
	buf_puts(b, ", ");
	put_xml(b, TEXT_PERCENT((double)n->total / (double)f->nodes[0].total));
	buf_printf(b, "</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"/>", x, y,
		width, BOX);
	if (letters >= LETTERS_MIN) {
		buf_printf(b, "<text x=\"%.2f\" y=\"%u\">", x + 3, y + 12);
		put_cut(b, text, (size_t)letters);
		buf_puts(b, "</text>");
	}
	buf_puts(b, "</g>\n");
}

/* Draws what is at least @least wide; a frame begins where the one left of it ends. Returns the
 * number of frames left out. */
static size_t put_frames(
	struct buf *b, const struct flame *f, const struct flamegraph *g, uint64_t least, double *x)
{
	size_t drawn = 0;
	bool skip = false;

	buf_printf(b, "<g id=\"frames\" data-x=\"%d\" data-width=\"%d\" data-letter=\"%.2f\">\n",
		MARGIN, INNER, LETTER);
	x[0] = x[1] = MARGIN;
	put_frame(b, f, g, 0, MARGIN);
	for (uint32_t n = flame_next(f, 0, false); n; n = flame_next(f, n, skip)) {
		const struct flame_node *node = &f->nodes[n];

		/* x[depth] is where the next frame of that depth begins */
		skip = node->total < least;
		if (!skip) {
			double at = x[node->depth];

			put_frame(b, f, g, n, at);
			drawn++;
			x[node->depth] = at + width_of(f, n);
			x[node->depth + 1] = at;
		}
	}
	buf_puts(b, "</g>\n");
	return f->count - 1 - drawn;
}

static unsigned deepest(const struct flame *f, uint64_t least)
{
	unsigned depth = 0;

	for (size_t i = 0; i < f->count; i++)
		if (f->nodes[i].total >= least)
			depth = MAX(depth, f->nodes[i].depth);
	return depth;
}

int flamegraph_svg(struct buf *b, const struct flame *f, const struct flamegraph *g)
{
	double x[STACK_FRAMES_MAX + 4], narrowest;
	uint64_t least;
	size_t left_out;
	int r, height;

	if (!f->count || !f->nodes[0].total)
		return -ENODATA;
	r = find_least(f, &least, &narrowest);
	if (r < 0)
		return r;
	height = MAX(TOP + ((int)deepest(f, least) + 1) * ROW + BOTTOM, HEIGHT_MIN);
	put_head(b, g, height);
	left_out = put_frames(b, f, g, least, x);
	if (left_out)
		buf_printf(b,
			"<text class=\"plain\" x=\"%d\" y=\"%d\">%s frames narrower than %.1f pixels are not drawn</text>\n",
			MARGIN, height - 12, TEXT_COUNT(left_out), narrowest);
	buf_puts(b, "<script><![CDATA[\n");
	buf_puts(b, flamegraph_js);
	buf_puts(b, "]]></script>\n</svg>\n");
	return b->err;
}

static int fill(struct flame *f, const struct nodedb_content *c,
	const struct export_options *options, struct export_stats *ret)
{
	_cleanup_free_ struct stack_total *totals = NULL;
	size_t count = 0;
	int r = stack_total_run(c->events, c->event_count, options->op, &totals, &count);

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct stack_total *t = &totals[i];
		const struct stack *s = stack_find(&c->stacks, t->hash);

		ret->calls = capped_sum(ret->calls, t->calls);
		ret->ns = capped_sum(ret->ns, t->ns);
		ret->stacks += s != NULL;
		if (!s)
			ret->without_stack = capped_sum(ret->without_stack, t->calls);
		/* a call that took no time at all still was one */
		r = flame_add(f, s, t->source, t->op,
			options->count ? t->calls : MAX(t->ns, UINT64_C(1)));
	}
	ret->left_out = f->left_out;
	return r < 0 ? r : flame_finish(f);
}

static int draw(struct buf *b, const struct flame *f, const struct export_options *options,
	const struct export_stats *stats)
{
	_cleanup_buf_ struct buf title = BUF_INIT(1 << 14), sub = BUF_INIT(1 << 14);
	struct flamegraph g = {.is_count = options->count};

	buf_printf(&title, "%s calls by call stack", options->op ? options->op->name : "GPU");
	if (options->name) {
		buf_puts(&title, ": ");
		text_escape_terminal(&title, options->name);
	}
	buf_printf(&sub, "%s, %s on the host. Width is %s; callers are above.",
		TEXT_PLURAL(stats->calls, "recorded calls"), TEXT_DURATION(stats->ns),
		options->count ? "the number of calls" : "their time");
	if (stats->without_stack)
		buf_printf(&sub, " %s %s no stack.", TEXT_PLURAL(stats->without_stack, "calls"),
			stats->without_stack == 1 ? "has" : "have");
	g.title = buf_str(&title);
	g.subtitle = buf_str(&sub);
	return flamegraph_svg(b, f, &g);
}

int export_stacks(const struct nodedb_content *c, const struct export_options *options,
	struct buf *b, struct export_stats *ret, struct errinfo *reterr)
{
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	struct export_stats stats = {0};
	int r;

	f.function_first = options->format == EXPORT_FLAMEGRAPH;
	r = fill(&f, c, options, &stats);
	if (r < 0)
		return errinfo_set(reterr, r, "not enough memory for the stacks of %zu events",
			c->event_count);
	if (!stats.stacks)
		return errinfo_set_exit(reterr, EXIT_NO_INPUT, -ENODATA,
			"no call stacks in %llu calls: record without --stack=false",
			(unsigned long long)stats.calls);
	if (options->format == EXPORT_FLAMEGRAPH)
		r = draw(b, &f, options, &stats);
	else
		folded_text(b, &f, options->count ? 1 : NS_PER_US);
	if (r == 0 && b->err)
		r = b->err == -ENOBUFS ? -E2BIG : b->err;
	if (r < 0)
		return errinfo_set(reterr, r, "too many stacks: select fewer with --since or --op");
	*ret = stats;
	return 0;
}

/* ---- Lines come in the order of the tree, largest branch first ---- */

#define DEPTH_MAX (STACK_FRAMES_MAX + 2)

static void put_path(struct buf *b, const struct flame *f, uint32_t node)
{
	uint32_t path[DEPTH_MAX];
	size_t n = 0;

	for (; node && n < DEPTH_MAX; node = f->nodes[node].parent)
		path[n++] = node;
	while (n-- > 0) {
		buf_puts(b, flame_name_of(f, path[n])->text);
		buf_putc(b, n ? ';' : ' ');
	}
}

void folded_text(struct buf *b, const struct flame *f, uint64_t unit)
{
	for (uint32_t n = flame_next(f, 0, false); n; n = flame_next(f, n, false)) {
		uint64_t self = f->nodes[n].self, value = self / unit;

		if (!self)
			continue;
		value += self % unit >= unit - unit / 2;
		put_path(b, f, n);
		buf_printf(b, "%" PRIu64 "\n", MAX(value, UINT64_C(1)));
	}
}
