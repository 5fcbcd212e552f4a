/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse.h - the store on ClickHouse servers, asked over HTTP.
 *
 * Each shard has the tables (MergeTree, ordered by cluster, node and time) and the journal position that
 * all shards have reached; a row's shard is a hash of its node. Questions go to `Distributed` tables over
 * all shards. An insert that may have happened is looked for before it is made again. docs/clickhouse.md
 * says what the servers need. */
#pragma once

#include "cluster/store/store.h"

#define CLICKHOUSE_SHARDS_MAX 64

struct store_clickhouse_settings {
	const char *const *shards; /* URLs: http://host:8123; https too */
	size_t shard_count;
	const char *cluster;         /* name in the servers' remote_servers; NULL: only one shard */
	const char *database;        /* made if it is missing */
	const char *user, *password; /* of the writer */
	/* A stranger's SQL runs as this user, whom the servers let read only; if it may see some clusters
	 * only, as the user of that name with these clusters' names behind it, who may read one database.
	 * NULL: it is refused. */
	const char *reader, *reader_password;
	uint64_t retention_ns; /* 0: for ever; whole days are dropped */
	bool trust_clock;      /* retention takes the clock as it is, once: retention_clock.h */
	/* What was acknowledged this long ago is on the servers' disks; 0: 60 s, or 1 s where the servers
	 * sync. store_durable() lags behind by it, and store_seal() does not hasten it. */
	uint64_t settle_ns;
};

/* store_clickhouse_open - makes what is missing on the shards; all must answer. */
int store_clickhouse_open(
	const struct store_clickhouse_settings *s, struct store **ret, struct errinfo *reterr);
