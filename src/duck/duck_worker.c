/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker.c - the asker's side of the worker: checks the question, has it answered. */
#include "duck/duck_worker.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "duck/duck_worker_child.h"
#include "sql/sql_worker.h"

static struct sql_worker_kind kind =
	SQL_WORKER_KIND(DUCK_WORKER_NAME, DUCK_WORKER_AT_ONCE, .keeps_spare = true);

static const struct sql_guard_rules most = {
	.timeout_ns = DUCK_WORKER_TIMEOUT_NS,
	.memory_bytes = DUCK_WORKER_MEMORY,
	.rows_max = DUCK_WORKER_ROWS_MAX,
	.bytes_max = DUCK_WORKER_BYTES_MAX,
};

struct question {
	struct duck_wire_question head;
	const struct buf *body;
};

struct sql_worker_stats duck_worker_stats(void)
{
	return sql_worker_kind_stats(&kind);
}

void duck_worker_rest(void)
{
	sql_worker_kind_rest(&kind);
}

static int check(const struct duck_worker_question *q, struct errinfo *reterr)
{
	if (strlen(q->text) > SQL_GUARD_TEXT_MAX)
		return errinfo_set_exit(reterr, EXIT_USAGE, -E2BIG,
			"the SQL is longer than %d bytes", SQL_GUARD_TEXT_MAX);
	if (q->file_count > DUCK_WORKER_FILES_MAX)
		return errinfo_set(reterr, -E2BIG,
			"the rows lie in %zu files, and SQL can read %d at once: ask for fewer clusters",
			q->file_count, DUCK_WORKER_FILES_MAX);
	if (q->table_count > DUCK_WORKER_TABLES_MAX)
		return errinfo_set(reterr, -E2BIG, "%zu tables, but at most %d are possible",
			q->table_count, DUCK_WORKER_TABLES_MAX);
	return 0;
}

static void put(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text) + 1);
}

static int send_question(int socket, const void *arg)
{
	const struct question *q = arg;
	int r = sql_wire_send_bytes(socket, &q->head, sizeof(q->head));

	return r < 0 ? r : sql_wire_send_bytes(socket, buf_str(q->body), q->body->len);
}

static int ask(const struct question *q, struct sql_wire_result *res, struct errinfo *reterr)
{
	struct sql_worker_call call = {send_question, q, q->head.deadline_ns, &q->head.rules};
	int r = sql_worker_call(&kind, &call, res, reterr);
	char n[TEXT_MAX];

	if (r == 0)
		r = sql_wire_judge(res, reterr);
	if (r == -ETIMEDOUT)
		return errinfo_set_exit(reterr, EXIT_FAILED, r,
			"the SQL timed out after %s: select less",
			text_format_duration(n, q->head.rules.timeout_ns));
	return r;
}

/* Who has no room for a second sentence gets it behind the first. */
static void join_hint(const struct buf *hint, struct errinfo *reterr)
{
	struct errinfo first = *reterr;

	errinfo_set_exit(reterr, first.exit_code, 0, "%.380s (%.100s)", first.text, buf_str(hint));
}

int duck_worker_ask(const struct duck_worker_question *q, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf body = BUF_INIT(DUCK_WIRE_BODY_MAX),
				 own = BUF_INIT(SQL_WIRE_HINT_MAX);
	struct question asked = {{.magic = DUCK_WIRE_MAGIC,
					 .file_count = (uint32_t)q->file_count,
					 .table_count = (uint32_t)q->table_count,
					 .rules = sql_worker_ceilings(rules, &most)},
		&body};
	struct sql_wire_result res = {.hint = hint ? hint : &own};
	int r = check(q, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < q->file_count; i++)
		put(&body, q->files[i]);
	for (size_t i = 0; i < q->table_count; i++) {
		put(&body, q->tables[i].name);
		put(&body, q->tables[i].columns);
	}
	put(&body, q->text);
	if (body.err)
		return body.err;
	asked.head.body_len = (uint32_t)body.len;
	asked.head.deadline_ns = mono_now().ns + asked.head.rules.timeout_ns;
	r = ask(&asked, &res, reterr);
	if (r == 0)
		*ret = res.table;
	else if (own.len && reterr)
		join_hint(&own, reterr);
	return r;
}
