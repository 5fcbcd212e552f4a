/* SPDX-License-Identifier: Apache-2.0 */
/* health_server.h - an address that says only whether the service lives and is ready: for those who watch
 * over it and have neither certificate nor token (kubelet, load balancers). Plain, open, no secrets. */
#pragma once

#include "net/server/server.h"

struct health_server;

struct health_server_settings {
	const char *address;
	bool (*is_ready)(void *arg, char *why, size_t size); /* false: a sentence says why */
	bool (*is_whole)(
		void *arg); /* false: /healthz says that it is degraded; NULL: it always is */
	void *arg;
};

int health_server_new(struct loop *l, const struct health_server_settings *s,
	struct health_server **ret, struct errinfo *reterr);
void health_server_free(struct health_server *h);
DEFINE_CLEANUP(struct health_server *, health_server_free)

const char *health_server_address(const struct health_server *h);
