/* SPDX-License-Identifier: Apache-2.0 */
/* ca_private.h - an open CA as ca.c and ca_folder.c see it, and where its certificates are put. */
#pragma once

#include <limits.h>

#include "net/pki/ca.h"

struct ca {
	char *dir;
	int lock; /* the folder, locked while it is open */
	EVP_PKEY *key;
	X509 *certs[CA_AUTHORITIES_MAX]; /* that the fleet trusts; the first one signs */
	size_t cert_count;
	char fleet[CERT_HEX_MAX];
	unsigned generation;
	struct ca_index index;
};

/* ---- ca_folder.c ---- */

int ca_save_index(const struct ca *ca, struct errinfo *reterr);
int ca_put_bundle(const struct ca *ca, struct buf *b); /* ca.pem's content */

/* ---- ca_output.c ---- */

struct ca_output { /* three files that are ready and not yet in their place */
	char tmp[PATH_MAX], final[PATH_MAX];
	bool is_folder, replace;
};

/* ca_output_folder, ca_output_bundle - write them beside where they will be. @final is not there
 * yet, but for a bundle that may be replaced. */
int ca_output_folder(struct ca_output *o, const char *final, const struct buf *ca,
	const struct buf *cert, const struct buf *key, struct errinfo *reterr);
int ca_output_bundle(struct ca_output *o, const char *final, bool replace, const struct buf *ca,
	const struct buf *cert, const struct buf *key, struct errinfo *reterr);
int ca_output_publish(struct ca_output *o, struct errinfo *reterr);
void ca_output_drop(struct ca_output *o); /* what was not published */

/* ca_output_sweep - what a run that was killed has left of a folder of @name. */
void ca_output_sweep(const char *dir, const char *name);
/* ca_output_link - nodes/@name/current leads to the folder @serial. */
int ca_output_link(const char *dir, const char *name, const char *serial, struct errinfo *reterr);
/* ca_output_remove - the folder @serial of @name, if it is there. */
void ca_output_remove(const char *dir, const char *name, const char *serial);
