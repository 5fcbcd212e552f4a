/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - the agent's side of GPU sampling: starts the child, takes its records, watches the
 * clock. Runs on the tracer's thread.
 *
 * Invariants:
 *  1. pid > 0 exactly while a child exists that was not reaped; a second is never started.
 *  2. Every system call here returns at once; gpu_sampler_stop() alone waits, and not for long.
 *  3. A record is believed only after take_record() has checked it.
 *  4. A child is killed only when it does not answer; one that does is asked to leave, so that the
 *     driver is not torn down in the middle of a call.
 *  5. Time that passes between two polls (the agent was stopped) is not held against the child. */
#include "record/gpu/sampler.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "record/gpu/child.h"
#include "record/gpu/nvml.h"
#include "base/spawn.h"

#define SILENCE_NS     (3 * NS_PER_S) /* without a record: the state is unknown */
#define START_NS       (5 * NS_PER_S)
#define LONGEST_NS     (60 * NS_PER_S)
#define STEADY_NS      (60 * NS_PER_S) /* a child that lasted this long clears the failures */
#define POLL_GAP_NS    NS_PER_S
#define STALE_NS       (10 * NS_PER_S) /* an older time in a record is not meant */
#define RECORDS_A_POLL (4 * NVML_GPUS_MAX)
#define STOP_GENTLE    150 /* naps: 0.3 s to leave by itself */
#define STOP_KILLED    100 /* naps: 0.2 s to die */

struct gpu_sampler {
	char *path; /* NULL: the usual places */
	uint64_t period_ns;
	pid_t pid;
	int fd;
	bool killed;
	unsigned failures, slow_starts; /* in a row */
	uint64_t started_ns;            /* the child */
	uint64_t heard_ns, polled_ns;   /* last record, last poll */
	uint64_t start_due_ns;          /* when no child runs; UINT64_MAX: never again */
	bool heard;                     /* this child has sent a sample */
	bool ended, lasting;            /* it has said why it ends; that will not pass */
	enum gpu_state state;
	wall_time known_until;
	char reason[256];
	struct gpu_identity identity;
	struct gpu_row rows[NVML_GPUS_MAX]; /* by NVML's index */
	size_t row_count;
};

uint64_t gpu_sampler_backoff_ns(unsigned failures)
{
	if (!failures)
		return 0;
	return failures > 6 ? LONGEST_NS : MIN(NS_PER_S << (failures - 1), LONGEST_NS);
}

uint64_t gpu_sampler_patience_ns(unsigned slow_starts)
{
	return slow_starts > 4 ? LONGEST_NS : MIN(START_NS << slow_starts, LONGEST_NS);
}

/* ---- the child's life ---- */

static int child_start(struct gpu_sampler *s, uint64_t now)
{
	int r = spawn_self(GPU_CHILD_NAME, s->path, &s->pid, &s->fd);

	if (r < 0)
		return r;
	/* The child reads it before its second reading; a socket that is new has room. */
	(void)send(s->fd, &s->period_ns, sizeof(s->period_ns), MSG_NOSIGNAL | MSG_DONTWAIT);
	s->killed = s->heard = s->ended = s->lasting = false;
	s->started_ns = s->heard_ns = now;
	return 0;
}

static void set_unknown(struct gpu_sampler *s, const char *why)
{
	s->state = GPU_NO_ANSWER;
	s->row_count = 0;
	snprintf(s->reason, sizeof(s->reason), "%s", why);
}

static void schedule(struct gpu_sampler *s, uint64_t now)
{
	if (s->heard && now - s->started_ns > STEADY_NS)
		s->failures = 0;
	s->failures = MIN(s->failures + 1, 64u);
	s->start_due_ns = now + gpu_sampler_backoff_ns(s->failures);
}

static void child_gone(struct gpu_sampler *s, int status, uint64_t now)
{
	char why[128];

	close(s->fd);
	s->fd = -1;
	s->pid = 0;
	if (!s->ended && !s->killed) {
		if (WIFSIGNALED(status))
			snprintf(why, sizeof(why), "the NVML process was killed by signal %d",
				WTERMSIG(status));
		else
			snprintf(why, sizeof(why), "the NVML process exited with code %d",
				WEXITSTATUS(status));
		set_unknown(s, why);
	}
	schedule(s, now);
	if (s->ended && s->lasting)
		s->start_due_ns = UINT64_MAX;
	else if (s->state == GPU_ABSENT) /* a driver may be loaded later */
		s->start_due_ns = now + LONGEST_NS;
}

/* ---- records ---- */

static void terminate(char *text, size_t size)
{
	text[size - 1] = 0;
}

static void take_sample(
	struct gpu_sampler *s, struct gpu_record *record, gpu_sampler_sink *sink, void *arg)
{
	struct gpu_sample *sample = &record->reading.sample;
	uint64_t now = mono_now().ns;
	uint64_t age = record->mono_ns <= now ? now - record->mono_ns : 0;
	struct gpu_row *row;

	if (sample->index < 0 || sample->index >= NVML_GPUS_MAX)
		return;
	row = &s->rows[sample->index];
	terminate(sample->uuid, sizeof(sample->uuid));
	terminate(sample->name, sizeof(sample->name));
	terminate(sample->pci, sizeof(sample->pci));
	terminate(record->reading.error, sizeof(record->reading.error));
	sample->time.ns = wall_now().ns - (int64_t)(age < STALE_NS ? age : 0);
	row->sample = *sample;
	memcpy(row->error, record->reading.error, sizeof(row->error));
	s->row_count = MAX(s->row_count, (size_t)sample->index + 1);
	s->state = GPU_KNOWN;
	s->heard = true;
	s->slow_starts = 0;
	s->heard_ns = now;
	s->known_until = sample->time;
	if (sample->index == 0 && sample->name[0])
		memcpy(s->identity.model, sample->name, sizeof(s->identity.model));
	if (sink)
		sink(arg, sample);
}

static void take_end(struct gpu_sampler *s, struct gpu_record *record)
{
	terminate(record->end.text, sizeof(record->end.text));
	s->ended = true;
	s->lasting = record->end.lasting;
	set_unknown(s, record->end.text);
	if (record->kind == GPU_RECORD_ABSENT)
		s->state = GPU_ABSENT;
}

static void take_record(
	struct gpu_sampler *s, struct gpu_record *record, gpu_sampler_sink *sink, void *arg)
{
	if (record->magic != GPU_RECORD_MAGIC)
		return;
	switch (record->kind) {
	case GPU_RECORD_HELLO:
		terminate(record->hello.driver, sizeof(record->hello.driver));
		terminate(record->hello.cuda, sizeof(record->hello.cuda));
		s->identity.count = MIN(record->hello.count, (uint32_t)NVML_GPUS_MAX);
		memcpy(s->identity.driver, record->hello.driver, sizeof(s->identity.driver));
		memcpy(s->identity.cuda, record->hello.cuda, sizeof(s->identity.cuda));
		break;
	case GPU_RECORD_SAMPLE: take_sample(s, record, sink, arg); break;
	case GPU_RECORD_ABSENT:
	case GPU_RECORD_FAILED: take_end(s, record); break;
	}
}

static void drain(struct gpu_sampler *s, gpu_sampler_sink *sink, void *arg)
{
	struct gpu_record record;

	for (int i = 0; i < RECORDS_A_POLL; i++) {
		ssize_t n = recv(s->fd, &record, sizeof(record), MSG_DONTWAIT);

		/* It ended before it read the period; what it sent is still to come. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n <= 0)
			return;
		if (n == sizeof(record))
			take_record(s, &record, sink, arg);
	}
}

/* ---- the clock ---- */

static void look_after(struct gpu_sampler *s, uint64_t now)
{
	uint64_t silent = now - s->heard_ns;
	uint64_t silence = MAX(SILENCE_NS, 3 * s->period_ns);
	uint64_t allowed = s->heard ? silence : gpu_sampler_patience_ns(s->slow_starts);

	if (s->ended || silent < silence)
		return;
	if (s->state != GPU_NO_ANSWER)
		set_unknown(s, "NVML does not respond");
	if (!s->killed && silent >= allowed) {
		s->killed = true;
		s->slow_starts += !s->heard;
		kill(s->pid, SIGKILL);
	}
}

void gpu_sampler_poll(struct gpu_sampler *s, gpu_sampler_sink *sink, void *arg)
{
	uint64_t now = mono_now().ns;
	int status = 0;
	bool gone;

	if (s->pid && now - s->polled_ns > POLL_GAP_NS)
		s->heard_ns += now - s->polled_ns;
	s->polled_ns = now;
	if (s->pid) {
		/* First whether it has ended, then what it said: nothing it sent is overlooked. */
		gone = waitpid(s->pid, &status, WNOHANG) == s->pid;
		drain(s, sink, arg);
		if (gone)
			child_gone(s, status, now);
		else
			look_after(s, MAX(now, s->heard_ns));
	}
	if (!s->pid && now >= s->start_due_ns && s->start_due_ns != UINT64_MAX) {
		if (child_start(s, now) < 0) {
			set_unknown(s, "cannot start the NVML process");
			schedule(s, now);
		}
	}
}

/* ---- what it says ---- */

enum gpu_state gpu_sampler_state(const struct gpu_sampler *s, char *text, size_t size)
{
	time_t since = (time_t)(s->known_until.ns / (int64_t)NS_PER_S);
	char clock[16] = "";
	struct tm tm;

	switch (s->state) {
	case GPU_STARTING: snprintf(text, size, "requested, no answer yet"); break;
	case GPU_ABSENT: snprintf(text, size, "absent: %s", s->reason); break;
	case GPU_KNOWN:
		snprintf(text, size, "%u GPU%s", s->identity.count,
			s->identity.count == 1 ? "" : "s");
		break;
	case GPU_NO_ANSWER:
		if (localtime_r(&since, &tm))
			strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
		snprintf(text, size, "unknown since %s (%s)", clock, s->reason);
		break;
	}
	return s->state;
}

const char *gpu_state_name(enum gpu_state state)
{
	static const char *const names[] = {"starting", "absent", "known", "unknown"};

	return names[state];
}

const struct gpu_row *gpu_sampler_rows(const struct gpu_sampler *s, size_t *ret_count)
{
	*ret_count = s->row_count;
	return s->rows;
}

const struct gpu_identity *gpu_sampler_identity(const struct gpu_sampler *s)
{
	return s->identity.model[0] ? &s->identity : NULL;
}

/* ---- life ---- */

const char *gpu_sampler_library(void)
{
	const char *named = getenv("INGERO_NVML_LIB");

	return named && named[0] ? named : NULL;
}

int gpu_sampler_start(struct gpu_sampler **ret, const char *path, uint64_t period_ns)
{
	struct gpu_sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	path = path ?: gpu_sampler_library();
	s->path = path ? strdup(path) : NULL;
	if (path && !s->path) {
		free(s);
		return -ENOMEM;
	}
	s->fd = -1;
	s->period_ns = period_ns;
	s->known_until = wall_now();
	gpu_sampler_poll(s, NULL, NULL);
	*ret = s;
	return 0;
}

void gpu_sampler_stop(struct gpu_sampler *s)
{
	s->start_due_ns = UINT64_MAX;
	if (!s->pid)
		return;
	close(s->fd); /* this it understands, if it is not stuck */
	s->fd = -1;
	if (s->state == GPU_NO_ANSWER || !spawn_is_gone_after(s->pid, STOP_GENTLE)) {
		kill(s->pid, SIGKILL);
		/* Stuck in the kernel: it dies when it can. */
		spawn_is_gone_after(s->pid, STOP_KILLED);
	}
	s->pid = 0;
}

void gpu_sampler_free(struct gpu_sampler *s)
{
	gpu_sampler_stop(s);
	free(s->path);
	free(s);
}
