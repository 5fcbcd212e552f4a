/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_flags.h - the flags of the fleet's core, which `fleet` and `all` have in common. */
#pragma once

#include "cluster/cli/service.h"
#include "command/option.h"

struct fleet_flags {
	double k, ema_alpha;
	uint64_t interval_ns;
	int64_t ttl_multiplier, quorum, max_nodes, nodes_per_token;
	const char *rates, *provider, *snapshot, *alerts, *forward, *forward_spool, *node_page;
	bool remediate;
};

#define FLEET_FLAGS_DEFAULTS                                                                       \
	{                                                                                          \
		.k = 2, .ema_alpha = 0.2, .interval_ns = 10 * NS_PER_S, .ttl_multiplier = 5,       \
		.quorum = 5, .max_nodes = 10000                                                    \
	}

/* Rows of a table of options; FLAG(field) is the offset of that field of a fleet_flags. */
#define FLEET_FLAGS_OPTIONS(FLAG)                                                                                          \
	{"k", 0, OPTION_NUMBER, FLAG(k), "X",                                                                              \
		"nodes this many deviations below the median are stragglers, 1 to 4 (default: 2)",                         \
		1000, 4000, false},                                                                                        \
		{"ema-alpha", 0, OPTION_NUMBER, FLAG(ema_alpha), "X",                                                      \
			"weight of the newest threshold, 0.01 to 1 (default: 0.2)", 10, 1000,                              \
			false},                                                                                            \
		{"push-interval", 0, OPTION_DURATION, FLAG(interval_ns), "TIME",                                           \
			"how often agents push (default: 10s)", 1, 0, false},                                              \
		{"ttl-multiplier", 0, OPTION_INT, FLAG(ttl_multiplier), "N",                                               \
			"forget a node after this many push intervals (default: 5)", 2, 1000,                              \
			false},                                                                                            \
		{"quorum", 0, OPTION_INT, FLAG(quorum), "N",                                                               \
			"active nodes that a threshold needs (default: 5; of a smaller job, most of it)",                  \
			1, 100000, false},                                                                                 \
		{"max-nodes", 0, OPTION_INT, FLAG(max_nodes), "N",                                                         \
			"nodes in all; more are refused (default: 10000)", 1, 1000000, false},                             \
		{"max-nodes-per-token", 0, OPTION_INT, FLAG(nodes_per_token), "N",                                         \
			"node names that one token may push (default: 0, as --max-nodes)", 0,                              \
			1000000, false},                                                                                   \
		{"rates", 0, OPTION_STRING, FLAG(rates), "FILE",                                                           \
			"prices of GPUs (default: the built-in list; see `ingero rates`)", 0, 0,                           \
			false},                                                                                            \
		{"provider", 0, OPTION_STRING, FLAG(provider), "NAME",                                                     \
			"provider of nodes that do not name theirs: aws, gcp, azure, lambda, coreweave",                   \
			0, 0, false},                                                                                      \
		{"snapshot", 0, OPTION_STRING, FLAG(snapshot), "FILE",                                                     \
			"keep what is known of the nodes over a restart in this file", 0, 0,                               \
			false},                                                                                            \
		{"alerts", 0, OPTION_STRING, FLAG(alerts), "FILE",                                                         \
			"YAML file of receivers of alerts, and of targets to forward to", 0, 0,                            \
			false},                                                                                            \
		{"forward", 0, OPTION_STRING, FLAG(forward), "URL",                                                        \
			"send everything that is received on to this OTLP endpoint: https://host:4318, grpcs://host:4317", \
			0, 0, false},                                                                                      \
		{"forward-spool", 0, OPTION_STRING, FLAG(forward_spool), "FOLDER",                                         \
			"what waits for --forward is kept here, up to 1 GiB (default: 16 MiB of memory)",                  \
			0, 0, false},                                                                                      \
		{"node-page", 0, OPTION_STRING, FLAG(node_page), "URL",                                                    \
			"the page links nodes to this address of their dashboard: 'https://{node}:8080/'",                 \
			0, 0, false},                                                                                      \
	{                                                                                                                  \
		"remediate", 0, OPTION_FLAG, FLAG(remediate), NULL,                                                        \
			"tell local programs of stragglers over the socket remediate-cluster.sock",                        \
			0, 0, false                                                                                        \
	}

int fleet_flags_check(const struct fleet_flags *f, struct errinfo *reterr);

/* fleet_flags_settings - all of a service but its addresses and who is told. */
struct service_settings fleet_flags_settings(const struct fleet_flags *f);
struct outlets_settings fleet_flags_outlets(const struct fleet_flags *f);

/* fleet_flags_rights - adds the files that are used while it runs. */
void fleet_flags_rights(const struct fleet_flags *f, struct service_rights *rights);
