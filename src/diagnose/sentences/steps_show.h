/* SPDX-License-Identifier: Apache-2.0 */
/* steps_show.h - some steps of an account in the timeline of an incident, and the SQL that finds them all. */
#pragma once

#include "diagnose/recording.h"
#include "model/incident.h"
#include "model/step_account.h"

/* steps_show - of the slow steps of @a; where none is slow, of all. @inc has its times. */
void steps_show(const struct recording *rec, const struct step_account *a, struct incident *inc);
