/* SPDX-License-Identifier: Apache-2.0 */
/* python_fixture.h - real interpreters for tests: those of the machine, and those that
 * tools/pythons fetched. A test starts one with a script, which says on its output that it has come
 * to where it waits (for its input to end), and then reads its memory. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/python/python.h"

#ifndef PYTHONS /* the folder of those that were fetched */
#define PYTHONS "build/pythons"
#endif
#define INTERPRETERS_MAX 32

struct interpreter {
	char path[PATH_MAX];
	unsigned minor;
};

struct interpreters {
	struct interpreter at[INTERPRETERS_MAX];
	size_t count;
};

static inline int code_line(const struct stack_record_code *c, uint32_t lasti)
{
	return python_line(&(struct python_lines){c->minor, c->first_line, c->line_table,
				   c->lines_bytes, c->lines_size > c->lines_bytes},
		lasti);
}

/* From 3.13 on the interpreter puts a frame between the call of a class and its __init__() that is
 * no function of the program: it has no line, and its own name for a file. */
static inline bool is_artificial(const struct stack_record_code *c, uint32_t lasti)
{
	return c->file_bytes == c->name_bytes && memcmp(c->file, c->name, c->name_bytes) == 0 &&
	       code_line(c, lasti) == 0;
}

static inline void interpreter_add(struct interpreters *all, const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char real[PATH_MAX];
	unsigned minor;
	int end = 0;

	if (sscanf(name, "python3.%u%n", &minor, &end) != 1 || name[end] != '\0' ||
		minor < PYTHON_MINOR_MIN || minor > PYTHON_MINOR_MAX || access(path, X_OK) < 0 ||
		!realpath(path, real) || all->count == INTERPRETERS_MAX)
		return;
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->at[i].path, real) == 0)
			return;
	snprintf(all->at[all->count].path, sizeof(all->at[0].path), "%s", real);
	all->at[all->count++].minor = minor;
}

static inline void interpreters_glob(struct interpreters *all, const char *pattern)
{
	glob_t g = {0};

	if (glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			interpreter_add(all, g.gl_pathv[i]);
	globfree(&g);
}

/* interpreters_find - all there are; a line for each of 3.9 to the newest known that is missing. */
static inline void interpreters_find(struct interpreters *all)
{
	char pattern[PATH_MAX];
	bool found[PYTHON_MINOR_MAX + 1] = {false};

	all->count = 0;
	interpreters_glob(all, "/usr/bin/python3.*");
	interpreters_glob(all, "/usr/local/bin/python3.*");
	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/*/bin/python3.*",
		getenv("HOME") ? getenv("HOME") : "");
	interpreters_glob(all, pattern);
	interpreters_glob(all, PYTHONS "/*/python3.*");
	for (size_t i = 0; i < all->count; i++)
		found[all->at[i].minor] = true;
	for (unsigned minor = PYTHON_MINOR_MIN; minor <= PYTHON_MINOR_MAX; minor++)
		if (!found[minor])
			printf("# skip: no CPython 3.%u here (tools/pythons fetches some)\n",
				minor);
}

static inline void interpreters_need(const struct interpreters *all)
{
	if (all->count)
		return;
	printf("# skip: no CPython here\n");
	skip();
}

struct python_process {
	pid_t pid;
	int in, out; /* its input and output */
	char file[PATH_MAX];
	struct python_symbols symbols;
	struct python_memory memory;
};

static inline int process_read(void *arg, uint64_t address, void *out, size_t len)
{
	const struct python_process *p = arg;
	struct iovec here = {out, len}, there = {(void *)(uintptr_t)address, len};
	ssize_t n = process_vm_readv(p->pid, &here, 1, &there, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

/* process_start - run @argv; its output and input are pipes to this test. It ends with the test. */
static inline void process_start(struct python_process *p, char *const argv[])
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	*p = (struct python_process){.in = in[1], .out = out[0]};
	p->memory = (struct python_memory){process_read, p};
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		setenv("PYTHONUTF8", "1", 1);
		setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
		unsetenv("PYTHONPATH");
		execv(argv[0], argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
}

static inline void process_stop(struct python_process *p)
{
	close(p->in);
	close(p->out);
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
}

/* process_line - the next line of its output, without its end. */
static inline void process_line(struct python_process *p, char *out, size_t size)
{
	size_t len = 0;
	char c;

	while (read(p->out, &c, 1) == 1 && c != '\n')
		if (len + 1 < size)
			out[len++] = c;
	out[len] = '\0';
}

/* symbols_read - of the ELF file at @path; @bias is added. */
static inline void symbols_read(const char *path, uint64_t bias, uint64_t out[4])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *e = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Scn *section = NULL;

	while (e && (section = elf_nextscn(e, section))) {
		gelf_getshdr(section, &header);
		if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)
			continue;
		for (int i = 0; gelf_getsym(elf_getdata(section, NULL), i, &symbol); i++) {
			const char *name = elf_strptr(e, header.sh_link, symbol.st_name);

			for (size_t j = 0; name && symbol.st_shndx != SHN_UNDEF && j < 4; j++)
				if (strcmp(name, python_symbol_names[j]) == 0)
					out[j] = bias + symbol.st_value;
		}
	}
	elf_end(e);
	close(fd);
}

/* file_bias - what is added to the addresses in the file if its start is mapped at @start. */
static inline uint64_t file_bias(const char *path, uint64_t start)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *e = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	uint64_t lowest = UINT64_MAX;
	GElf_Phdr header;
	size_t count = 0;

	elf_getphdrnum(e, &count);
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(e, (int)i, &header) && header.p_type == PT_LOAD &&
			header.p_vaddr - header.p_offset < lowest)
			lowest = header.p_vaddr - header.p_offset;
	elf_end(e);
	close(fd);
	return start - lowest;
}

/* process_symbols - of the file it has mapped that is an interpreter by its name and its symbols.
 */
static inline void process_symbols(struct python_process *p)
{
	char maps[64], line[PATH_MAX + 128], path[PATH_MAX], before[PATH_MAX] = "";
	FILE *f;

	elf_version(EV_CURRENT);
	snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)p->pid);
	f = fopen(maps, "re");
	assert_non_null(f);
	while (!p->symbols.runtime && fgets(line, sizeof(line), f)) {
		uint64_t found[4] = {0};
		unsigned long start;

		if (sscanf(line, "%lx-%*x %*s %*x %*s %*s %4095[^\n]", &start, path) != 2 ||
			!python_is_file(strrchr(path, '/') ? strrchr(path, '/') + 1 : path) ||
			strcmp(path, before) == 0)
			continue;
		snprintf(before, sizeof(before), "%s", path);
		symbols_read(path, file_bias(path, start), found);
		if (!found[0])
			continue;
		snprintf(p->file, sizeof(p->file), "%s", path);
		p->symbols = (struct python_symbols){
			.runtime = found[0], .code_type = found[1], .unicode_type = found[2]};
		if (found[3])
			assert_int_equal(process_read(p, found[3], &p->symbols.version, 4), 0);
		p->symbols.path = p->file;
	}
	fclose(f);
	assert_true(p->symbols.runtime != 0);
}

/* python_start - run @script in the interpreter, and wait for its first line: "waits". */
static inline void python_start(
	struct python_process *p, const struct interpreter *i, const char *script)
{
	char line[256];
	char *argv[] = {(char *)i->path, "-c", (char *)script, NULL};

	process_start(p, argv);
	process_line(p, line, sizeof(line));
	assert_string_equal(line, "waits");
	process_symbols(p);
}
