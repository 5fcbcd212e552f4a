// SPDX-License-Identifier: Apache-2.0
/* bench_symbol.c - how long names take: from the opening of a large library to its first name, then
 * per name, and its unwind table. The symbol process is asked directly, with several questions
 * under way, as when a process is first met. Needs no root.
 *
 *   bench_symbol */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/symbol/child.h"
#include "record/symbol/symbol.h"
#include "base/clock.h"
#include "base/macros.h"
#include "workload.h"

#define FIRST_NAME_S  1.0
#define LATER_NAME_NS 5000
#define NAMES_ASKED   (200 * SYMBOL_OFFSETS_MAX)
#define UNDER_WAY     (8 * SYMBOL_OFFSETS_MAX) /* asked before the first answer is waited for */
#define LOOK_US       50

struct asked {
	uint64_t text, text_bytes;
	size_t tables;
	size_t answered, named; /* addresses */
	size_t rows;
};

static void take_identity(void *arg, uint32_t file, const struct symbol_identity *i)
{
	if (i->err)
		workload_die(i->text, i->err);
}

static void take_unwind(void *arg, uint32_t file, const struct symbol_unwind *u)
{
	struct asked *a = arg;

	if (u->err)
		workload_die(u->text, u->err);
	a->tables++;
	a->rows = u->count;
}

static void take_frames(void *arg, uint32_t file, uint64_t ticket, int err,
	const struct symbol_frames *f, size_t count)
{
	struct asked *a = arg;

	if (err)
		workload_die("a question for names", err);
	a->answered += count;
	for (size_t i = 0; i < count; i++)
		a->named += f[i].count > 0;
}

static void wait_briefly(void)
{
	const struct timespec us = {0, LOOK_US * 1000};

	nanosleep(&us, NULL);
}

/* The largest file of @pattern; false if there is none. */
static bool choose_library(const char *pattern, char *ret, size_t size, double *ret_mb)
{
	struct stat st;
	glob_t g;

	*ret_mb = 0;
	if (glob(pattern, 0, NULL, &g) != 0)
		return false;
	for (size_t i = 0; i < g.gl_pathc; i++)
		if (stat(g.gl_pathv[i], &st) == 0 && (double)st.st_size / 1e6 > *ret_mb) {
			*ret_mb = (double)st.st_size / 1e6;
			snprintf(ret, size, "%s", g.gl_pathv[i]);
		}
	globfree(&g);
	return *ret_mb > 0;
}

/* Where in the file its code is. */
static void find_text(int fd, struct asked *a)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h))
		workload_die("reading an ELF file", EBADMSG);
	for (unsigned i = 0; i < h.e_phnum; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + i * sizeof(p))) == sizeof(p) &&
			p.p_type == PT_LOAD && p.p_flags & PF_X && p.p_filesz > a->text_bytes) {
			a->text = p.p_offset;
			a->text_bytes = p.p_filesz;
		}
	if (!a->text_bytes)
		workload_die("an ELF file without code", EBADMSG);
}

/* Polls as the tracer does; seconds until *@what. */
static double wait_for(struct symbol_service *s, const size_t *what, size_t wanted)
{
	mono_time begin = mono_now();

	while (*what < wanted) {
		symbol_poll(s);
		if (mono_now().ns - begin.ns > 60 * NS_PER_S)
			workload_die("the symbol process does not answer", ETIMEDOUT);
		if (*what < wanted)
			wait_briefly();
	}
	return (double)(mono_now().ns - begin.ns) / 1e9;
}

/* Spread over the text: the next one is far from the last. */
static void ask_batch(struct symbol_service *s, uint32_t file, const struct asked *a, size_t count)
{
	static uint64_t seed = 88172645463325252ULL;
	uint64_t offsets[SYMBOL_OFFSETS_MAX];
	bool is_return[SYMBOL_OFFSETS_MAX] = {false};
	int r;

	for (size_t i = 0; i < count; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		offsets[i] = (a->text + seed % a->text_bytes) & ~3ULL;
	}
	r = symbol_ask_frames(s, file, 1, offsets, is_return, count);
	if (r < 0)
		workload_die("asking for names", r);
}

static void measure_names(const char *name, const char *pattern)
{
	struct asked a = {0};
	struct symbol_sink sink = {
		.identity = take_identity, .unwind = take_unwind, .frames = take_frames, .arg = &a};
	_cleanup_(symbol_stopp) struct symbol_service *s = NULL;
	char path[512];
	size_t done = 0;
	double mb, first, later, table;
	mono_time begin;
	uint32_t file;
	int fd, r;

	if (!choose_library(pattern, path, sizeof(path), &mb)) {
		printf("# skip: %s: there is no %s here\n", name, pattern);
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : symbol_start(&sink, &s);
	if (r < 0)
		workload_die(path, r);
	find_text(fd, &a);
	begin = mono_now();
	r = symbol_open(s, fd, -1, &file);
	if (r < 0)
		workload_die(path, r);
	ask_batch(s, file, &a, 1);
	wait_for(s, &a.answered, ++done);
	first = (double)(mono_now().ns - begin.ns) / 1e9;
	begin = mono_now();
	for (size_t k = 0; k < NAMES_ASKED; k += SYMBOL_OFFSETS_MAX) {
		ask_batch(s, file, &a, SYMBOL_OFFSETS_MAX);
		done += SYMBOL_OFFSETS_MAX;
		if (done > UNDER_WAY)
			wait_for(s, &a.answered, done - UNDER_WAY);
	}
	wait_for(s, &a.answered, done);
	later = (double)(mono_now().ns - begin.ns) / (double)NAMES_ASKED;
	begin = mono_now();
	symbol_ask_unwind(s, file);
	wait_for(s, &a.tables, 1);
	table = (double)(mono_now().ns - begin.ns) / 1e9;
	printf("symbol_%s_first_name_s %.3f from opening %s, %.0f MB (budget %.0f)\n", name, first,
		path, mb, FIRST_NAME_S);
	printf("symbol_%s_later_name_ns %.0f, of %zu addresses %zu have a name (budget %d)\n", name,
		later, a.answered, a.named, LATER_NAME_NS);
	printf("symbol_%s_table_s %.3f, %zu rows\n", name, table, a.rows);
}

int main(int argc, char **argv)
{
	if (symbol_child_is_meant(argc, argv))
		return symbol_child_main(argc, argv);
	measure_names("stripped", "/usr/local/cuda*/lib64/libcublasLt.so.*");
	measure_names("large", "/usr/lib/*/libLLVM*.so*");
	measure_names("small", "/usr/lib/*/libc.so.6");
	return 0;
}
