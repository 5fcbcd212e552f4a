/* SPDX-License-Identifier: Apache-2.0 */
/* echo_server.h - the address at which the cluster's memory is asked: MCP, /api/v2, metrics, health.
 *
 *   POST /mcp                     the tools of tool.h, and the prompt `investigate`
 *   GET  /api/v2/tools/list       the tools with their schemas
 *   POST /api/v2/tools/NAME       one of them; arguments are the body, a JSON object. GET: of the query
 *   POST /api/v2/sql              {"query": "SELECT …", "limit": 1000}
 *   GET  /api/v2/openapi.json     all that as OpenAPI 3.1
 *   GET  /api/v2/health, /api/v2/whoami, /metrics
 *   GET  /api/versions, /livez, /readyz, /healthz   without a token
 *        /api/v1/…                410
 *
 * Belongs to the thread that runs its loop, which never waits for the store: questions run on threads of a
 * pool. What may be seen is said by the token alone. */
#pragma once

#include "cluster/store/store.h"
#include "cluster/tenant/audit.h"
#include "cluster/tenant/tenants.h"
#include "model/metric.h"
#include "net/server/server.h"

struct echo_server;

struct echo_server_settings { /* everything is the caller's and outlives the server */
	struct store *store;
	struct tenants *tenants; /* NULL: who is let in may do everything */
	struct audit *audit;     /* NULL: none */
	/* Without routes and arg; tokens: tenants_tokens(). */
	struct http_server_settings http;
	bool v1; /* /api/v1 is somebody's, of @routes: it is not answered with 410 */
	/* Further routes, each with what its handler is given, ended by a method of NULL; NULL: none. */
	const struct http_route *routes;
	/* Further metrics (keeper, journal, receiver); NULL: none. */
	void (*metrics)(void *arg, struct metric_set *s);
	/* Whether the rest is well: false and a sentence, which /readyz and /api/v2/health show; NULL: it
	 * is. */
	bool (*is_well)(void *arg, char *why, size_t size);
	void *arg;
};

int echo_server_new(struct loop *l, const struct echo_server_settings *s, struct echo_server **ret,
	struct errinfo *reterr);

/* echo_server_free - waits for the questions under way. */
DECLARE_FREE(struct echo_server, echo_server_free)

const char *echo_server_address(const struct echo_server *e);

/* echo_server_set_ready - what /readyz says; "no" until it is called. */
void echo_server_set_ready(struct echo_server *e, bool ready);

/* echo_server_stop_taking - from now on questions are answered with 503 and Retry-After; health goes on. */
void echo_server_stop_taking(struct echo_server *e);

/* echo_server_drain - see http_server_drain(). */
void echo_server_drain(struct echo_server *e, loop_fn *done, void *arg);
