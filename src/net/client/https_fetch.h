/* SPDX-License-Identifier: Apache-2.0 */
/* https_fetch.h - fetches one small file by https, in a loop of its own. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"

#define HTTPS_FETCH_REDIRECTS 10

/* https_fetch - appends what @url holds to @b, whose ceiling is the largest file. Only https is asked, also after redirects, of which
 * there may be HTTPS_FETCH_REDIRECTS; @timeout_ns is for all of it. @ca: PEM of authorities to trust;
 * NULL: the system's. A sentence that names the URL says what went wrong. */
int https_fetch(const char *url, const char *ca, uint64_t timeout_ns, struct buf *b,
	struct errinfo *reterr);
