/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - who is told, and what.
 *
 * Who: a YAML file, `alerts:` and `forward:`, two lists.
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

#include "alert/alert_body.h"
#include "alert/alert_config.h"
#include "cluster/detect/fleet.h"
#include "cluster/notify/forward.h"
#include "cluster/store/batch.h"
#include "stream/stream_message.h"

struct notify_config;

/* notify_config_read - @path, or if @text is not NULL that as its content. Exit code 78 and a sentence
 * with file and line; no sentence holds a secret. */
int notify_config_read(const char *path, const char *text, size_t len, struct notify_config **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct notify_config, notify_config_free)

/* notify_config_alerts, notify_config_forward - what alerts_new() and forward_new() take; valid as
 * long as the configuration. */
const struct alert_receiver *notify_config_alerts(const struct notify_config *c, size_t *ret_count);
const struct forward_target *notify_config_forward(
	const struct notify_config *c, size_t *ret_count);

/* ---- what the cluster finds, as an alert, as a message of the remediation stream and as a row of the table
 * incidents. Pure. */

void notice_alert(const struct fleet_notice *n, struct alert_notice *ret);

/* notice_stream - the message for @n at @now; false: the stream has none for it, because it is about
 * no single node. Texts of *ret are of @n. The event id is the episode's, the same in all of its
 * messages. */
bool notice_stream(const struct fleet_notice *n, wall_time now, struct stream_message *ret);

void notice_row(struct batch *b, const struct fleet_notice *n, int64_t now_ns);

/* notice_row_is_due - whether an incident that lasts is to have a row again at @now_ns, after @before_ns: 1, 2,
 * 4 … s after its beginning, from a minute on every minute. */
bool notice_row_is_due(const struct fleet_episode *e, int64_t before_ns, int64_t now_ns);
