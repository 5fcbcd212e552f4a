/* SPDX-License-Identifier: Apache-2.0 */
/* told.h - which causes of an account other detectors' incidents tell of, so that two causes are both told
 * and none of them twice. */
#pragma once

#include "diagnose/chains/delay.h"
#include "model/incident.h"

/* told_is_about_time - problems that are about lost time of one process, which its account is about, too. */
bool told_is_about_time(enum problem p);

/* told_has_cause - whether @inc says aloud what the time was lost to. */
bool told_has_cause(const struct incident *inc);

/* told_ns - how much of its excess @inc puts down to @kind and says so: as what it is mostly about, as what the
 * program itself did in its pauses, or as the reason why calls of that kind are slow. Sleep of which nobody says what it was for is none. */
uint64_t told_ns(const struct incident *inc, enum delay_kind kind);

/* told_cede - takes from @inc the causes of @kinds and their part of its excess: another incident tells of them. */
void told_cede(struct incident *inc, uint32_t kinds);

/* told_is_view - whether @inc is mostly about the same time as one of @kinds, bits by enum delay_kind. */
bool told_is_view(const struct incident *inc, uint32_t kinds);

/* told_leads - whether @inc is about pauses, and no other cause has as much of them as @kinds: its words are theirs. */
bool told_leads(const struct incident *inc, uint32_t kinds);

/* told_is_of_before - whether @inc is about pauses that were over when a change that lasts came, at @since_ns: that is
 * how the program has always been. */
bool told_is_of_before(const struct incident *inc, int64_t since_ns);
