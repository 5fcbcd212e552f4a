/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - a configuration that may be shown to others. */
#pragma once

#include "base/buf.h"

/* mask_yaml - appends the YAML @text line by line without its comments; the values of keys that sound
 * like secrets, and in URLs users, passwords and queries, become "***". A key that names a file or a
 * variable (_file, _env, _cert) keeps its value. */
void mask_yaml(struct buf *b, const char *text);
