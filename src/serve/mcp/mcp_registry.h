/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_registry.h - the agent by the Model Context Protocol: a recording's tools, resources, prompt.
 *
 * Everything only reads. A server owns nothing that changes, so that any number of threads may
 * answer with one. */
#pragma once

#include "base/errinfo.h"
#include "mcp/dispatcher.h"
#include "mcp/http_transport.h"
#include "mcp/registry.h"
#include "net/server/server.h"
#include "serve/serve.h"

struct fanout_question;
struct fanout_result;
struct nodedb_packed;

struct mcp_demo {         /* a recorded run that run_demo explains */
	const char *name; /* NULL ends the table */
	const char *title;
	const struct nodedb_packed *recording;
};

struct mcp_settings {
	const char *db;               /* the recording; need not be there yet */
	const char *version;          /* of this program */
	const struct mcp_demo *demos; /* NULL: none */
	/* What get_check tells of the kernel; NULL: it looks when it is asked. */
	const struct check_probes *probes;
	/* Asks the nodes of the configuration; on the thread that answers. -ENOENT with a sentence:
	 * none are named. NULL: there is no fleet. */
	int (*ask_fleet)(
		const struct fanout_question *q, struct fanout_result *ret, struct errinfo *reterr);
	/* Told of every request, on the thread that answered it; NULL: nobody. See mcp/registry.h. */
	void (*answered)(void *arg, const char *method, const char *name, uint64_t ns, bool failed);
	void *answered_arg;
};

struct mcp_server;

/* mcp_server_new - the settings are copied, their texts and tables are not. -ENOMEM. */
int mcp_server_new(const struct mcp_settings *s, struct mcp_server **ret, struct errinfo *reterr);
DECLARE_FREE(struct mcp_server, mcp_server_free)

/* mcp_server_dispatcher - for http_transport_answer() and dispatcher_line(); calls of tools may take seconds. */
const struct dispatcher *mcp_server_dispatcher(const struct mcp_server *s);

/* What tools and resources see as call->arg. */
static inline const struct mcp_settings *mcp_settings_of(const struct call *c)
{
	return c->arg;
}

/* ---- the protocol at one path of an HTTP server.
 *
 * Requests are answered on the threads of a pool, in turn between those who ask, and replied to on the loop. */

#define MCP_HTTP_PATH "/mcp"

struct mcp_http; /* argument of the handler */

int mcp_http_new(const struct dispatcher *t, struct loop *l, struct mcp_http **ret);

/* mcp_http_free - waits for what is being answered; the server must be gone, its loop not. */
DECLARE_FREE(struct mcp_http, mcp_http_free)

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
