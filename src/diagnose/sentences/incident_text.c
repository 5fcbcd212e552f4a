/* SPDX-License-Identifier: Apache-2.0 */
/* incident_text.c - the words of an incident: sentences of rules.c filled with its figures.
 *
 * Pure. Texts are cut at the sizes of model/incident.h. Names from traced processes go into them as
 * they are: whoever prints escapes. Nothing is said that the figures do not show, and what was lost
 * or is not known is said beside the verdict. */
#include "diagnose/sentences/incident_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/calls/rules.h"
#include "diagnose/accounts/tracer_name.h"
#include "base/text.h"
#include "wire/names.h"

#define CAUSES_TOLD 4 /* of an incident, in its sentence; --json has them all */

#define SOURCE_LOST 0.9 /* completeness of a source below which it is told of by itself */

#define OTHER_TOLD 0.05 /* of the excess */

#define SENTENCE_MAX 4096 /* of one sentence before it is cut to its field */

static void copy_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
}

/* By their names: a recording does not say which processes are the kernel's. */
static bool is_kernel_thread(const char *comm)
{
	static const char *const starts[] = {"kworker/", "ksoftirqd/", "migration/", "cpuhp/",
		"rcu_", "rcuo", "rcuc/", "irq/", "idle_inject/", "kswapd", "kcompactd",
		"khugepaged", "ksmd", "kthreadd", "kblockd", "kdevtmpfs", "jbd2/", "xfsaild/",
		"xfs-", "btrfs-", "dmcrypt_write", "scsi_eh_", "nvme-", "nfsd", "nfsiod", "rpciod",
		"flush-", "writeback", "watchdogd", "napi/", "nv_queue", "nvidia-modeset", "UVM "};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(comm, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static void put_who(char *out, size_t size, const char *comm, uint32_t pid, const char *more)
{
	if (comm[0])
		snprintf(out, size, "%s%s (pid %u%s)", comm,
			tracer_is(comm) ? ", the tracer itself" : "", pid, more);
	else
		snprintf(out, size, "pid %u", pid);
}

static void who_text(char *out, size_t size, const char *comm, uint32_t pid)
{
	put_who(out, size, comm, pid, "");
}

/* Processes of one name are one culprit; the pid is that of the largest. For a disk culprit_share
 * says something else: its part of the traffic. */
static void culprit_text(char *out, size_t size, const struct incident_cause *c)
{
	bool is_several = c->cause != CAUSE_BLOCK_IO && c->culprit_share < 0.999;

	put_who(out, size, c->culprit, c->culprit_pid, is_several ? " and others" : "");
}

static enum blame blame_of(const struct verdict *v, const struct incident *inc)
{
	if (v->is_crowd)
		return BLAME_MANY;
	if (!v->lead->culprit_pid)
		return BLAME_NOBODY;
	if (v->lead->culprit_pid == inc->pid)
		return BLAME_OWN;
	if (is_kernel_thread(v->lead->culprit))
		return BLAME_KERNEL;
	return tracer_is(v->lead->culprit) ? BLAME_TRACER : BLAME_OTHER;
}

/* What the culprit took of the other layer, if it is worth a word: ", plus 16 % while hog had the
 * CPU". */
static void put_other_layer(struct buf *b, const struct verdict *v, const struct incident *inc)
{
	bool is_cpu = v->lead->cause == CAUSE_BLOCK_IO;
	char share[TEXT_MAX];

	if (v->other_share < OTHER_TOLD)
		return;
	buf_printf(b, ", plus %s while ", text_format_percent(share, v->other_share));
	if (v->lead->culprit_pid == inc->pid)
		buf_puts(b, is_cpu ? "its own threads used the CPU"
				   : "it waited for its own disk requests");
	else
		buf_printf(b, "%s %s", v->lead->culprit[0] ? v->lead->culprit : "it",
			is_cpu ? "used the CPU" : "kept the disk busy");
}

/* ", and burner (pid 9001) for 45 %" */
static void put_second(struct buf *b, const struct verdict *v, const struct incident *inc)
{
	char share[TEXT_MAX], who[64];

	if (!v->second)
		return;
	culprit_text(who, sizeof(who), v->second);
	buf_printf(b, ", and %s for %s", v->second->culprit_pid == inc->pid ? "itself" : who,
		text_format_percent(share, v->second_share));
}

static const char *confidence_word(double c)
{
	return c >= 0.75 ? "high" : c >= 0.4 ? "fair" : "low";
}

static void put_causes(struct buf *b, const struct incident *inc)
{
	char dur[TEXT_MAX], who[64], n[TEXT_PLURAL_MAX];
	const char *comma = "";
	uint64_t others_ns = 0;
	int told = 0, others = 0;

	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];

		if (c->cause == CAUSE_UNEXPLAINED)
			continue;
		if (told++ >= CAUSES_TOLD) {
			others_ns += c->ns;
			others++;
			continue;
		}
		buf_printf(b, "%s%s %s", comma, cause_words(c->cause),
			text_format_duration(dur, c->ns));
		if (c->culprit_pid) {
			who_text(who, sizeof(who), c->culprit, c->culprit_pid);
			buf_printf(b, " by %s", c->culprit_pid == inc->pid ? "itself" : who);
		}
		comma = ", ";
	}
	if (others)
		buf_printf(b, ", %s by %s", text_format_duration(dur, others_ns),
			text_format_plural(n, (uint64_t)others, "others"));
}

static void put_completeness(struct buf *b, const struct verdict *v, const struct incident *inc)
{
	char lost[TEXT_MAX], hits[TEXT_PLURAL_MAX];

	if (!v->has_books)
		buf_puts(b, " Event losses are unknown for this recording.");
	else if (v->lost)
		buf_printf(b, " %s of %s lost.", text_format_count(lost, v->lost),
			text_format_plural(hits, v->hits, "events"));
	else
		buf_printf(b, " None of %s lost.", text_format_plural(hits, v->hits, "events"));
	if (v->has_books && v->lost && inc->completeness < SOURCE_LOST)
		buf_printf(b, " Of one source that this rests on %s are missing.",
			text_format_percent(lost, 1 - inc->completeness));
	if (v->unseen)
		buf_printf(b, " First calls of %s were not traced.",
			text_format_plural(hits, v->unseen, "processes"));
	if (!v->from_aggregates)
		buf_puts(b, " The baseline is the median of stored rows only and may be too high.");
}

static void put_unexplained(struct buf *b, const struct part_list *l, const struct slow_episode *s,
	const struct detection *d, const struct incident *inc)
{
	uint64_t in_calls = 0;
	char share[TEXT_MAX];

	for (size_t i = s->first; i < s->first + s->count; i++)
		in_calls += (uint64_t)(d->slow[i].end_ns - d->slow[i].start_ns);
	if (!l->has_switches)
		buf_puts(b,
			" No context switches of these threads were recorded: record with host probes enabled.");
	else if (in_calls && l->asleep_ns > in_calls / 2)
		buf_printf(b,
			" The threads slept for %s of the slow calls, as in a wait for the GPU or a lock.",
			text_format_percent(share, (double)l->asleep_ns / (double)in_calls));
	else
		buf_puts(b, " The threads were mostly on a CPU or in waits that are not traced.");
}

static void write_explanation(struct buf *b, const struct detection *d,
	const struct slow_episode *s, const struct part_list *l, const struct verdict *v,
	struct incident *inc)
{
	char n[TEXT_MAX], of[TEXT_PLURAL_MAX], slow[TEXT_MAX], base[TEXT_MAX], excess[TEXT_MAX];
	char part[TEXT_MAX], span[TEXT_MAX], op[32], who[64];

	who_text(who, sizeof(who), inc->comm, inc->pid);
	buf_printf(b,
		"%s of %s of %s by %s took %s (median) instead of %s: %s of extra time, %s of "
		"the %s observed.",
		text_format_count(n, inc->slow_calls), text_format_plural(of, inc->calls, "calls"),
		wire_op_name(inc->source, inc->op, op), who,
		text_format_duration(slow, inc->slow_p50_ns),
		text_format_duration(base, inc->baseline_ns),
		text_format_duration(excess, inc->excess_ns),
		text_format_percent(part, (double)inc->excess_ns / (double)v->span_ns),
		text_format_duration(span, v->span_ns));
	if (inc->explained > 0) {
		buf_printf(b,
			" %s of the extra time overlaps recorded delays of the calling threads (",
			text_format_percent(part, inc->explained));
		put_causes(b, inc);
		buf_puts(b,
			inc->explained < 0.995 ? "); the rest overlaps nothing recorded." : ").");
	} else {
		buf_puts(b, " No recorded delay overlaps the extra time.");
	}
	if (v->lead->cause == CAUSE_UNEXPLAINED)
		put_unexplained(b, l, s, d, inc);
	buf_printf(
		b, " Confidence is %s (%.2f).", confidence_word(inc->confidence), inc->confidence);
	put_completeness(b, v, inc);
}

void incident_text_blame(
	struct buf *b, const struct verdict *v, const char *lost, struct incident *inc)
{
	const struct rule *rule = rule_find(v->lead->cause, blame_of(v, inc));
	_cleanup_buf_ struct buf text = BUF_INIT(SENTENCE_MAX);
	char culprit[64], culprit_pid[16], victim[64], victim_pid[16], share[TEXT_MAX];
	char traffic[TEXT_MAX];
	struct rule_words w = {
		culprit, v->lead->culprit, culprit_pid, victim, victim_pid, share, traffic, lost};

	culprit_text(culprit, sizeof(culprit), v->lead);
	who_text(victim, sizeof(victim), inc->comm, inc->pid);
	snprintf(culprit_pid, sizeof(culprit_pid), "%u", v->lead->culprit_pid);
	snprintf(victim_pid, sizeof(victim_pid), "%u", inc->pid);
	text_format_percent(share, v->is_crowd ? v->layer_share : v->lead_share);
	text_format_percent(traffic, v->lead->culprit_share);

	rule_text(b, rule->summary, &w);
	put_other_layer(b, v, inc);
	put_second(b, v, inc);
	rule_text(&text, rule->root_cause, &w);
	copy_text(inc->root_cause, sizeof(inc->root_cause), buf_str(&text));
	for (inc->fix_count = 0; rule->fixes[inc->fix_count]; inc->fix_count++) {
		buf_clear(&text);
		rule_text(&text, rule->fixes[inc->fix_count], &w);
		copy_text(inc->fixes[inc->fix_count], sizeof(inc->fixes[0]), buf_str(&text));
	}
	b->err = b->err ? b->err : text.err;
}

static void write_words(struct buf *b, const struct verdict *v, struct incident *inc)
{
	char base[TEXT_MAX], slow[TEXT_MAX], ratio[TEXT_MAX], op[32];

	buf_printf(b, "%s %sx slower (p50 %s -> %s): ", wire_op_name(inc->source, inc->op, op),
		text_format_ratio(ratio, inc->tail_ratio),
		text_format_duration(base, inc->baseline_ns),
		text_format_duration(slow, inc->slow_p50_ns));
	incident_text_blame(b, v, "the extra time", inc);
	copy_text(inc->summary, sizeof(inc->summary), buf_str(b));
	buf_clear(b);
}

int incident_text_put(const struct detection *d, const struct slow_episode *s,
	const struct part_list *l, const struct verdict *v, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SENTENCE_MAX);

	write_words(&b, v, inc);
	write_explanation(&b, d, s, l, v, inc);
	copy_text(inc->explanation, sizeof(inc->explanation), buf_str(&b));
	return b.err;
}
