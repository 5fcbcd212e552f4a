// SPDX-License-Identifier: Apache-2.0
/* share.c - see share.h. The file SIM_GPU_SHARE.DEVICE holds a slot for each process: until when
 * its work lasts. Slots of ended processes are taken over. A file that cannot be used is as none. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "share.h"
#include "tally.h"

#define SLOTS    SHARE_PROCESSES
#define STALE_NS 1000000000

struct slot {
	_Atomic uint32_t pid;
	_Atomic uint64_t busy_ns; /* machine's monotonic time */
	_Atomic uint64_t run_ns;  /* how long kernels run in all, of all who had the slot, */
	_Atomic uint64_t end_ns;  /* and until when the last of them will */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;
static int opened_device = -1, wanted_device;
static uint32_t owner; /* the process that opened it: a forked child opens anew */
static struct slot *own;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *prefix; /* NULL: nothing is shared */

static void prefix_read(void)
{
	prefix = getenv("SIM_GPU_SHARE");
	if (prefix && !*prefix)
		prefix = NULL;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct slot *slots_open(int device)
{
	size_t size = SLOTS * sizeof(struct slot);
	char path[512];
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%s.%d", prefix, device);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return NULL;
		fchmod(fd,
			0666); /* a GPU is everybody's, and its readings an unprivileged process's */
	}
	at = ftruncate(fd, (off_t)size) < 0
		     ? MAP_FAILED
		     : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static bool is_there(uint32_t pid)
{
	return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

static struct slot *slot_claim(uint32_t pid, uint64_t now)
{
	for (int i = 0; i < SLOTS; i++) {
		uint32_t there = atomic_load(&slots[i].pid);

		if (there && (atomic_load(&slots[i].busy_ns) + STALE_NS >= now || is_there(there)))
			continue;
		if (atomic_compare_exchange_strong(&slots[i].pid, &there, pid)) {
			atomic_store(&slots[i].end_ns, 0);
			return &slots[i];
		}
	}
	return NULL;
}

void share_device(int device)
{
	pthread_mutex_lock(&lock);
	wanted_device = device;
	pthread_mutex_unlock(&lock);
}

static void prepare(uint64_t now)
{
	uint32_t pid = (uint32_t)getpid();

	if (owner != pid || opened_device != wanted_device) {
		slots = slots_open(wanted_device);
		opened_device = wanted_device;
		owner = pid;
		own = NULL;
	}
	if (slots && (!own || atomic_load(&own->pid) != pid))
		own = slot_claim(pid, now);
}

uint64_t share_stretch_ns(uint64_t dur_ns)
{
	uint64_t now, active = 1, busy;

	pthread_once(&once, prefix_read);
	if (!prefix)
		return dur_ns;
	now = now_ns();
	pthread_mutex_lock(&lock);
	prepare(now);
	for (int i = 0; own && i < SLOTS; i++)
		active += &slots[i] != own && atomic_load(&slots[i].busy_ns) > now;
	if (own) {
		busy = atomic_load(&own->busy_ns);
		atomic_store(&own->busy_ns, (busy > now ? busy : now) + dur_ns * active);
	}
	pthread_mutex_unlock(&lock);
	return dur_ns * active;
}

void share_runs(uint64_t start_ns, uint64_t end_ns)
{
	uint64_t last, now;

	pthread_once(&once, prefix_read);
	if (!prefix)
		return;
	now = now_ns();
	start_ns += now - tally_now_ns(); /* the other clock */
	end_ns += now - tally_now_ns();
	pthread_mutex_lock(&lock);
	prepare(now);
	last = own ? atomic_load(&own->end_ns) : UINT64_MAX;
	if (end_ns > last) {
		atomic_fetch_add(&own->run_ns, end_ns - (start_ns > last ? start_ns : last));
		atomic_store(&own->end_ns, end_ns);
	}
	pthread_mutex_unlock(&lock);
}

static uint64_t done_ns(const struct slot *s, uint64_t now)
{
	uint64_t run = atomic_load(&s->run_ns), end = atomic_load(&s->end_ns);
	uint64_t left = end > now ? end - now : 0;

	return run > left ? run - left : 0;
}

bool share_use_of(int device, struct share_use *ret)
{
	struct slot *all;

	pthread_once(&once, prefix_read);
	all = prefix ? slots_open(device) : NULL;
	*ret = (struct share_use){.now_ns = now_ns()};
	if (!all)
		return false;
	for (int i = 0; i < SLOTS; i++) {
		uint32_t pid = atomic_load(&all[i].pid);

		ret->busy_ns += done_ns(&all[i], ret->now_ns);
		if (pid && is_there(pid))
			ret->pids[ret->processes++] = pid;
	}
	munmap(all, SLOTS * sizeof(struct slot));
	return true;
}
