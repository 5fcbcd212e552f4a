/* SPDX-License-Identifier: Apache-2.0 */
/* listen_address.c - see listen_address.h. */
#include "cluster/cli/listen_address.h"

#include "base/macros.h"
#include "net/server.h"

const char *listen_address(const char *typed)
{
	return typed && typed[0] ? typed : NULL;
}

bool listen_address_any(const struct listen_addresses *a)
{
	return listen_address(a->grpc) || listen_address(a->http) || listen_address(a->api);
}

const char *listen_address_widest(const struct listen_addresses *a)
{
	const char *all[] = {a->api, a->http, a->grpc}, *found = "127.0.0.1:0";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (listen_address(all[i]) && http_is_loopback(found))
			found = all[i];
	return found;
}
