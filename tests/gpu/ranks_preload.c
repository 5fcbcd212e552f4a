/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_preload.c - preloaded by ranks.py: a wall clock that is off by $RANKS_SHIFT_NS, as on another machine, and
 * messages that leave at a pace, as through a slow link. Without the variable, and until ranks_pace(), nothing changes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S    1000000000LL
#define PACED_BYTES 4096 /* what is smaller belongs to NCCL's own talk */
#define CREDIT_NS   2000000

static int64_t shift_ns;
static uint64_t pace_bytes_per_s;
static int64_t free_at_ns; /* the link is busy until then */
static ssize_t (*next_send)(int, const void *, size_t, int);
static int (*next_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("RANKS_SHIFT_NS");

	shift_ns = text ? atoll(text) : 0;
	next_send = (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
	next_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

void ranks_pace(uint64_t bytes_per_s)
{
	__atomic_store_n(&pace_bytes_per_s, bytes_per_s, __ATOMIC_RELAXED);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int64_t ns;

	if ((next_clock ? next_clock(clock, t) : (int)syscall(SYS_clock_gettime, clock, t)) < 0)
		return -1;
	if (!shift_ns || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return 0;
	ns = t->tv_sec * NS_PER_S + t->tv_nsec + shift_ns;
	t->tv_sec = ns / NS_PER_S;
	t->tv_nsec = ns % NS_PER_S;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}

/* A large message has to wait until the ones before it are through; NCCL asks again, as of a full buffer. */
ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	uint64_t pace = __atomic_load_n(&pace_bytes_per_s, __ATOMIC_RELAXED);
	struct timespec t;
	int64_t now, from;
	ssize_t sent;

	if (!pace || size < PACED_BYTES)
		return next_send(fd, bytes, size, flags);
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec * NS_PER_S + t.tv_nsec;
	from = __atomic_load_n(&free_at_ns, __ATOMIC_RELAXED);
	if (from > now + CREDIT_NS) {
		errno = EAGAIN;
		return -1;
	}
	sent = next_send(fd, bytes, size < 65536 ? size : 65536, flags);
	if (sent > 0)
		__atomic_store_n(&free_at_ns,
			(from > now ? from : now) +
				(int64_t)((double)sent * NS_PER_S / (double)pace),
			__ATOMIC_RELAXED);
	return sent;
}
