/* SPDX-License-Identifier: Apache-2.0 */
/* server_access.h - who may ask a server of ours: `dashboard`, `mcp --http`, `ingero-cluster fleet`.
 *
 * Tokens that the user gave are asked of everybody. Without them, on loopback, a token is made at
 * the first start and kept beside the default recording; the user who started the server (also
 * through sudo) and root need not show it, since the kernel says whose a connection within this
 * machine is. See docs/adr/0012. */
#pragma once

#include <stdio.h>

#include "net/server/server.h"

#define SERVER_TOKEN_FILE "token" /* in ~/.ingero */

struct server_access_options {
	const char *address;
	const char *token_file; /* NULL: of the variable */
	const char *variable;
	const char *client_ca; /* who has its certificate needs no token */
	bool no_token;
};

struct server_access {
	struct token_set *tokens; /* NULL: nobody is asked for one */
	uid_t owners[3];          /* who need none */
	size_t owner_count;
	char *made; /* the token that was made here; NULL: it was given */
	char *path; /* where it is kept; NULL: nowhere, it ends with this process */
};

/* server_access_check - options that contradict each other. -EINVAL with a sentence. */
int server_access_check(const struct server_access_options *o, struct errinfo *reterr);

int server_access_open(
	const struct server_access_options *o, struct server_access *ret, struct errinfo *reterr);
void server_access_done(struct server_access *a);

/* server_access_reload - reads certificates (@tls may be NULL) and tokens again, all or nothing. */
int server_access_reload(struct server_access *a, const struct server_access_options *o,
	struct tls *tls, struct errinfo *reterr);

/* server_access_say - prints who has to show a token; to a terminal also a link that holds it, to
 * the page at @url, unless that is NULL. */
void server_access_say(const struct server_access *a, FILE *out, const char *url);

/* server_tls_check - flags that contradict each other. @off is the flag by which TLS was turned off, else NULL.
 * -EINVAL with a sentence. */
int server_tls_check(const struct tls_server_settings *s, const char *off, struct errinfo *reterr);

/* server_tls_open - as tls_server_new(); without a certificate of the caller's, a self-signed one is kept in
 * the state folder. */
int server_tls_open(const struct tls_server_settings *s, struct tls **ret, struct errinfo *reterr);

/* state_folder - where certificate and token are kept, made if it is missing: the folder of the default
 * recording; for root, of a program that has one, that of its service. The caller frees *ret. */
int state_folder(char **ret, struct errinfo *reterr);

/* state_folder_is_roots - it is that of the service. */
bool state_folder_is_roots(void);
