/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_snapshot_private.h - shared by the two files that answer short questions. */
#pragma once

#include "store/read/nodedb_snapshot.h"
#include "store/read/nodedb_reader.h"

struct nodedb_snapshot {
	struct reader reader;
	sql_stmt *stack; /* compiled at first use */
};
