/* SPDX-License-Identifier: Apache-2.0 */
/* server_access.h - who may ask a server of ours: `dashboard`, `mcp --http`, `ingero-cluster fleet`.
 *
 * Tokens that the user gave are asked of everybody. Without them, on loopback, a token is made at
 * the first start and kept beside the default recording; the user who started the server (also
 * through sudo) and root need not show it, since the kernel says whose a connection within this
 * machine is. See docs/adr/0012. */
#pragma once

#include "base/errinfo.h"
#include "command/option.h"
#include "net/loop.h"
#include "net/pki/tls.h"
#include "net/server/server.h"

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

/* How a server runs until it ends, and reads its files again. SIGTERM and SIGINT let replies
 * under way end, for as long as it has patience; a second one does not wait. SIGHUP reads files again. */

struct server_life {
	struct loop *loop;
	uint64_t patience_ns;
	void (*drain)(void *arg); /* begin to end; server_life_over() when nothing is under way */
	void (*reload)(void *arg);
	void (*ready)(void *arg); /* tell the service manager, at the beginning and after reload */
	void *arg;

	struct loop_timer *patience; /* from here on its own */
	bool stopping;
};

/* server_life_watch - watch the signals for @l, which the caller has filled in and which stays where it
 * is until server_life_done(). */
int server_life_watch(struct server_life *l, struct errinfo *reterr);
/* server_life_run - from ready to the end of the loop, once the signals are watched. */
int server_life_run(struct server_life *l, struct errinfo *reterr);
void server_life_done(struct server_life *l);

/* server_life_tell_reload - says that @what was read again, or by @r and @e why it was not. */
void server_life_tell_reload(const char *what, int r, const struct errinfo *e);

/* server_life_over - a loop_fn: ends the loop of the struct server_life @arg. */
void server_life_over(void *arg);

/* Whom commands trust that ask other machines, beside what a CA says: certificates that
 * were accepted when they were first met. */

/* trust_known_path - where they are written down; *ret is the caller's. */
int trust_known_path(char **ret, struct errinfo *reterr);

/* trust_ask - asks the user about each server that was refused because nobody knows it, as ssh does;
 * nobody is asked unless stdin and stderr are terminals. Returns how many are trusted now. */
int trust_ask(struct tls *tls, struct errinfo *reterr);

/* trust_warn - logs a warning for each certificate of @tls (NULL: none) that expires soon. */
void trust_warn(const struct tls *tls);
