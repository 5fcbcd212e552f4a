/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.h - who may do what: bearer tokens with a name, clusters and verbs.
 *
 * One file, YAML or JSON, for its owner alone:
 *   - key_name: training-team
 *     token: 64 hex digits, or token_sha256: of it
 *     allowed_clusters: [prod-a, prod-b]     # none or empty: all
 *     verbs: [ingest, read, sql]             # none: all of them
 *     expires: 2027-01-01T00:00:00Z          # none: never
 * or a file of plain tokens (net/token.h): each of them may do everything. What a token may see is said by
 * the token alone, never by what is sent. A token that is gone after a reload works for the grace time. */
#pragma once

#include "net/token.h"

struct tenants;

enum tenant_verb { TENANT_INGEST = 1, TENANT_READ = 2, TENANT_SQL = 4, TENANT_ADMIN = 8 };

struct tenant {
	const char *name;            /* key_name; "" of a plain token */
	uint64_t credential;         /* as of http_request */
	const char *const *clusters; /* NULL: all */
	size_t cluster_count;
	unsigned verbs;
	int64_t expires_ns; /* 0: never */
};

#define TENANTS_GRACE_NS (60 * NS_PER_S)

/* tenants_read - @path as above. */
int tenants_read(const char *path, struct tenants **ret, struct errinfo *reterr);
void tenants_free(struct tenants *t);
DEFINE_CLEANUP(struct tenants *, tenants_free)

/* tenants_tokens - what a server asks for; it follows reloads and goes with @t. */
struct token_set *tenants_tokens(struct tenants *t);

/* tenants_reload - after a failure everything stays as it was. */
int tenants_reload(struct tenants *t, uint64_t now_ns, struct errinfo *reterr);

/* tenants_find - whose credential this is; valid until the next reload. A request without one (credential
 * 0: nobody asks for tokens, or the machine's owner asks) may do everything. NULL: it may do nothing. */
const struct tenant *tenants_find(struct tenants *t, uint64_t credential, int64_t now_wall_ns);

bool tenant_may_see(const struct tenant *t, const char *cluster, size_t len);

/* tenants_take - one more request of the credential; false: over its rate, *ret_ns says when again. */
bool tenants_take(struct tenants *t, uint64_t credential, uint64_t now_ns, uint64_t *ret_ns);
