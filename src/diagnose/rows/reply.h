/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - whether a process asks others over sockets, or is asked: by its receives that it had to wait for. */
#pragma once

#include "diagnose/recording.h"

/* reply_is_awaited - whether @e is such a receive of @pid. reply_is - and from somebody who listens: at the other end of a
 * server's connections is a port that was given to who connects. */
bool reply_is_awaited(const struct event *e, uint32_t pid);
bool reply_is(const struct event *e, uint32_t pid);

/* reply_asks - whether @pid asks, if it does either: most of them are replies. */
bool reply_asks(const struct recording *rec, uint32_t pid);
