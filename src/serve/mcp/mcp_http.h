/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_http.h - the protocol at one path of an HTTP server.
 *
 * Requests are answered on the threads of a pool, in turn between those who ask, and replied to on the loop. */
#pragma once

#include "serve/serve.h"
#include "mcp/http_transport.h"
#include "net/server/server.h"

#define MCP_HTTP_PATH    "/mcp"
#define MCP_HTTP_AT_ONCE 4  /* requests being answered */
#define MCP_HTTP_QUEUE   64 /* waiting; more are told to come again (503) */

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
