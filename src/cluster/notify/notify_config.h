/* SPDX-License-Identifier: Apache-2.0 */
/* notify_config.h - the YAML file that says who is told: `alerts:` and `forward:`, two lists.
 *
 *   alerts:
 *     - type: slack
 *       url_file: /etc/ingero/slack-url     # the webhook's address is its secret
 *       channel: "#gpu"
 *       username: ingero
 *     - type: pagerduty
 *       routing_key_env: PAGERDUTY_KEY
 *       severity: critical                  # info, warning (default), error, critical
 *     - type: alertmanager
 *       url: https://alertmanager:9093
 *       bearer_file: token                  # optional
 *       repeat: 60s
 *     - type: webhook
 *       url: https://example.com/hook
 *       secret_file: hook-secret            # optional: signs every request
 *   forward:
 *     - endpoint: grpcs://collector:4317
 *       protocol: grpc                      # http/protobuf, http/json, grpc; else by the scheme
 *       headers_file: headers               # name=value,name=value
 *       spool: /var/lib/ingero/forward      # without it: 16 MiB of memory
 *       spool_size: 1g
 *
 * Every alert may have url, per_minute, ca_cert, insecure; a target ca_cert, client_cert,
 * client_key, insecure. A secret comes from a file that only its owner may read (X_file) or from the
 * environment (X_env), never from this file. Paths are relative to the folder of the file. */
#pragma once

#include "cluster/notify/alert.h"
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
