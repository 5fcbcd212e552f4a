/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_provider.h - whose cloud this machine is in, by the metadata services of those clouds. Only asked
 * for when a user wants it: it talks to addresses outside. */
#pragma once

#include "base/clock.h"
#include "net/client/client.h"

#define PROVIDER_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define PROVIDER_MAX     16
#define PROVIDER_ASK_NS  (500 * NS_PER_MS) /* for each question */

/* Where the services are. */
struct provider_endpoints {
	struct http_endpoint aws, gcp, azure;
};
extern const struct provider_endpoints provider_defaults;

/* pusher_provider_ask - "aws", "gcp", "azure", or "" if none answers as it should. All are asked at once;
 * no proxy is used and no redirect is followed. */
void pusher_provider_ask(const struct provider_endpoints *where, char ret[PROVIDER_MAX]);

/* pusher_provider_detect - the same at the usual addresses. */
void pusher_provider_detect(char ret[PROVIDER_MAX]);

/* pusher_provider_is_instance - "i-" and 8 to 17 hexadecimal digits, as AWS names its instances. */
bool pusher_provider_is_instance(const char *id, size_t len);
