/* SPDX-License-Identifier: Apache-2.0 */
/* clock_shift.c - preloaded, it makes the wall clock of a program wrong: by CLOCK_SHIFT_MS. A
 * network namespace has the machine's clock, and a time namespace does not shift this one. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
	const char *shift = getenv("CLOCK_SHIFT_MS");
	long long ns;
	int r = (int)syscall(SYS_clock_gettime, id, t);

	if (r == 0 && shift && id == CLOCK_REALTIME) {
		ns = t->tv_sec * 1000000000LL + t->tv_nsec + atoll(shift) * 1000000LL;
		t->tv_sec = ns / 1000000000LL;
		t->tv_nsec = ns % 1000000000LL;
	}
	return r;
}

time_t time(time_t *out)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}
