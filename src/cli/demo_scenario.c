/* SPDX-License-Identifier: Apache-2.0 */
/* demo_scenario.c - the published six. Each does on the stand-in GPU what its title says; how
 * strong the effect is depends on the machine and is measured, not promised. */
#include "cli/demo_scenario.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/* Recorded runs that travel inside the program, for nodedb_read_packed(). */

extern const struct nodedb_packed recording_incident, recording_cold_start,
	recording_memcpy_bottleneck, recording_periodic_spike, recording_cpu_contention,
	recording_gpu_steal;

/* Starts and ends the programs of a demo. Only processes started here are ended, each is
 * waited for, and they die with this process (PDEATHSIG) if it is killed. */

#define INSTALLED_DIR "/usr/local/lib/ingero/sim"
#define END_WAIT_MS   2000
#define FILE_WAIT_MS  10000
#define DATASET_MB    64

static int has_sim(const char *dir)
{
	return access(FORMATTED(1200, "%s/sim-train", dir), X_OK) == 0;
}

int stage_find_sim(char *out, size_t size, struct errinfo *reterr)
{
	const char *env = getenv("INGERO_SIM_DIR");
	char exe[1024], *slash;
	ssize_t n;

	if (env) {
		snprintf(out, size, "%s", env);
		if (has_sim(out))
			return 0;
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n > 0) {
		exe[n] = 0;
		slash = strrchr(exe, '/');
		if (slash)
			*slash = 0;
		snprintf(out, size, "%s/sim", exe);
		if (has_sim(out))
			return 0;
	}
	snprintf(out, size, "%s", INSTALLED_DIR);
	if (has_sim(out))
		return 0;
	return errinfo_set(reterr, -ENOENT,
		"stand-in GPU not found (sim-train beside ingero, in %s, or in $INGERO_SIM_DIR)",
		INSTALLED_DIR);
}

int stage_open(struct stage *s, struct errinfo *reterr)
{
	int r;

	*s = (struct stage){0};
	r = stage_find_sim(s->sim_dir, sizeof(s->sim_dir), reterr);
	if (r < 0)
		return r;
	/* not /tmp: it may be a tmpfs, where nothing waits for a disk */
	snprintf(s->work_dir, sizeof(s->work_dir), "/var/tmp/ingero-demo-XXXXXX");
	if (!mkdtemp(s->work_dir)) {
		r = -errno;
		s->work_dir[0] = 0;
		return errinfo_set(
			reterr, r, "cannot create a working folder in /var/tmp: %s", strerror(-r));
	}
	return 0;
}

int stage_make_dataset(const struct stage *s, struct errinfo *reterr)
{
	static char block[1 << 20];
	char path[128];
	FILE *f;
	int bad = 0;

	snprintf(path, sizeof(path), "%s/dataset", s->work_dir);
	f = fopen(path, "we");
	for (int i = 0; f && i < DATASET_MB; i++) {
		memset(block, i + 1, sizeof(block));
		bad |= fwrite(block, sizeof(block), 1, f) != 1;
	}
	if (!f || fsync(fileno(f)) < 0 || (fclose(f) | bad))
		return errinfo_set(
			reterr, -EIO, "cannot write the data set to %s: %s", path, strerror(errno));
	return 0;
}

/* @argv[0] is to be the program; settings of the environment stand before it. */
static void run_actor(const struct stage *s, char *path, char **argv)
{
	int null = open("/dev/null", O_RDWR);
	char log[128];
	sigset_t none;
	int out;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(log, sizeof(log), "%s/actors.log", s->work_dir);
	out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(null, STDIN_FILENO);
	dup2(out >= 0 ? out : null, STDOUT_FILENO);
	dup2(out >= 0 ? out : null, STDERR_FILENO);
	/* where a driver is installed, its folder may be named there */
	setenv("LD_LIBRARY_PATH", s->sim_dir, true);
	while (argv[1] && argv[1][0] != '-' && strchr(argv[1], '='))
		putenv(*++argv);
	argv[0] = path;
	execv(path, argv);
	_exit(127);
}

static bool has_python(void)
{
	char *save, *folders = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin");
	bool found = false;

	for (char *f = folders ? strtok_r(folders, ":", &save) : NULL; f && !found;
		f = strtok_r(NULL, ":", &save)) {
		found = access(FORMATTED(1024, "%s/python3", f), X_OK) == 0;
	}
	free(folders);
	return found;
}

static void put_path(const struct stage *s, const char *program, char *out, size_t size)
{
	size_t n = strlen(program);
	bool is_script = n > 3 && strcmp(program + n - 3, ".py") == 0;

	snprintf(out, size, "%s/%s", s->sim_dir, program);
	if (is_script && (access(out, X_OK) < 0 || !has_python()))
		snprintf(out, size, "%s/%.*s", s->sim_dir, (int)n - 3, program);
}

int stage_start(
	struct stage *s, const char *program, const char *const *args, struct errinfo *reterr)
{
	char path[1200], texts[STAGE_ARGS][256], *argv[STAGE_ARGS + 2] = {path};
	pid_t pid;
	int n;

	if (s->count == STAGE_ACTORS)
		return -ENOBUFS;
	put_path(s, program, path, sizeof(path));
	for (n = 0; args[n] && n < STAGE_ARGS; n++) {
		const char *w = strstr(args[n], "%w");

		if (w)
			snprintf(texts[n], sizeof(texts[n]), "%.*s%s%s", (int)(w - args[n]),
				args[n], s->work_dir, w + 2);
		else
			snprintf(texts[n], sizeof(texts[n]), "%s", args[n]);
		argv[n + 1] = texts[n];
	}
	pid = fork();
	if (pid < 0)
		return errinfo_set(reterr, -errno, "cannot start %s: %s", program, strerror(errno));
	if (pid == 0)
		run_actor(s, path, argv);
	s->actors[s->count] = pid;
	return (int)s->count++;
}

int stage_wait_file(const struct stage *s, const char *name, struct errinfo *reterr)
{
	const struct timespec wait_briefly = {.tv_nsec = 5 * (long)NS_PER_MS};
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", s->work_dir, name);
	for (int i = 0; i < FILE_WAIT_MS / 5; i++) {
		if (access(path, F_OK) == 0)
			return 0;
		nanosleep(&wait_briefly, NULL);
	}
	return errinfo_set(
		reterr, -ETIMEDOUT, "the stand-in GPU's program did not start (%s)", path);
}

void stage_touch(const struct stage *s, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", s->work_dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

pid_t stage_pid(const struct stage *s, size_t actor)
{
	return s->actors[actor];
}

void stage_end(struct stage *s, size_t actor)
{
	const struct timespec wait_briefly = {.tv_nsec = 10 * (long)NS_PER_MS};
	pid_t pid = s->actors[actor];

	if (!pid)
		return;
	s->actors[actor] = 0;
	kill(pid, SIGTERM);
	for (int i = 0; i < END_WAIT_MS / 10; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		nanosleep(&wait_briefly, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void stage_close(struct stage *s)
{
	for (size_t i = 0; i < s->count; i++)
		stage_end(s, i);
	if (s->work_dir[0]) {
		DIR *d = opendir(s->work_dir);
		struct dirent *e;

		while (d && (e = readdir(d)))
			if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
				unlinkat(dirfd(d), e->d_name, 0);
		if (d)
			closedir(d);
		rmdir(s->work_dir);
	}
}

#define TRAIN "--steps", "1000000"
#define END                                                                                        \
	{                                                                                          \
		NULL, 0, NULL, {NULL}, false, false                                                \
	}

static const struct act incident_acts[] = {
	{"a training process on the stand-in GPU, undisturbed", 8, "sim-train",
		{TRAIN, "--launches", "2", "--kernel-us", "200", "--cpu-us", "200", "--batch-bytes",
			"1048576", "--data", "%w/dataset", "--cold", NULL},
		true, true},
	{"a CPU hog starts beside it", 8, "sim-cpu-hog",
		{"--threads", "0", "--duration", "60", NULL}, false, false},
	{"the CPU hog is gone; a disk hog starts", 8, "sim-disk-hog",
		{"--file", "%w/hog", "--duration", "60", "--depth", "16", NULL}, false, false},
	{"undisturbed again", 3, NULL, {NULL}, false, false},
	END,
};

static const struct act cold_start_acts[] = {
	{"a process makes its first CUDA calls and continues", 5, "sim-train",
		{"SIM_INIT_NS=40e6", "SIM_MALLOC_NS=100000", TRAIN, "--launches", "8",
			"--kernel-us", "400", "--malloc-every", "5", NULL},
		true, true},
	END,
};

static const struct act memcpy_acts[] = {
	{"batches of 32 MiB over a link that moves 4 GB/s", 6, "sim-train",
		{"SIM_PCIE_BYTES_PER_S=4e9", "SIM_COPY_BYTES=65536", TRAIN, "--launches", "20",
			"--kernel-us", "650", "--batch-bytes", "33554432", NULL},
		true, true},
	END,
};

static const struct act spike_acts[] = {
	{"an allocation in every step; the driver needs longer for every 200th", 8, "sim-train",
		{"SIM_MALLOC_NS=50000", "SIM_MALLOC_SLOW_EVERY=200", "SIM_MALLOC_SLOW_NS=2500000",
			TRAIN, "--launches", "2", "--kernel-us", "400", "--malloc-every", "1",
			NULL},
		true, true},
	END,
};

static const struct act cpu_acts[] = {
	{"a training process, undisturbed", 5, "sim-train.py",
		{TRAIN, "--launches", "8", "--kernel-us", "400", "--cpu-us", "300", NULL}, true,
		true},
	{"more busy threads than CPUs beside it", 5, "sim-cpu-hog",
		{"--threads", "0", "--duration", "60", NULL}, false, false},
	{"undisturbed again", 2, NULL, {NULL}, false, false},
	END,
};

static const struct act steal_acts[] = {
	{"a training process has the GPU to itself", 5, "sim-train",
		{"SIM_GPU_SHARE=%w/gpu", TRAIN, "--launches", "10", "--kernel-us", "1000", NULL},
		true, true},
	{"a second process uses the same GPU", 5, "sim-train",
		{"SIM_GPU_SHARE=%w/gpu", TRAIN, "--launches", "10", "--kernel-us", "1000", NULL},
		true, false},
	{"it has ended", 2, NULL, {NULL}, false, false},
	END,
};

const struct demo_scenario demo_scenarios[] = {
	{"incident", {NULL}, "CPU and disk contention slow CUDA calls down", incident_acts, true,
		MEASURE_SLOWDOWN, &recording_incident},
	{"cold-start", {NULL}, "first calls pay for initialisation", cold_start_acts, false,
		MEASURE_FIRST_CALLS, &recording_cold_start},
	{"memcpy-bottleneck", {NULL}, "copies take longer than kernels", memcpy_acts, false,
		MEASURE_COPIES, &recording_memcpy_bottleneck},
	{"periodic-spike", {NULL}, "an allocation that is slow now and then", spike_acts, false,
		MEASURE_PERIOD, &recording_periodic_spike},
	{"cpu-contention", {NULL}, "other processes take the CPU that feeds the GPU", cpu_acts,
		false, MEASURE_SLOWDOWN, &recording_cpu_contention},
	{"gpu-steal", {"gpu-contention", "contention", NULL}, "another process uses the same GPU",
		steal_acts, false, MEASURE_SLOWDOWN, &recording_gpu_steal},
	{NULL, {NULL}, NULL, NULL, false, MEASURE_SLOWDOWN, NULL},
};

const struct demo_scenario *demo_scenario_find(const char *name)
{
	for (const struct demo_scenario *s = demo_scenarios; s->name; s++) {
		if (strcmp(s->name, name) == 0)
			return s;
		for (int i = 0; s->aliases[i]; i++)
			if (strcmp(s->aliases[i], name) == 0)
				return s;
	}
	return NULL;
}
