/* SPDX-License-Identifier: Apache-2.0 */
/* disks.c - see disks.h. /sys/dev/block/8:0 is a link that ends in "/sda". */
#include "record/trace/disks.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void read_name(const char *root, uint32_t dev, char out[COMM_LEN])
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	ssize_t n = -1;

	out[0] = 0;
	if (snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u", root, dev >> 20, dev & 0xfffff) <
		(int)sizeof(path))
		n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = 0;
	slash = strrchr(target, '/');
	snprintf(out, COMM_LEN, "%s", slash ? slash + 1 : target);
}

void disks_name(struct disks *d, const char *root, struct event *e)
{
	int k = 0;

	if (e->source != SOURCE_IO)
		return;
	while (k < d->count && d->items[k].dev != e->dev)
		k++;
	if (k == DISKS_MAX)
		return;
	if (k == d->count) {
		d->items[k].dev = e->dev;
		read_name(root, e->dev, d->items[k].name);
		d->count++;
	}
	memcpy(e->peer_comm, d->items[k].name, COMM_LEN);
}
