/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tsc.h - the two forms of every answer: full, and compact ("tsc") for models that pay by the
 * word.
 *
 * What our own writers print as JSON becomes full by mcp_tsc_full(): times of the day as text,
 * durations in microseconds, published names, every text cleaned. Compact has short names (the
 * published ones, and a few of ours), no empty members, three digits, and leaves out what only
 * matters when an incident is looked into. */
#pragma once

#include <jansson.h>

/* mcp_tsc_full - a new value; @v stays. NULL without memory. */
json_t *mcp_tsc_full(const json_t *v);

/* mcp_tsc_pack - the compact form of a full value, likewise. */
json_t *mcp_tsc_pack(const json_t *full);
