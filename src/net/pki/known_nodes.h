/* SPDX-License-Identifier: Apache-2.0 */
/* known_nodes.h - the certificates that were trusted when they were first met, as ssh keeps the keys
 * of hosts: a text file with a node and the SHA-256 of its certificate on each line.
 *
 *   gpu-1:8080 3b1f…
 *
 * A node may have several lines: any of them will do. Empty lines and those that begin with # mean
 * nothing. Whoever could write the file could decide whom we talk to, so it must be its owner's. */
#pragma once

#include "net/pki/tls.h"

#define KNOWN_NODES_BYTES_MAX (1u << 20)
#define KNOWN_NODES_MAX       8192

struct known_nodes {
	struct known_node {
		char node[TLS_NODE_MAX];
		struct tls_pin pin;
		size_t line;
	} * rows;
	size_t count;
};
void known_nodes_done(struct known_nodes *k);

/* known_nodes_parse - -EBADMSG with a sentence that names @path and the line. */
int known_nodes_parse(const char *path, const char *text, size_t len, struct known_nodes *ret,
	struct errinfo *reterr);

/* known_nodes_load - without a file nobody is known. -EPERM: others may write it. */
int known_nodes_load(const char *path, struct known_nodes *ret, struct errinfo *reterr);

enum known_verdict { KNOWN_STRANGER, KNOWN_MATCH, KNOWN_CHANGED };
/* known_nodes_judge - *ret_line: of the first certificate that was known instead. */
enum known_verdict known_nodes_judge(const struct known_nodes *k, const char *node,
	const struct tls_pin *shown, size_t *ret_line);

/* known_nodes_add - in memory only. */
int known_nodes_add(struct known_nodes *k, const char *node, const struct tls_pin *pin);

/* known_nodes_remember - adds a line to the file, which is made (0600, its folder 0700) if it is not
 * there; other lines stay as they are. Two programs may do so at once. */
int known_nodes_remember(
	const char *path, const char *node, const struct tls_pin *pin, struct errinfo *reterr);
