/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose.h - from a recording to its incidents. Pure: no I/O, no clock, no globals.
 *
 * The same input always gives the same incidents in the same order, so every answer can be
 * replayed. Nothing is blamed without overlap: see diagnose.c for how. */
#pragma once

#include "diagnose/recording.h"
#include "model/incident.h"

#define DIAGNOSE_INCIDENTS_MAX 256 /* the worst are kept */

/* diagnose_run - finds and explains the incidents of @rec, the most severe and then those
 * with most excess first.
 * Events out of order are accepted; rows whose times make no sense are left out and counted as
 * lost. On success *ret is the caller's (free()), *ret_count its length. Returns 0 or -ENOMEM. */
int diagnose_run(const struct recording *rec, struct incident **ret, size_t *ret_count);
