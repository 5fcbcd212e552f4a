// SPDX-License-Identifier: Apache-2.0
/* ledger_stays.c - threads that each spend their time in one way, for 14-ledger. Usage: ledger_stays
 * FOLDER GATE. The name of a thread says what it does; it ends with the gate.
 *
 * stay-lock and wake-lock, stay-pipe and wake-pipe, stay-socket and wake-socket, short-pipe and hand-pipe
 * are pairs: the second wakes the first, in the last of them some thousand times a second. stay-other reads
 * FOLDER/fifo, which another program writes to. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "cuda_sim.h"
#include "gate.h"

#define PAUSE_US 3000 /* beyond the length from which on a stay ends a row */
#define SHORT_US 200  /* far below it */

static atomic_int is_over;
static const char *gate, *folder;
static int pipe_ends[2], short_ends[2], socket_ends[2], silent_pipe[2], fifo;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void stay_sleep(void)
{
	usleep(PAUSE_US);
	__asm__ volatile("" ::: "memory"); /* it is called, not jumped to */
}

/* One long stay, then many short ones at the same place. */
static void stay_mixed(void)
{
	static unsigned rounds;

	usleep(rounds++ % 12 ? SHORT_US : PAUSE_US);
	__asm__ volatile("" ::: "memory");
}

static void stay_lock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&condition, &mutex);
	pthread_mutex_unlock(&mutex);
}

/* Nobody signals: each time the limit ends it. */
static void short_lock(void)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += SHORT_US * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&own);
	pthread_cond_timedwait(&never, &own, &until);
	pthread_mutex_unlock(&own);
}

static void wake_lock(void)
{
	usleep(PAUSE_US);
	pthread_mutex_lock(&mutex);
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&mutex);
}

static void stay_pipe(void)
{
	char byte;

	if (read(pipe_ends[0], &byte, 1) != 1)
		abort();
}

static void wake_pipe(void)
{
	usleep(PAUSE_US);
	if (write(pipe_ends[1], "", 1) != 1)
		abort();
}

static void short_pipe(void)
{
	char byte;

	if (read(short_ends[0], &byte, 1) != 1)
		abort();
}

static void hand_pipe(void)
{
	usleep(SHORT_US);
	if (write(short_ends[1], "", 1) != 1)
		abort();
}

static void stay_socket(void)
{
	char byte;

	if (recv(socket_ends[0], &byte, 1, 0) != 1)
		abort();
}

static void wake_socket(void)
{
	usleep(PAUSE_US);
	if (write(socket_ends[1], "", 1) != 1)
		abort();
}

static void stay_other(void)
{
	char byte;

	if (read(fifo, &byte, 1) != 1)
		usleep(PAUSE_US); /* whoever writes has ended */
}

static void stay_poll(void)
{
	struct pollfd p = {.fd = silent_pipe[0], .events = POLLIN};

	poll(&p, 1, PAUSE_US / 1000);
}

static void stay_child(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_NAME, "sleeping-child"); /* its sleep is not the parent's */
		usleep(PAUSE_US);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void stay_disk(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/data", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || pwrite(fd, path, sizeof(path), 0) < 0 || fsync(fd) < 0)
		abort();
	close(fd);
}

static void spin(void)
{
	static volatile unsigned long n;

	for (int i = 0; i < 1000000; i++)
		n++;
}

static void wait_gpu(void)
{
	usleep(PAUSE_US);
	cudaDeviceSynchronize();
}

static const struct sim_kernel kernel = {SIM_KERNEL_MAGIC, 500000};

/* Of four copies one has work before it that its bytes wait for. */
static void read_gpu(void)
{
	static void *there;
	static char here[64];
	const dim3 one = {1, 1, 1};

	if (!there && cudaMalloc(&there, sizeof(here)))
		abort();
	cudaMemcpy(there, here, sizeof(here), cudaMemcpyHostToDevice);
	cudaLaunchKernel(&kernel, one, one, NULL, 0, NULL);
	cudaMemcpy(here, there, sizeof(here), cudaMemcpyDeviceToHost);
	cudaMemcpy(here, there, sizeof(here), cudaMemcpyDeviceToHost);
	cudaMemcpy(there, here, sizeof(here), cudaMemcpyHostToDevice);
	usleep(3 * PAUSE_US);
}

static void *nothing(void *arg)
{
	usleep(200);
	return arg;
}

/* Threads that come and go. */
static void breed(void)
{
	pthread_t t[20];

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		if (pthread_create(&t[i], NULL, nothing, NULL))
			abort();
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		pthread_join(t[i], NULL);
	usleep(10000);
}

static const struct way {
	const char *name;
	void (*go)(void);
} ways[] = {{"stay-sleep", stay_sleep}, {"stay-mixed", stay_mixed}, {"stay-lock", stay_lock},
	{"wake-lock", wake_lock}, {"stay-pipe", stay_pipe}, {"wake-pipe", wake_pipe},
	{"short-lock", short_lock}, {"short-pipe", short_pipe}, {"hand-pipe", hand_pipe},
	{"stay-socket", stay_socket}, {"wake-socket", wake_socket}, {"stay-other", stay_other},
	{"stay-poll", stay_poll}, {"stay-child", stay_child}, {"stay-disk", stay_disk},
	{"spin", spin}, {"wait-gpu", wait_gpu}, {"read-gpu", read_gpu}, {"breed", breed}};
#define WAYS (sizeof(ways) / sizeof(*ways))

static void *run(void *arg)
{
	const struct way *w = arg;

	prctl(PR_SET_NAME, w->name);
	while (!atomic_load(&is_over))
		w->go();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[WAYS];
	char path[4096];

	if (argc != 3 || pipe(pipe_ends) || pipe(short_ends) || pipe(silent_pipe) ||
		socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends))
		return 1;
	folder = argv[1];
	gate = argv[2];
	snprintf(path, sizeof(path), "%s/fifo", folder);
	fifo = open(path, O_RDONLY | O_CLOEXEC);
	if (fifo < 0)
		return 1;
	cudaDeviceSynchronize();
	gate_wait(gate);
	for (size_t i = 0; i < WAYS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)&ways[i]))
			return 1;
	while (gate_round(gate))
		;
	atomic_store(&is_over, 1);
	/* pairs end together only by chance: the process ends them in the middle of what they do */
	usleep(20000);
	_exit(0);
}
