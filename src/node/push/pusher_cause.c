/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_cause.c - why a rank of this node is late: the fleet names it in its replies, and the engine is asked about the
 * last seconds of the recording, by a thread. Nobody is asked about who is not late, so that an agent costs nothing
 * more while all is well.
 *
 * In its first late steps a rank may not be understood yet, or be late for another reason than later: it is looked at again
 * soon, then more and more seldom. */

#include "answer/incidents.h"
#include "base/log.h"
#include "model/problem.h"
#include "net/loop.h"
#include "node/push/pusher_private.h"

#define LATE_MAX  16
#define BACK_NS   (10 * (int64_t)NS_PER_S) /* ordinary steps to compare with, and late ones */
#define AGAIN_NS  NS_PER_S
#define KNOWN_NS  (10 * NS_PER_S) /* a cause that is known is looked at again by then */
#define REST      4               /* times what it took */
#define DOUBLINGS 5u
#define SURE      0.5             /* as the fleet has it (cluster/detect/slower.c) */
#define MORE_WORK "More GPU work" /* what is said of a rank whose GPU is late */

struct pusher_causes {
	struct pusher *pusher;
	struct aside *aside;
	bool under_way;
	struct cause_looks looks; /* at these ranks */
	/* The thread's while it is under way. */
	uint32_t pids[LATE_MAX];
	size_t count;
	struct push_report found[LATE_MAX];
	int found_count; /* or a negative errno */
	uint64_t took_ns;
};

const char *pusher_cause_line(const struct incident *i)
{
	bool is_link = i->unit && !strcmp(i->unit, INCIDENT_UNIT_LINK);

	/* Who shares a rank's GPU may share those of the others as well, which its node cannot see. */
	if (i->severity < SEVERITY_MEDIUM || i->problem == PROBLEM_NCCL_HANG ||
		i->problem == PROBLEM_GPU_SHARING)
		return "";
	if (i->problem != PROBLEM_STRAGGLER)
		return i->culprit_rank >= 0 ? PUSH_LINE_LATE : "";
	/* Of ranks that come late to collectives the fleet knows more. */
	if (!i->unit || (!is_link && strcmp(i->unit, INCIDENT_UNIT_LOAD) != 0))
		return "";
	return i->culprit_rank >= 0 ? PUSH_LINE_LATE : is_link ? PUSH_LINE_LINK : PUSH_LINE_LOAD;
}

/* Of a rank that keeps others waiting the cause comes first, if there is one. */
static bool is_cause(const struct incident *i, uint32_t pid)
{
	return i->pid == pid && i->problem != PROBLEM_COLD_START &&
	       i->problem != PROBLEM_NCCL_HANG && i->excess_ns &&
	       !(i->problem == PROBLEM_STRAGGLER && !i->place[0] && !pusher_cause_line(i)[0]) &&
	       strncmp(i->summary, "rank ", 5) != 0;
}

/* What it is, without the figures, which are of this node alone: "Host code in load (train.py:41)". */
static void put_cause(const struct incident *i, struct push_report *r)
{
	const char *more = strstr(i->summary, MORE_WORK);
	const char *from = pusher_cause_line(i)[0] && more ? more : i->summary,
		   *end = strstr(from, ": ");
	int len = end ? (int)(end - from) : (int)strlen(from);

	*r = (struct push_report){.pid = i->pid,
		.step_ns = i->unit_ns ? i->unit_ns : i->slow_p50_ns,
		.ordinary_ns = i->unit_ns ? i->fixed_ns : i->baseline_ns,
		/* What is LOW is a guess: a better one is looked for. */
		.confidence =
			i->severity > SEVERITY_LOW ? i->confidence : MIN(i->confidence, SURE / 2)};
	snprintf(r->cause, sizeof(r->cause), "%.*s", len, from);
	snprintf(r->fix, sizeof(r->fix), "%s", i->fix_count ? i->fixes[0] : "");
	snprintf(r->place, sizeof(r->place), "%s", i->place);
	snprintf(r->incident, sizeof(r->incident), "%s", i->id);
}

/* What it says of the whole job comes before what it says of this process: of a rank whose GPU is late its other
 * incidents are about waits that all ranks have. */
static bool find_cause(const struct incidents_answer *a, uint32_t pid, struct push_report *ret)
{
	const struct incident *cause = NULL;
	const char *line = "";

	for (size_t k = 0; k < a->count; k++) {
		const struct incident *i = a->rows[k].incident;

		if (!is_cause(i, pid))
			continue;
		if (!cause || (!strcmp(pusher_cause_line(i), PUSH_LINE_LATE) &&
				      !pusher_cause_line(cause)[0]))
			cause = i;
		if (!line[0])
			line = pusher_cause_line(i);
	}
	if (cause)
		put_cause(cause, ret);
	if (cause)
		snprintf(ret->line, sizeof(ret->line), "%s", line);
	return cause;
}

int pusher_cause_find(const char *db, const uint32_t *pids, size_t count, int64_t now_ns,
	struct push_report *found, struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	/* Of all processes: without its peers and helpers a rank cannot be told from whom it waits for. */
	const struct scope s = {.from_ns = now_ns - BACK_NS, .to_ns = now_ns};
	const struct nodedb_filter filter = incidents_filter(&s, false);
	int n = 0, r = incidents_load(db, &filter, false, &a, reterr);

	for (size_t p = 0; r == 0 && p < count; p++)
		n += find_cause(&a, pids[p], &found[n]);
	return r < 0 ? r : n;
}

bool pusher_cause_is_whole(const struct push_report *found, int found_count, size_t asked)
{
	size_t sure = 0;

	for (int i = 0; i < found_count; i++) {
		sure += found[i].confidence >= SURE;
		if (found[i].line[0] && found[i].confidence >= SURE)
			return true;
	}
	return sure > 0 && sure == asked;
}

void pusher_cause_looked(struct cause_looks *l, bool is_whole, uint64_t took_ns, uint64_t now_ns)
{
	uint64_t wait;

	if (l->is_whole && !is_whole)
		l->count = 0; /* what was known is so no more */
	l->is_whole = is_whole;
	wait = AGAIN_NS << MIN(l->count++, DOUBLINGS);
	if (is_whole)
		wait = MIN(wait, KNOWN_NS);
	l->rest_ns = now_ns + REST * took_ns;
	l->due_ns = MAX(l->rest_ns, now_ns + wait);
}

bool pusher_cause_is_due(struct cause_looks *l, bool is_new, uint64_t now_ns)
{
	if (now_ns < l->rest_ns || (!is_new && now_ns < l->due_ns))
		return false;
	if (is_new)
		*l = (struct cause_looks){0};
	return true;
}

static void find(struct aside_work *w _unused_, void *arg)
{
	struct pusher_causes *c = arg;
	uint64_t begun = mono_now().ns;

	c->found_count = pusher_cause_find(
		c->pusher->settings->db, c->pids, c->count, wall_now().ns, c->found, NULL);
	c->took_ns = mono_now().ns - begun;
}

static void on_found(void *arg, bool canceled)
{
	struct pusher_causes *c = arg;

	c->under_way = false;
	if (canceled)
		return;
	for (int i = 0; i < c->found_count; i++) {
		struct push_report r;

		pusher_report_begin(c->pusher, c->found[i].pid, &r);
		c->found[i].who = r.who;
		c->found[i].sent_ns = r.sent_ns;
		c->found[i].world_rank = r.world_rank;
		pusher_send_report(c->pusher, &c->found[i]);
	}
	pusher_cause_looked(&c->looks, pusher_cause_is_whole(c->found, c->found_count, c->count),
		c->took_ns, mono_now().ns);
}

static size_t parse(const char *text, uint32_t pids[LATE_MAX])
{
	size_t n = 0;
	char *end;

	while (text && *text && n < LATE_MAX) {
		unsigned long pid = strtoul(text, &end, 10);

		if (end == text || (*end && *end != ',') || !pid || pid > INT32_MAX)
			return 0;
		pids[n++] = (uint32_t)pid;
		text = *end ? end + 1 : end;
	}
	return n;
}

static struct pusher_causes *causes_of(struct pusher *p)
{
	struct pusher_causes *c = p->causes;

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (c && aside_new(p->loop, 1, &c->aside) < 0)
		free(TAKE(c));
	if (c)
		c->pusher = p;
	return p->causes = c;
}

void pusher_cause_ask(struct pusher *p, const char *pids)
{
	uint32_t late[LATE_MAX];
	size_t n = p->settings->stub || p->settings->replay || p->stopping ? 0 : parse(pids, late);
	struct pusher_causes *c = n ? causes_of(p) : p->causes;
	bool is_new; /* another question: of all ranks of a slower job, or of who is late */

	if (!c || c->under_way)
		return;
	is_new = n != c->count;
	for (size_t i = 0; i < n; i++)
		is_new |= !EXISTS(k, c->count, c->pids[k] == late[i]);
	if (n && !pusher_cause_is_due(&c->looks, is_new, mono_now().ns))
		return;
	memcpy(c->pids, late, n * sizeof(*late));
	c->count = n; /* 0: who is late after this is late anew */
	if (!n)
		return;
	c->under_way = aside_push(c->aside, 0, find, on_found, c) == 0;
}

void pusher_cause_close(struct pusher *p)
{
	if (!p->causes)
		return;
	aside_free(p->causes->aside);
	free(TAKE(p->causes));
}
