/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_node.h - which nodes are asked: addresses, in the order they were named. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/errinfo.h"
#include "net/client/client.h"

#define FANOUT_NODES_MAX   1024
#define FANOUT_ADDRESS_LEN 272 /* a host name of 253 bytes, brackets, a port */
#define FANOUT_PORT        8080

struct fanout_node {
	struct http_endpoint endpoint;
	char address[FANOUT_ADDRESS_LEN]; /* "gpu-1:8080": how warnings name it */
};

struct fanout_nodes {
	struct fanout_node *items;
	size_t count;
};

/* fanout_nodes_add - adds what @list names, separated by commas: "gpu-1:8080,gpu-2". One that is
 * there already is not added again. Without a scheme @tls decides, without a port FANOUT_PORT.
 * -EINVAL with a sentence for what is no address; -E2BIG beyond FANOUT_NODES_MAX; -ENOMEM. Those
 * before the bad one have been added. */
int fanout_nodes_add(struct fanout_nodes *n, const char *list, bool tls, struct errinfo *reterr);
void fanout_nodes_done(struct fanout_nodes *n);
