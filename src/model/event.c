/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - see event.h. */
#include "model/event.h"

#include <arpa/inet.h>

/* The table of copies. */

const char *const copy_direction_names[] = {
#define X(NAME, name) [COPY_##NAME] = (name),
	COPY_DIRECTIONS(X)
#undef X
};

static const struct {
	unsigned char source, op, direction;
	bool has_kind;
} copies[] = {
	{SOURCE_CUDA, CUDA_MEMCPY, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_ASYNC, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_2D, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_2D_ASYNC, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_PEER, COPY_D2D, false},
	{SOURCE_CUDA, CUDA_MEMCPY_PEER_ASYNC, COPY_D2D, false},
	{SOURCE_CUDA, CUDA_MEMCPY_3D, COPY_UNKNOWN, false},
	{SOURCE_CUDA, CUDA_MEMCPY_3D_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_CUDA, CUDA_MEMCPY_BATCH, COPY_UNKNOWN, false},
	{SOURCE_CUDA, CUDA_MEMCPY_ATTRIBUTES, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_HTOD, COPY_H2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOH, COPY_D2H, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOD, COPY_D2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_HTOD_ASYNC, COPY_H2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOH_ASYNC, COPY_D2H, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOD_ASYNC, COPY_D2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_3D, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_3D_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_BATCH, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_2D, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_2D_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_PEER, COPY_D2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_PEER_ASYNC, COPY_D2D, false},
};

int copy_direction(unsigned source, unsigned op)
{
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		if (copies[i].source == source && copies[i].op == op)
			return copies[i].direction;
	return -1;
}

bool copy_has_kind(unsigned source, unsigned op)
{
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		if (copies[i].source == source && copies[i].op == op)
			return copies[i].has_kind;
	return false;
}

int event_copy_direction(const struct event *e)
{
	int direction = copy_direction(e->source, e->op);

	if (direction == COPY_UNKNOWN && copy_has_kind(e->source, e->op) &&
		e->arg1 < COPY_DIRECTION_COUNT)
		direction = (int)e->arg1;
	return direction;
}

const char *event_peer(const struct event *e, char out[EVENT_PEER_MAX])
{
	char text[INET6_ADDRSTRLEN];

	out[0] = 0;
	if (!e->family)
		return out;
	if (!inet_ntop(e->family, e->peer_addr, text, sizeof(text)))
		snprintf(text, sizeof(text), "family %u", e->family);
	snprintf(out, EVENT_PEER_MAX, e->family == AF_INET6 ? "[%s]:%u" : "%s:%u", text,
		(unsigned)(e->source == SOURCE_NET ? e->dev : e->arg1 & UINT16_MAX));
	return out;
}

void event_peer_set(struct event *e, const char *text)
{
	bool is_six = text[0] == '[';
	const char *start = text + is_six, *end = strrchr(start, is_six ? ']' : ':');
	char host[INET6_ADDRSTRLEN];
	uint8_t addr[COMM_LEN] = {0};

	if (!end || (size_t)(end - start) >= sizeof(host))
		return;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = 0;
	if (inet_pton(is_six ? AF_INET6 : AF_INET, host, addr) != 1)
		return;
	e->family = is_six ? AF_INET6 : AF_INET;
	memcpy(e->peer_addr, addr, sizeof(addr));
}

bool event_peer_is_here(const struct event *e)
{
	static const uint8_t six[16] = {[15] = 1}, mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (e->family == AF_INET)
		return e->peer_addr[0] == 127;
	if (e->family != AF_INET6)
		return false;
	return !memcmp(e->peer_addr, six, sizeof(six)) ||
	       (!memcmp(e->peer_addr, mapped, sizeof(mapped)) && e->peer_addr[12] == 127);
}
