/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/rows/reply.h"

#include "base/macros.h"

#define WAITED_NS  ((uint64_t)NS_PER_MS)
#define GIVEN_PORT 32768 /* from here on Linux gives them to those who connect */

bool reply_is_awaited(const struct event *e, uint32_t pid)
{
	return e->source == SOURCE_NET && e->op == NET_RECV && e->pid == pid && e->family &&
	       e->wait_ns >= WAITED_NS;
}

bool reply_is(const struct event *e, uint32_t pid)
{
	return reply_is_awaited(e, pid) && (e->peer_pid || (e->dev && e->dev < GIVEN_PORT));
}

bool reply_asks(const struct recording *rec, uint32_t pid)
{
	size_t replies = 0, all = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		all += reply_is_awaited(&rec->events[i], pid);
		replies += reply_is(&rec->events[i], pid);
	}
	return replies * 2 >= all;
}
