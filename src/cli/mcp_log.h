/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_log.h - who asked what: a line in a file for every request that `ingero mcp` answered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errinfo.h"

struct mcp_log {
	int fd; /* -1: none */
};
#define MCP_LOG_NONE ((struct mcp_log){.fd = -1})

/* mcp_log_open - appends to @path, which is made with mode 0600 if it is not there. */
int mcp_log_open(const char *path, struct mcp_log *ret, struct errinfo *reterr);
void mcp_log_close(struct mcp_log *l);

/* mcp_log_line - one write for one line, so that threads do not mix; @arg is the log. */
void mcp_log_line(void *arg, const char *method, const char *name, uint64_t ns, bool failed);
