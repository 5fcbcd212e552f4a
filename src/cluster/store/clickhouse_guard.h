/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_guard.h - a stranger's statement before it is sent to ClickHouse, and as whom; private to
 * store/.
 *
 * What holds a stranger is the server: a user who may only read, and only in a database that has the rows
 * of his clusters. The look at the text is a second wall, which lets through only what is known, and gives better
 * sentences. */
#pragma once

#include "cluster/store/store.h"

#define CLICKHOUSE_TEXT_MAX (64u << 10) /* bytes of a statement */
#define CLICKHOUSE_NAME_MAX 200         /* of a database or user: it becomes the name of a file */

/* clickhouse_guard_check - -EINVAL: not one query; -EPERM: it names what is not for strangers; -E2BIG. */
int clickhouse_guard_check(const char *text, struct errinfo *reterr);

/* clickhouse_guard_name - @base with the scope's clusters behind it, the same for the same clusters and
 * never for others: "ingero" and {"b", "a-1"} are "ingero__a_2d1__b". A scope of all clusters is @base.
 * -EPERM: it has none; -E2BIG: too many. */
int clickhouse_guard_name(
	const char *base, const struct store_scope *scope, struct buf *ret, struct errinfo *reterr);
