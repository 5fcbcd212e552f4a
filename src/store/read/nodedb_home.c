/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_home.c - where the processes of a store live: container, pod and cgroup, by pid. Of a pid
 * that two processes had in turn the later one counts. */
#include <string.h>

#include "base/array.h"

#include "store/read/nodedb_reader.h"

#define SQL_TEXT_MAX (64 << 10)

static bool read_home(sql_stmt *stmt, struct process_home *h)
{
	char path[TARGET_PATH_MAX], command[TARGET_CMDLINE_MAX];
	int64_t pid = sql_column_int(stmt, 0), rank, cpus;
	size_t len;

	*h = (struct process_home){0};
	if (sql_column_type(stmt, 0) != SQL_INT || pid <= 0 || pid > UINT32_MAX ||
		!reader_text(stmt, 1, h->container_id, sizeof(h->container_id)) ||
		!reader_text(stmt, 2, h->pod, sizeof(h->pod)) ||
		!reader_text(stmt, 3, path, sizeof(path)) ||
		!reader_text(stmt, 5, h->comm, sizeof(h->comm)) ||
		!reader_text(stmt, 6, h->script, sizeof(h->script)) ||
		!reader_text(stmt, 7, command, sizeof(command)))
		return false;
	if (!h->script[0]) /* of a file from before it was kept */
		script_of(command, strlen(command), h->script);
	h->cpus = sql_column_is_int(stmt, 8, &cpus) && cpus > 0 && cpus <= UINT16_MAX
			  ? (uint32_t)cpus
			  : 0;
	h->pid = (uint32_t)pid;
	h->rank = sql_column_is_int(stmt, 4, &rank) && rank >= 0 && rank <= INT32_MAX
			  ? (int32_t)rank
			  : -1;
	len = strlen(path);
	memcpy(h->cgroup_path,
		path + (len < sizeof(h->cgroup_path) ? 0 : len - sizeof(h->cgroup_path) + 1),
		MIN(len + 1, sizeof(h->cgroup_path)));
	return true;
}

int reader_load_homes(struct reader *r, struct errinfo *reterr)
{
	static const struct reader_column columns[] = {{"pid", NULL}, {"container_id", "''"},
		{"pod", "''"}, {"cgroup_path", "''"}, {"rank", "NULL"}, {"comm", "''"},
		{"script", "''"}, {"cmdline", "''"}, {"cpus", "NULL"}};
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct nodedb_content *c = r->content;
	size_t capacity = 0;
	int res = schema_has_table(r->sql, "processes", reterr);

	if (res <= 0 || r->kind != SCHEMA_OURS)
		return MIN(res, 0);
	res = reader_select(r, "processes", columns, ARRAY_SIZE(columns), &sql, reterr);
	if (res < 0)
		return res;
	res = reader_where(r, "processes", (struct scope_columns){0}, &sql, reterr);
	if (res < 0)
		return res;
	buf_printf(&sql, " ORDER BY pid, last_seen LIMIT %u", NODEDB_HOMES_MAX);
	res = reader_prepare(r, &sql, &stmt, reterr);
	if (res < 0)
		return res;
	while ((res = sql_step(stmt, reterr)) > 0) {
		struct process_home h;

		if (!read_home(stmt, &h)) {
			c->skipped_rows++;
			continue;
		}
		if (c->home_count && c->homes[c->home_count - 1].pid == h.pid) {
			c->homes[c->home_count - 1] = h;
			continue;
		}
		res = ARRAY_RESERVE(c->homes, capacity, c->home_count + 1, NODEDB_HOMES_MAX);
		if (res < 0)
			return res;
		c->homes[c->home_count++] = h;
	}
	return res;
}
