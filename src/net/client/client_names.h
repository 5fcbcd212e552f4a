/* SPDX-License-Identifier: Apache-2.0 */
/* client_names.h - host names to addresses, without waiting and without the C library's resolver.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/macros.h"

struct event_base;
struct client_names;
struct client_lookup;

#define CLIENT_ADDRESSES 8 /* of one name; further ones are not tried */

struct client_addresses {
	struct sockaddr_storage at[CLIENT_ADDRESSES];
	size_t count;
};

/* @err 0, or -ENOENT: there is no such host; -EACCES: it leads where a name may not lead; -EHOSTUNREACH: no name server
 * answered; -ENOMEM. */
typedef void client_names_done(void *arg, int err, const struct client_addresses *a);

/* client_names_new - @root is what /etc/hosts and /etc/resolv.conf lie below: "" but for tests; it
 * must live as long as this. */
int client_names_new(struct event_base *base, const char *root, struct client_names **ret);
/* client_names_free - lookups that are under way are cancelled by their owners before. What evdns
 * still holds of these is given back by a later turn of the loop. */
void client_names_free(struct client_names *n);
DEFINE_CLEANUP(struct client_names *, client_names_free)

/* client_names_lookup - @done may run from within: *ret is NULL then. Addresses and "localhost" are
 * never asked for. */
int client_names_lookup(struct client_names *n, const char *host, uint16_t port,
	client_names_done *done, void *arg, struct client_lookup **ret);
void client_names_cancel(struct client_lookup *l); /* @done will not run */

/* client_address_is_loopback - whether only this machine can be behind it. */
bool client_address_is_loopback(const struct sockaddr_storage *a);
