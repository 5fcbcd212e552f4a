/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - who asked for what: an append-only file of JSON lines, each with the SHA-256 of the line before
 * it, so that a line that was changed or taken out is seen. Tokens are never in it. */
#pragma once

#include <stdint.h>

#include "base/errinfo.h"
#include "base/macros.h"

struct audit;

/* audit_open - @path is made, for its owner alone; a file that is there is verified and gone on with. */
int audit_open(const char *path, struct audit **ret, struct errinfo *reterr);
void audit_free(struct audit *a);
DEFINE_CLEANUP(struct audit *, audit_free)

struct audit_entry {
	int64_t wall_ns;
	const char *key_name; /* "" of a plain token, or of none */
	uint64_t credential;  /* number of the token: the first bytes of its SHA-256 */
	const char *peer;     /* address */
	const char *action;   /* "tool fleet.cluster.summary", "sql", "ingest", "denied" */
	const char *text;     /* SQL, arguments as JSON; cut at 4 KiB; NULL: none */
	int status;           /* as of HTTP */
	uint64_t rows, bytes, ns;
};

/* audit_write - -EIO, -ENOSPC: it could not be written, which is said on stderr once; asking goes on. */
int audit_write(struct audit *a, const struct audit_entry *e);

/* audit_verify - *ret_lines are whole and in order; -EBADMSG with the number of the first that is not. */
int audit_verify(const char *path, uint64_t *ret_lines, struct errinfo *reterr);
