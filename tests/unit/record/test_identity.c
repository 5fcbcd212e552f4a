/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/wait.h>

#include "record/discover/identity.h"
#include "base/buf.h"
#include "tree.h"

#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TASK "cd189a933e5849daa93386466019ab50"
#define POD  "0::/kubepods/pod8f2a1c3d-0b1e-4f5a-9c7d-112233445566/" ID "\n"
#define STAT "12 (python3) S 7 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 5 0 98765 123456789 42 1 2 3\n"
#define ALL  (PLACEMENT_RANK | PLACEMENT_LOCAL_RANK | PLACEMENT_WORLD_SIZE)

static char root[TREE_MAX];
static struct process p;

static int setup(void **state)
{
	tree_init(root);
	tree_write(root, "/proc/12/stat", STAT);
	tree_write(root, "/proc/12/cgroup", "0::/user.slice\n");
	tree_write(root, "/proc/sys/kernel/hostname", "node7\n");
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

/* @text: variables separated by spaces. */
static void read_env(const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	for (; *text; text++)
		buf_putc(&b, *text == ' ' ? 0 : *text);
	buf_putc(&b, 0);
	tree_write_len(root, "/proc/12/environ", b.data, b.len);
	memset(&p, 0x55, sizeof(p));
	assert_int_equal(identity_read(root, 12, &p), 0);
}

static void launchers(void **state)
{
	static const struct {
		const char *env, *launcher;
		struct placement place;
	} rows[] = {
		{"RANK=0 LOCAL_RANK=0 WORLD_SIZE=8", "torchrun", {0, 0, 8, ALL}},
		{"RANK=0", "torchrun", {0, 0, 0, PLACEMENT_RANK}},
		{"RANK=13 LOCAL_RANK=5 WORLD_SIZE=16 SLURM_PROCID=1 SLURM_NTASKS=2", "torchrun",
			{13, 5, 16, ALL}},
		{"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_SIZE=4",
			"openmpi", {3, 1, 4, ALL}},
		{"PMIX_RANK=2", "pmix", {2, 0, 0, PLACEMENT_RANK}},
		/* what PMIx leaves open, from Slurm, which says the same rank */
		{"PMIX_RANK=2 SLURM_PROCID=2 SLURM_LOCALID=0 SLURM_NTASKS=4", "pmix",
			{2, 0, 4, ALL}},
		{"PMIX_RANK=2 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4", "pmix",
			{2, 0, 0, PLACEMENT_RANK}},
		{"PMI_RANK=1 PMI_LOCAL_RANK=1 PMI_SIZE=2", "pmi", {1, 1, 2, ALL}},
		{"PMI_RANK=1 MPI_LOCALRANKID=0 PMI_SIZE=2", "pmi", {1, 0, 2, ALL}},
		{"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_SIZE=2",
			"mvapich", {1, 1, 2, ALL}},
		{"SLURM_PROCID=7 SLURM_LOCALID=3 SLURM_NTASKS=8", "slurm", {7, 3, 8, ALL}},
		{"SLURM_PROCID=7 SLURM_LOCALID=3 SLURM_NPROCS=8", "slurm", {7, 3, 8, ALL}},
		{"JOB_COMPLETION_INDEX=4", "kubernetes", {4, 0, 0, PLACEMENT_RANK}},
		{"RANK=5 JOB_COMPLETION_INDEX=0 WORLD_SIZE=6", "torchrun",
			{5, 0, 6, PLACEMENT_RANK | PLACEMENT_WORLD_SIZE}},
		{"WORLD_SIZE=8 LOCAL_RANK=0", "", {0, 0, 0, 0}},
		{"", "", {0, 0, 0, 0}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		read_env(rows[i].env);
		assert_string_equal(p.identity.launcher, rows[i].launcher);
		assert_int_equal(p.identity.place.known, rows[i].place.known);
		assert_int_equal(p.identity.place.rank, rows[i].place.rank);
		if (rows[i].place.known & PLACEMENT_LOCAL_RANK)
			assert_int_equal(p.identity.place.local_rank, rows[i].place.local_rank);
		if (rows[i].place.known & PLACEMENT_WORLD_SIZE)
			assert_int_equal(p.identity.place.world_size, rows[i].place.world_size);
	}
	read_env("RANK=0 WORLD_SIZE=1"); /* and what is common to all */
	assert_int_equal(p.pid, 12);
	assert_int_equal(p.start_ticks, 98765);
	assert_string_equal(p.comm, "python3");
	assert_string_equal(p.identity.cgroup_path, "/user.slice");
	assert_string_equal(p.identity.container_id, "");
}

static void absurd_numbers(void **state)
{
	static const char *const refused[] = {"RANK=-1", "RANK=", "RANK=x", "RANK=1x", "RANK=+1",
		"RANK=0x1", "RANK=1.0", "RANK=9223372036854775808",
		"RANK=99999999999999999999999999999999", "RANK=16777216", "RANK=8 WORLD_SIZE=8",
		"RANK=9 WORLD_SIZE=8", "RANK=0 WORLD_SIZE=0", "RANK=0 WORLD_SIZE=-8",
		"RANK=0 WORLD_SIZE=16777217", "RANK=0 WORLD_SIZE=\xff"};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		read_env(refused[i]);
		assert_int_equal(p.identity.place.known, 0);
		assert_string_equal(p.identity.launcher, "");
	}
	read_env("RANK=7 WORLD_SIZE=8 LOCAL_RANK=8"); /* only the local rank is nonsense */
	assert_int_equal(p.identity.place.known, PLACEMENT_RANK | PLACEMENT_WORLD_SIZE);
	read_env("RANK=8 WORLD_SIZE=8 SLURM_PROCID=3 SLURM_NTASKS=4"); /* the next is asked */
	assert_string_equal(p.identity.launcher, "slurm");
	assert_int_equal(p.identity.place.rank, 3);
	read_env("RANK=16777215 WORLD_SIZE=16777216"); /* the control: the largest */
	assert_int_equal(p.identity.place.rank, 16777215);
}

static void jobs(void **state)
{
	static const struct {
		const char *env, *job;
	} rows[] = {
		{"SLURM_JOB_ID=4711", "slurm:4711"},
		{"SLURM_JOBID=4711_3", "slurm:4711_3"},
		{"PBS_JOBID=12.head", "pbs:12.head"},
		{"LSB_JOBID=9", "lsf:9"},
		{"ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/" TASK "-2495160603",
			"ecs:" TASK},
		{"ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/" ID, "ecs:" ID},
		{"SLURM_JOB_ID=1 ECS_CONTAINER_METADATA_URI=http://x/v3/2", "slurm:1"},
		{"SLURM_JOB_ID=", ""},
		{"SLURM_JOB_ID=\033[2J", ""},
		{"ECS_CONTAINER_METADATA_URI_V4=http://x/", ""},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		read_env(rows[i].env);
		assert_string_equal(p.identity.job, rows[i].job);
	}
	tree_write(root, "/proc/12/cgroup", "0::/ecs/" TASK "/" ID "\n");
	read_env("");
	assert_string_equal(p.identity.job, "ecs:" TASK);
	assert_string_equal(p.identity.container_id, ID);
}

static void pods(void **state)
{
	read_env("HOSTNAME=train-0 POD_NAME=x POD_NAMESPACE=y"); /* not in a pod */
	assert_string_equal(p.identity.pod, "");
	assert_string_equal(p.identity.namespace, "");
	tree_write(root, "/proc/12/cgroup", POD);
	read_env("HOSTNAME=train-0");
	assert_string_equal(p.identity.pod, "train-0");
	assert_string_equal(p.identity.pod_uid, "8f2a1c3d-0b1e-4f5a-9c7d-112233445566");
	assert_string_equal(p.identity.container_id, ID);
	read_env("HOSTNAME=node7"); /* shares the node's name */
	assert_string_equal(p.identity.pod, "");
	read_env("HOSTNAME=node7 POD_NAME=train-1 POD_NAMESPACE=ml");
	assert_string_equal(p.identity.pod, "train-1");
	assert_string_equal(p.identity.namespace, "ml");
	read_env("POD_NAME=../../x POD_NAMESPACE=\033[31m");
	assert_string_equal(p.identity.pod, "");
	assert_string_equal(p.identity.namespace, "");
	tree_write(root, "/proc/12/cgroup", "0::/\n"); /* the agent sees the cgroup from inside */
	read_env("KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=train-2");
	assert_string_equal(p.identity.pod, "train-2");
}

static void files_inside_the_container(void **state)
{
	static const char dir[] = "/proc/12/root/var/run/secrets/kubernetes.io/serviceaccount";
	char from[512], secret[512];

	tree_write(root, "/proc/12/cgroup", POD);
	tree_write(root, "/proc/12/root/etc/hostname", "train-9\n");
	snprintf(from, sizeof(from), "%s/..data/namespace", dir);
	tree_write(root, from, "research");
	snprintf(from, sizeof(from), "%s%s/namespace", root, dir);
	assert_int_equal(symlink("..data/namespace", from), 0);
	read_env("A=1");
	assert_string_equal(p.identity.pod, "train-9");
	assert_string_equal(p.identity.namespace, "research");

	/* A link out of the container leads nowhere: its / is not ours. */
	tree_write(root, "/outside", "stolen");
	snprintf(secret, sizeof(secret), "%s/outside", root);
	unlink(from);
	assert_int_equal(symlink(secret, from), 0);
	assert_int_equal(access(from, R_OK), 0);
	read_env("A=1");
	assert_string_equal(p.identity.namespace, "");
	unlink(from);
	assert_int_equal(mkfifo(from, 0600), 0); /* nobody writes to it */
	read_env("A=1");
	assert_string_equal(p.identity.namespace, "");
}

static void the_gpus_that_it_sees(void **state)
{
	read_env("A=1");
	assert_string_equal(p.identity.visible_gpus, "");
	read_env("CUDA_VISIBLE_DEVICES=1,\t3");
	assert_string_equal(p.identity.visible_gpus, "1,3");
	read_env("NVIDIA_VISIBLE_DEVICES=GPU-8932f937");
	assert_string_equal(p.identity.visible_gpus, "GPU-8932f937");
	read_env("NVIDIA_VISIBLE_DEVICES=all");
	assert_string_equal(p.identity.visible_gpus, "");
	read_env("NVIDIA_VISIBLE_DEVICES=1"); /* of the machine: CUDA calls it 0 */
	assert_string_equal(p.identity.visible_gpus, "");
	read_env("CUDA_VISIBLE_DEVICES=0\033[2J\377");
	assert_string_equal(p.identity.visible_gpus, "0[2J");
}

static void what_cannot_be_read_is_marked(void **state)
{
	char path[512];

	assert_int_equal(identity_read(root, 12, &p), 0); /* no environ at all */
	assert_true(p.identity.environ_unreadable);
	assert_int_equal(p.identity.place.known, 0);
	snprintf(path, sizeof(path), "%s/proc/12/cgroup", root);
	unlink(path);
	read_env("RANK=1");
	assert_false(p.identity.environ_unreadable);
	assert_int_equal(p.identity.place.rank, 1);
	assert_string_equal(p.identity.cgroup_path, "");
	assert_int_equal(identity_read(root, 13, &p), -ESRCH);
}

static void a_zombie_is_gone(void **state)
{
	tree_write(root, "/proc/12/environ", "");
	tree_write(root, "/proc/12/stat",
		"12 (python3) Z 7 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 5 0 98765 0 0 1 2 3\n");
	assert_int_equal(identity_read(root, 12, &p), -ESRCH);
}

/* The process ends, or its pid passes to another, while the environment is read: environ is a pipe
 * whose writer changes stat before it writes. */
static void a_change_of_process_is_noticed(void **state)
{
	static const struct {
		const char *stat, *environ;
		int result;
	} later[] = {
		{STAT, "RANK=1", 0}, /* the control */
		{"12 (other) S 7 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 5 0 98766 4096 42 1 2 3\n",
			"RANK=1", -ESRCH},
		{"", "RANK=1", 0}, /* it has ended, after it had told all */
		{"", "", -ESRCH},  /* it has ended, and its environment with it */
	};
	char path[512];
	int status;

	snprintf(path, sizeof(path), "%s/proc/12/environ", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
		pid_t child;

		tree_write(root, "/proc/12/stat", STAT);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			FILE *f = fopen(path, "w"); /* waits for the reader */

			tree_write(root, "/proc/12/stat", later[i].stat);
			fputs(later[i].environ, f);
			fclose(f);
			_exit(0);
		}
		p.identity.place.rank = 77;
		assert_int_equal(identity_read(root, 12, &p), later[i].result);
		assert_int_equal(p.identity.place.rank,
			later[i].result ? 77 : 1); /* untouched if it fails */
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		if (i == 0)
			assert_string_equal(p.comm, "python3");
	}
}

static void of_this_very_process(void **state)
{
	struct process self;

	assert_int_equal(identity_read("", (uint32_t)getpid(), &self), 0);
	assert_non_null(strstr(self.identity.exe, "test_identity"));
	assert_false(self.identity.environ_unreadable);
}

static void node_names(void **state)
{
	static const char *const bad[] = {"", "a:b", ":", "a\nb", "a\033[2J", "\xff"};
	struct errinfo e = {0};
	char longest[300];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(identity_node_check(bad[i], &e), -EINVAL);
		assert_non_null(strstr(e.text, "colon"));
		assert_null(strchr(e.text, '\033'));
	}
	memset(longest, 'n', sizeof(longest));
	longest[254] = 0;
	assert_int_equal(identity_node_check(longest, &e), -EINVAL);
	longest[253] = 0;
	assert_int_equal(identity_node_check(longest, &e), 0);
	assert_int_equal(identity_node_check("gpu-07.cluster", &e), 0);
	assert_int_equal(identity_node_check("knoten-ä", &e), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(launchers),
		TEST(absurd_numbers),
		TEST(jobs),
		TEST(pods),
		TEST(files_inside_the_container),
		TEST(the_gpus_that_it_sees),
		TEST(what_cannot_be_read_is_marked),
		TEST(a_zombie_is_gone),
		TEST(a_change_of_process_is_noticed),
		TEST(of_this_very_process),
		TEST(node_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
