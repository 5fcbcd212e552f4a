/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_node.h - where this node is: whose cloud it is in, and which nodes it is compared with.
 *
 * Clouds are known by their metadata services, which are only asked when a user wants it: they are addresses
 * outside. */
#pragma once

#include "base/clock.h"
#include "net/client/client.h"
#include "push/push.h"

#define PROVIDER_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define PROVIDER_MAX     16
#define PROVIDER_ASK_NS  (500 * NS_PER_MS) /* for each question */

/* Where the services are. */
struct provider_endpoints {
	struct http_endpoint aws, gcp, azure;
};
extern const struct provider_endpoints provider_defaults;

/* pusher_provider_ask - "aws", "gcp", "azure", or "" if none answers as it should. All are asked at once;
 * no proxy is used and no redirect is followed. */
void pusher_provider_ask(const struct provider_endpoints *where, char ret[PROVIDER_MAX]);

/* pusher_provider_detect - the same at the usual addresses. */
void pusher_provider_detect(char ret[PROVIDER_MAX]);

/* pusher_provider_is_instance - "i-" and 8 to 17 hexadecimal digits, as AWS names its instances. */
bool pusher_provider_is_instance(const char *id, size_t len);

/* ---- names of control groups and of the nodes that are compared with each other ---- */

/* pusher_group_hash - the first 16 digits of the SHA-256 of a control group's path: the same for the
 * same path, on every node. "" for "". */
void pusher_group_hash(const char *path, char ret[PUSH_HASH_MAX]);

/* pusher_cohort_hash - of what the node works on: the job if its launcher has said one, else the control
 * group of the workload without what is different for each pod, container and run (long hexadecimal
 * numbers, UUIDs, numbers). The kind of work is part of it. Nodes of one job thus have one cohort,
 * however their pods are called; "" if nothing is known. */
void pusher_cohort_hash(
	const char *workload, const char *job, const char *cgroup, char ret[PUSH_HASH_MAX]);
