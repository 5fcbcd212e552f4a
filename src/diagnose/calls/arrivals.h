/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals.h - whether pauses end because requests arrive, as those of an idle server do, rather
 * than because something that the process needs is ready. */
#pragma once

#include "diagnose/calls/gap.h"

/* arrivals_are_requests - 1 if the pauses @members (@n indices of @gaps, ascending) look like waits
 * for requests, 0 if not, or -ENOMEM. */
int arrivals_are_requests(
	const struct recording *rec, const struct gap_list *gaps, const size_t *members, size_t n);
