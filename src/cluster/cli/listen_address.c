/* SPDX-License-Identifier: Apache-2.0 */
/* listen_address.c - see listen_address.h. */
#include "cluster/cli/listen_address.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "net/address.h"
#include "net/server/server.h"

const char *listen_address(const char *typed)
{
	return typed && typed[0] ? typed : NULL;
}

bool listen_address_any(const struct listen_addresses *a)
{
	return listen_address(a->grpc) || listen_address(a->http) || listen_address(a->api);
}

static bool is_low(const char *typed)
{
	const char *colon = typed ? strrchr(typed, ':') : NULL;
	long port = colon ? strtol(colon + 1, NULL, 10) : 0;

	return port > 0 && port < 1024;
}

bool listen_address_any_low(const struct listen_addresses *a)
{
	return is_low(a->grpc) || is_low(a->http) || is_low(a->api);
}

const char *listen_address_widest(const struct listen_addresses *a)
{
	const char *all[] = {a->api, a->http, a->grpc}, *found = "127.0.0.1:0";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (listen_address(all[i]) && address_text_is_loopback(found))
			found = all[i];
	return found;
}
