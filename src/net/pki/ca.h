/* SPDX-License-Identifier: Apache-2.0 */
/* ca.h - a small certificate authority in a folder, for the nodes of one fleet.
 *
 *   ca.key   key and certificate of the CA that signs (0600)
 *   ca.pem   what the fleet has to trust: that certificate; during a rotation the one before too
 *   index    what was issued (ca.h)
 *   nodes/NAME/SERIAL/{ca,cert,key}.pem, and nodes/NAME/current, a link to the last
 *
 * The folder is its owner's alone (0700), and so is what is made in it. Every file appears whole or
 * not at all; whoever changes something holds a lock on the folder, others wait. A certificate is in
 * the index before it is anywhere else. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "net/pki/cert.h"

/* What a CA has issued: a text file with a line for each certificate, oldest first.
 *
 *   # ingero certificates 1
 *   SERIAL SHA256 FROM UNTIL CA both|client NAME NAME,ADDRESS,…
 *
 * The last line of a name is its current certificate; earlier ones were replaced. */

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

#define CA_DAYS      3650
#define CA_NODE_DAYS 365
#define CA_DAYS_MAX  36500
#define CA_WARN_DAYS 30

struct ca;

/* ca_init - makes the CA in @dir, which is not there yet, or empty. @permit: names that it may sign
 * for, DNS domains and networks ("10.0.0.0/8"); NULL-terminated; NULL: any. */
int ca_init(const char *dir, const char *const *permit, int days, struct errinfo *reterr);

/* ca_open - -ENOENT with a sentence if there is none, -EPERM if others may look into it. What an
 * interrupted rotation has left is put right if @write. */
int ca_open(const char *dir, bool write, struct ca **ret, struct errinfo *reterr);
DECLARE_FREE(struct ca, ca_free)

struct ca_request {
	const char *name;
	const char *const *names; /* further DNS names and addresses; NULL-terminated or NULL; of a
				     rotation NULL: those it has */
	bool client;              /* for clients only; a rotation keeps what it is */
	int days;                 /* 0: CA_NODE_DAYS, of a rotation as long as the last one */
	bool rotate;              /* replaces the current one, which must be there */
	const char *out;          /* a folder that is not there yet */
	const char *bundle;       /* or a file: a tar archive. NULL both: below nodes/ */
};

struct ca_issued {
	struct ca_row row; /* its names are the CA's */
	char place[4096];  /* of ca.pem, cert.pem and key.pem */
};

int ca_issue(
	struct ca *ca, const struct ca_request *q, struct ca_issued *ret, struct errinfo *reterr);

/* ca_rotate - a new CA signs from now on; ca.pem holds both. -EBUSY: that is so already. */
int ca_rotate(struct ca *ca, int days, struct errinfo *reterr);
/* ca_finish - the one before is no longer in ca.pem. -EBUSY with a sentence if nodes still have
 * current certificates of it, unless @force. -ENOENT: there is no rotation to finish. */
int ca_finish(struct ca *ca, bool force, struct errinfo *reterr);

struct ca_authority {
	char serial[CERT_HEX_MAX], fingerprint[CERT_HEX_MAX];
	int64_t from_s, until_s;
	unsigned generation;
};
#define CA_AUTHORITIES_MAX 8
/* ca_authorities - those in ca.pem; the first one signs. */
size_t ca_authorities(const struct ca *ca, struct ca_authority out[CA_AUTHORITIES_MAX]);
const struct ca_index *ca_issued(const struct ca *ca);
const char *ca_dir(const struct ca *ca);
