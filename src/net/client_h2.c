/* SPDX-License-Identifier: Apache-2.0 */
/* client_h2.c - interim: gRPC follows. */
#include <errno.h>

#include "net/client_private.h"

static int open_h2(struct client_conn *c)
{
	(void)c;
	return -EOPNOTSUPP;
}

const struct client_protocol client_h2 = {.alpn = "\x02h2", .calls_max = 1, .open = open_h2};

void client_h2_tell(struct http_call *call)
{
	call->grpc_done(call->arg, 0, NULL, NULL, 0, call->err, &call->errinfo);
}
