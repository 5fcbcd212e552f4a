/* SPDX-License-Identifier: Apache-2.0 */
/* ca_index.h - what a CA has issued: a text file with a line for each certificate, oldest first.
 *
 *   # ingero certificates 1
 *   SERIAL SHA256 FROM UNTIL CA both|client NAME NAME,ADDRESS,…
 *
 * The last line of a name is its current certificate; earlier ones were replaced. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/errinfo.h"
#include "net/pki/cert_build.h"

#define CA_INDEX_ROWS_MAX  16384
#define CA_INDEX_BYTES_MAX (16u << 20)

struct ca_row {
	char serial[CERT_HEX_MAX], fingerprint[CERT_HEX_MAX];
	int64_t from_s, until_s; /* since the epoch */
	unsigned generation;     /* of the CA that signed it */
	bool client;             /* for clients only */
	char name[CERT_NAME_LEN + 1];
	char *names; /* with commas */
};

struct ca_index {
	struct ca_row *rows;
	size_t count;
};
void ca_index_done(struct ca_index *x);

/* ca_index_parse - -EBADMSG with a sentence that names @path and the line. */
int ca_index_parse(const char *path, const char *text, size_t len, struct ca_index *ret,
	struct errinfo *reterr);
int ca_index_write(const struct ca_index *x, struct buf *b);

/* ca_index_add - copies @row, its names too. -E2BIG. */
int ca_index_add(struct ca_index *x, const struct ca_row *row);
void ca_index_remove(struct ca_index *x, size_t at);

/* ca_index_find - the current certificate of @name; NULL: none. */
const struct ca_row *ca_index_find(const struct ca_index *x, const char *name);
bool ca_index_is_current(const struct ca_index *x, size_t at);

/* ca_name_is_good - whether @name may be that of a node: it is a DNS name and a name of a folder. */
bool ca_name_is_good(const char *name);
