/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char folder[64];

void fuzz_broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

static void write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);

		MUST(n > 0);
		p += n;
		size -= (size_t)n;
	}
}

int fuzz_file(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	MUST(fd >= 0);
	write_all(fd, data, size);
	MUST(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
	if (folder[0])
		return folder;
	snprintf(folder, sizeof(folder), "/tmp/ingero-fuzz-XXXXXX");
	MUST(mkdtemp(folder));
	atexit(remove_folder);
	return folder;
}

const char *fuzz_place(const char *name, const void *data, size_t size)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0);
	write_all(fd, data, size);
	close(fd);
	return path;
}

static void take(struct fuzz_input *in, void *out, size_t size)
{
	size_t n = MIN(size, in->size);

	memset(out, 0, size);
	if (!n)
		return;
	memcpy(out, in->data, n);
	in->data += n;
	in->size -= n;
}

uint8_t fuzz_u8(struct fuzz_input *in)
{
	uint8_t v;

	take(in, &v, sizeof(v));
	return v;
}

uint32_t fuzz_u32(struct fuzz_input *in)
{
	uint32_t v;

	take(in, &v, sizeof(v));
	return v;
}

uint64_t fuzz_u64(struct fuzz_input *in)
{
	uint64_t v;

	take(in, &v, sizeof(v));
	return v;
}

char *fuzz_text(const void *data, size_t size)
{
	char *text = malloc(size + 1);

	MUST(text);
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	return text;
}
