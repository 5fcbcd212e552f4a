/* SPDX-License-Identifier: Apache-2.0 */
/* polyfill.c - what C libraries before this machine's lack, for the programs of the tarball.
 *
 * The static libraries were compiled against this machine's C library and call what it has. Functions that
 * came after 2.31 are here, in the program; versions of those that only moved or were renamed are set back
 * by packaging/portable.py, which refuses a function that is neither there nor here.
 * Nothing here is exported: libraries that the program loads use their own C library. */
/* Both names of each function are defined here: neither may be made the other. */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HERE __attribute__((visibility("hidden")))

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#endif

/* ---- the start ---- */

typedef void start_f(int, char **, char **);
extern start_f *__init_array_start[], *__init_array_end[];
extern void _init(void);
int start_of_old(int (*main)(int, char **, char **), int argc, char **argv, start_f *init,
	void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
__asm__(".symver start_of_old, __libc_start_main@" OLDEST);

/* Before 2.34 the program brought the loop over its own constructors with it. */
static void run_constructors(int argc, char **argv, char **envp)
{
	_init();
	for (start_f **f = __init_array_start; f < __init_array_end; f++)
		(*f)(argc, argv, envp);
}

HERE int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, start_f *init,
	void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

HERE int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, start_f *init,
	void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	return start_of_old(main, argc, argv, run_constructors, fini, rtld_fini, stack_end);
}

/* ---- 2.33: stat() and the like were inline before. The kernel's struct is glibc's on both machines. ---- */

HERE int fstatat(int dir, const char *restrict path, struct stat *restrict ret_stat, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, ret_stat, flags);
}

HERE int stat(const char *restrict path, struct stat *restrict ret_stat)
{
	return fstatat(AT_FDCWD, path, ret_stat, 0);
}

HERE int lstat(const char *restrict path, struct stat *restrict ret_stat)
{
	return fstatat(AT_FDCWD, path, ret_stat, AT_SYMLINK_NOFOLLOW);
}

/* Not by an empty path: seccomp's filters of the agent know fstat(). */
HERE int fstat(int fd, struct stat *ret_stat)
{
	return (int)syscall(SYS_fstat, fd, ret_stat);
}

HERE int fstatat64(int dir, const char *restrict path, struct stat64 *restrict ret_stat, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, ret_stat, flags);
}

HERE int stat64(const char *restrict path, struct stat64 *restrict ret_stat)
{
	return fstatat64(AT_FDCWD, path, ret_stat, 0);
}

HERE int lstat64(const char *restrict path, struct stat64 *restrict ret_stat)
{
	return fstatat64(AT_FDCWD, path, ret_stat, AT_SYMLINK_NOFOLLOW);
}

HERE int fstat64(int fd, struct stat64 *ret_stat)
{
	return (int)syscall(SYS_fstat, fd, ret_stat);
}

/* ---- 2.33: the older one counts in int; what is above 2 GiB it cannot say ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
HERE struct mallinfo2 mallinfo2(void)
{
	struct mallinfo m = mallinfo();

	return (struct mallinfo2){
		.arena = (unsigned)m.arena,
		.ordblks = (unsigned)m.ordblks,
		.smblks = (unsigned)m.smblks,
		.hblks = (unsigned)m.hblks,
		.hblkhd = (unsigned)m.hblkhd,
		.usmblks = (unsigned)m.usmblks,
		.fsmblks = (unsigned)m.fsmblks,
		.uordblks = (unsigned)m.uordblks,
		.fordblks = (unsigned)m.fordblks,
		.keepcost = (unsigned)m.keepcost,
	};
}
#pragma GCC diagnostic pop

/* ---- 2.34 ---- */

#ifdef __x86_64__
/* Its old version's name is longer than the new one's, for which packaging/portable.py has no room. */
int setclock_of_old(pthread_condattr_t *a, clockid_t clock);
__asm__(".symver setclock_of_old, pthread_condattr_setclock@GLIBC_2.3.3");

HERE int pthread_condattr_setclock(pthread_condattr_t *a, clockid_t clock)
{
	return setclock_of_old(a, clock);
}
#endif

HERE int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

/* ---- 2.36: chance. A kernel that has none to give has been out of order since it started. ---- */

HERE void arc4random_buf(void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = getrandom((char *)buf + done, size - done, 0);

		if (n < 0 && errno != EINTR)
			abort();
		done += n > 0 ? (size_t)n : 0;
	}
}

HERE uint32_t arc4random(void)
{
	uint32_t value;

	arc4random_buf(&value, sizeof(value));
	return value;
}
