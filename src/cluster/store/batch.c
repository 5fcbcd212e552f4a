/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - see batch.h. Both ways check: what is written is in order, what is read may be damaged. */
#include "cluster/store/batch.h"

#include <assert.h>
#include <math.h>

#include "base/text.h"

#define HEAD 5 /* table and bits */

void batch_row(struct batch *b, enum store_table t)
{
	uint8_t head[HEAD] = {(uint8_t)t};

	b->row = b->bytes.len;
	b->table = t;
	b->column = 0;
	b->row_count++;
	buf_append(&b->bytes, head, sizeof(head));
}

static void put(struct batch *b, int column, const void *data, size_t len)
{
	uint32_t bits;

	assert(column >= b->column && column < store_tables[b->table].column_count);
	b->column = column + 1;
	buf_append(&b->bytes, data, len);
	if (b->bytes.err)
		return;
	memcpy(&bits, b->bytes.data + b->row + 1, sizeof(bits));
	bits |= UINT32_C(1) << column;
	memcpy(b->bytes.data + b->row + 1, &bits, sizeof(bits));
}

void batch_int(struct batch *b, int column, int64_t v)
{
	put(b, column, &v, sizeof(v));
}

void batch_real(struct batch *b, int column, double v)
{
	if (isfinite(v))
		put(b, column, &v, sizeof(v));
}

void batch_text(struct batch *b, int column, const char *text, size_t len)
{
	const struct table_desc *d = &store_tables[b->table];
	uint32_t n = (uint32_t)(text ? text_cut(text, len, BATCH_TEXT_MAX) : 0);

	if (n == 0 && column != d->cluster && column != d->node)
		return;
	put(b, column, &n, sizeof(n));
	buf_append(&b->bytes, text ? text : "", n);
}

void batch_text_of(struct batch *b, int column, const char *text)
{
	batch_text(b, column, text, text ? strlen(text) : 0);
}

/* ---- reading ---- */

static bool take(struct batch_reader *r, void *ret, size_t len)
{
	if (r->len < len)
		return false;
	memcpy(ret, r->data, len);
	r->data += len;
	r->len -= len;
	return true;
}

static bool take_cell(struct batch_reader *r, enum column_type type, struct sql_value *ret)
{
	uint32_t len;

	switch (type) {
	case COLUMN_TIME:
	case COLUMN_INT: ret->type = SQL_INT; return take(r, &ret->i, sizeof(ret->i));
	case COLUMN_REAL: ret->type = SQL_REAL; return take(r, &ret->d, sizeof(ret->d));
	case COLUMN_TEXT: break;
	}
	if (!take(r, &len, sizeof(len)) || len > r->len || len > BATCH_TEXT_MAX)
		return false;
	*ret = (struct sql_value){.type = SQL_TEXT, .p = r->data, .len = len};
	r->data += len;
	r->len -= len;
	return true;
}

int batch_next(struct batch_reader *r, struct batch_row *ret)
{
	uint8_t head[HEAD];
	const struct table_desc *d;
	uint32_t bits;

	if (r->len == 0)
		return 0;
	if (!take(r, head, sizeof(head)) || head[0] >= TABLE_COUNT)
		return -EBADMSG;
	memcpy(&bits, head + 1, sizeof(bits));
	*ret = (struct batch_row){.table = head[0]};
	d = &store_tables[ret->table];
	if (bits >> d->column_count)
		return -EBADMSG;
	for (int i = 0; i < d->column_count; i++)
		if (bits >> i & 1 && !take_cell(r, d->columns[i].type, &ret->cells[i]))
			return -EBADMSG;
	return ret->cells[d->cluster].type == SQL_TEXT && ret->cells[d->node].type == SQL_TEXT
		       ? 1
		       : -EBADMSG;
}

#define COLUMN(NAME, name, type, help) {name, COLUMN_##type, help},
static const struct table_column events[] = {EVENTS_COLUMNS(COLUMN)};
/* The forms of an incident's fields. */
#define COLUMN_U32      COLUMN_INT
#define COLUMN_U64      COLUMN_INT
#define COLUMN_I32      COLUMN_INT
#define COLUMN_SHARE    COLUMN_REAL
#define COLUMN_SEVERITY COLUMN_TEXT
#define COLUMN_PROBLEM  COLUMN_TEXT
#define ADDED(NAME, form, member, column, key, renew, show, absent, unit, meaning)                 \
	{column, COLUMN_##form, meaning},
static const struct table_column chains[] = {CHAINS_COLUMNS(COLUMN) INCIDENT_ADDED(ADDED)};
static const struct table_column metrics[] = {METRICS_COLUMNS(COLUMN)};
static const struct table_column collectives[] = {COLLECTIVES_COLUMNS(COLUMN)};
#define EPISODE_U32                                    INT
#define EPISODE_U64                                    INT
#define EPISODE_TIME                                   TIME
#define EPISODE_REAL                                   REAL
#define EPISODE_TEXT                                   TEXT
#define EPISODE_OP                                     TEXT
#define EPISODE_COMM                                   TEXT
#define EPISODE_COLUMN(NAME, form, member, name, help) COLUMN_OF(NAME, name, EPISODE_##form, help)
#define COLUMN_OF(NAME, name, type, help)              COLUMN(NAME, name, type, help)
static const struct table_column incidents[] = {
	INCIDENTS_COLUMNS(COLUMN) EPISODE_FIELDS(EPISODE_COLUMN)};
static const struct table_column steps[] = {STEPS_COLUMNS(COLUMN)};

#define TABLE(name, columns, PREFIX)                                                               \
	{                                                                                          \
		name, columns, ARRAY_SIZE(columns), PREFIX##_TS, PREFIX##_CLUSTER, PREFIX##_NODE   \
	}

STATIC_ASSERT(ARRAY_SIZE(incidents) <= TABLE_COLUMNS_MAX);
STATIC_ASSERT(ARRAY_SIZE(chains) <= TABLE_COLUMNS_MAX && ARRAY_SIZE(events) <= TABLE_COLUMNS_MAX);

const struct table_desc store_tables[TABLE_COUNT] = {
	[TABLE_EVENTS] = TABLE("events", events, EVENTS),
	[TABLE_CHAINS] = TABLE("causal_chains", chains, CHAINS),
	[TABLE_METRICS] = TABLE("node_metrics", metrics, METRICS),
	[TABLE_COLLECTIVES] = TABLE("collectives", collectives, COLLECTIVES),
	[TABLE_INCIDENTS] = TABLE("incidents", incidents, INCIDENTS),
	[TABLE_STEPS] = TABLE("steps", steps, STEPS),
};
