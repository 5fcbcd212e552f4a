/* SPDX-License-Identifier: Apache-2.0 */
/* rank_story.h - one fault of a job with several ranks is one incident: who is late, its own cause with line and advice,
 * who waited. What others lost by waiting is a sentence in it. */
#pragma once

#include "diagnose/rows/rank_jobs.h"
#include "diagnose/findings/time_finding.h"

/* rank_story_cause - of the @n processes the finding that says why the rank is late that @story (a straggler) names, and
 * whose it is in *ret_of; NULL: none does. */
const struct time_finding *rank_story_cause(const struct incident *story,
	const struct time_findings *findings, size_t n, const struct time_findings **ret_of);

/* rank_story_join - @story takes over cause, line, advice and what a fix is worth of @own, the incident of its rank's own
 * time. */
void rank_story_join(struct incident *story, const struct incident *own);

/* rank_story_peers - the account of the late rank as if an ordinary step were one of its peers: what it has more of than
 * they have is why it is late in all of them. False: there are no peers to compare with. */
bool rank_story_peers(const struct rank_jobs *jobs, const struct step_account *late,
	const struct time_findings *findings, size_t n, struct step_account *ret);

/* rank_story_tells - whether what @f lost is told with @story: its process waited, and what the job stood still covers
 * that. */
bool rank_story_tells(const struct rank_jobs *jobs, const struct incident *story, uint32_t pid,
	const struct time_finding *f);

/* rank_story_waits - what a process that waits for another rank may lose its time to: bits of kinds of delays. */
uint32_t rank_story_waits(void);

static inline bool rank_story_is_wait(enum delay_kind kind)
{
	return rank_story_waits() >> kind & 1;
}

/* rank_story_together - whether most of what is slow of @a is while @b is slow. */
bool rank_story_together(const struct step_account *a, const struct step_account *b);

/* rank_story_awaited - @inc is why @waiting other ranks of its process's job wait: it says so, and which rank it is. */
void rank_story_awaited(const struct recording *rec, int waiting, struct incident *inc);

/* rank_story_is_stall - whether one step of @a took as long as many others do. */
bool rank_story_is_stall(const struct step_account *a);

/* rank_story_first - the process of the job of @a that made the first communication after the longest time without any,
 * in that step: all others went on after it. 0: none did. */
uint32_t rank_story_first(
	const struct recording *rec, const struct rank_jobs *jobs, const struct step_account *a);
