/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what agents say about their own ranks: the newest of each process, until it is old. */
#include "cluster/detect/fleet_private.h"

#include "base/clock.h"
#include "base/hash.h"

#define FRESH_NS (120 * NS_PER_S)

struct report {
	struct push_report r;
	int64_t received_ns, explained_ns;
};

static uint64_t key_of(const char *node, uint32_t pid, int32_t rank)
{
	uint64_t who = pid ? pid : (1ULL << 32) + (uint32_t)rank;

	return hash_name(node, strlen(node)) ^ hash_number(who);
}

/* What a rank is doing is told every second, why it is late when that is known: the one does not replace the other. */
static void take_over(struct report *kept, const struct push_report *r, int64_t now_ns)
{
	kept->received_ns = now_ns;
	if (r->cause[0] || now_ns - kept->explained_ns >= (int64_t)FRESH_NS) {
		kept->r = *r;
		kept->explained_ns = now_ns;
		return;
	}
	kept->r.sent_ns = r->sent_ns;
	kept->r.doing = r->doing;
	memcpy(kept->r.doing_where, r->doing_where, sizeof(r->doing_where));
}

static int put(struct cluster *c, uint64_t key, const struct push_report *r, int64_t now_ns)
{
	struct report *kept = idmap_get(&c->reports, key);
	int err;

	if (kept) {
		take_over(kept, r, now_ns);
		return 0;
	}
	kept = malloc(sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	*kept = (struct report){.r = *r, .received_ns = now_ns, .explained_ns = now_ns};
	err = idmap_put(&c->reports, key, kept);
	if (err < 0)
		free(kept);
	return err;
}

int report_keep(struct cluster *c, const struct push_report *r, int64_t now_ns)
{
	int err = put(c, key_of(r->who.node, r->pid, r->world_rank), r, now_ns);

	if (err == 0 && r->pid && r->world_rank >= 0)
		err = put(c, key_of(r->who.node, 0, r->world_rank), r, now_ns);
	return err;
}

const struct push_report *report_find(
	const struct cluster *c, const char *node, uint32_t pid, int32_t rank, int64_t now_ns)
{
	const struct report *kept = idmap_get(&c->reports, key_of(node, pid, rank));

	if (!kept && pid && rank >= 0)
		kept = idmap_get(&c->reports, key_of(node, 0, rank));
	return kept && now_ns - kept->received_ns < (int64_t)FRESH_NS ? &kept->r : NULL;
}

void report_expire(struct cluster *c, int64_t now_ns)
{
	size_t cursor = 0;

	for (struct report *r; (r = idmap_next(&c->reports, &cursor, NULL));)
		if (now_ns - r->received_ns >= (int64_t)(2 * FRESH_NS))
			free(idmap_take(&c->reports, &cursor));
}

void reports_done(struct cluster *c)
{
	size_t cursor = 0;

	for (struct report *r; (r = idmap_next(&c->reports, &cursor, NULL));)
		free(r);
	idmap_done(&c->reports);
}
