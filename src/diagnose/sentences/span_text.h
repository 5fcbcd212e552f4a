/* SPDX-License-Identifier: Apache-2.0 */
/* span_text.h - lengths of time in sentences: "174 ms", "174 ms instead of 44", "61 of 72 ms". */
#pragma once

#include <stdint.h>

#include "diagnose/recording.h"
#include "model/incident.h"
#include "model/step_account.h"

#define SPAN_TEXT_MAX 64
#define SPAN_GAIN_MAX 256

/* span_text_one - "1.3 s", "174 ms", "4.2 ms", "850 µs", "12 min". Returns @out. */
const char *span_text_one(char out[SPAN_TEXT_MAX], uint64_t ns);

/* span_text - both with @between; a unit that they share is said once: with the first ("174 ms instead of 44"), or of
 * parts and changes (" of ", " → about ") with the last ("61 of 72 ms"). Returns @out. */
const char *span_text(char out[SPAN_TEXT_MAX], const char *between, uint64_t a_ns, uint64_t b_ns);

/* span_text_gain - "174 → about 46 ms (44–52)": what a unit of work takes, would take, and from what to what. */
const char *span_text_gain(char out[SPAN_GAIN_MAX], uint64_t unit_ns, uint64_t fixed_ns,
	uint64_t least_ns, uint64_t most_ns);

/* Some steps of an account in the timeline of an incident, and the SQL that finds them all. */

/* steps_show - of the slow steps of @a; where none is slow, of all. @inc has its times. */
void steps_show(const struct recording *rec, const struct step_account *a, struct incident *inc);
