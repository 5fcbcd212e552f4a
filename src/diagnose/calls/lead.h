/* SPDX-License-Identifier: Apache-2.0 */
/* lead.h - which of an incident's causes it is named after. */
#pragma once

#include "diagnose/sentences/incident_text.h"

/* lead_choose - sets lead, lead_share, other_share, layer_share and is_crowd of @v from the causes
 * of @inc, which v->lead points into; the rest of @v is untouched. */
void lead_choose(const struct incident *inc, struct verdict *v);
