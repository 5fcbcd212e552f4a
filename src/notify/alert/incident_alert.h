/* SPDX-License-Identifier: Apache-2.0 */
/* incident_alert.h - an incident of this node as what an alert is about. Pure. */
#pragma once

#include "alert/alert_matter.h"
#include "model/incident.h"

/* incident_alert_id - of an incident's id: what alerts know it by. */
uint64_t incident_alert_id(const struct incident *i);

/* incident_alert - @node is where it happens. The event is the incident's id and the node: receivers hear
 * of many. */
void incident_alert(const struct incident *i, const char *node, struct alert_matter *ret);
