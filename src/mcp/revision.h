/* SPDX-License-Identifier: Apache-2.0 */
/* revision.h - the revisions of the Model Context Protocol that are spoken, and how they differ.
 *
 * Up to 2025-11-25 a client begins with `initialize`, which agrees on a revision; from 2026-07-28
 * every request says its revision itself and nothing is remembered. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

struct revision {
	const char *name; /* NULL ends the table */
	bool stateless;   /* no handshake: each request brings its metadata */
	bool batches;     /* several messages in an array are allowed */
	bool structured;  /* answers have structured content */
	int no_resource;  /* code for a resource that is not there */
};

extern const struct revision revisions[]; /* newest first */

/* revision_find - NULL if @name is not spoken. */
const struct revision *revision_find(const char *name);

/* revision_agree - what `initialize` answers: @asked, or the newest that has a handshake. */
const struct revision *revision_agree(const char *asked);

/* revision_assumed - for a request over HTTP that names none: the one that had no field for it. */
const struct revision *revision_assumed(void);

json_t *revision_names(void);
