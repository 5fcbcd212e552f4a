/* SPDX-License-Identifier: Apache-2.0 */
/* delay_text.h - the words of an incident about lost time, written last, from what was decided: title, cause, advice and
 * place. One table of sentences (delay_sentence.h) by kind of delay and where its chain leads to, one of advice
 * (advice.h). The title is the answer: cause, culprit, place, cost; the root cause says how it comes about; the
 * explanation has the figures. */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/chains/gpu_change.h"
#include "model/incident.h"

/* delay_text_write - fills summary, root_cause, explanation, fixes, place and stacks of @inc. @a without lost time is
 * told as what every unit has too much of. `since` and `period_steps` of @inc say how slow units lie in time. @gpu may
 * be NULL. */
void delay_text_write(const struct recording *rec, const struct step_account *a,
	const struct delay_list *all, const struct delay *l, const struct gpu_change *gpu,
	struct incident *inc);

/* delay_cause - the cause that stands for @k in lists of causes. */
enum cause delay_cause(enum delay_kind k);
