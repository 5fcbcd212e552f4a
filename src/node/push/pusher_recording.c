/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_recording.c - see pusher_recording.h. A snapshot may be visited twice (nodedb_snapshot.h), so
 * what a visit gathers is put together from its beginning each time: rows by their number cannot come
 * twice, counters begin anew. */
#include "node/push/pusher_recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "node/push/pusher_node.h"
#include "base/hash.h"
#include "base/log.h"
#include "store/write/retention.h"

#define BACK_NS     (60 * (int64_t)NS_PER_S) /* calls before our start that are sent too */
#define SILENT_NS   (30 * (int64_t)NS_PER_S) /* the tracer writes something every 5 s */
#define LEDGER_ROWS 100000                   /* at once */
#define FILES_MAX   4096
/* A bucket, that of the next reading, and time to write it. */
#define BUCKET_WRITTEN (2 * (int64_t)NODEDB_BUCKET_FINE + 2 * (int64_t)NS_PER_S)

void pusher_recording_init(struct pusher_recording *r, const char *path, uint64_t window_ns)
{
	wall_time now = wall_now();

	*r = (struct pusher_recording){.path = path,
		.window_ns = window_ns,
		.started = now,
		.rank = -1,
		.more_at = now,
		.more_launches = 1, /* not known before a bucket is written */
		.processes = IDMAP_INIT(PUSHER_PROCESS_MAX)};
	pusher_calls_init(&r->calls);
	pusher_counters_init(&r->counters, now.ns);
}

void pusher_recording_done(struct pusher_recording *r)
{
	size_t cursor = 0;
	void *process;

	while ((process = idmap_next(&r->processes, &cursor, NULL)))
		free(process);
	idmap_done(&r->processes);
	pusher_calls_done(&r->calls);
	pusher_counters_done(&r->counters);
	pusher_steps_done(&r->steps);
}

/* ---- one visit ---- */

struct visit {
	struct pusher_recording *recording;
	wall_time now;
	struct pusher_activity activity;
	struct recent_readings readings;
	struct recent_incident incident;
	int64_t incident_from_ns;
	size_t rows; /* of calls, that this visit has read */
};

/* The one that was seen longest ago. */
static void forget_process(struct pusher_recording *r)
{
	struct pusher_process *p, *oldest = NULL;
	size_t cursor = 0;

	while ((p = idmap_next(&r->processes, &cursor, NULL)))
		if (!oldest || p->seen_ns < oldest->seen_ns)
			oldest = p;
	if (oldest)
		free(idmap_remove(&r->processes, oldest->pid));
}

static struct pusher_process *process_of(struct pusher_recording *r, uint32_t pid)
{
	struct pusher_process *p = idmap_get(&r->processes, pid);

	if (p)
		return p;
	if (r->processes.used == PUSHER_PROCESS_MAX)
		forget_process(r);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct pusher_process){.pid = pid, .rank = -1, .comm_rank = -1};
	if (idmap_put(&r->processes, pid, p) < 0)
		free(TAKE(p));
	return p;
}

static const char *group_of(struct pusher_recording *r, uint32_t pid)
{
	const struct pusher_process *p = idmap_get(&r->processes, pid);

	return p ? p->group : "";
}

static bool is_alive(uint32_t pid)
{
	return access(FORMATTED(32, "/proc/%u", pid), F_OK) == 0;
}

/* The last seen comes first, so that an older process of the same pid does not replace it. */
static int take_process(void *arg, const struct recent_process *row)
{
	struct visit *v = arg;
	struct pusher_recording *r = v->recording;
	struct pusher_process *p = process_of(r, row->pid);

	if (!p || p->seen_ns > row->last_seen_ns)
		return 0;
	if (p->start_ticks != row->start_ticks)
		*p = (struct pusher_process){
			.pid = row->pid, .start_ticks = row->start_ticks, .comm_rank = -1};
	p->seen_ns = row->last_seen_ns;
	p->rank = row->rank;
	pusher_group_hash(row->cgroup, p->group);
	p->program = hash_bytes(row->cgroup, strlen(row->cgroup)) ^
		     hash_number(hash_bytes(row->comm, strlen(row->comm)));
	if (row->last_seen_ns < v->now.ns - BACK_NS && !is_alive(row->pid))
		return 0;
	if (row->rank >= 0 && (r->rank < 0 || row->rank < r->rank))
		r->rank = row->rank;
	r->world_size = MAX(r->world_size, row->world_size);
	if (!r->job[0] && row->job[0])
		snprintf(r->job, sizeof(r->job), "%s", row->job);
	if (!r->cgroup[0])
		snprintf(r->cgroup, sizeof(r->cgroup), "%s", row->cgroup);
	return 0;
}

static int take_calls(void *arg, const struct recent_calls *c)
{
	struct visit *v = arg;
	struct pusher_process *p = idmap_get(&v->recording->processes, c->pid);
	uint64_t launches = pusher_activity_add(&v->activity, c);

	if (p && launches) {
		p->launches += launches;
		p->has_launched = true;
	}
	return pusher_counters_add(
		&v->recording->counters, c, group_of(v->recording, c->pid), v->now.ns);
}

static int take_mark(void *arg, const struct recent_mark *m)
{
	struct visit *v = arg;
	struct pusher_recording *r = v->recording;
	int res;

	r->ledger_row = m->row;
	res = pusher_counters_stall(&r->counters, group_of(r, m->pid), m->stall_ns);
	return res < 0 ? res : pusher_steps_mark(&r->steps, m);
}

int32_t pusher_process_rank(const struct pusher_process *p)
{
	return p->rank >= 0 || p->is_several ? p->rank : p->comm_rank;
}

static void note_call(
	struct pusher_recording *r, struct pusher_process *p, const struct collective_row *row)
{
	const struct collective *c = &row->c;
	const struct push_call left = {
		.leave_ns = row->start.ns + (int64_t)row->dur_ns + MAX(c->wait_ns, INT64_C(0))};

	r->is_hasty |= push_haste_take(&p->haste, &left);
	r->last_call_ns = p->last_call_ns = (int64_t)mono_now().ns;
	p->is_waiting = c->wait_ns < 0;
	p->told_gone = false;
	p->is_several |= p->comm && (p->comm != c->comm_hash || p->comm_rank != c->rank);
	p->comm = c->comm_hash;
	p->comm_rank = c->rank;
	if (c->nranks > 0)
		r->comm_size = MAX(r->comm_size, (uint32_t)c->nranks);
}

static int take_collective(void *arg, int64_t row, const struct collective_row *c)
{
	struct visit *v = arg;
	struct pusher_recording *r = v->recording;
	struct pusher_process *p;
	int res;

	v->rows++;
	r->calls.lost += (uint64_t)(row - r->at.row - 1); /* pruned before they were read */
	r->at.row = row;
	r->at.row_ns = c ? c->start.ns : 0;
	if (!c) {
		r->calls.lost++;
		return 0;
	}
	p = process_of(r, c->pid);
	if (p)
		note_call(r, p, c);
	if (c->c.wait_ns > 0) {
		const struct pusher_wait w = {
			.end_ns = c->start.ns + (int64_t)c->dur_ns + c->c.wait_ns,
			.wait_ns = (uint64_t)c->c.wait_ns,
			.pid = c->pid};

		res = pusher_steps_wait(&r->steps, &w);
		if (res < 0)
			return res;
	}
	return pusher_calls_add(&r->calls, c, p ? pusher_process_rank(p) : -1, v->now);
}

static int take_points(void *arg, const struct recent_points *p)
{
	struct visit *v = arg;

	return pusher_calls_points(&v->recording->calls, p);
}

static int begin_ledger(
	struct nodedb_snapshot *l, struct pusher_recording *r, struct errinfo *reterr)
{
	int64_t last, row;
	int res = nodedb_recent_last_row(l, "ledger", &last, reterr);

	if (res < 0)
		return res;
	if (r->is_open) {
		/* A table that was emptied numbers its rows from 1 again. */
		r->ledger_row = last < r->ledger_row ? 0 : r->ledger_row;
		return 0;
	}
	res = nodedb_recent_row(l, "ledger", r->counters.start_ns, &row, reterr);
	if (res < 0)
		return res;
	r->ledger_row = row;
	r->is_open = true;
	return 0;
}

/* resume_row - behind which row reading goes on: that of r->at if it is this file's, or was until it was
 * pruned; of another file the first that is younger. */
static int resume_row(struct nodedb_snapshot *l, const struct pusher_recording *r, int64_t *ret,
	struct errinfo *reterr)
{
	int64_t ns;
	int res = nodedb_recent_row_time(l, "collectives", r->at.row, &ns, reterr);

	if (res < 0)
		return res;
	if (r->at.row && (ns == 0 || (ns > 0 && (!r->at.row_ns || ns == r->at.row_ns)))) {
		*ret = r->at.row;
		return 0;
	}
	return nodedb_recent_row(l, "collectives",
		r->at.row_ns ? r->at.row_ns + 1 : r->started.ns - BACK_NS, ret, reterr);
}

/* Where reading calls begins in a file that is seen for the first time. */
static int begin_calls(struct nodedb_snapshot *l, struct visit *v, struct errinfo *reterr)
{
	struct pusher_recording *r = v->recording;
	int64_t row, last;
	int res = nodedb_recent_last_row(l, "collectives", &last, reterr);

	if (res < 0)
		return res;
	if (r->is_found) {
		r->at.row = last < r->at.row ? 0 : r->at.row;
		return 0;
	}
	res = resume_row(l, r, &row, reterr);
	res = res ?: nodedb_recent_points(l, row, take_points, v, reterr);
	if (res < 0)
		return res;
	r->at.row = row;
	r->is_found = true;
	return 0;
}

static int visit_calls(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct visit *v = arg;
	struct pusher_recording *r = v->recording;
	size_t room = PUSHER_BATCH_CALLS - MIN(r->calls.count, (size_t)PUSHER_BATCH_CALLS);
	int64_t stopped = 0;
	int res = begin_calls(l, v, reterr);

	v->rows = 0;
	res = res ?: nodedb_recent_stopped(l, &stopped, reterr);
	r->is_over = stopped != 0;
	if (res == 0 && !r->processes.used)
		res = nodedb_recent_processes(l, take_process, v, reterr);
	if (res < 0 || !room)
		return res;
	return nodedb_recent_collectives(l, r->at.row, room, take_collective, v, reterr);
}

static int visit_health(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct visit *v = arg;
	struct pusher_recording *r = v->recording;
	/* The bucket before the last complete one is surely written. */
	int64_t to = v->now.ns - 2 * (int64_t)NS_PER_S, from;
	int64_t counted = pusher_counters_begin(&r->counters);
	struct pusher_process *p;
	size_t cursor = 0;
	int res;

	to -= to % (int64_t)NODEDB_BUCKET_FINE;
	from = to - (int64_t)r->window_ns;
	v->activity = (struct pusher_activity){.from_ns = from, .to_ns = to};
	while ((p = idmap_next(&r->processes, &cursor, NULL)))
		p->launches = 0;
	r->rank = -1;
	r->world_size = 0;
	r->job[0] = r->cgroup[0] = 0;
	res = begin_ledger(l, r, reterr);
	res = res ?: nodedb_recent_processes(l, take_process, v, reterr);
	res = res ?: nodedb_recent_calls(l, MIN(counted, from), take_calls, v, reterr);
	res = res ?: nodedb_recent_marks(l, r->ledger_row, LEDGER_ROWS, take_mark, v, reterr);
	return res ?: nodedb_recent_readings(l, from, &v->readings, reterr);
}

static int visit_incident(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct visit *v = arg;

	return nodedb_recent_incident(l, v->incident_from_ns, &v->incident, reterr);
}

/* ---- rolled files ---- */

/* The file beside r->path that was the recording until it was rolled over. */
static bool find_rolled(
	const struct pusher_recording *r, uint64_t dev, uint64_t ino, char *out, size_t size)
{
	_cleanup_free_ char *copy = strdup(r->path);
	struct dirent *e;
	struct stat st;
	bool found = false;
	DIR *d;

	if (!copy)
		return false;
	d = opendir(dirname(copy));
	for (int n = 0; d && !found && n < FILES_MAX && (e = readdir(d)); n++) {
		found = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode) && st.st_dev == dev && st.st_ino == ino;
		if (found)
			found = (size_t)snprintf(out, size, "%s/%s", copy, e->d_name) < size;
	}
	if (d)
		closedir(d);
	return found;
}

static int stat_recording(
	const struct pusher_recording *r, struct stat *ret, struct errinfo *reterr)
{
	if (stat(r->path, ret) < 0)
		return errinfo_set(reterr, -errno, "%.300s: %s", r->path, strerror(errno));
	return 0;
}

static int follow_file(struct pusher_recording *r, wall_time now, struct errinfo *reterr)
{
	struct visit last = {.recording = r, .now = now};
	char rolled[4096];
	struct stat st;
	int res = stat_recording(r, &st, reterr);

	if (res < 0)
		return res;
	if (r->is_open && (st.st_dev != r->dev || st.st_ino != r->ino)) {
		if (find_rolled(r, r->dev, r->ino, rolled, sizeof(rolled)) &&
			nodedb_snapshot_read(rolled, visit_health, &last, reterr) == 0)
			pusher_counters_end(&r->counters, now.ns);
		pusher_counters_roll(&r->counters);
		r->ledger_row = 0;
	}
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	return 0;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file that became of the recording next after @path did: the recording itself if there is none. */
static void find_next(const struct pusher_recording *r, const char *path, char *out, size_t size)
{
	struct rollover_list list = {0};
	const char *next = r->path, *name = name_of(path);

	if (rollover_is_name(r->path, name))
		(void)rollover_list(r->path, &list, NULL);
	for (size_t i = list.count; i-- > 0 && strcmp(name_of(list.paths[i]), name) > 0;)
		next = list.paths[i];
	snprintf(out, size, "%s", next);
	rollover_list_done(&list);
}

/* Where reading begins: the oldest file that was the recording since what is known, or since a minute. */
static void find_first(const struct pusher_recording *r, char *out, size_t size)
{
	int64_t since = r->at.row_ns ? r->at.row_ns : r->started.ns - BACK_NS;
	struct rollover_list list = {0};
	struct stat st;

	snprintf(out, size, "%s", r->path);
	if (!r->is_alone)
		(void)rollover_list(r->path, &list, NULL);
	for (size_t i = list.count;
		i-- > 0 && stat(list.paths[i], &st) == 0 &&
		(int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_S + st.st_mtim.tv_nsec >= since;)
		snprintf(out, size, "%s", list.paths[i]);
	rollover_list_done(&list);
}

/* The file that calls are read from now: the recording, or one that it was before. */
static int find_file(struct pusher_recording *r, char *out, size_t size, struct errinfo *reterr)
{
	struct pusher_position *at = &r->at;
	struct stat st;
	int res = stat_recording(r, &st, reterr);

	if (res < 0)
		return res;
	snprintf(out, size, "%s", r->path);
	if (at->ino && st.st_dev == at->dev && st.st_ino == at->ino)
		return 0;
	if (at->ino && find_rolled(r, at->dev, at->ino, out, size))
		return 1;
	/* Nothing was read, or what was is gone: what is younger is taken from those that are there. */
	*at = (struct pusher_position){.row_ns = at->row_ns};
	r->is_found = false;
	find_first(r, out, size);
	if (strcmp(out, r->path) != 0 && stat(out, &st) < 0)
		return -errno;
	at->dev = st.st_dev;
	at->ino = st.st_ino;
	return strcmp(out, r->path) != 0;
}

static bool is_at(const struct pusher_recording *r, const struct pusher_position *at)
{
	struct stat st;

	return stat(r->path, &st) == 0 && st.st_dev == at->dev && st.st_ino == at->ino;
}

/* A file that was rolled over is read to its end: its successor comes next, from its beginning on. */
static int go_on(struct pusher_recording *r, const char *path)
{
	char next[4096];
	struct stat st;

	find_next(r, path, next, sizeof(next));
	if (stat(next, &st) < 0)
		return -errno;
	r->at = (struct pusher_position){.dev = st.st_dev, .ino = st.st_ino};
	r->is_found = true;
	return 0;
}

/* ---- readings ---- */

/* A bucket is written when it is over: until then those of the last one are the newest known. */
static int64_t new_launches(struct pusher_recording *r, wall_time now)
{
	uint64_t more = r->counters.launches - r->launches;

	r->launches = r->counters.launches;
	if (more) {
		r->more_launches = (int64_t)MIN(more, (uint64_t)INT64_MAX);
		r->more_at = now;
	} else if (now.ns - r->more_at.ns > BUCKET_WRITTEN) {
		r->more_launches = 0;
	}
	return r->more_launches;
}

/* One that is not to be seen from here, as another PID namespace's, is taken for running while the tracer sees it. */
static bool is_running(struct pusher_process *p, wall_time now)
{
	bool is_there = is_alive(p->pid);

	p->was_alive |= is_there;
	return is_there || (!p->was_alive && p->seen_ns >= now.ns - BACK_NS);
}

/* Processes of one name in one control group are one program: workers come and go, their program stays. */
static void list_programs(struct pusher_recording *r, const struct pusher_activity *a,
	wall_time now, struct pusher_reading *ret)
{
	struct pusher_process *p;
	size_t cursor = 0;

	while ((p = idmap_next(&r->processes, &cursor, NULL))) {
		bool runs = p->has_launched && is_running(p, now);
		struct health_program *g = ret->programs;

		if (!runs && !p->launches)
			continue;
		while (g < ret->programs + ret->program_count && g->id != p->program)
			g++;
		if (g == ret->programs + HEALTH_PROGRAMS_MAX)
			continue;
		if (g == ret->programs + ret->program_count) {
			*g = (struct health_program){.id = p->program, .is_over = true};
			ret->program_count++;
		}
		g->rate += pusher_launch_rate(a, p->launches);
		g->is_over &= !runs;
	}
}

int pusher_recording_health(struct pusher_recording *r, wall_time now, struct pusher_reading *ret,
	struct errinfo *reterr)
{
	struct visit v = {.recording = r, .now = now};
	int res = follow_file(r, now, reterr);

	res = res ?: nodedb_snapshot_read(r->path, visit_health, &v, reterr);
	if (res < 0)
		return res;
	pusher_counters_end(&r->counters, now.ns);
	r->world_size = r->world_size ?: r->comm_size;
	pusher_steps_forget(&r->steps, now.ns - (int64_t)r->window_ns);
	if (v.readings.newest_ns && v.readings.newest_ns < now.ns - SILENT_NS)
		return errinfo_set(reterr, -ESTALE,
			"%.300s is not being written: is `ingero trace` running? A finished recording is sent with --replay",
			r->path);
	*ret = (struct pusher_reading){.launches = new_launches(r, now),
		.at_ns = v.readings.newest_ns ? v.readings.newest_ns : now.ns,
		.readings = v.readings,
		.step = pusher_steps_median(&r->steps)};
	pusher_signals_make(&v.activity, &v.readings, ret->raw);
	list_programs(r, &v.activity, now, ret);
	return 0;
}

int pusher_recording_calls(struct pusher_recording *r, wall_time now, struct errinfo *reterr)
{
	struct visit v = {.recording = r, .now = now};
	char path[4096];
	int res = 0;

	for (int n = 0; res == 0 && n < FILES_MAX; n++) {
		bool has_room = r->calls.count < PUSHER_BATCH_CALLS;
		int is_rolled = find_file(r, path, sizeof(path), reterr);
		const struct pusher_position before = r->at;
		size_t count = r->calls.count;
		uint64_t lost = r->calls.lost;

		res = is_rolled < 0 ? is_rolled
				    : nodedb_snapshot_read(path, visit_calls, &v, reterr);
		if (is_rolled == 0 && res == 0 && !is_at(r, &before)) {
			r->at = before; /* rolled over meanwhile: those rows are of the new one */
			r->calls.count = count;
			r->calls.lost = lost;
			continue;
		}
		if (is_rolled <= 0 || (res == 0 && (v.rows || !has_room)))
			break;
		if (res < 0)
			log_warning("the rest of %s cannot be read: its calls are missing", path);
		res = go_on(r, path);
	}
	return res;
}

void pusher_recording_resume(struct pusher_recording *r, const struct pusher_position *at)
{
	r->at = *at;
	r->is_found = false;
}

int pusher_recording_incident(struct pusher_recording *r, int64_t from_ns,
	struct recent_incident *ret, struct errinfo *reterr)
{
	struct visit v = {.recording = r, .incident_from_ns = from_ns};
	int res = nodedb_snapshot_read(r->path, visit_incident, &v, reterr);

	if (res > 0)
		*ret = v.incident;
	return res;
}
