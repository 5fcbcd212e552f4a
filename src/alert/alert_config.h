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
#include "base/errinfo.h"
#include "yaml/yaml_tree.h"

/* Values of a YAML file that says who is told: texts, paths relative to its folder, and
 * secrets, which come from files or the environment, never from the file itself. What is kept is wiped
 * at the end. Every sentence names file and line; none tells a secret. */

#define ALERT_KEPT_MAX 256

struct alert_values {
	struct yaml_tree *tree;
	const char *path;
	char *kept[ALERT_KEPT_MAX];
	size_t kept_count;
};

/* alert_values_read - @path, or if @text is not NULL that as its content. */
int alert_values_read(struct alert_values *c, const char *path, const char *text, size_t len,
	struct errinfo *reterr);
void alert_values_done(struct alert_values *c);

struct alert_key { /* of an entry, and where its value goes */
	const char *key;
	unsigned of; /* kinds of entries that have it */
	unsigned
		secret_of; /* where it is a secret text, which may only be given as key_file or key_env */
	enum {
		ALERT_TEXT,
		ALERT_PATH, /* relative to the folder of the file */
		ALERT_BOOL,
		ALERT_SIZE,
		ALERT_DURATION,
		ALERT_NUMBER, /* unsigned, 1 to ALERT_NUMBER_MAX */
		ALERT_ELSEWHERE,
	} form;
	size_t offset;
};

#define ALERT_NUMBER_MAX 1000

/* alert_read_entry - the values of @entry, which is of kind @of and must have no other keys than @rows, into @ret. What
 * has no value stays as it is there. */
int alert_read_entry(struct alert_values *c, const struct yaml_value *entry,
	const struct alert_key *rows, size_t count, unsigned of, void *ret);

/* alert_take_list - calls @take for each entry of @list, of which there may be @max. */
typedef int alert_take_fn(void *arg, const struct yaml_value *entry);
int alert_take_list(const struct yaml_value *list, size_t max, alert_take_fn *take, void *arg);

struct alert_list {
	struct alert_values *values; /* own the texts */
	struct alert_receiver receivers[ALERT_RECEIVERS_MAX];
	size_t count;
};

/* alert_config_take - adds the entries of @list. Exit code 78 and a sentence with file and line. */
int alert_config_take(struct alert_list *l, const struct yaml_value *list);
