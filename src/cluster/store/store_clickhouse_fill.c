/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse_fill.c - rows into ClickHouse, each once.
 *
 * 1. A row has a number, journal_seq: its entry's position and its place in it. The numbers of rows that
 *    go to one partition of a table on a shard ascend, within an insert and from one to the next, and
 *    the next is not begun before the last has its answer.
 * 2. A server adds the rows of a partition in the order in which they come, whole inserts or, if it
 *    breaks off, the first part of one.
 * 3. So a partition holds all rows up to its greatest number, and none beyond. After a failure, and
 *    when the store is opened, these numbers are asked for, and rows up to them are left out.
 *
 * 4. What was sent and given up may still be on its way, or run. So rows go in through a gate that is
 *    closed before the numbers are asked for: closing waits for the inserts that use it, and those that
 *    come later fail. It also shuts out another process that fills the same store.
 *
 * Nothing of that depends on how entries were gathered into commits, nor on the servers' own
 * deduplication, which old ones do not have.
 *
 * A server that does not sync may lose in a power cut what it has acknowledged; its kernel writes within
 * some 35 s. What was committed settle_ns ago is therefore called durable, and this is written down on
 * every shard: after a restart the journal is read from there. */

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "cluster/store/store_clickhouse_private.h"

#define INSERT_BYTES (16u << 20) /* rows of a table on a shard that go at once */
#define REACHED_MAX  65536       /* partitions */

static struct clickhouse_slot *slot_of(struct store_clickhouse *s, size_t shard, int table)
{
	return &s->slots[shard * TABLE_COUNT + (size_t)table];
}

/* ---- what the shards have ---- */

static int keep_reached(struct clickhouse_slot *slot, const struct sql_table *t)
{
	int r = ARRAY_RESERVE(slot->reached, slot->reached_room, t->row_count, REACHED_MAX);

	if (r < 0)
		return r;
	slot->reached_count = t->row_count;
	for (size_t i = 0; i < t->row_count; i++)
		slot->reached[i] = (struct clickhouse_reached){
			(int)sql_table_cell(t, i, 0)->i, (uint64_t)sql_table_cell(t, i, 1)->i};
	return 0;
}

static int learn_table(struct store_clickhouse *s, int table, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	struct sql_table t[CLICKHOUSE_SHARDS_MAX] = {{0}};
	int r;

	buf_printf(&q, "SELECT journal_day, max(journal_seq) FROM %s.%s_local GROUP BY journal_day",
		s->names.database, store_tables[table].name);
	r = clickhouse_store_run_all(s, buf_str(&q), t, reterr);
	for (size_t shard = 0; shard < clickhouse_store_shards(s); shard++) {
		r = r ?: keep_reached(slot_of(s, shard, table), &t[shard]);
		sql_table_done(&t[shard]);
	}
	return r;
}

/* The gates first, so that nothing waits at one whose pass is gone: its rows would go nowhere. */
static int close_gates(struct store_clickhouse *s, size_t shard, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r;

	buf_puts(&q, "SELECT name FROM system.tables WHERE (match(name, '_gate_[0-9]+$') OR "
		     "match(name, '_pass_[0-9]+$')) AND database = ");
	store_quote(&q, s->names.database);
	buf_puts(&q, " ORDER BY match(name, '_pass_[0-9]+$'), name");
	r = clickhouse_store_run(s, shard, buf_str(&q), &t, reterr);
	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		buf_clear(&q);
		buf_printf(&q, "DROP TABLE IF EXISTS %s.%s", s->names.database,
			sql_table_bytes(&t, sql_table_cell(&t, i, 0)));
		r = clickhouse_store_run(s, shard, buf_str(&q), NULL, reterr);
	}
	return r;
}

static int open_gates(struct store_clickhouse *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	int r = 0;

	for (size_t i = 0; r == 0 && clickhouse_gate_next(&q, &s->names, s->gate, i); i++) {
		r = q.err ? q.err : clickhouse_store_run_all(s, buf_str(&q), NULL, reterr);
		buf_clear(&q);
	}
	return r;
}

int clickhouse_fill_learn(struct store_clickhouse *s, struct errinfo *reterr)
{
	int r = 0;

	if (s->gate_lost)
		return errinfo_set(reterr, -EPERM,
			"another process fills database %s of ClickHouse: stop one of them, then start this one again",
			s->names.database);
	s->gate = (uint64_t)wall_now().ns;
	for (size_t shard = 0; r == 0 && shard < clickhouse_store_shards(s); shard++)
		r = close_gates(s, shard, reterr);
	for (int t = 0; r == 0 && t < TABLE_COUNT; t++)
		if (t != TABLE_METRICS)
			r = learn_table(s, t, reterr);
	r = r ?: open_gates(s, reterr);
	s->reached_known = r == 0;
	return r;
}

static bool is_there(const struct clickhouse_slot *slot, int day, uint64_t seq)
{
	for (size_t i = 0; i < slot->reached_count; i++)
		if (slot->reached[i].day == day)
			return seq <= slot->reached[i].seq;
	return false;
}

/* ---- failures ---- */

static void tell(struct store_clickhouse *s, int err, const char *text)
{
	MUTEX_HELD(&s->lock);

	s->stats.fault = err;
	snprintf(s->stats.fault_text, sizeof(s->stats.fault_text), "%s", err ? text : "");
}

/* What waits is the journal's again; what was sent may be there or not. */
static int fail(struct store_clickhouse *s, int err, const struct errinfo *e)
{
	for (size_t i = 0; i < clickhouse_store_shards(s) * TABLE_COUNT; i++) {
		buf_clear(&s->slots[i].rows);
		s->slots[i].row_count = 0;
	}
	memset(s->waiting_rows, 0, sizeof(s->waiting_rows));
	s->reached_known = false;
	pthread_mutex_lock(&s->lock);
	s->taken = s->stats.visible;
	pthread_mutex_unlock(&s->lock);
	tell(s, err, e->text);
	return err;
}

/* ---- rows ---- */

static int insert_slots(struct store_clickhouse *s, size_t bytes_min, struct errinfo *reterr)
{
	size_t slots = clickhouse_store_shards(s) * TABLE_COUNT, count = 0;
	_cleanup_free_ struct clickhouse_ask *asks = calloc(slots, sizeof(*asks));
	_cleanup_free_ struct buf *queries = calloc(slots, sizeof(*queries));
	int r = asks && queries ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < slots; i++) {
		if (s->slots[i].rows.err)
			r = s->slots[i].rows.err;
		if (s->slots[i].row_count == 0 || s->slots[i].rows.len < bytes_min)
			continue;
		queries[count] = BUF_INIT(8192);
		clickhouse_put_insert(&queries[count], &s->names, i % TABLE_COUNT, s->gate);
		asks[count] = (struct clickhouse_ask){.shard = i / TABLE_COUNT,
			.account = &s->writer,
			.query = buf_str(&queries[count]),
			.settings = s->no_delay ? "&async_insert=0" : NULL,
			.rows = s->slots[i].rows.data,
			.rows_len = s->slots[i].rows.len,
			.timeout_ns = CLICKHOUSE_TIMEOUT_NS,
			.answer_max = 4096};
		count++;
	}
	if (r == 0 && count)
		r = clickhouse_ask_all(s->client, asks, count, reterr);
	if (r == -EINVAL) { /* the statement is right: there is no such table */
		s->gate_lost = true;
		r = clickhouse_fill_learn(s, reterr);
	}
	for (size_t i = 0; i < count; i++) {
		buf_done(&queries[i]);
		clickhouse_ask_done(&asks[i]);
	}
	for (size_t i = 0; r == 0 && i < slots; i++)
		if (s->slots[i].rows.len >= bytes_min) {
			buf_clear(&s->slots[i].rows);
			s->slots[i].row_count = 0;
		}
	return r;
}

static int check_batch(const void *batch, size_t len, struct errinfo *reterr)
{
	struct batch_reader reader = {batch, len};
	struct batch_row row;
	size_t count = 0;
	int r;

	while ((r = batch_next(&reader, &row)) > 0)
		count++;
	if (r < 0)
		return errinfo_set(reterr, r, "a journal entry does not hold rows");
	if (count >> CLICKHOUSE_SEQ_BITS)
		return errinfo_set(reterr, -EBADMSG, "a journal entry holds too many rows");
	return 0;
}

static size_t shard_of(const struct store_clickhouse *s, const struct batch_row *row)
{
	const struct table_desc *d = &store_tables[row->table];
	const struct sql_value *cluster = &row->cells[d->cluster], *node = &row->cells[d->node];

	return hash_number(
		       hash_bytes(cluster->p, cluster->len) * 31 + hash_bytes(node->p, node->len)) %
	       clickhouse_store_shards(s);
}

static int take_rows(struct store_clickhouse *s, uint64_t position, const void *batch, size_t len,
	struct errinfo *reterr)
{
	struct batch_reader reader = {batch, len};
	struct batch_row row;
	int r = 0;

	for (size_t n = 0; r == 0 && batch_next(&reader, &row) > 0; n++) {
		struct clickhouse_slot *slot = slot_of(s, shard_of(s, &row), row.table);
		uint64_t seq = clickhouse_seq(position, n);

		if (row.table == TABLE_METRICS || is_there(slot, clickhouse_day(&row), seq))
			continue;
		clickhouse_put_row(&slot->rows, &row, seq);
		slot->row_count++;
		s->waiting_rows[row.table]++;
		if (slot->rows.err)
			r = errinfo_set(
				reterr, slot->rows.err, "there is not enough memory for the rows");
		else if (slot->rows.len >= INSERT_BYTES)
			r = insert_slots(s, INSERT_BYTES, reterr);
	}
	return r;
}

int clickhouse_fill_take(struct store *store, uint64_t position, const void *batch, size_t len,
	struct errinfo *reterr)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;
	struct errinfo e = {0};
	int r = check_batch(batch, len, reterr);

	if (r < 0)
		return r;
	if (position <= s->taken)
		return 0;
	if (!s->reached_known)
		r = clickhouse_fill_learn(s, &e);
	r = r ?: take_rows(s, position, batch, len, &e);
	if (r < 0) {
		if (reterr)
			*reterr = e;
		return fail(s, r, &e);
	}
	s->taken = position;
	return 0;
}

/* ---- positions ---- */

static int write_position(struct store_clickhouse *s, uint64_t position, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf q = BUF_INIT(4096);
	int r;

	buf_printf(&q, "INSERT INTO %s.journal_local (key, position) VALUES (0, %" PRIu64 ")",
		s->names.database, position);
	r = clickhouse_store_run_all(s, buf_str(&q), NULL, reterr);
	if (r < 0)
		return r;
	MUTEX_HELD(&s->lock);
	s->stats.durable = position;
	return 0;
}

/* What has settled becomes durable; what is visible begins to settle. */
static int settle(struct store_clickhouse *s, struct errinfo *reterr)
{
	uint64_t now = mono_now().ns, visible, durable;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	visible = s->stats.visible;
	durable = s->stats.durable;
	pthread_mutex_unlock(&s->lock);
	if (s->settling > durable && now - s->settling_since_ns >= s->settle_ns)
		r = write_position(s, s->settling, reterr);
	if (r == 0 && (s->settling == 0 || now - s->settling_since_ns >= s->settle_ns)) {
		s->settling = visible;
		s->settling_since_ns = now;
	}
	return r;
}

int clickhouse_fill_commit(struct store *store, struct errinfo *reterr)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;
	struct errinfo e = {0};
	int r = insert_slots(s, 0, &e);

	if (r < 0) {
		if (reterr)
			*reterr = e;
		return fail(s, r, &e);
	}
	pthread_mutex_lock(&s->lock);
	s->stats.visible = MAX(s->stats.visible, s->taken);
	for (int t = 0; t < TABLE_COUNT; t++)
		s->stats.rows[t] += s->waiting_rows[t];
	pthread_mutex_unlock(&s->lock);
	memset(s->waiting_rows, 0, sizeof(s->waiting_rows));
	r = settle(s, &e);
	tell(s, r, e.text); /* the rows are there: only the journal is kept longer */
	return 0;
}

/* Twice: an older position may be settling. */
int clickhouse_fill_seal(struct store *store, struct errinfo *reterr)
{
	struct store_clickhouse *s = (struct store_clickhouse *)store;
	int r = settle(s, reterr);

	return r < 0 ? r : settle(s, reterr);
}
