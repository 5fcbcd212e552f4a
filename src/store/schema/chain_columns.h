/* SPDX-License-Identifier: Apache-2.0 */
/* chain_columns.h - the columns of table `causal_chains`, as published: CREATE, INSERT, the merge and the list
 * derive from this list. Order: id, detected_at, these, node; nodedb_put.c has their values in it. Nothing is
 * added here: what incidents get goes into model/incident_field.h. */
#pragma once

/* X(column, declaration, kind): TEXT, JSON, OP, COUNT or REAL */
#define CHAIN_COLUMNS(X)                                                                           \
	X(severity, "TEXT NOT NULL", TEXT)                                                         \
	X(summary, "TEXT NOT NULL", TEXT)                                                          \
	X(root_cause, "TEXT NOT NULL", TEXT)                                                       \
	X(explanation, "TEXT NOT NULL", TEXT)                                                      \
	X(recommendations, "TEXT NOT NULL DEFAULT ''", JSON)                                       \
	X(cuda_op, "TEXT NOT NULL DEFAULT ''", OP)                                                 \
	X(cuda_p99_us, "INTEGER NOT NULL DEFAULT 0", COUNT)                                        \
	X(cuda_p50_us, "INTEGER NOT NULL DEFAULT 0", COUNT)                                        \
	X(tail_ratio, "REAL NOT NULL DEFAULT 0", REAL)                                             \
	X(timeline, "TEXT NOT NULL DEFAULT ''", JSON)
