/* SPDX-License-Identifier: Apache-2.0 */
/* stored_incidents_text.h - the incidents that are stored in a recording, as text. */
#pragma once

#include "base/buf.h"
#include "store/nodedb.h"

/* stored_incidents_text - appends those of @c. Check b->err. */
void stored_incidents_text(struct buf *b, const struct nodedb_content *c);
