/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_http.h - the protocol at one path of an HTTP server.
 *
 * Requests are answered on the threads of a pool, in turn between those who ask, and replied to on the loop. */
#pragma once

#include "base/errinfo.h"
#include "mcp/dispatcher.h"
#include "mcp/http_transport.h"
#include "net/server/server.h"
#include "serve/serve.h"

#define MCP_HTTP_PATH "/mcp"

struct mcp_http; /* argument of the handler */

int mcp_http_new(const struct dispatcher *t, struct loop *l, struct mcp_http **ret);

/* mcp_http_free - waits for what is being answered; the server must be gone, its loop not. */
void mcp_http_free(struct mcp_http *h);
DEFINE_CLEANUP(struct mcp_http *, mcp_http_free)

bool mcp_http_is_idle(struct mcp_http *h); /* nothing is being answered */

http_handler mcp_http_handler;

/* mcp_http_serve_handler - for a server of serve.h, whose serve_arg() is the struct mcp_http. */
http_handler mcp_http_serve_handler;

/* The routes of the path, for either handler. */
#define MCP_HTTP_ROUTES(fn)                                                                        \
	{"POST", MCP_HTTP_PATH, fn, .body_max = RPC_BYTES_MAX},                                    \
		{"GET", MCP_HTTP_PATH, .handler = fn},                                             \
	{                                                                                          \
		"DELETE", MCP_HTTP_PATH, .handler = fn                                             \
	}

/* The protocol on a pair of descriptors, one message a line. */

/* mcp_stdio_run - answers what comes from @in on @out, one after the other, until @in ends. Only
 * whole messages are written to @out. 0, or -EIO with a sentence; that @out was closed is no error.
 */
int mcp_stdio_run(const struct dispatcher *t, int in, int out, struct errinfo *reterr);
