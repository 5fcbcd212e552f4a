/* SPDX-License-Identifier: Apache-2.0 */
/* scope.c - see nodedb.h.
 *
 * A row belongs to a time if it starts in it. A bucket belongs to it if the two have a moment in
 * common: so every call of the time is counted, with up to one bucket's width of calls before and
 * after it. Were only whole buckets taken, a recording asked for by its own first and last moment
 * would lack its first and last seconds, because buckets begin and end at round times. */

#include "store/nodedb.h"
#include "base/clock.h"
#include "base/macros.h"

#define SHORT_NS (30 * 60 * (int64_t)NS_PER_S)

void scope_where(const struct scope *s, const struct scope_columns *c, struct buf *sql)
{
	buf_puts(sql, " WHERE 1");
	if (c->time && s->from_ns)
		buf_printf(sql, " AND %s > %" PRId64, c->time,
			s->from_ns - MAX(c->width_ns, INT64_C(1)));
	if (c->time && s->to_ns)
		buf_printf(sql, " AND %s <= %" PRId64, c->time, s->to_ns);
	if (c->op && s->source)
		buf_printf(sql, " AND source = %u", s->source);
	if (c->op && s->op)
		buf_printf(sql, " AND op = %u", s->op);
	if (c->node && s->node) {
		buf_puts(sql, " AND node = ");
		buf_putc(sql, '\'');
		for (const char *p = s->node; *p; p++)
			buf_printf(sql, *p == '\'' ? "''" : "%c", *p);
		buf_putc(sql, '\'');
	}
	if (!c->pid || !s->pid_count)
		return;
	buf_printf(sql, " AND %s IN (", c->pid);
	for (size_t i = 0; i < s->pid_count; i++)
		buf_printf(sql, "%s%" PRIu32, i ? "," : "", s->pids[i]);
	buf_putc(sql, ')');
}

bool scope_accepts(const struct scope *s, int64_t time_ns, int64_t pid)
{
	if ((s->from_ns && time_ns < s->from_ns) || (s->to_ns && time_ns > s->to_ns))
		return false;
	return !s->pid_count || EXISTS(i, s->pid_count, s->pids[i] == pid);
}

int64_t scope_bucket_ns(const struct scope *s)
{
	bool is_short = s->from_ns && s->to_ns && s->to_ns - s->from_ns <= SHORT_NS;

	return is_short ? (int64_t)NODEDB_BUCKET_FINE : (int64_t)NODEDB_BUCKET_COARSE;
}

const char *scope_bucket_table(int64_t width_ns)
{
	return width_ns == (int64_t)NODEDB_BUCKET_FINE ? "event_aggregates_5s" : "event_aggregates";
}
