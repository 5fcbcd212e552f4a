/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server_private.h"
static int begin(struct connection *c)
{
	return -1;
}
const struct protocol server_h2 = {.begin = begin};
