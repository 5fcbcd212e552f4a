/* SPDX-License-Identifier: Apache-2.0 */
/* delay_subject.h - what is known of a delay that is to be told: where it is in the code, where its chain leads to, and the facts
 * by which sentences and advice are chosen. */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/chains/gpu_change.h"
#include "diagnose/rows/place.h"
#include "diagnose/sentences/delay_sentence.h"
#include "model/incident.h"

struct delay_subject {
	const struct recording *rec;
	const struct step_account *a;
	const struct delay_list *all;
	const struct delay *l;
	const struct gpu_change *gpu; /* NULL: not the GPU, or nothing is known */
	const struct incident *inc; /* `since` and `period_steps` say how slow units lie in time */
	struct resource_use end;
	struct code_place place, wait;
	bool has_place, has_wait;
	unsigned facts;
};

/* delay_subject_find - fills @ret; @all and @gpu may be NULL. */
void delay_subject_find(const struct recording *rec, const struct step_account *a,
	const struct delay_list *all, const struct delay *l, const struct gpu_change *gpu,
	const struct incident *inc, struct delay_subject *ret);

/* delay_subject_place - the program's own function that covers @l, or makes the calls that @gpu (or NULL) has found; false:
 * there is none. */
bool delay_subject_place(const struct recording *rec, const struct step_account *a,
	const struct delay *l, const struct gpu_change *gpu, struct code_place *ret);

/* delay_subject_stacks - puts those that the time was spent in into @inc. */
void delay_subject_stacks(const struct delay_subject *s, struct incident *inc);

/* delay_subject_script - the file with which the program begins, "train.py"; NULL: not known. */
const char *delay_subject_script(const struct recording *rec, const struct step_account *a);

/* delay_subject_who - who the chain leads to, in words: "48 × xz", "thread prefetch". delay_subject_name: of anybody. */
void delay_subject_who(const struct delay_subject *s, char out[DELAY_VALUE_MAX]);
void delay_subject_name(const struct delay_subject *s, const char *name, uint32_t pid,
	uint32_t count, char out[DELAY_VALUE_MAX]);

/* delay_subject_is_jobs - whether @name, of another process that is waited for, is what the job itself is called: then it is one
 * of its own. Who has a CPU, a disk or the GPU may be another job of the same program. */
bool delay_subject_is_jobs(const struct delay_subject *s, const char *name, uint32_t pid);

struct delay_allocating { /* calls of the process that allocate: how many, how long */
	uint64_t calls, pinned_ns, all_ns;
	uint8_t source;
	uint16_t op; /* the one that is called most */
};

struct delay_allocating delay_allocating_of(
	const struct recording *rec, const struct step_account *a);

const char *delay_units(const struct step_account *a); /* "steps" */
const char *delay_unit(const struct step_account *a);  /* "step" */

static inline bool delay_is_slow(const struct step_account *a) /* some units are */
{
	return a->lost_ns > 0;
}
