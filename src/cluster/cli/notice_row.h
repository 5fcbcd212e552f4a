/* SPDX-License-Identifier: Apache-2.0 */
/* notice_row.h - what the fleet finds as a row of the table incidents. Pure. */
#pragma once

#include "cluster/detect/fleet.h"
#include "cluster/store/batch.h"

void notice_row(struct batch *b, const struct fleet_notice *n, int64_t now_ns);
