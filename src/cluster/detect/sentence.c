/* SPDX-License-Identifier: Apache-2.0 */
/* sentence.c - what is said about an episode, in one sentence: who, what for, why, what it costs.
 *
 * Names in it came from agents: whoever prints escapes them. */
#include "cluster/detect/fleet_private.h"

#include "base/buf.h"
#include "base/text.h"
#include "blame/comm_join.h"
#include "blame/transfer_text.h"
#include "wire/names.h"

static void put_ordinal(struct buf *b, uint32_t n)
{
	static const char *const ends[] = {"th", "st", "nd", "rd"};
	bool teen = n % 100 >= 11 && n % 100 <= 13;

	buf_printf(b, "%u%s", n, ends[teen || n % 10 > 3 ? 0 : n % 10]);
}

static void put_who(struct buf *b, const struct fleet_episode *e)
{
	if (e->ranks)
		buf_printf(b, "each of the %u ranks", e->ranks);
	else if (e->rank >= 0)
		buf_printf(b, "rank %d", e->rank);
	else if (e->pid)
		buf_printf(b, "process %u", e->pid);
	if (e->node[0])
		buf_printf(b, "%s%s", b->len ? " on " : "node ", e->node);
	if (!b->len)
		buf_puts(b, "a rank");
}

/* Its communicator is a field: nobody reads 16 digits in a sentence. */
static void put_collective(struct buf *b, const struct fleet_episode *e, const char *before)
{
	char scratch[32];
	const char *name = wire_op_name(SOURCE_NCCL, e->op, scratch);

	if (e->comm)
		buf_printf(b, "%s%s", before, strncmp(name, "nccl", 4) ? name : name + 4);
}

static void put_late(struct buf *b, const struct fleet_episode *e)
{
	put_who(b, e);
	if (!e->late) { /* known by its agent, or by what it is sent: its calls are on time */
		buf_puts(b, " keeps the job waiting");
		return;
	}
	if (e->provisional) {
		buf_printf(b, " was %s late just now", TEXT_SPAN(e->lag_ns));
		put_collective(b, e, ", for ");
		return;
	}
	buf_printf(b, " is %s late in ", TEXT_SPAN(e->lag_ns));
	if (e->period > 1) {
		buf_puts(b, "every ");
		put_ordinal(b, e->period);
		buf_puts(b, " step");
	} else if (e->late < e->seen) {
		buf_printf(b, "%s of %s steps", TEXT_COUNT(e->late), TEXT_COUNT(e->seen));
	} else {
		buf_puts(b, "every step");
	}
	put_collective(b, e, ", for ");
	if (e->waiting && e->waited_ns)
		buf_printf(b, "; %s %s %s each time", TEXT_PLURAL(e->waiting, "ranks"),
			e->waiting == 1 ? "waits" : "wait", TEXT_SPAN(e->waited_ns));
}

static void put_stage(struct buf *b, const struct fleet_episode *e)
{
	buf_printf(b, "pipeline stage %d is slower than the others: %s of the job's time", e->stage,
		TEXT_PERCENT(e->share));
}

static void put_uneven(struct buf *b, const struct fleet_episode *e)
{
	buf_printf(b,
		"the load moves between the ranks: a different one is slowest in every step, %s of the job's time",
		TEXT_PERCENT(e->share));
}

static void put_transfer(struct buf *b, const struct fleet_episode *e)
{
	const struct transfer_text t = {.is_link = e->problem == FLEET_LINK,
		.from_rank = e->from_rank,
		.to_rank = e->to_rank,
		.from_node = e->from_node,
		.to_node = e->to_node,
		.comm = e->comm,
		.op = e->op,
		.ranks = e->seen,
		.bytes = e->bytes,
		.took_ns = e->took_ns,
		.usual_ns = e->usual_ns,
		.by_past = e->by_past};

	if (e->took_ns)
		transfer_text_put(b, &t);
	else
		buf_puts(b, "collectives take longer than before though all ranks are on time");
}

static void put_node(struct buf *b, const struct fleet_episode *e)
{
	put_who(b, e);
	buf_printf(b, " is slower than %s: its %s stands out",
		e->is_own ? "before, by its own report" : "its peers", e->signal);
	if (e->threshold > 0)
		buf_printf(b, " (score %.2f, threshold %.2f)", e->score, e->threshold);
}

static void put_silent(struct buf *b, const struct fleet_episode *e)
{
	put_who(b, e);
	buf_puts(b, " has stopped reporting while others continue");
}

static void put_hang(struct buf *b, const struct fleet_episode *e)
{
	_cleanup_buf_ struct buf who = BUF_INIT(1024);

	buf_printf(b, "%s %s waited %s for ", TEXT_PLURAL(e->seen, "ranks"),
		e->seen == 1 ? "has" : "have", TEXT_SPAN(e->lag_ns));
	put_who(&who, e);
	buf_puts(b, buf_str(&who));
	put_collective(b, e, " at ");
	if (e->seq < COMM_JOIN_MADE_UP)
		buf_printf(b, " #%llu", (unsigned long long)e->seq);
}

static void put_mismatch(struct buf *b, const struct fleet_episode *e)
{
	put_who(b, e);
	buf_printf(b, " disagrees with the others about collective %llu of communicator %016llx",
		(unsigned long long)e->seq, (unsigned long long)e->comm);
}

static void put_cost(struct buf *b, const struct fleet_episode *e)
{
	if (e->provisional)
		return;
	if ((e->problem == FLEET_STRAGGLER || e->problem == FLEET_LINK ||
		    e->problem == FLEET_COLLECTIVE) &&
		e->share > 0)
		buf_printf(b, "; %s of the job's time", TEXT_PERCENT(e->share));
	if (e->cost.per_hour <= 0)
		return;
	buf_printf(b, "; that costs %s%s%.2f/h",
		!e->cost.priced     ? "at least "
		: e->cost.is_middle ? "about "
				    : "",
		e->cost.symbol, e->cost.per_hour);
	if (e->cost.is_middle)
		buf_printf(b, " at about %s%.2f per GPU hour, %s", e->cost.symbol, e->cost.gpu_hour,
			e->cost.is_guess ? "provider unknown" : "the middle of list prices");
}

void fleet_received(struct fleet_episode *e, double times)
{
	if (times <= 0 || e->place[0])
		return;
	snprintf(e->cause, sizeof(e->cause),
		"its GPU has more to do: the others send it %.1f times as much as before", times);
	snprintf(e->fix, sizeof(e->fix),
		"Balance what is sent to each rank: an expert's capacity, or a loss for uneven routing");
}

void fleet_sentence(struct fleet_episode *e)
{
	static void (*const put[])(struct buf *, const struct fleet_episode *) = {
		[FLEET_STRAGGLER] = put_late,
		[FLEET_STAGE] = put_stage,
		[FLEET_UNEVEN] = put_uneven,
		[FLEET_LINK] = put_transfer,
		[FLEET_COLLECTIVE] = put_transfer,
		[FLEET_NODE] = put_node,
		[FLEET_SILENT] = put_silent,
		[FLEET_HANG] = put_hang,
		[FLEET_MISMATCH] = put_mismatch,
	};
	_cleanup_buf_ struct buf b = BUF_INIT(sizeof(e->text) - 1);

	put[e->problem](&b, e);
	if (e->cause[0])
		buf_printf(&b, "; %s", e->cause);
	put_cost(&b, e);
	snprintf(e->text, sizeof(e->text), "%s", buf_str(&b));
}
