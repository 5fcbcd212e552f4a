/* SPDX-License-Identifier: Apache-2.0 */
/* alert_config.h - `alerts:` of a YAML file: the receivers of alerts.
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
 *
 * Every one may have url, per_minute, ca_cert, insecure. */
#pragma once

#include "alert/alert.h"
#include "alert/alert_value.h"

struct alert_list {
	struct alert_values *values; /* own the texts */
	struct alert_receiver receivers[ALERT_RECEIVERS_MAX];
	size_t count;
};

/* alert_config_take - adds the entries of @list. Exit code 78 and a sentence with file and line. */
int alert_config_take(struct alert_list *l, const struct yaml_value *list);
