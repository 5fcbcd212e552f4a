/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck.h - the store in this process, on DuckDB.
 *
 * A folder:
 *   lock           held while a process has the store; it says who
 *   manifest       which parts there are, and the journal position they reach to (JSON, replaced whole),
 *                  with a checksum of itself and of every part
 *   manifest.copy  the same once more: one damaged file does not lose the store
 *   CLUSTER/NNN.duckdb   sealed parts: the rows of one cluster, never written again
 *   damaged/       parts that were found damaged; the manifest says which rows are missing with them
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
	uint64_t scrub_bytes_s;  /* at which parts are read again; 0: 16 MiB a second */
	bool trust_clock; /* retention takes the clock as it is, once (store_duck_private.h) */
};

/* store_duck_open - -EAGAIN: another process has it, the sentence says which. */
int store_duck_open(
	const struct store_duck_settings *s, struct store **ret, struct errinfo *reterr);

/* store_duck_backup - everything that is durable in the store @from, whoever has it open, into the folder @to, which must
 * not exist: parts, manifest, and a list of SHA-256 sums. */
int store_duck_backup(const char *from, const char *to, struct errinfo *reterr);

/* store_duck_link - the same without copying: a store of its own that has the same files. _unlink: removes it. */
int store_duck_link(const char *from, const char *to, struct errinfo *reterr);
void store_duck_unlink(const char *folder);

/* Who is told, a sentence each, what was found, and how it ended. */
struct store_report {
	void (*tell)(void *arg, const char *sentence);
	void *arg;
	uint64_t findings;
	uint64_t known;   /* of these: rows that were known to be missing */
	uint64_t durable; /* journal position that the parts reach to */
};

/* store_duck_verify - all sums and row counts of a backup, or of a store that is not in use, and what it has
 * missed since it was last looked at. -EBADMSG: it is not whole, and @report was told why; other failures: it
 * could not be looked at. */
int store_duck_verify(const char *folder, struct store_report *report, struct errinfo *reterr);

/* store_duck_repair - checks every part; what is damaged or was missing is brought back from @backup (NULL: there
 * is none), which is verified first, or else from the journal. @report is told of each. 0: nothing is missing;
 * -EBADMSG: something still is.
 * @source: the rows of @cluster in journal entries @first to @last as a batch, all of them; -ENODATA: the journal
 * does not have them all. */
typedef int store_source(
	void *arg, const char *cluster, uint64_t first, uint64_t last, struct buf *ret);
int store_duck_repair(struct store *s, const char *backup, store_source *source, void *arg,
	struct store_report *report, struct errinfo *reterr);

/* store_duck_restore - a verified backup @from becomes the store @to, which must not exist. */
int store_duck_restore(const char *from, const char *to, struct errinfo *reterr);

/* store_duck_export - the rows of @scope of a table as Parquet into @path, which must not exist. */
int store_duck_export(struct store *s, enum store_table t, const struct store_scope *scope,
	const char *path, uint64_t *ret_rows, struct errinfo *reterr);
