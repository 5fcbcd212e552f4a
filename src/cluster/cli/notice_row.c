/* SPDX-License-Identifier: Apache-2.0 */
/* notice_row.c - see notice_row.h. An episode has rows for its beginning, each change, now and then while it
 * lasts, and its end, all with its id: the newest is what is known. */
#include "cluster/cli/notice_row.h"

#include "base/clock.h"

#define EVERY_S 60

/* Of the time since it began, the share that the job lost. */
static int64_t lost_ns(const struct fleet_episode *e, int64_t now_ns)
{
	int64_t until = e->until_ns ? e->until_ns : now_ns;

	return until > e->since_ns ? (int64_t)((double)(until - e->since_ns) * e->share) : 0;
}

/* INCIDENTS_PID is the first of those that model/episode_field.h lists. */
static void put_fields(struct batch *b, const struct fleet_episode *e)
{
	for (int i = 0; fleet_fields[i].name; i++) {
		struct fleet_value v;

		fleet_field_get(&fleet_fields[i], e, &v);
		if (!v.known)
			continue;
		if (v.text)
			batch_text_of(b, INCIDENTS_PID + i, v.text);
		else if (v.is_real)
			batch_real(b, INCIDENTS_PID + i, v.d);
		else
			batch_int(b, INCIDENTS_PID + i, v.i);
	}
}

void notice_row(struct batch *b, const struct fleet_notice *n, int64_t now_ns)
{
	const struct fleet_episode *e = &n->episode;

	batch_row(b, TABLE_INCIDENTS);
	batch_int(b, INCIDENTS_TS, now_ns);
	batch_int(b, INCIDENTS_RECEIVED, now_ns);
	batch_text_of(b, INCIDENTS_CLUSTER, e->cluster);
	batch_text_of(b, INCIDENTS_NODE, e->node);
	batch_text_of(b, INCIDENTS_ID, e->event);
	batch_text_of(b, INCIDENTS_SOURCE, "fleet");
	batch_text_of(b, INCIDENTS_KIND, fleet_problem_id(e->problem));
	if (e->rank >= 0)
		batch_int(b, INCIDENTS_RANK, e->rank);
	batch_text_of(b, INCIDENTS_SUMMARY, e->text);
	batch_text_of(b, INCIDENTS_CAUSE, e->cause);
	batch_text_of(b, INCIDENTS_FIX, e->fix);
	batch_real(b, INCIDENTS_CONFIDENCE, e->confidence);
	batch_int(b, INCIDENTS_LOST, lost_ns(e, now_ns));
	if (e->cost.priced)
		batch_real(b, INCIDENTS_COST, e->cost.total);
	batch_int(b, INCIDENTS_RESOLVED, n->kind == FLEET_NOTICE_ENDED);
	put_fields(b, e);
}

/* How many rows it has had @age_ns after its beginning. */
static int64_t rows_by(int64_t age_ns)
{
	int64_t s = age_ns / (int64_t)NS_PER_S, n = s / EVERY_S;

	for (int64_t power = 1; power < EVERY_S && power <= s; power *= 2)
		n++;
	return age_ns < 0 ? 0 : n;
}

bool notice_row_is_due(const struct fleet_episode *e, int64_t before_ns, int64_t now_ns)
{
	return rows_by(now_ns - e->since_ns) > rows_by(before_ns - e->since_ns);
}
