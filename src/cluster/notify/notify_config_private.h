/* SPDX-License-Identifier: Apache-2.0 */
/* notify_config_private.h - what notify_config.c and notify_value.c share. Nobody else includes it. */
#pragma once

#include "cluster/notify/notify_config.h"
#include "yaml/yaml_tree.h"

#define KEPT_MAX 256

struct notify_config {
	struct yaml_tree *tree;
	const char *path;
	char *kept[KEPT_MAX];
	size_t kept_count;
	struct alert_receiver alerts[ALERT_RECEIVERS_MAX];
	size_t alert_count;
	struct forward_target targets[FORWARD_TARGETS_MAX];
	struct endpoint endpoints[FORWARD_TARGETS_MAX];
	struct endpoint_fields fields[FORWARD_TARGETS_MAX];
	size_t target_count;
	struct errinfo *reterr; /* while it is read */
};

/* notify_keep - a copy of @text that lives as long as the configuration; NULL: no memory. */
const char *notify_keep(struct notify_config *c, const char *text);

/* Values of @entry. *ret stays as it is if there is no such key. */
int notify_get_text(
	struct notify_config *c, const struct yaml_value *entry, const char *key, const char **ret);
/* relative to the folder of the configuration */
int notify_get_path(
	struct notify_config *c, const struct yaml_value *entry, const char *key, const char **ret);
/* the secret @key, of the file that @key_file names, or the variable that @key_env names */
int notify_get_secret(
	struct notify_config *c, const struct yaml_value *entry, const char *key, const char **ret);
