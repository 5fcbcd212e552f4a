/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_kernels.c - which kernels the processes of a recording launched, and how often. */
#include <stdlib.h>

#include "store/read/nodedb_reader.h"
#include "base/array.h"

#define SQL_TEXT_MAX 4096
#define KERNELS_MAX  65536
#define NAMES_BYTES  (16u << 20)

static void read_row(sql_stmt *stmt, struct intern *names, struct kernel_use *ret)
{
	char name[KERNEL_NAME_MAX];
	bool is_named = reader_text(stmt, 4, name, sizeof(name)) && name[0];

	*ret = (struct kernel_use){.pid = (uint32_t)sql_column_int(stmt, 0),
		.function = (uint64_t)sql_column_int(stmt, 1),
		.since.ns = sql_column_int(stmt, 2),
		.launches = (uint64_t)MAX(sql_column_int(stmt, 3), INT64_C(0)),
		.first.ns = sql_column_int(stmt, 5),
		.name = is_named ? intern(names, name) : NULL};
}

/* The order is that of numbers without a sign. */
static int by_function(const void *a, const void *b)
{
	const struct kernel_use *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->since.ns > y->since.ns) - (x->since.ns < y->since.ns);
}

int reader_load_kernels(struct reader *r, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct nodedb_content *c = r->content;
	size_t room = 0;
	int res = r->filter->kernels ? schema_has_table(r->sql, "kernels", reterr) : 0;
	int has_first = res > 0 ? reader_has_column(r, "kernels", "first_launch", reterr) : 0;

	if (res <= 0 || has_first < 0)
		return MIN(res, has_first);
	c->kernel_names = INTERN_INIT(NAMES_BYTES);
	buf_printf(&sql,
		"SELECT pid, function, since, launches, CASE origin WHEN 'unknown' THEN '' ELSE name END, "
		"%s FROM kernels",
		has_first ? "first_launch" : "0");
	res = reader_where(r, "kernels", (struct scope_columns){.pid = "pid"}, &sql, reterr);
	if (res < 0)
		return res;
	buf_printf(&sql, " LIMIT %d", KERNELS_MAX);
	res = reader_prepare(r, &sql, &stmt, reterr);
	while (res >= 0 && (res = sql_step(stmt, reterr)) > 0) {
		res = ARRAY_RESERVE(c->kernels, room, c->kernel_count + 1, KERNELS_MAX);
		if (res == 0)
			read_row(stmt, &c->kernel_names, &c->kernels[c->kernel_count++]);
	}
	if (c->kernel_count)
		qsort(c->kernels, c->kernel_count, sizeof(*c->kernels), by_function);
	return MIN(res, 0);
}
