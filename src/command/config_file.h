/* SPDX-License-Identifier: Apache-2.0 */
/* config_file.h - ingero.yaml: what need not be typed every time.
 *
 * Looked for in this order, and the first that is there is read: --config, $INGERO_CONFIG,
 * ./ingero.yaml, /etc/ingero/ingero.yaml, ~/.config/ingero/ingero.yaml. The first two must exist.
 * The others are left alone, and that is said, if they belong to another user or everybody may
 * write them: a file that somebody left in a folder must not decide whom we send a token to.
 *
 * A flag wins over the file. To add a key: a field here, a row in config_file.c, a line in
 * docs/commands.md. */
#pragma once

#include "base/errinfo.h"

#define CONFIG_UNSET     UINT64_MAX /* a duration that the file does not have */
#define CONFIG_BYTES_MAX (256 << 10)
#define CONFIG_LIST_MAX  1024
#define CONFIG_KEYS_MAX  32

struct config_list {
	char **items;
	size_t count;
};

/* What the file does not have is NULL, false, empty or CONFIG_UNSET. Relative paths of files have
 * become relative to the folder of ingero.yaml. */
struct config {
	char *path;                    /* of the file; NULL: there is none */
	size_t lines[CONFIG_KEYS_MAX]; /* see config_file_blame() */

	char *node, *notify; /* agent.node, agent.notify */

	struct config_list fleet_nodes; /* fleet.nodes, and so on */
	uint64_t fleet_timeout_ns, fleet_clock_skew_ns;
	char *fleet_ca_cert, *fleet_client_cert, *fleet_client_key, *fleet_token_file;
	struct config_list fleet_fingerprint;
	bool fleet_no_tls, fleet_trust_on_first_use;
	char *fleet_endpoint, *fleet_cluster_id, *fleet_threshold_url;

	char *rates_url, *rates_ca_cert; /* rates.url, rates.ca_cert */

	bool update_check; /* update.check, and so on */
	char *update_url, *update_ca_cert;

	char *dashboard_addr; /* dashboard.addr, and so on */
	char *dashboard_tls_cert, *dashboard_tls_key, *dashboard_client_ca, *dashboard_token_file;
	struct config_list dashboard_names;
};

/* config_file_choose - --config was given; @path must stay. */
void config_file_choose(const char *path);

/* config_file_load - finds the file and reads it; without one *ret is an empty configuration. The
 * caller frees it with config_free(). Exit code 78 and a sentence with file, line and column for
 * what is wrong in it. */
int config_file_load(struct config **ret, struct errinfo *reterr);

/* config_file_read - reads @path, or if @text is not NULL that as its content. */
int config_file_read(const char *path, const char *text, size_t len, struct config **ret,
	struct errinfo *reterr);

/* config_file_blame - for a value that turned out to be wrong only when it was used: the sentence
 * with the file, the line and @key ("fleet.ca_cert") in front, exit code 78. Returns @err. */
int config_file_blame(
	const struct config *c, const char *key, int err, const char *what, struct errinfo *reterr);

/* config_new - of a file that says nothing; NULL: no memory. */
DECLARE_FREE(struct config, config_free)
