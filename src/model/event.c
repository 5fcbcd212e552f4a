/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - see event.h. */
#include "model/event.h"

#include <arpa/inet.h>
#include <stdio.h>

const char *event_peer(const struct event *e, char out[EVENT_PEER_MAX])
{
	char text[INET6_ADDRSTRLEN];

	out[0] = 0;
	if (!e->family)
		return out;
	if (!inet_ntop(e->family, e->peer_addr, text, sizeof(text)))
		snprintf(text, sizeof(text), "family %u", e->family);
	snprintf(out, EVENT_PEER_MAX, e->family == AF_INET6 ? "[%s]:%u" : "%s:%u", text,
		(unsigned)(e->arg1 & UINT16_MAX));
	return out;
}
