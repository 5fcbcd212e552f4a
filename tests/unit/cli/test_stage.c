/* SPDX-License-Identifier: Apache-2.0 */
/* test_stage.c - actors are found, started, told their folder, ended and cleaned up after. They are
 * shell scripts here. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "cli/demo_scenario.h"
#include "tree.h"

static char root[TREE_MAX];

static void put_program(const char *name, const char *script)
{
	char path[TREE_MAX + 64];

	tree_write(root, name, script);
	snprintf(path, sizeof(path), "%s%s", root, name);
	assert_int_equal(chmod(path, 0755), 0);
}

static int setup(void **state)
{
	tree_init(root);
	put_program("/sim-train", "#!/bin/sh\n"
				  "printf '%s' \"$*\" >\"$2.part\"\n"
				  "mv \"$2.part\" \"$2\"\n"
				  "exec sleep 600\n");
	put_program("/says", "#!/bin/sh\nprintf '%s %s' \"$WORD\" \"$*\" >\"$2.part\"\n"
			     "mv \"$2.part\" \"$2\"\n");
	put_program("/ends", "#!/bin/sh\necho word\necho complaint >&2\n");
	return setenv("INGERO_SIM_DIR", root, 1);
}

static int teardown(void **state)
{
	unsetenv("INGERO_SIM_DIR");
	tree_done(root);
	return 0;
}

static void the_programs_are_found(void **state)
{
	struct errinfo e = {0};
	char dir[1024];

	assert_int_equal(stage_find_sim(dir, sizeof(dir), &e), 0);
	assert_string_equal(dir, root);
	setenv("INGERO_SIM_DIR", "/nowhere", 1);
	if (access("/usr/local/lib/ingero/sim/sim-train", X_OK) == 0) {
		printf("# skip: the stand-in GPU is installed on this machine\n");
		return;
	}
	assert_int_equal(stage_find_sim(dir, sizeof(dir), &e), -ENOENT);
	assert_non_null(strstr(e.text, "INGERO_SIM_DIR"));
}

static void an_actor_lives_and_ends(void **state)
{
	const char *const args[] = {"--out", "%w/note", "x%wy", NULL};
	char path[256], text[512] = "", wanted[512];
	struct errinfo e = {0};
	struct stage s;
	FILE *f;
	pid_t pid;

	assert_int_equal(stage_open(&s, &e), 0);
	assert_int_equal(access(s.work_dir, W_OK), 0);
	assert_int_equal(stage_start(&s, "sim-train", args, &e), 0);
	pid = stage_pid(&s, 0);
	assert_int_equal(stage_wait_file(&s, "note", &e), 0);
	snprintf(path, sizeof(path), "%s/note", s.work_dir);
	snprintf(wanted, sizeof(wanted), "--out %s/note x%sy", s.work_dir, s.work_dir);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, wanted);
	assert_int_equal(kill(pid, 0), 0);
	stage_end(&s, 0);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	stage_end(&s, 0); /* twice is no harm */
	stage_close(&s);
	assert_int_equal(access(s.work_dir, F_OK), -1);
}

static void settings_go_into_the_environment(void **state)
{
	const char *const args[] = {"WORD=%w!", "OTHER=1", "--out", "%w/said", "X=2", NULL};
	char path[256], text[512] = "", wanted[512];
	struct errinfo e = {0};
	struct stage s;
	FILE *f;

	assert_int_equal(stage_open(&s, &e), 0);
	assert_int_equal(stage_start(&s, "says", args, &e), 0);
	assert_int_equal(stage_wait_file(&s, "said", &e), 0);
	snprintf(path, sizeof(path), "%s/said", s.work_dir);
	snprintf(wanted, sizeof(wanted), "%s! --out %s X=2", s.work_dir, path);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, wanted);
	stage_close(&s);
	assert_null(getenv("WORD")); /* of the actor, not of this process */
}

static void closing_ends_all_and_leaves_nothing(void **state)
{
	const char *const args[] = {"--out", "%w/ready", NULL};
	struct errinfo e = {0};
	struct stage s;

	assert_int_equal(stage_open(&s, &e), 0);
	for (int i = 0; i < STAGE_ACTORS; i++)
		assert_int_equal(stage_start(&s, "sim-train", args, &e), i);
	assert_int_equal(stage_start(&s, "sim-train", args, &e), -ENOBUFS);
	assert_int_equal(stage_wait_file(&s, "ready", &e), 0);
	stage_touch(&s, "go");
	assert_int_equal(stage_wait_file(&s, "go", &e), 0);
	stage_close(&s);
	assert_int_equal(access(s.work_dir, F_OK), -1);
	for (size_t i = 0; i < STAGE_ACTORS; i++)
		assert_int_equal(stage_pid(&s, i), 0);
}

/* Its words go to a log of the folder, not to the demo's output. */
static void words_of_actors_are_kept_apart(void **state)
{
	const char *const none[] = {NULL};
	struct errinfo e = {0};
	struct stage s;

	assert_int_equal(stage_open(&s, &e), 0);
	assert_int_equal(stage_start(&s, "ends", none, &e), 0);
	assert_int_equal(stage_wait_file(&s, "actors.log", &e), 0);
	assert_int_equal(stage_start(&s, "not-there", none, &e), 1);
	stage_close(&s); /* both have ended by themselves, one because it could not be run */
	assert_int_equal(access(s.work_dir, F_OK), -1);
}

/* A program in Python that cannot be run is done by the one it stands for. */
static void without_python_the_other_program_runs(void **state)
{
	const char *const args[] = {"--out", "%w/note", NULL};
	const char *path = getenv("PATH");
	char *kept = strdup(path ? path : "");
	struct errinfo e = {0};
	struct stage s;

	put_program("/says.py", "#!/bin/sh\n: >\"$2.py\"\n");
	assert_int_equal(stage_open(&s, &e), 0);
	assert_int_equal(stage_start(&s, "sim-train.py", args, &e), 0); /* is not there */
	assert_int_equal(stage_wait_file(&s, "note", &e), 0);
	assert_int_equal(stage_start(&s, "says.py", args, &e), 1);
	assert_int_equal(stage_wait_file(&s, "note.py", &e), 0);
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(stage_start(&s, "sim-train.py", args, &e), 2);
	setenv("PATH", kept, 1);
	stage_close(&s);
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_programs_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(an_actor_lives_and_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(settings_go_into_the_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(
			closing_ends_all_and_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(words_of_actors_are_kept_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_python_the_other_program_runs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
