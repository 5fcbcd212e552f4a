/* SPDX-License-Identifier: Apache-2.0 */
/* api_server.h - the API address of the cluster service: answers, metrics, page, health.
 *
 * Belongs to the thread that runs its loop, which is the core's: an answer is written between two
 * pushes, so that all of it is of one moment. Every answer has a ceiling. */
#pragma once

#include "cluster/detect/fleet.h"
#include "model/metric.h"
#include "net/server/server.h"

struct api_server;

struct api_server_settings {
	struct fleet *fleet;
	/* Without routes and arg. No address: another server has the routes, and api_server_answer(). */
	struct http_server_settings http;
	int64_t (*now)(void *arg); /* the core's clock */
	/* Further metrics, of the rooms beside the core; NULL: none. */
	void (*more)(void *arg, struct metric_set *s);
	void *arg;
	const char
		*node_page; /* address of a node's own page, {node} for its name; NULL: not told */
};

int api_server_new(struct loop *l, const struct api_server_settings *s, struct api_server **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct api_server, api_server_free)

const char *api_server_address(const struct api_server *a); /* NULL: it has none */

/* api_server_routes - what it answers; a method of NULL ends the table, which goes with @a. Their handlers
 * are its own: whoever puts the routes into another server hands what comes to api_server_answer(). */
const struct http_route *api_server_routes(const struct api_server *a);
void api_server_answer(struct api_server *a, struct http_exchange *x, const struct http_request *q);

/* api_server_metrics - what /metrics shows. */
void api_server_metrics(struct api_server *a, struct metric_set *s);

/* api_server_set_ready - what /readyz says; "no" until it is called. */
void api_server_set_ready(struct api_server *a, bool ready);

/* api_server_drain - see http_server_drain(). */
void api_server_drain(struct api_server *a, loop_fn *done, void *arg);
