/* SPDX-License-Identifier: Apache-2.0 */
/* cert_text.h - what `ingero cert` prints: lists, and the commands that come next. */
#pragma once

#include "net/pki/ca.h"

bool cert_is_expired(int64_t until_s);

void cert_say_made(const struct ca *ca);
/* cert_say_issued - @brief: one of many, without what comes next. */
void cert_say_issued(const struct ca_issued *i, const struct ca_request *q, bool brief);
void cert_say_rotated(const struct ca *ca, bool finished);

/* cert_list - everything that the CA has issued, and itself. Returns how many of those in use have
 * expired. */
size_t cert_list(const struct ca *ca, bool json);
