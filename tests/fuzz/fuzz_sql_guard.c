/* SPDX-License-Identifier: Apache-2.0 */
/* A statement of a stranger: whatever it is, the recording stays as it is and the ceilings hold. */
#include <fcntl.h>
#include <stdio.h>

#include "store/nodedb.h"
#include "base/clock.h"
#include "base/file.h"
#include "fuzz.h"
#include "sql/sql_guard.h"

#define ROWS_MAX  50
#define BYTES_MAX 65536

static char path[128];
static struct buf content = {.max = 16 << 20};

static void make_recording(void)
{
	struct event e = {.start.ns = 1000, .dur_ns = 5, .pid = 7, .source = 1, .op = 2};
	struct nodedb *db = NULL;
	struct errinfo err = {0};

	snprintf(path, sizeof(path), "%s/guarded.db", fuzz_folder());
	MUST(nodedb_open(path, "n1", &db, &err) == 0);
	MUST(nodedb_put_event(db, &e, &err) == 0);
	MUST(nodedb_close(db, &err) == 0);
	MUST(file_read(path, content.max - 1, &content) == 0);
}

static void check_unchanged(void)
{
	_cleanup_buf_ struct buf now = BUF_INIT(16 << 20);

	MUST(file_read(path, content.max - 1, &now) == 0);
	MUST(now.len == content.len && memcmp(now.data, content.data, now.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sql_guard_rules rules = {.timeout_ns = 100 * NS_PER_MS,
		.memory_bytes = 32 << 20,
		.rows_max = ROWS_MAX,
		.bytes_max = BYTES_MAX};
	_cleanup_free_ char *text = fuzz_text(data, size);
	_cleanup_(sql_table_done) struct sql_table t = {0};
	_cleanup_buf_ struct buf hint = BUF_INIT(4096);
	struct errinfo e = {0};
	sql_db *db = NULL;

	if (!path[0])
		make_recording();
	MUST(sql_open_read(path, false, &db, NULL, &e) == 0);
	if (sql_guard_select(db, text, &rules, &t, &hint, &e) < 0) {
		MUST(e.text[0] && t.row_count == 0);
	} else {
		MUST(t.row_count <= ROWS_MAX && t.text.len <= BYTES_MAX + 65536);
		for (size_t i = 0; i < t.row_count * (size_t)t.column_count; i++)
			if (t.cells[i].type == SQL_TEXT || t.cells[i].type == SQL_BLOB)
				MUST(t.cells[i].offset + t.cells[i].len <= t.text.len);
	}
	MUST(sql_close(db) == 0);
	check_unchanged();
	return 0;
}
