/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.h - who may do what: bearer tokens with a name, clusters and verbs.
 *
 * One file, YAML or JSON, for its owner alone:
 *   - key_name: training-team
 *     token: 64 hex digits, or token_sha256: of it
 *     allowed_clusters: [prod-a, prod-b]     # none or empty: all
 *     verbs: [ingest, read, sql]             # none: all of them
 *     expires: 2027-01-01T00:00:00Z          # none: never
 *     requests_per_second: 50                # questions; none: TENANTS_ASK_RATE
 *     ingest_per_second: 5000                # requests of OTLP; none: TENANTS_INGEST_RATE
 *     ingest_rows_per_second: 20000          # points, records and spans in them; none: no limit
 *     ingest_bytes_per_second: 10m           # of them, unpacked; none: no limit
 *     max_size_percent: 25                   # of the store, for its clusters; none: an equal part of what is left
 * or a file of plain tokens (net/server/token.h): each of them may do everything. What a token may see is said by
 * the token alone, never by what is sent.
 *
 * A token that is gone after a reload works for the grace time, as it did before; one whose entry has
 * changed has its new rights at once. To end one at once, leave its entry there with a time in the past.
 *
 * All of it on the loop's thread, but that a struct tenant may be read by any. */
#pragma once

#include "base/clock.h"
#include "net/server/token.h"

struct tenants;

/* X(NAME, id, bit) */
#define TENANT_VERBS(X)                                                                            \
	X(INGEST, "ingest", 1)                                                                     \
	X(READ, "read", 2)                                                                         \
	X(SQL, "sql", 4)                                                                           \
	X(ADMIN, "admin", 8)

enum tenant_verb {
#define X(NAME, id, bit) TENANT_##NAME = (bit),
	TENANT_VERBS(X)
#undef X
};

struct tenant {
	const char *name;            /* key_name; "" of a plain token */
	uint64_t credential;         /* as of http_request */
	const char *const *clusters; /* NULL: all */
	size_t cluster_count;
	unsigned verbs;
	int64_t expires_ns; /* 0: never */
};

#define TENANTS_GRACE_NS    (60 * NS_PER_S)
#define TENANTS_VALID_NS    (600 * NS_PER_S)
#define TENANTS_ASK_RATE    50   /* a second; four times that at once */
#define TENANTS_INGEST_RATE 5000 /* likewise: many nodes share a token */

/* tenants_read - @path as above. */
int tenants_read(const char *path, struct tenants **ret, struct errinfo *reterr);
DECLARE_FREE(struct tenants, tenants_free)

/* tenants_tokens - what a server asks for; it follows reloads and goes with @t. */
struct token_set *tenants_tokens(struct tenants *t);

/* tenants_reload - @now_ns of mono_now(). After a failure everything stays as it was. -EAGAIN: it has
 * changed too often of late. */
int tenants_reload(struct tenants *t, uint64_t now_ns, struct errinfo *reterr);

/* tenants_find - whose credential this is; valid for TENANTS_VALID_NS after the next reload, so that what
 * has begun can end. A request without one (credential 0: nobody asks for tokens, or the machine's owner
 * asks; on a route that needs none, anybody) may do everything, as may any if @t is NULL. NULL: it may do
 * nothing. */
const struct tenant *tenants_find(struct tenants *t, uint64_t credential, int64_t now_wall_ns);

/* tenant_may_see - also whether it may send for it. Nobody (NULL) sees nothing. */
bool tenant_may_see(const struct tenant *t, const char *cluster, size_t len);

/* Why a request is refused: http_reply_error()'s status and text, a code for programs, and in how many
 * seconds it may come again (0: no matter). */
struct tenant_refusal {
	int status;
	const char *code, *text;
	unsigned retry_s;
};
#define TENANT_REFUSED "tenant_scoped_bearer_refused"

/* tenants_admit - one more request: tenants_find(), @verb (0: any will do) and the rate of questions, or of
 * TENANT_INGEST. Who it is, or NULL and *ret. */
const struct tenant *tenants_admit(struct tenants *t, uint64_t credential, unsigned verb,
	uint64_t now_ns, int64_t now_wall_ns, struct tenant_refusal *ret);

/* tenants_charge - what a request of TENANT_INGEST that was admitted has brought. Who is over its rates by that is
 * not admitted until it has come back. */
void tenants_charge(
	struct tenants *t, uint64_t credential, uint64_t rows, uint64_t bytes, uint64_t now_ns);

/* tenants_charge_asked - a request of questions that was admitted brought @more besides the one it was admitted for:
 * they have to come back before the next. */
void tenants_charge_asked(struct tenants *t, uint64_t credential, unsigned more, uint64_t now_ns);

struct tenant_part {
	const char *cluster;
	uint32_t owner;   /* 1, 2, …: tokens of one key_name are one */
	unsigned percent; /* of the store, for all that are the owner's; 0: none of its own */
};

/* tenants_parts - the clusters that tokens with the verb ingest list: whose they are. One that several list is that of
 * the lowest owner. *ret is the caller's (free()), its texts are good until the next reload. */
int tenants_parts(const struct tenants *t, struct tenant_part **ret, size_t *ret_count);
