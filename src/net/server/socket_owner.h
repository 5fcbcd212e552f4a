/* SPDX-License-Identifier: Apache-2.0 */
/* socket_owner.h - whose process is at the other end of a connection within this machine. TCP has
 * no SO_PEERCRED; the kernel tells the owner of every socket of this network namespace by
 * sock_diag(7). */
#pragma once

#include <sys/types.h>

#include "net/address.h"

/* socket_owner - the user who made the socket at @remote that is connected to @local, as ids are
 * numbered in this user namespace. -ENOENT: there is no such socket here (it is another machine's,
 * another namespace's, or closed); -ENOSYS and others: the kernel does not tell. */
int socket_owner(const union address *remote, const union address *local, uid_t *ret);

/* socket_owner_is_one_of - whether that is known and among @users. Only for connections within
 * loopback: an address of another machine says nothing. */
bool socket_owner_is_one_of(
	const union address *remote, const union address *local, const uid_t *users, size_t count);
