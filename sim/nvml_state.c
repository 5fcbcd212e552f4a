/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_state.c - keeps the text of the state file and looks lines up in it.
 *
 * A change is seen by the file's number, size or time: a test that replaces the file by rename is
 * never read halfway. Callers hold the library's lock (nvml.c). */
#include "nvml_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char text[NVML_STATE_MAX + 2]; /* "\n" + content: every key stands behind a newline */
static struct stat known;

static void content_read(int fd)
{
	size_t len = 1;
	ssize_t n;

	text[0] = '\n';
	while (len <= NVML_STATE_MAX && (n = read(fd, text + len, NVML_STATE_MAX + 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
}

void nvml_state_refresh(void)
{
	const char *path = getenv("SIM_NVML_STATE");
	int fd = path && *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st;

	if (fd < 0) {
		text[0] = 0;
		known = (struct stat){0};
		return;
	}
	if (fstat(fd, &st) == 0 && (st.st_ino != known.st_ino || st.st_size != known.st_size ||
					   st.st_mtim.tv_sec != known.st_mtim.tv_sec ||
					   st.st_mtim.tv_nsec != known.st_mtim.tv_nsec)) {
		content_read(fd);
		known = st;
	}
	close(fd);
}

static const char *value_find(int gpu, const char *key)
{
	char line[128];
	const char *at;

	if (gpu >= 0)
		snprintf(line, sizeof(line), "\ngpu%d.%s ", gpu, key);
	else
		snprintf(line, sizeof(line), "\n%s ", key);
	at = strstr(text, line);
	return at ? at + strlen(line) : NULL;
}

void nvml_state_text(int gpu, const char *key, const char *otherwise, char *out, size_t size)
{
	const char *value = value_find(gpu, key);

	if (value)
		snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
	else
		snprintf(out, size, "%s", otherwise);
}

uint64_t nvml_state_number(int gpu, const char *key, uint64_t otherwise)
{
	const char *value = value_find(gpu, key);
	char *end;
	uint64_t v;

	if (!value)
		return otherwise;
	v = strtoull(value, &end, 0);
	return end == value ? otherwise : v;
}
