/* SPDX-License-Identifier: Apache-2.0 */
/* notify_config.h - the YAML file that says who is told: `alerts:` and `forward:`, two lists.
 *
 *   alerts: …                              # alert/alert_config.h
 *   forward:
 *     - endpoint: grpcs://collector:4317
 *       protocol: grpc                      # http/protobuf, http/json, grpc; else by the scheme
 *       headers_file: headers               # name=value,name=value
 *       spool: /var/lib/ingero/forward      # without it: 16 MiB of memory
 *       spool_size: 1g
 *
 * A target may have ca_cert, client_cert, client_key, insecure. A secret comes from a file that only its owner may read (X_file) or from the
 * environment (X_env), never from this file. Paths are relative to the folder of the file. */
#pragma once

#include "alert/alert_config.h"
#include "cluster/notify/forward.h"

struct notify_config;

/* notify_config_read - @path, or if @text is not NULL that as its content. Exit code 78 and a sentence
 * with file and line; no sentence holds a secret. */
int notify_config_read(const char *path, const char *text, size_t len, struct notify_config **ret,
	struct errinfo *reterr);
void notify_config_free(struct notify_config *c);
DEFINE_CLEANUP(struct notify_config *, notify_config_free)

/* notify_config_alerts, notify_config_forward - what alerts_new() and forward_new() take; valid as
 * long as the configuration. */
const struct alert_receiver *notify_config_alerts(const struct notify_config *c, size_t *ret_count);
const struct forward_target *notify_config_forward(
	const struct notify_config *c, size_t *ret_count);
