/* SPDX-License-Identifier: Apache-2.0 */
/* support_bundle.h - `check --support-bundle`: a tar file with what somebody who helps asks for first.
 * No events, no arguments, no secrets; names of traced programs only in a log that the user names. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"

struct support_bundle {
	const char *path;
	const char *check_json;
	const char *db;  /* NULL: the default one, if it is there */
	const char *log; /* NULL: none */
};

/* support_bundle_write - makes the file, which must not be there yet, and tells on stderr what is in it. */
int support_bundle_write(const struct support_bundle *s, struct errinfo *reterr);

/* A configuration that may be shown to others. */

/* mask_yaml - appends the YAML @text line by line without its comments; the values of keys that sound
 * like secrets, and in URLs users, passwords and queries, become "***". A key that names a file or a
 * variable (_file, _env, _cert) keeps its value. */
void mask_yaml(struct buf *b, const char *text);
