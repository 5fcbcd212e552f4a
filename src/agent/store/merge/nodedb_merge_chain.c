/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_chain.c - stored verdicts: incidents, and the published causal_chains.
 *
 * Ids begin with the node; those of old files get it. What has the id of another verdict (another
 * recording of the node) is called id#2 and so on. The same incident seen later replaces itself: it
 * has more calls. */
#include <errno.h>
#include <stdio.h>

#include "agent/store/merge/nodedb_merge_private.h"

#define TEXT_MOST  4096
#define JSON_MOST  (64 << 10)
#define ID_MOST    384
#define NAMES_MOST 64 /* of one id */

#define TEXT(name)                                                                                 \
	{                                                                                          \
		name, "''", MERGE_TEXT, TEXT_MOST, false                                           \
	}
#define JSON(name)                                                                                 \
	{                                                                                          \
		name, "''", MERGE_JSON, JSON_MOST, false                                           \
	}
#define COUNT(name)                                                                                \
	{                                                                                          \
		name, "0", MERGE_COUNT, 0, false                                                   \
	}
#define REAL(name)                                                                                 \
	{                                                                                          \
		name, "0", MERGE_REAL, 0, false                                                    \
	}
#define TIME(name)                                                                                 \
	{                                                                                          \
		name, "0", MERGE_TIME_OR_0, 0, false                                               \
	}

enum { COL_NODE, COL_ID, COL_DETECTED, COL_SAME }; /* what both tables begin with */

static const struct merge_column chains[] = {
	[COL_NODE] = MERGE_NODE_COLUMN,
	[COL_ID] = {"id", NULL, MERGE_TEXT, ID_MOST - MERGE_NODE_LEN, false},
	[COL_DETECTED] = TIME("detected_at"),
	[COL_SAME] = TEXT("severity"),
	TEXT("summary"),
	TEXT("root_cause"),
	TEXT("explanation"),
	JSON("recommendations"),
	{"cuda_op", "''", MERGE_TEXT, 256, false},
	COUNT("cuda_p99_us"),
	COUNT("cuda_p50_us"),
	REAL("tail_ratio"),
	JSON("timeline"),
};

static const struct merge_column incidents[] = {
	[COL_NODE] = MERGE_NODE_COLUMN,
	[COL_ID] = {"id", NULL, MERGE_TEXT, ID_MOST - MERGE_NODE_LEN, false},
	[COL_DETECTED] = TIME("detected_at"),
	[COL_SAME] = TIME("first_seen"),
	TIME("last_seen"),
	TIME("resolved_at"),
	COUNT("count"),
	COUNT("calls"),
	TEXT("severity"),
	{"pid", "0", MERGE_COUNT, UINT32_MAX, false},
	{"comm", "''", MERGE_TEXT, COMM_LEN - 1, false},
	COUNT("source"),
	COUNT("op"),
	COUNT("baseline_ns"),
	COUNT("p50_ns"),
	COUNT("p99_ns"),
	COUNT("slow_p50_ns"),
	REAL("tail_ratio"),
	COUNT("excess_ns"),
	REAL("explained"),
	REAL("confidence"),
	REAL("completeness"),
	TEXT("summary"),
	TEXT("root_cause"),
	JSON("causes"),
	JSON("evidence"),
	TEXT("evidence_sql"),
};

struct copier {
	struct merge *m;
	const struct merge_column *columns;
	size_t count;
	sql_stmt *put, *find, *later;
	struct merge_tally *tally;
};

static bool has_prefix(const struct sql_value *id, const struct merge_node *n)
{
	const char *text = id->p;

	return id->len > n->len && !memcmp(text, n->name, n->len) && text[n->len] == ':';
}

static int put_verdict(struct copier *c, struct sql_value *v, const struct merge_node *node,
	struct errinfo *reterr)
{
	bool named = !node->len || has_prefix(&v[COL_ID], node);
	char base[ID_MOST], id[ID_MOST + 8];
	int r;

	snprintf(base, sizeof(base), "%s%s%.*s", named ? "" : node->name, named ? "" : ":",
		(int)v[COL_ID].len, (const char *)v[COL_ID].p);
	for (int n = 1; n <= NAMES_MOST; n++) {
		snprintf(id, sizeof(id), n > 1 ? "%s#%d" : "%s", base, n);
		v[COL_ID] = SQL_S(id);
		r = sql_put(c->put, v, c->count, reterr);
		if (r < 0)
			return r;
		if (sql_changes(c->m->out)) {
			c->tally->copied++;
			return 0;
		}
		/* The same one began, or was found, at the same moment. */
		r = SQL_BIND(c->find, reterr, v[COL_ID], v[COL_DETECTED], v[COL_SAME]);
		if (r == 0)
			r = sql_step(c->find, reterr);
		if (r > 0) {
			c->tally->duplicates++;
			sql_reset(c->find);
			return c->later ? sql_put(c->later, v, c->count, reterr) : 0;
		}
		if (r < 0)
			return r;
	}
	c->m->source.report.skipped++;
	return 0;
}

static int copy(struct copier *c, const char *table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL, *put = NULL;
	struct sql_value values[MERGE_COLUMNS_MAX];
	struct merge_node *node;
	int r = merge_select(c->m, table, c->columns, c->count, &get, reterr);

	if (r < 0 || !get)
		return r;
	r = merge_insert(c->m, table, c->columns, c->count, "", 0, &put, reterr);
	c->put = put;
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(c->m, c->columns, c->count, get, values, &node, reterr);
		if (r > 0)
			r = put_verdict(c, values, node, reterr);
	}
	return r;
}

int merge_chains(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *find = NULL;
	struct copier c = {.m = m,
		.columns = chains,
		.count = ARRAY_SIZE(chains),
		.tally = &m->source.report.chains};
	int r = sql_prepare(m->out,
		"SELECT 1 FROM causal_chains WHERE id = ?1 AND detected_at = ?2 AND severity = ?3",
		&find, reterr);

	c.find = find;
	return r < 0 ? r : copy(&c, "causal_chains", reterr);
}

int merge_incidents(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *find = NULL, *later = NULL;
	struct copier c = {.m = m,
		.columns = incidents,
		.count = ARRAY_SIZE(incidents),
		.tally = &m->source.report.others};
	int r = sql_prepare(m->out,
		"SELECT 1 FROM incidents WHERE id = ?1 AND (detected_at = ?2 OR first_seen = ?3)",
		&find, reterr);

	if (r == 0)
		r = sql_prepare(m->out,
			"UPDATE incidents SET last_seen = ?5, resolved_at = ?6, count = ?7,"
			" calls = ?8, severity = ?9, baseline_ns = ?14, p50_ns = ?15, p99_ns = ?16,"
			" slow_p50_ns = ?17, tail_ratio = ?18, excess_ns = ?19, explained = ?20,"
			" confidence = ?21, completeness = ?22, summary = ?23, root_cause = ?24,"
			" causes = ?25, evidence = ?26, evidence_sql = ?27"
			" WHERE id = ?2 AND calls < ?8",
			&later, reterr);
	c.find = find;
	c.later = later;
	return r < 0 ? r : copy(&c, "incidents", reterr);
}
