// SPDX-License-Identifier: Apache-2.0
/* hog_disk.c - sim-disk-hog: keeps a disk busy with writes and reads of a file of its own.
 *
 * The file must not exist before; its name is removed as soon as it is open, so that nothing is
 * left behind however the program ends. I/O is direct where the file system allows; else each write
 * is followed by fdatasync() and each read preceded by dropping the cached range, so that the
 * device is really used. --depth threads have one request each under way. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "workload.h"

#define BLOCK     (1u << 20)
#define MAX_DEPTH 64

static struct settings {
	const char *file, *wait_start;
	uint64_t bytes, duration_s, depth;
} settings = {.bytes = 256u << 20, .duration_s = 10, .depth = 2};

static const struct option_row rows[] = {
	{"file", OPTION_TEXT, offsetof(struct settings, file), "file to make and remove", 0, 0, 0},
	{"bytes", OPTION_NUMBER, offsetof(struct settings, bytes), "size of the file (256 MiB)",
		BLOCK, 64e9, 0},
	{"duration", OPTION_NUMBER, offsetof(struct settings, duration_s), "seconds (10)", 0, 86400,
		0},
	{"depth", OPTION_NUMBER, offsetof(struct settings, depth), "requests at a time (2)", 1,
		MAX_DEPTH, 0},
	{"wait-start", OPTION_TEXT, offsetof(struct settings, wait_start),
		"create FILE.ready, wait for FILE", 0, 0, 0},
	{NULL, 0, 0, NULL, 0, 0, 0},
};

static int fd;
static bool direct;
static uint64_t end_ns;
static atomic_ullong bytes_written, bytes_read;
static atomic_int failure;

static int file_make(const char *path)
{
	int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC;

	fd = open(path, flags | O_DIRECT, 0600);
	direct = fd >= 0;
	if (fd < 0 && errno == EINVAL) {
		unlink(path); /* some file systems make the file before refusing the flag */
		fd = open(path, flags, 0600);
	}
	if (fd < 0)
		return -errno;
	unlink(path);
	return -posix_fallocate(fd, 0, (off_t)(settings.bytes / BLOCK * BLOCK));
}

static ssize_t block_write(const char *buf, off_t at)
{
	ssize_t n = pwrite(fd, buf, BLOCK, at);

	if (n > 0 && !direct && fdatasync(fd) < 0)
		return -1;
	return n;
}

static ssize_t block_read(char *buf, off_t at)
{
	if (!direct)
		posix_fadvise(fd, at, BLOCK, POSIX_FADV_DONTNEED);
	return pread(fd, buf, BLOCK, at);
}

static void *work(void *arg)
{
	uint64_t blocks = settings.bytes / BLOCK, x = (uintptr_t)arg + 1;
	char *buf;

	if (posix_memalign((void **)&buf, 4096, BLOCK) != 0) {
		failure = ENOMEM;
		return NULL;
	}
	memset(buf, (int)x, BLOCK);
	for (uint64_t i = 0; !workload_stopped && !failure && workload_now_ns() < end_ns; i++) {
		bool writes = i % 3 != 2; /* two writes, one read */
		ssize_t n;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		n = writes ? block_write(buf, (off_t)((x >> 33) % blocks * BLOCK))
			   : block_read(buf, (off_t)((x >> 33) % blocks * BLOCK));
		if (n < 0 && errno != EINTR)
			failure = errno;
		if (n > 0)
			atomic_fetch_add(writes ? &bytes_written : &bytes_read, (uint64_t)n);
	}
	free(buf);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_DEPTH];
	uint64_t n = 0;
	int r;

	options_parse(rows, argc, argv, "keeps a disk busy with a file of its own", &settings);
	if (!settings.file) {
		fprintf(stderr, "sim-disk-hog: --file is needed\n");
		return 64;
	}
	workload_catch_signals();
	workload_gate(settings.wait_start);
	r = file_make(settings.file);
	if (r < 0) {
		fprintf(stderr, "sim-disk-hog: %s: %s\n", settings.file, strerror(-r));
		return 73;
	}
	end_ns = workload_now_ns() + settings.duration_s * 1000000000;
	while (n < settings.depth && pthread_create(&threads[n], NULL, work, (void *)n) == 0)
		n++;
	for (uint64_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	if (failure)
		fprintf(stderr, "sim-disk-hog: %s\n", strerror(failure));
	printf("{\"direct\":%s,\"bytes_written\":%llu,\"bytes_read\":%llu}\n",
		direct ? "true" : "false", (unsigned long long)bytes_written,
		(unsigned long long)bytes_read);
	return failure ? 74 : 0;
}
