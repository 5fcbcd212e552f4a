/* SPDX-License-Identifier: Apache-2.0 */
/* accounting.c - see accounting.h: what the books cannot say, in words. */
#include "model/accounting.h"

#include <time.h>

#include "base/buf.h"
#include "base/text.h"

/* account_in_flight - hits of which nothing more is known. */
static inline uint64_t account_in_flight(const struct account *a)
{
	uint64_t known = a->stored + a->aggregated + account_lost(a);

	return a->hits > known ? a->hits - known : 0;
}

/* Pure but for the local time zone. */

static const char *const names[] = {
#define X(NAME, name, because) name,
	CALL_GAP_REASONS(X)
#undef X
};

static const char *const reasons[] = {
#define X(NAME, name, because) because,
	CALL_GAP_REASONS(X)
#undef X
};

const char *call_gap_reason_name(enum call_gap_reason r)
{
	return names[r];
}

enum call_gap_reason call_gap_reason_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return (enum call_gap_reason)i;
	return CALL_GAP_FIRST_SEEN;
}

void call_gap_set_file(struct call_gap *g, const char *path)
{
	size_t len = strlen(path);

	if (len >= sizeof(g->file))
		path += len - (sizeof(g->file) - 1);
	snprintf(g->file, sizeof(g->file), "%s", path);
}

void call_gap_sum_add(struct call_gap_sum *s, const struct call_gap *g, bool is_new_process)
{
	s->processes += is_new_process;
	if (call_gap_ns(g) > call_gap_ns(&s->longest))
		s->longest = *g;
}

static const char *clock_text(wall_time t, char out[32])
{
	time_t seconds = (time_t)(t.ns / (int64_t)NS_PER_S);
	struct tm tm;

	if (t.ns < 0 || !localtime_r(&seconds, &tm))
		snprintf(out, 32, "(time %" PRId64 ")", t.ns);
	else
		snprintf(out, 32, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec,
			(int)(t.ns % (int64_t)NS_PER_S / (int64_t)NS_PER_MS));
	return out;
}

const char *call_gap_sentence(const struct call_gap_sum *s, char *out, size_t size)
{
	const struct call_gap *g = &s->longest;
	char at[32], comm[COMM_LEN + 3] = "", of[64] = "";

	out[0] = 0;
	if (!s->processes)
		return out;
	if (g->comm[0])
		snprintf(comm, sizeof(comm), " (%s)", g->comm);
	if (s->processes == 1)
		snprintf(of, sizeof(of), "calls of");
	else
		snprintf(of, sizeof(of),
			"first calls of %" PRIu64 " processes were not traced; longest:",
			s->processes);
	snprintf(out, size, "%s PID %" PRIu32 "%s before %s%s (%s; %s %s)", of, g->pid, comm,
		clock_text(g->to, at), s->processes == 1 ? " were not traced" : "",
		TEXT_DURATION(call_gap_ns(g)), basename(g->file), reasons[g->reason]);
	return out;
}

static void put_moment(struct buf *b, int64_t ns)
{
	time_t seconds = (time_t)(ns / (int64_t)NS_PER_S);
	char text[64];
	struct tm tm;

	if (ns > 0 && localtime_r(&seconds, &tm) &&
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm))
		buf_printf(b, " at about %s", text);
}

bool accounting_put_unclean(const struct accounting *books, struct buf *b)
{
	uint64_t in_flight = 0;

	if (!books->unclean)
		return false;
	for (int i = 0; i < WIRE_SOURCE_MAX; i++)
		in_flight += account_in_flight(&books->source[i]);
	if (books->unclean == 1)
		buf_puts(b, "the recording ended");
	else
		buf_printf(b, "%u sessions of the recording ended, the last",
			(unsigned)books->unclean);
	buf_puts(b, " without a clean stop");
	put_moment(b, books->unclean_ns);
	buf_puts(b, ": events after the last commit are missing");
	if (in_flight)
		buf_printf(b, ", and so are %s events in flight", TEXT_COUNT(in_flight));
	buf_puts(b, "; completeness unknown");
	return true;
}

#define ERROR_SHOWN 0.001 /* a smaller one is said as this: "±< 0.1 %" is no figure */

bool accounting_put_launches(const struct accounting *books, struct buf *b)
{
	if (books->launch_error <= 0)
		return false;
	buf_printf(b, "launches were counted %s of the time and estimated between, ",
		TEXT_PERCENT(books->launch_watched));
	if (books->launch_error < 1)
		buf_printf(b, "±%s", TEXT_PERCENT(MAX(books->launch_error, ERROR_SHOWN)));
	else
		buf_puts(b, "too little was seen to say how many there were");
	return true;
}
