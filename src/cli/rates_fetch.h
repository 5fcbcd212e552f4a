/* SPDX-License-Identifier: Apache-2.0 */
/* rates_fetch.h - fetches a table of prices by https. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/errinfo.h"

#define RATES_FETCH_REDIRECTS 10

/* rates_fetch - appends what @url holds to @b. Only https is asked, also after redirects, of which
 * there may be RATES_FETCH_REDIRECTS; @timeout_ns is for all of it. @ca: PEM of authorities to trust;
 * NULL: the system's. A sentence that names the URL says what went wrong. */
int rates_fetch(const char *url, const char *ca, uint64_t timeout_ns, struct buf *b,
	struct errinfo *reterr);
