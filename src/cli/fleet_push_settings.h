/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_push_settings.h - the options of `ingero fleet-push` as the user wrote them. */
#pragma once

#include "command/option.h"

#define FLEET_TOKEN_VARIABLE "INGERO_FLEET_TOKEN"

struct fleet_push_settings {
	const char *endpoint, *threshold_url, *cluster, *node;
	uint64_t push_interval_ns, timeout_ns, window_ns; /* timeout_ns 0: not given */
	bool insecure, stub, once, check, remediate, first_use;
	struct option_strings fingerprints;
	const char *ca, *cert, *key, *token_file;
	const char *db, *baseline, *mark, *provider, *replay;
	int64_t replay_rate, gpus, warmup, world_size, node_rank, remediate_gid;
	uint64_t poll_interval_ns, baseline_age_ns;
	double hysteresis;
	const char *workload, *mode, *remediate_socket, *otlp_endpoint;
	bool otlp_enabled, otlp_insecure;
};

extern const struct option_row fleet_push_options[];
extern const struct fleet_push_settings fleet_push_defaults;
