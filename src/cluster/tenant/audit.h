/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - who asked for what: an append-only file of JSON lines, each with its number and the SHA-256 of
 * the line before it, so that a line that was changed, taken out or put in is seen. Tokens are never in it.
 *
 * Beyond AUDIT_BYTES_MAX the file becomes PATH.1, that PATH.2, … up to AUDIT_FILES_MAX; numbers and sums
 * go on over all of them. Lines that were cut off at the end are not missed by those before them: note the
 * last sum elsewhere from time to time, and have it looked for. */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"
#include "net/digest.h"

#define AUDIT_BYTES_MAX (16u << 20)
#define AUDIT_FILES_MAX 64
#define AUDIT_TEXT_MAX  4096 /* of the text of an entry */

struct audit;

/* audit_open - @path is made, for its owner alone; a file that is there is verified and gone on with, a
 * line that a crash has left incomplete at its end is removed. -EAGAIN: another process writes it;
 * -EBADMSG: see audit_verify(). */
int audit_open(const char *path, struct audit **ret, struct errinfo *reterr);
DECLARE_FREE(struct audit, audit_free)

struct audit_entry {
	int64_t wall_ns;
	const char *key_name; /* "" of a plain token, or of none */
	uint64_t credential;  /* number of the token: the first bytes of its SHA-256 */
	const char *peer;     /* address */
	const char *action;   /* "tool fleet_cluster_summary", "sql", "ingest", "denied" */
	const char *text;     /* SQL, arguments as JSON; cut at 4 KiB; NULL: none */
	int status;           /* as of HTTP */
	uint64_t rows, bytes, ns;
};

/* audit_write - from any thread. In the file when it returns, on disk within about a second. A negative
 * errno: it could not be written, which is logged; asking goes on, and the next line says how many are
 * missing. */
int audit_write(struct audit *a, const struct audit_entry *e);

struct audit_span {
	uint64_t first, last;    /* numbers of lines; 0: there are none */
	char before[DIGEST_HEX]; /* the sum of the line before the first: zeros if there is none */
	char head[DIGEST_HEX];   /* and that of the last */
	uint64_t bytes;          /* up to the end of the last whole line */
	bool is_torn;            /* an incomplete line follows */
	bool has_noted;          /* @noted is the sum of one of them */
};

/* audit_verify - -EBADMSG with the place of the first line that is not whole and in order. @noted: a sum
 * to look for; NULL: none. */
int audit_verify(
	const char *path, const char *noted, struct audit_span *ret, struct errinfo *reterr);

#define AUDIT_ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define LINE_MAX_BYTES                                                                             \
	(64u << 10) /* a text of AUDIT_TEXT_MAX bytes that are all escaped, and the rest */
