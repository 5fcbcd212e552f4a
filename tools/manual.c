/* SPDX-License-Identifier: Apache-2.0 */
/* manual.c - writes the manual pages of both programs into a folder; --rows prints the flags for
 * tools/commands-page.
 *
 *   manual FOLDER | manual --rows */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cluster/cli/commands.h"
#include "command/program.h"

static const struct program *const programs[] = {&ingero_program, &cluster_program};

static int write_page(
	const char *folder, const char *program, const char *command, const struct buf *b)
{
	char path[4096];
	int r;

	snprintf(
		path, sizeof(path), "%s/%s%s%s.1", folder, program, command[0] ? "-" : "", command);
	r = b->err ? b->err : file_write_atomic(path, buf_str(b), b->len, 0644);
	if (r < 0)
		fprintf(stderr, "manual: %s: %s\n", path, strerror(-r));
	return r;
}

static int write_program(const char *folder, const struct program *p)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	int r;

	manual_index(&b, p);
	r = write_page(folder, p->name, "", &b);
	for (const struct command *const *c = p->commands; r == 0 && *c; c++) {
		buf_clear(&b);
		manual_page(&b, p, *c);
		r = write_page(folder, p->name, (*c)->name, &b);
	}
	return r;
}

static int write_pages(const char *folder)
{
	int r = 0;

	if (mkdir(folder, 0755) < 0 && errno != EEXIST) {
		fprintf(stderr, "manual: %s: %s\n", folder, strerror(errno));
		return -errno;
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(programs); i++)
		r = write_program(folder, programs[i]);
	return r;
}

int main(int argc, char **argv)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	if (argc != 2) {
		fprintf(stderr, "usage: manual FOLDER | manual --rows\n");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--rows") != 0)
		return write_pages(argv[1]) < 0 ? EXIT_FAILED : EXIT_OK;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		manual_rows(&b, programs[i]);
	fputs(buf_str(&b), stdout);
	return b.err ? EXIT_FAILED : EXIT_OK;
}
