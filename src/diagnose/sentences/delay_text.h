/* SPDX-License-Identifier: Apache-2.0 */
/* delay_text.h - sentences about what steps lost their time to. */
#pragma once

#include "diagnose/chains/gpu_change.h"
#include "diagnose/chains/delay.h"
#include "model/incident.h"

/* Each fills summary, root_cause, explanation and fixes of @inc: for slow steps, and for waste in every
 * step. */
void delay_text_slow(const struct recording *rec, const struct step_account *a,
	const struct delay_list *all, const struct delay *l, const struct gpu_change *gpu,
	struct incident *inc);
void delay_text_waste(const struct recording *rec, const struct step_account *a,
	const struct delay *l, struct incident *inc);

/* delay_text_quota - says instead that the control group's CPU quota stopped its threads for @throttled_ns
 * of the slow time; @quota is the share of a CPU that it may use, 0: not known. */
void delay_text_quota(uint64_t throttled_ns, double quota, struct incident *inc);

/* delay_cause - the cause that stands for @k in lists of causes. */
enum cause delay_cause(enum delay_kind k);
