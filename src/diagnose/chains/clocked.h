/* SPDX-License-Identifier: Apache-2.0 */
/* clocked.h - whether a program does a unit when somebody's clock says so. */
#pragma once

#include "model/step_account.h"

/* units_are_clocked - whether units of @a begin by somebody else's clock: some after another they take as long whatever
 * is done in them, and the more is done the shorter they wait. Who asks for its next input when it is done waits as long
 * as ever. */
bool units_are_clocked(const struct step_account *a);
