/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - see remote.h. */
#include "record/stack/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/bounded.h"

int remote_read_now(uint32_t pid, uint64_t address, void *out, size_t len)
{
	struct iovec to = {out, len}, from = {(void *)(uintptr_t)address, len};
	ssize_t n = process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EFAULT;
}

struct read_job {
	struct bounded_job job;
	uint32_t pid;
	uint64_t address;
	size_t len;
	uint8_t bytes[];
};

static int run_read(struct bounded_job *j)
{
	struct read_job *r = (struct read_job *)j;

	return remote_read_now(r->pid, r->address, r->bytes, r->len);
}

int remote_read(uint32_t pid, uint32_t uid, uint64_t address, void *out, size_t len)
{
	struct read_job *j = malloc(sizeof(*j) + len);
	int r;

	if (!j)
		return -ENOMEM;
	*j = (struct read_job){
		.job = {.run = run_read, .uid = uid}, .pid = pid, .address = address, .len = len};
	r = bounded_run(&j->job, BOUNDED_WAIT_NS);
	if (r < 0)
		return r;
	r = j->job.result;
	if (r == 0)
		memcpy(out, j->bytes, len);
	free(j);
	return r;
}
