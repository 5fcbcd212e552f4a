/* SPDX-License-Identifier: Apache-2.0 */
/* replay_main.c - gives every file of a corpus to a target, in the order of their names; TAP.
 *
 * Stands in for libFuzzer where the target is a test of `make check`. The bytes are copied so that
 * nothing lies behind the last one, as libFuzzer does. A file that breaks the target ends the
 * process: the last comment names it. */
#include <dirent.h>
#include <stdio.h>

#include "base/file.h"
#include "fuzz.h"

#define INPUT_MAX (4u << 20)

static int is_input(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void replay(const char *folder, const char *name)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INPUT_MAX + 1);
	_cleanup_free_ char *copy = NULL;
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	printf("# %s\n", name);
	fflush(stdout);
	MUST(file_read(path, INPUT_MAX, &b) >= 0);
	copy = malloc(b.len ? b.len : 1);
	MUST(copy);
	memcpy(copy, buf_str(&b), b.len);
	LLVMFuzzerTestOneInput((const uint8_t *)copy, b.len);
}

int main(int argc, char **argv)
{
	const char *folder = argc == 2 ? argv[1] : "";
	struct dirent **list = NULL;
	int count = scandir(folder, &list, is_input, alphasort);

	printf("1..1\n");
	if (count <= 0) {
		printf("not ok 1 - there is no corpus: \"%s\"\n", folder);
		free(list);
		return 1;
	}
	for (int i = 0; i < count; i++) {
		replay(folder, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	printf("ok 1 - %d inputs replayed\n", count);
	return 0;
}
