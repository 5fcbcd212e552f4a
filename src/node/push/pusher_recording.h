/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_recording.h - the recording that a running `ingero trace` writes, read bit by bit: each row and
 * each count once.
 *
 * The file may not be there yet, and may be rolled over: then the rest of the old one, found by its
 * inode beside the new, is read first, and those that were rolled over since. A row that was pruned before
 * it was read is counted as lost. */
#pragma once

#include "node/health/health_baseline.h"
#include "node/push/pusher_calls.h"
#include "node/push/pusher_counters.h"
#include "node/push/pusher_signals.h"
#include "node/push/pusher_steps.h"
#include "push/push_haste.h"

#define PUSHER_BATCH_CALLS 20000
#define PUSHER_PROCESS_MAX 4096

struct pusher_position {   /* a row of `collectives`: those up to it were read */
	uint64_t dev, ino; /* of its file; ino 0: nothing was read yet */
	int64_t row;
	int64_t row_ns; /* its time; 0: not known */
};

struct pusher_process {
	uint32_t pid;
	uint64_t start_ticks;
	int64_t seen_ns; /* last, by the tracer */
	int32_t rank;
	char group[PUSH_HASH_MAX];
	uint64_t program;             /* its name and control group */
	uint64_t launches;            /* in the window of this reading */
	bool has_launched, was_alive; /* ever */
	/* Of its collectives. Without a rank in its environment, that in its communicator is taken, if it
	 * has one alone and is one rank of it: of several, none need be the job's. */
	uint64_t comm;
	int32_t comm_rank; /* -1: not known, or not one */
	bool is_several;
	int64_t last_call_ns; /* when the last row came, monotonic; 0: none did */
	bool is_waiting;      /* the last one was not waited for to its end */
	bool told_gone;
	struct push_haste haste;
};

struct pusher_recording {
	const char *path;
	uint64_t window_ns;
	wall_time started;
	dev_t dev;
	ino_t ino;
	bool is_open; /* ledger_row is of this file */
	int64_t ledger_row;
	struct pusher_position at;   /* of calls */
	bool is_found;               /* the row is known to be of that file */
	bool is_alone;               /* no file beside it belongs to it */
	bool is_over;                /* its tracer has stopped: nothing more comes */
	struct idmap processes;      /* pid -> struct pusher_process */
	char job[128], cgroup[1024]; /* of the process seen last */
	int32_t rank;                /* the lowest; -1: none is known */
	uint32_t world_size;         /* the largest; without one, of the largest communicator */
	uint32_t comm_size;
	struct pusher_calls calls;
	bool is_hasty;        /* a rank was held up: calls are to be sent soon */
	int64_t last_call_ns; /* of any process, monotonic; 0: never */
	struct pusher_counters counters;
	struct pusher_steps steps;
	uint64_t launches;     /* at the last reading */
	int64_t more_launches; /* than at one before, and when they were seen */
	wall_time more_at;
};

/* pusher_process_rank - in the job; -1: not known. */
int32_t pusher_process_rank(const struct pusher_process *p);

void pusher_recording_init(struct pusher_recording *r, const char *path, uint64_t window_ns);
void pusher_recording_done(struct pusher_recording *r);

struct pusher_reading {
	double raw[HEALTH_SIGNAL_COUNT];
	struct health_program programs[HEALTH_PROGRAMS_MAX]; /* that launch, or did in the window */
	size_t program_count;
	int64_t launches; /* the newest that are known; 0: there were none for ten seconds */
	int64_t at_ns;    /* when the tracer wrote last */
	struct recent_readings readings;
	struct pusher_step step;
};

/* pusher_recording_health - a reading. -ENOENT and others if it cannot be read; -ESTALE if nobody writes
 * it any more. */
int pusher_recording_health(struct pusher_recording *r, wall_time now, struct pusher_reading *ret,
	struct errinfo *reterr);

/* pusher_recording_resume - calls are read from behind @at on, before the first of them is. */
void pusher_recording_resume(struct pusher_recording *r, const struct pusher_position *at);

/* pusher_recording_calls - new collectives go to r->calls, unless a batch of them waits there: they end with
 * the row r->at. */
int pusher_recording_calls(struct pusher_recording *r, wall_time now, struct errinfo *reterr);

/* pusher_recording_incident - see nodedb_recent_incident(). */
int pusher_recording_incident(struct pusher_recording *r, int64_t from_ns,
	struct recent_incident *ret, struct errinfo *reterr);
