/* SPDX-License-Identifier: Apache-2.0 */
/* blame_text.h - the service's answer to /api/v1/blame for people. Pure. */
#pragma once

#include "base/buf.h"

/* blame_text - appends what the JSON in @body says: a sentence for each episode, or what was examined.
 * Everything foreign is escaped for a terminal. -EBADMSG: it is not such an answer; -ENOMEM. */
int blame_text(struct buf *b, const char *body, size_t len);
