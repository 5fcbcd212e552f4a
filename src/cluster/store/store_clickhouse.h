/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse.h - the store on ClickHouse servers, asked over HTTP.
 *
 * Each shard has the tables (MergeTree, ordered by cluster, node and time) and the journal position that it
 * has reached; a row's shard is a hash of its node. Questions go to `Distributed` tables over all shards.
 * An insert that may have happened is looked for before it is made again. */
#pragma once

#include "cluster/store/store.h"
#include "net/loop.h"

#define CLICKHOUSE_SHARDS_MAX 64

struct store_clickhouse_settings {
	const char *const *shards; /* URLs: http://host:8123; https too */
	size_t shard_count;
	const char *cluster;         /* name in the servers' remote_servers; NULL: only one shard */
	const char *database;        /* made if it is missing */
	const char *user, *password; /* of the writer */
	/* A stranger's SQL runs as this user, whom the servers let read only; with the clusters of the
	 * scope, for a row policy, in the setting that docs/clickhouse.md names. NULL: it is refused. */
	const char *reader, *reader_password;
	uint64_t retention_ns; /* 0: for ever */
};

int store_clickhouse_open(
	const struct store_clickhouse_settings *s, struct store **ret, struct errinfo *reterr);
