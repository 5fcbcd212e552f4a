/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_stdio.h - the protocol on a pair of descriptors, one message a line. */
#pragma once

#include "base/errinfo.h"
#include "mcp/dispatcher.h"

/* mcp_stdio_run - answers what comes from @in on @out, one after the other, until @in ends. Only
 * whole messages are written to @out. 0, or -EIO with a sentence; that @out was closed is no error.
 */
int mcp_stdio_run(const struct dispatcher *t, int in, int out, struct errinfo *reterr);
