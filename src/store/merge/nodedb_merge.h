/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge.h - several stores in one file, in which every row says whose it is.
 *
 * Sources are only read, whatever schema they have (0.8 to 0.11, merged files too), and are
 * strangers: a row that makes no sense is counted and left out. Memory does not grow with them. The
 * output is written under another name in the same folder and given its own when it is complete. */
#pragma once

#include "base/errinfo.h"

#define MERGE_SOURCES_MAX 4096
#define MERGE_NODES_MAX   4096
#define MERGE_NODE_LEN    256 /* bytes of a node's name, its end included */

struct merge_tally {
	uint64_t copied;
	uint64_t duplicates; /* already there, from a source before: not copied again */
};

struct merge_report { /* of one source, or of all */
	struct merge_tally events, chains, stacks;
	struct merge_tally others; /* rows of all other tables */
	uint64_t skipped;          /* rows that make no sense, left out */
	uint64_t renumbered;       /* events whose seq another recording of the node has too */
	uint64_t differing_stacks; /* of one hash, with other names: the better-named is kept */
	uint64_t unplaced;         /* rows of several nodes that do not say whose they are */
	bool is_again;             /* the very file was given before: not read again */
	char schema[16];
};

/* How far the clock of @node is ahead of the reference's: by collectives that ranks on both left
 * together, and how wrong that may be. */
struct merge_clock {
	char node[MERGE_NODE_LEN], reference[MERGE_NODE_LEN];
	int64_t offset_ns;
	uint64_t error_ns;
	uint64_t collectives; /* 0: they share too few, so nothing is known */
	bool applied;
};

struct merge_result {
	struct merge_report total;
	size_t nodes;
	struct merge_clock *clocks; /* one for each node but the references; free() */
	size_t clock_count;
};

struct merge_options {
	const char *const *sources;
	size_t source_count;
	const char *output;
	const char *force_node; /* whose rows these are, whatever they say; one source. NULL: ask */
	bool align;             /* take the offsets found from all times */
	bool replace;           /* of an existing output */
	/* Both may be NULL. @tell comes every 64 K events, and may end it all by saying false;
	 * @done comes after each source. */
	bool (*report)(void *arg, size_t source, uint64_t events);
	void (*done)(void *arg, size_t source, const struct merge_report *r);
	void *arg;
};

/* nodedb_merge - on failure there is no output, or the one that was there.
 * -EINTR @tell said so; -EEXIST the output exists; -EINVAL it is a source, or a source does not say
 * its node; -EBUSY a source changed while it was read; else as nodedb_read() and sql.h. */
int nodedb_merge(
	const struct merge_options *options, struct merge_result *ret, struct errinfo *reterr);
void merge_result_done(struct merge_result *r);
