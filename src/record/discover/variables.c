/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c - reads /proc/PID/environ in pieces and keeps only what was asked for.
 *
 * The environment is hostile: any bytes, any number of variables, no NUL at all, of any length (the
 * area is the process's own and may have been overwritten). Memory is fixed: one piece, and one
 * variable, of which no more than the longest wanted one is kept. It may also keep its reader waiting, so it is read
 * beside (base/bounded.h). */
#include "record/discover/variables.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/discover/discover.h"
#include "base/bounded.h"
#include "base/macros.h"

#define KEY_MAX 64
#define PIECE   16384

struct line { /* the variable being collected */
	char text[KEY_MAX + 1 + VARIABLE_VALUE_MAX];
	size_t len;
	bool too_long;
};

static void line_end(struct line *l, struct variables *v)
{
	char *equals = memchr(l->text, '=', l->len);

	if (equals && !l->too_long) {
		size_t key = (size_t)(equals - l->text), value = l->len - key - 1;

		for (size_t i = 0; i < v->count; i++) {
			if (strlen(v->keys[i]) != key || memcmp(v->keys[i], l->text, key) != 0)
				continue;
			if (!v->found[i] && value < VARIABLE_VALUE_MAX) {
				memcpy(v->values[i], equals + 1, value);
				v->values[i][value] = 0;
				v->found[i] = true;
			}
			break;
		}
	}
	l->len = 0;
	l->too_long = false;
}

static void take_piece(const char *p, size_t len, struct line *l, struct variables *v)
{
	const char *end = p + len;

	while (p < end) {
		const char *nul = memchr(p, 0, (size_t)(end - p));
		size_t n = (size_t)((nul ? nul : end) - p), room = sizeof(l->text) - l->len;

		memcpy(l->text + l->len, p, MIN(n, room));
		l->len += MIN(n, room);
		l->too_long |= n > room;
		if (!nul)
			return;
		line_end(l, v);
		p = nul + 1;
	}
}

static int read_environment(const char *root, uint32_t pid, struct variables *v)
{
	_cleanup_fd_ int fd = discover_open_file(root, pid, "environ");
	struct line line = {.len = 0};
	char piece[PIECE];
	size_t total = 0;

	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t got = read(fd, piece, sizeof(piece));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EPERM ? -EACCES : -errno;
		if (got == 0)
			break;
		v->cut = total + (size_t)got > VARIABLES_BYTES_MAX;
		take_piece(piece, MIN((size_t)got, VARIABLES_BYTES_MAX - total), &line, v);
		total += (size_t)got;
		v->whole = (size_t)got < sizeof(piece);
		if (v->cut)
			break;
	}
	if (!v->cut && line.len)
		line_end(&line, v);
	return 0;
}

struct environment_job {
	struct bounded_job job;
	char root[PATH_MAX];
	uint32_t pid;
	const char *keys[VARIABLES_MAX];
	struct variables found;
};

static int run_environment(struct bounded_job *job)
{
	struct environment_job *j = (struct environment_job *)job;

	return read_environment(j->root, j->pid, &j->found);
}

int variables_read(const char *root, uint32_t pid, const char *const *keys, size_t count,
	struct variables *ret)
{
	struct environment_job *j;
	uint32_t uid = 0;
	int r;

	if (count > VARIABLES_MAX)
		return -EINVAL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	(void)discover_uid(root, pid, &uid); /* gone: there is nothing to read either */
	j->job = (struct bounded_job){.run = run_environment, .uid = uid};
	j->pid = pid;
	snprintf(j->root, sizeof(j->root), "%s", root);
	memcpy(j->keys, keys, count * sizeof(*keys));
	j->found = (struct variables){.keys = j->keys, .count = count};
	r = bounded_run(&j->job, BOUNDED_WAIT_NS);
	if (r < 0)
		return r;
	r = j->job.result;
	if (r == 0) {
		*ret = j->found;
		ret->keys = keys;
	}
	free(j);
	return r;
}

const char *variables_get(const struct variables *v, const char *key)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->found[i] && strcmp(v->keys[i], key) == 0)
			return v->values[i];
	return NULL;
}
