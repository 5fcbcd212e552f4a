/* SPDX-License-Identifier: Apache-2.0 */
/* listen_address.h - the addresses of a service, as they were typed. */
#pragma once

#include <stdbool.h>

struct listen_addresses { /* "" or NULL: not opened */
	const char *grpc, *http, *api;
};

/* listen_address - NULL: this port is not wanted. */
const char *listen_address(const char *typed);

bool listen_address_any(const struct listen_addresses *a); /* one is wanted */

bool listen_address_any_low(
	const struct listen_addresses *a); /* one has a port that only root may open */

/* listen_address_widest - the one that most people can reach: its needs are those of all. */
const char *listen_address_widest(const struct listen_addresses *a);
