/* SPDX-License-Identifier: Apache-2.0 */
/* incident_json.h - the lists of an incident as JSON text, as the store's columns hold them. */
#pragma once

#include "base/buf.h"
#include "model/incident.h"

/* Each appends one JSON array to @out. */
void incident_json_causes(const struct incident *i, struct buf *out);
void incident_json_evidence(const struct incident *i, const char *node, struct buf *out);
void incident_json_timeline(const struct incident *i, struct buf *out);
void incident_json_fixes(const struct incident *i, struct buf *out);
