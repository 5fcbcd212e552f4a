/* SPDX-License-Identifier: Apache-2.0 */
/* trace_earlier.h - what a file that `ingero trace` is to record to holds already. */
#pragma once

#include "base/buf.h"

/* trace_earlier - a line that says that @path has runs in it, with how many events and since when; nothing
 * for a new file, and for one that cannot be read: whoever records to it says why. */
void trace_earlier(struct buf *b, const char *path);
