/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_tsv.h - ClickHouse's TabSeparatedWithNamesAndTypes as a table; private to store/. */
#pragma once

#include "cluster/store/store.h"

/* clickhouse_tsv_read - integers, reals and texts by the columns' types; what is neither a number nor a
 * text is text as it stands. NaN and infinities are NULL. Rows beyond @limits are left out: truncated is
 * set. -EBADMSG: it is not that format. *ret is the caller's (sql_table_done()). */
int clickhouse_tsv_read(const char *text, size_t len, const struct store_limits *limits,
	struct sql_table *ret, struct errinfo *reterr);
