/* SPDX-License-Identifier: Apache-2.0 */
/* trust.h - whom commands trust that ask other machines, beside what a CA says: certificates that
 * were accepted when they were first met. */
#pragma once

#include "command/option.h"
#include "net/pki/tls.h"

#define TRUST_FILE "known_nodes" /* in ~/.ingero */

/* trust_known_path - where they are written down; *ret is the caller's. */
int trust_known_path(char **ret, struct errinfo *reterr);

/* trust_ask - asks the user about each server that was refused because nobody knows it, as ssh does;
 * nobody is asked unless stdin and stderr are terminals. Returns how many are trusted now. */
int trust_ask(struct tls *tls, struct errinfo *reterr);

/* trust_warn - logs a warning for each certificate of @tls (NULL: none) that expires soon. */
void trust_warn(const struct tls *tls);
