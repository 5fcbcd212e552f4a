// SPDX-License-Identifier: Apache-2.0
/* train_swap.c - another model is loaded in the middle of the work: a file that is in no cache is
 * read and copied to the device. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train.h"

#define PIECE (8u << 20)

int train_swap_prepare(const struct train_settings *s)
{
	int fd = open(s->swap_file, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	char *block = malloc(PIECE);
	int r = fd < 0 || !block ? -errno : 0;

	for (uint64_t at = 0; r == 0 && at < s->swap_bytes; at += PIECE) {
		memset(block, (int)(at / PIECE) + 1, PIECE);
		if (write(fd, block, PIECE) != PIECE)
			r = errno ? -errno : -EIO;
	}
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	free(block);
	if (fd >= 0)
		close(fd);
	return r;
}

/* Read first, then copied: what a loader does that does not map its file. */
int train_swap(struct train_worker *w)
{
	uint64_t bytes = w->settings->swap_bytes;
	int fd = open(w->settings->swap_file, O_RDONLY | O_CLOEXEC), r = SIM_INVALID_VALUE;
	char *host = malloc(bytes);
	uint64_t at = 0;
	void *device;
	ssize_t n;

	if (fd >= 0 && host) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		while (at < bytes && (n = read(fd, host + at, bytes - at)) > 0)
			at += (uint64_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (at == bytes && host)
		r = cudaMalloc(&device, bytes);
	if (r == 0) {
		r = cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
		cudaFree(device);
	}
	free(host);
	return r;
}
