/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - see export.h. */
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>

#include "base/macros.h"
#include "base/text.h"
#include "answer/flame.h"
#include "export/flamegraph.h"
#include "answer/stacks.h"

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
	char calls[TEXT_PLURAL_MAX], time[TEXT_MAX];

	buf_printf(&title, "%s calls by call stack", options->op ? options->op->name : "GPU");
	if (options->name) {
		buf_puts(&title, ": ");
		text_escape_terminal(&title, options->name);
	}
	buf_printf(&sub, "%s, %s on the host. Width is %s; callers are above.",
		text_format_plural(calls, stats->calls, "recorded calls"),
		text_format_duration(time, stats->ns),
		options->count ? "the number of calls" : "their time");
	if (stats->without_stack)
		buf_printf(&sub, " %s %s no stack.",
			text_format_plural(calls, stats->without_stack, "calls"),
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
