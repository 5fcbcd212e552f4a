/* SPDX-License-Identifier: Apache-2.0 */
/* notice_alert.h - notices of the cluster as alerts. Pure. */
#pragma once

#include "alert/alert_body.h"
#include "cluster/detect/fleet.h"

void notice_alert(const struct fleet_notice *n, struct alert_notice *ret);
