/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - from what steps lost their time to, to the resource that was waited for and who had it.
 *
 * Only evidence from the time of the slow steps counts; where none is slow, from the time of all of them. What
 * no evidence leads to stays RESOURCE_NONE: a chain never guesses. */
#pragma once

#include "diagnose/accounts/lineage.h"
#include "diagnose/chains/delay.h"
#include "diagnose/chains/gpu_change.h"
#include "diagnose/recording.h"

/* chain_follow - fills d->end; the rest of @d, which is one of the delays of @a, is only read. @gpu: what was different about
 * the GPU while units of @a were slow; NULL where none is. */
void chain_follow(const struct recording *rec, const struct step_account *a,
	const struct gpu_change *gpu, struct delay *d);

/* chain_compiler_of - the compiler that was at work in a part of an account: by its stack, by where it was waited for, by
 * the name of the process that it is of. NULL: none. */
const char *chain_compiler_of(const struct recording *rec, const struct account_entry *e);

/* process_is_own - whether @pid is of the job that @a is the account of: itself, another rank of it or a worker: a process that
 * runs for it what it runs itself. One that has become another program is that program, whoever started it. */
bool process_is_own(const struct recording *rec, const struct step_account *a,
	const struct lineage *lines, uint32_t pid);

/* process_words - what to call process @pid: the name that it gave itself, else the script that it runs, else its
 * program's name, else @comm. Cut to @buf, which is returned. */
#define PROCESS_WORDS_MAX 64
const char *process_words(
	const struct recording *rec, uint32_t pid, const char *comm, char buf[PROCESS_WORDS_MAX]);

/* process_words_last - likewise, by the name that its first thread had last, which the whole ledger is searched for. */
const char *process_words_last(
	const struct recording *rec, uint32_t pid, const char *comm, char buf[PROCESS_WORDS_MAX]);

/* How long a process's control group was kept from running by its CPU quota. */

struct quota_stop {
	uint64_t ns; /* 0: not at all, or not known */
	double cpus; /* that the group may use; 0: not known */
};

/* quota_group - the control group that @pid was in at @to_ns. Where no call of it says which that is, it is the one
 * that was read, if there is only one; 0: not known. */
uint64_t quota_group(const struct recording *rec, uint32_t pid, int64_t to_ns);

/* quota_find - in the time from @from_ns to @to_ns, of the group that @pid was in at its end. */
struct quota_stop quota_find(
	const struct recording *rec, uint32_t pid, int64_t from_ns, int64_t to_ns);

/* Sums by program, over all processes of that name: "48 × xz", not one of them. */

#define PROGRAMS_MAX     64
#define PROGRAM_PIDS_MAX 256 /* further ones are not told apart */

struct program {
	char name[PROCESS_WORDS_MAX];
	uint32_t pids[PROGRAM_PIDS_MAX];
	uint32_t pid_count;
	uint32_t first_pid;                /* of the process with the first row */
	uint64_t ns[2], bytes[2], work[2]; /* of two sides, as the caller names them */
	uint64_t before[2];                /* of that work, in units that do not count */
};

struct program_sums {
	struct program items[PROGRAMS_MAX];
	int count;
};

/* program_get - the sums of the program that @pid runs; NULL: there are too many programs. */
struct program *program_get(
	const struct recording *rec, struct program_sums *s, uint32_t pid, const char *comm);

/* program_get_last - likewise, by process_words_last(). */
struct program *program_get_last(
	const struct recording *rec, struct program_sums *s, uint32_t pid, const char *comm);

/* program_has - whether @pid is one of @p's. */
bool program_has(const struct program *p, uint32_t pid);

/* program_name - fills @ret's who, count and pid from @p. */
void program_name(const struct program *p, struct resource_use *ret);
