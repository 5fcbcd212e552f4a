/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck.h - the store in this process, on DuckDB.
 *
 * A folder:
 *   lock           held while a process has the store; it says who
 *   manifest       which parts there are, and the journal position they reach to (JSON, replaced whole)
 *   CLUSTER/NNN.duckdb   sealed parts: the rows of one cluster, never written again
 *   journal/       the journal's, see journal.h
 * New rows are in memory until they are sealed: written to new parts, synced, and named in the next
 * manifest. So a part is whole or not there, a crash costs nothing but reading the journal again, and what
 * a stranger's SQL can open holds rows of its clusters only. Retention removes parts; merging replaces
 * small ones by larger. */
#pragma once

#include "cluster/store/store.h"

struct store_duck_settings {
	const char *folder;
	uint64_t memory_bytes;   /* of DuckDB; 0: 512 MiB */
	int threads;             /* of DuckDB; 0: as many as CPUs */
	size_t seal_rows;        /* 0: 250,000 */
	uint64_t seal_ns;        /* 0: 60 s after the first row */
	uint64_t retention_ns;   /* 0: for ever */
	uint64_t bytes_max;      /* of parts; 0: no limit */
	uint64_t part_bytes_max; /* merged up to; 0: 512 MiB */
};

/* store_duck_open - -EAGAIN: another process has it, the sentence says which. */
int store_duck_open(
	const struct store_duck_settings *s, struct store **ret, struct errinfo *reterr);

/* store_duck_backup - everything that is durable, into the folder @to, which must not exist: parts,
 * manifest, and a list of SHA-256 sums. */
int store_duck_backup(struct store *s, const char *to, struct errinfo *reterr);

/* store_duck_verify - the sums and row counts of a backup, or of a store that nobody has open. */
int store_duck_verify(const char *folder, struct errinfo *reterr);

/* store_duck_restore - a verified backup @from becomes the store @to, which must not exist. */
int store_duck_restore(const char *from, const char *to, struct errinfo *reterr);

/* store_duck_export - the rows of @scope of a table as Parquet into @path, which must not exist. */
int store_duck_export(struct store *s, enum store_table t, const struct store_scope *scope,
	const char *path, uint64_t *ret_rows, struct errinfo *reterr);
