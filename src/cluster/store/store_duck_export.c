/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_export.c - rows as a Parquet file, which has its name only when it is complete. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cluster/store/store_duck_private.h"

static int copy_rows(struct store_duck *s, struct reading *reading, enum store_table t,
	const struct store_scope *scope, const char *path, uint64_t *ret_rows,
	struct errinfo *reterr)
{
	static const struct duck_limits limits = {.rows_max = 1, .bytes_max = 4096};
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	struct duck_connection *c;
	struct sql_table done;
	char question[64];
	int r;

	buf_puts(&text, "COPY (");
	snprintf(question, sizeof(question), "SELECT * FROM {%s}", store_tables[t].name);
	r = reading_expand(reading, question, scope, &text, reterr);
	buf_puts(&text, ") TO ");
	duck_quote(&text, path);
	buf_puts(&text, " (FORMAT parquet, COMPRESSION zstd)");
	if (r == 0)
		r = text.err ? text.err : connection_get(s, &c, reterr);
	if (r < 0)
		return r;
	r = duck_select(c, buf_str(&text), &limits, &done, reterr);
	connection_put(s->asking, c);
	if (r < 0)
		return r;
	*ret_rows = done.row_count ? (uint64_t)sql_table_cell(&done, 0, 0)->i : 0;
	sql_table_done(&done);
	return 0;
}

static int finish(const char *partial, const char *path, struct errinfo *reterr)
{
	int r = file_sync(partial);

	/* A link, not a rename: what has that name by now is left alone. */
	if (r == 0 && link(partial, path) < 0)
		r = -errno;
	unlink(partial);
	return r == 0 ? 0
		      : errinfo_set_exit(reterr, EXIT_NO_CREATE, r, "%s cannot be made: %s", path,
				strerror(-r));
}

int store_duck_export(struct store *store, enum store_table t, const struct store_scope *scope,
	const char *path, uint64_t *ret_rows, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	char partial[STORE_PATH_MAX];
	struct reading reading;
	int r;

	if (access(path, F_OK) == 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s exists already: name a new file", path);
	if (snprintf(partial, sizeof(partial), "%s.partial", path) >= (int)sizeof(partial))
		return errinfo_set(reterr, -ENAMETOOLONG, "the name %.100s is too long", path);
	r = instance_use(s, reterr);
	if (r < 0)
		return r;
	r = reading_begin(s, scope, &reading);
	if (r == 0) {
		r = copy_rows(s, &reading, t, scope, partial, ret_rows, reterr);
		reading_end(s, &reading);
	}
	instance_leave(s);
	if (r < 0) {
		unlink(partial);
		return r;
	}
	return finish(partial, path, reterr);
}
