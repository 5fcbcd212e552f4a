/* SPDX-License-Identifier: Apache-2.0 */
/* delay_fix.h - what to do about time that steps lose. */
#pragma once

#include "diagnose/chains/delay.h"
#include "model/incident.h"

/* delay_fix - adds to the fixes of @inc those of @l; where the usual ones of its problem are wrong, they go. */
void delay_fix(const struct recording *rec, const struct delay *l, struct incident *inc);

/* delay_fix_waits - adds that of too many waits for the GPU. */
void delay_fix_waits(struct incident *inc);
