/* SPDX-License-Identifier: Apache-2.0 */
/* acl.h - one reading of the file that tenants.h describes. Unknown keys, tokens that stand twice and names
 * that cannot be shown are refused with their line; no sentence repeats a token. */
#pragma once

#include "cluster/tenant/tenants.h"
#include "net/digest.h"
#include "net/rate.h"

#define ACL_ENTRIES_MAX  1024
#define ACL_CLUSTERS_MAX 1024 /* of an entry */

struct acl_entry {
	struct tenant tenant;
	struct token_hash hash; /* until_ns: it is gone from the file, and its grace ends then */
	unsigned ask_rate, ingest_rate,
		row_rate;   /* a second; row_rate: of what is sent; 0: no limit */
	uint64_t byte_rate; /* likewise */
	uint32_t owner;     /* 1, 2, … by the order of the file: those of one key_name are one */
	unsigned share_percent; /* of the store, for the owner; 0: none of its own */
	struct rate asked, ingested, rows, bytes;
};

struct acl {
	struct acl *older;         /* what was read before */
	uint64_t retired_ns;       /* since when it is not the newest; 0: it is */
	char digest[DIGEST_HEX];   /* of the file */
	struct acl_entry *entries; /* ordered by tenant.credential */
	size_t count, room;
};

int acl_read(const char *path, struct acl **ret, struct errinfo *reterr);
DECLARE_FREE(struct acl, acl_free) /* not the older ones */

struct acl_entry *acl_find(const struct acl *a, uint64_t credential);
