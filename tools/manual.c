/* SPDX-License-Identifier: Apache-2.0 */
/* manual.c - writes the manual pages into a folder; --rows prints the flags for
 * tools/commands-page.
 *
 *   manual FOLDER | manual --rows */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/manual.h"

static int write_page(const char *folder, const char *command, const struct buf *b)
{
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/ingero%s%s.1", folder, command[0] ? "-" : "", command);
	r = b->err ? b->err : file_write_atomic(path, buf_str(b), b->len, 0644);
	if (r < 0)
		fprintf(stderr, "manual: %s: %s\n", path, strerror(-r));
	return r;
}

static int write_pages(const char *folder)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	int r;

	if (mkdir(folder, 0755) < 0 && errno != EEXIST) {
		fprintf(stderr, "manual: %s: %s\n", folder, strerror(errno));
		return -errno;
	}
	manual_index(&b);
	r = write_page(folder, "", &b);
	for (const struct command *const *c = commands; r == 0 && *c; c++) {
		buf_clear(&b);
		manual_page(&b, *c);
		r = write_page(folder, (*c)->name, &b);
	}
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
	manual_rows(&b);
	fputs(buf_str(&b), stdout);
	return b.err ? EXIT_FAILED : EXIT_OK;
}
