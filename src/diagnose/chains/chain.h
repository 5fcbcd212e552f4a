/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - from a delay to the resource that was waited for, and who had it. */
#pragma once

#include "diagnose/chains/delay.h"

/* chain_follow - sets d->end, by what was recorded while the units of @a that have the delay ran. */
void chain_follow(const struct recording *rec, const struct step_account *a, struct delay *d);
