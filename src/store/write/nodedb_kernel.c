/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_kernel.c - names of launched kernels and of ranges, written. Same thread as nodedb.c. */
#include <stdio.h>
#include <string.h>

#include "store/nodedb_private.h"
#include "demangle/demangle.h"

static const char *const origins[] = {
#define X(NAME, name, what) name,
	KERNEL_ORIGINS(X)
#undef X
};

/* A mangled name that was cut cannot be read: it stays as it is. */
static void people_name(const struct kernel_row *k, char out[KERNEL_NAME_MAX])
{
	if (k->is_cut)
		snprintf(out, KERNEL_NAME_MAX, "%.*s…", KERNEL_NAME_MAX - 4, k->name);
	else
		demangle(k->name, out, KERNEL_NAME_MAX);
}

int nodedb_put_kernel(struct nodedb *db, const struct kernel_row *k, struct errinfo *reterr)
{
	char name[KERNEL_NAME_MAX];
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_KERNEL, &stmt, reterr);

	if (r < 0)
		return r;
	people_name(k, name);
	return SQL_PUT(stmt, reterr, SQL_S(db->node), SQL_I(k->pid), SQL_I(k->function),
		SQL_I(k->since.ns), SQL_S(name), SQL_S(origins[k->origin % ARRAY_SIZE(origins)]),
		SQL_I(MIN(k->launches, (uint64_t)INT64_MAX)), SQL_I(k->first.ns));
}

int nodedb_put_text(struct nodedb *db, const struct text_row *t, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_NAME, &stmt, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_I(t->hash), SQL_S(t->text));
}
