/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_demo.c - `ingero demo`: an incident that is made, traced and explained for real on the
 * stand-in GPU; without root, a recording of such a run goes through the same explain path.
 *
 * A scenario is a table of acts. Between acts the tracer of `ingero trace` runs in this process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/store/nodedb.h"
#include "agent/tracer.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/dispatch.h"
#include "cli/explain.h"
#include "cli/recording.h"
#include "cli/stage.h"

#define STEP_MS 10

struct act {
	const char *says;
	unsigned seconds;
	const char *program; /* NULL: nothing is started */
	const char *args[STAGE_ARGS];
	bool stays; /* runs on through the later acts */
};

struct scenario {
	const char *name, *title;
	const struct act *acts; /* ended by an act without text */
	const char *recording;  /* the same, recorded: SQL text */
};

static const struct act incident_acts[] = {
	{"a training process on the stand-in GPU, undisturbed", 8, "sim-train",
		{"--steps", "1000000", "--launches", "2", "--kernel-us", "200", "--cpu-us", "200",
			"--batch-bytes", "1048576", "--data", "%w/dataset", "--cold",
			"--wait-start", "%w/go", NULL},
		true},
	{"a CPU hog starts beside it", 8, "sim-cpu-hog",
		{"--threads", "4", "--duration", "60", NULL}, false},
	{"the CPU hog is gone; a disk hog starts", 8, "sim-disk-hog",
		{"--file", "%w/hog", "--duration", "60", "--depth", "16", NULL}, false},
	{"undisturbed again", 3, NULL, {NULL}, false},
	{NULL, 0, NULL, {NULL}, false},
};

static const struct scenario scenarios[] = {
	{"incident", "CPU and disk contention slow CUDA calls down", incident_acts,
		recording_incident},
	{NULL, NULL, NULL, NULL},
};

struct demo_settings {
	bool json, no_gpu, stack;
	const char *db;
};

#define OPTION(field) offsetof(struct demo_settings, field)
static const struct option_row demo_options[] = {
	{"no-gpu", 0, OPTION_FLAG, OPTION(no_gpu), NULL,
		"explain a recording; needs neither root nor a GPU", 0, 0, false},
	{"json", 0, OPTION_FLAG, OPTION(json), NULL, "print the incidents as JSON", 0, 0, false},
	{"stack", 0, OPTION_FLAG, OPTION(stack), NULL,
		"record from where each call was made; --stack=false does not", 0, 0, false},
	{"db", 0, OPTION_STRING, OPTION(db), "PATH", "keep what is recorded here", 0, 0, false},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

static const struct demo_settings demo_defaults = {.stack = true};

/* The data set that the workload reads its batches from. */
static int make_dataset(const char *dir, struct errinfo *reterr)
{
	static char block[1 << 20];
	char path[128];
	FILE *f;
	int bad = 0;

	snprintf(path, sizeof(path), "%s/dataset", dir);
	f = fopen(path, "we");
	for (int i = 0; f && i < 64; i++) {
		memset(block, i + 1, sizeof(block));
		bad |= fwrite(block, sizeof(block), 1, f) != 1;
	}
	if (!f || fsync(fileno(f)) < 0 || (fclose(f) | bad))
		return errinfo_set(reterr, -EIO, "the data set could not be written to %s: %s",
			path, strerror(errno));
	return 0;
}

static int trace_for(struct tracer *t, unsigned seconds, struct errinfo *reterr)
{
	mono_time start = mono_now();

	while (mono_now().ns - start.ns < seconds * NS_PER_S) {
		int r = tracer_step(t, STEP_MS, reterr);

		if (r < 0)
			return r;
	}
	return 0;
}

static void say(const struct demo_settings *s, const char *text, unsigned seconds)
{
	if (s->json)
		fprintf(stderr, "demo: %s (%u s)\n", text, seconds);
	else
		printf("  %s (%u s)\n", text, seconds);
	fflush(stdout);
}

static int play_acts(const struct scenario *sc, const struct demo_settings *s, struct stage *stage,
	struct tracer *t, struct errinfo *reterr)
{
	for (const struct act *a = sc->acts; a->says; a++) {
		int actor = -1, r;

		if (a->program && a != sc->acts) {
			actor = stage_start(stage, a->program, a->args, reterr);
			if (actor < 0)
				return actor;
		}
		if (a == sc->acts)
			stage_touch(stage, "go");
		say(s, a->says, a->seconds);
		r = trace_for(t, a->seconds, reterr);
		if (actor >= 0 && !a->stays)
			stage_end(stage, (size_t)actor);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The first actor is started and waits before the tracer starts, so that nothing of it is missed.
 */
static int record(const struct scenario *sc, const struct demo_settings *s, struct stage *stage,
	const char *db, struct errinfo *reterr)
{
	struct tracer_settings ts = {.filter = FILTER_PIDS,
		.pid_count = 1,
		.method = TRACER_METHOD_AUTO,
		.db_path = db,
		.node = "demo",
		.flags_text = "demo",
		.no_stacks = !s->stack};
	struct errinfo stop_error = {0};
	struct tracer *t = NULL;
	uint32_t pid;
	int r = make_dataset(stage->work_dir, reterr), q;

	if (r == 0)
		r = stage_start(stage, sc->acts[0].program, sc->acts[0].args, reterr);
	if (r >= 0)
		r = stage_wait_file(stage, "go.ready", reterr);
	if (r < 0)
		return r;
	pid = (uint32_t)stage_pid(stage, 0);
	ts.pids = &pid;
	r = tracer_start(&ts, &t, reterr);
	if (r < 0)
		return r;
	r = play_acts(sc, s, stage, t, reterr);
	q = tracer_stop(t, &stop_error);
	tracer_free(t);
	if (r == 0 && q < 0) {
		*reterr = stop_error;
		return q;
	}
	return r;
}

static int demo_live(const struct scenario *sc, const struct demo_settings *s,
	struct explain_style style, struct errinfo *reterr)
{
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_USED};
	struct nodedb_content content = {0};
	struct stage stage;
	char db[128];
	int r = stage_open(&stage, reterr);

	if (r < 0)
		return r;
	snprintf(db, sizeof(db), "%s/demo.db", stage.work_dir);
	fprintf(s->json ? stderr : stdout,
		"  What follows is made, traced and explained on this machine, on a stand-in "
		"GPU.\n");
	r = record(sc, s, &stage, s->db ? s->db : db, reterr);
	if (r == 0)
		r = nodedb_read(s->db ? s->db : db, &all, &content, reterr);
	stage_close(&stage);
	if (r < 0)
		return r;
	if (!style.json)
		printf("\n");
	r = explain_content(&content, style, reterr);
	nodedb_content_done(&content);
	return r;
}

static int demo_replay(
	const struct scenario *sc, struct explain_style style, struct errinfo *reterr)
{
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_USED};
	struct nodedb_content content = {0};
	int r = nodedb_read_sql(sc->recording, &all, &content, reterr);

	if (r < 0)
		return r;
	r = explain_content(&content, style, reterr);
	nodedb_content_done(&content);
	return r;
}

/* Where to go from here; a recording that was not kept cannot be looked at again. */
static void print_next(const struct demo_settings *s)
{
	printf("\n");
	if (s->db && !s->no_gpu && geteuid() == 0)
		printf("  The recording is in %s: ingero explain --db %s\n", s->db, s->db);
	printf("  Next: `ingero check` shows whether this machine can be traced, `sudo ingero "
	       "trace`\n  records CUDA programs on it.\n");
}

static int demo_run(const struct command *c, void *settings, int argc, char **argv)
{
	const struct demo_settings *s = settings;
	struct explain_style style = explain_style_detect(STDOUT_FILENO);
	const struct scenario *sc = scenarios;
	struct errinfo e = {0};
	char sim[1024];
	int r;

	style.json = s->json;
	while (argc && sc->name && strcmp(sc->name, argv[0]))
		sc++;
	if (!sc->name)
		return dispatch_fail(
			&e, errinfo_set(&e, -EINVAL, "there is no demo '%s'; there is: incident",
				    argv[0]));
	if (!s->json)
		printf("\n  Ingero demo: %s\n", sc->title);
	if (s->no_gpu || geteuid() != 0 || stage_find_sim(sim, sizeof(sim), NULL) < 0) {
		fprintf(s->json ? stderr : stdout,
			"  This is a replay of a recorded run (%s); the explanation is computed "
			"now.\n\n",
			s->no_gpu   ? "--no-gpu"
			: geteuid() ? "tracing needs root"
				    : "no stand-in GPU here");
		r = demo_replay(sc, style, &e);
	} else {
		r = demo_live(sc, s, style, &e);
	}
	if (r == 0 && !s->json)
		print_next(s);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_demo = {
	.name = "demo",
	.synopsis = "demo [incident] [flags]",
	.summary = "Make an incident on the stand-in GPU, trace it, explain it",
	.details = "Takes half a minute as root, beside the programs of the stand-in GPU "
		   "(build/sim).\n"
		   "Elsewhere, and with --no-gpu, a recording of such a run is explained instead.",
	.options = demo_options,
	.settings_size = sizeof(struct demo_settings),
	.defaults = &demo_defaults,
	.max_args = 1,
	.run = demo_run,
};
