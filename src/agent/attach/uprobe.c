/* SPDX-License-Identifier: Apache-2.0 */
/* uprobe.c - three ways to attach, one result: a set of links that are closed together.
 *
 * session: one link, the program sees entry and return. multi: a link for entry and one for return;
 * the return link is made first and closed last, so an entry without its return cannot happen while
 * both exist. perf: two perf events per function through libbpf. */
#include "agent/attach/uprobe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/probe/link.h"

#define DETACH_THREADS 32

struct uprobe {
	size_t points;
	int link_fds[2]; /* session, or return and entry */
	struct bpf_link **perf_links;
	size_t perf_count;
};

static int link_create(int prog_fd, uint32_t type, const char *path, const uint64_t *offsets,
	const uint64_t *cookies, size_t count, uint32_t flags)
{
	struct link_uprobe_multi attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = type,
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)offsets,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.cnt = (uint32_t)count,
		.flags = flags,
	};
	int fd = (int)syscall(
		SYS_bpf, BPF_LINK_CREATE, &attr, offsetof(struct link_uprobe_multi, pad));

	return fd < 0 ? -errno : fd;
}

static int attach_links(struct uprobe *u, struct probe *p, const char *path,
	const struct uprobe_point *points, size_t count)
{
	uint64_t offsets[UPROBE_POINTS_MAX], cookies[UPROBE_POINTS_MAX];

	for (size_t i = 0; i < count; i++) {
		offsets[i] = points[i].offset;
		cookies[i] = points[i].cookie;
	}
	if (probe_method(p) == PROBE_SESSION) {
		u->link_fds[0] = link_create(probe_program_session(p), LINK_UPROBE_SESSION, path,
			offsets, cookies, count, 0);
		return u->link_fds[0] < 0 ? u->link_fds[0] : 0;
	}
	u->link_fds[0] = link_create(probe_program_return(p), LINK_UPROBE_MULTI, path, offsets,
		cookies, count, LINK_MULTI_RETURN);
	if (u->link_fds[0] < 0)
		return u->link_fds[0];
	u->link_fds[1] = link_create(
		probe_program_entry(p), LINK_UPROBE_MULTI, path, offsets, cookies, count, 0);
	return u->link_fds[1] < 0 ? u->link_fds[1] : 0;
}

static int attach_perf(struct uprobe *u, struct probe *p, const char *path,
	const struct uprobe_point *points, size_t count)
{
	u->perf_links = calloc(count * 2, sizeof(*u->perf_links));
	if (!u->perf_links)
		return -ENOMEM;
	for (size_t i = 0; i < count * 2; i++) {
		bool is_return = i < count;
		const struct uprobe_point *pt = &points[i % count];
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = pt->cookie, .retprobe = is_return);
		struct bpf_link *l = bpf_program__attach_uprobe_opts(
			probe_perf_program(p, is_return), -1, path, pt->offset, &opts);

		if (!l)
			return -errno;
		u->perf_links[u->perf_count++] = l;
	}
	return 0;
}

size_t uprobe_count(const struct uprobe *u)
{
	return u->points;
}

struct detach_job {
	struct bpf_link **links;
	size_t count;
	size_t next;
};

static void *detach_worker(void *arg)
{
	struct detach_job *j = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < j->count)
		bpf_link__destroy(j->links[i]);
	return NULL;
}

static void detach_perf(struct detach_job *j)
{
	pthread_t threads[DETACH_THREADS];
	size_t n = 0;

	while (n < MIN(j->count / 2, (size_t)DETACH_THREADS) &&
		pthread_create(&threads[n], NULL, detach_worker, j) == 0)
		n++;
	detach_worker(j);
	while (n)
		pthread_join(threads[--n], NULL);
}

void uprobe_detach_all(struct uprobe **u, size_t count)
{
	struct detach_job job = {0};

	for (size_t i = 0; i < count; i++) {
		for (int k = 1; k >= 0; k--)
			if (u[i]->link_fds[k] >= 0)
				close(u[i]->link_fds[k]);
		job.count += u[i]->perf_count;
	}
	job.links = job.count ? calloc(job.count, sizeof(*job.links)) : NULL;
	if (job.links) {
		size_t n = 0;

		for (size_t i = 0; i < count; i++)
			for (size_t k = 0; k < u[i]->perf_count; k++)
				job.links[n++] = u[i]->perf_links[k];
		detach_perf(&job);
		free(job.links);
	}
	for (size_t i = 0; i < count; i++) {
		free(u[i]->perf_links);
		free(u[i]);
	}
}

int uprobe_attach(struct probe *p, const char *path, const struct uprobe_point *points,
	size_t count, struct uprobe **ret, struct errinfo *reterr)
{
	struct uprobe *u;
	int r;

	if (!count || count > UPROBE_POINTS_MAX)
		return errinfo_set(reterr, -EINVAL, "%zu functions to probe in %s", count, path);
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->points = count;
	u->link_fds[0] = u->link_fds[1] = -1;
	if (probe_method(p) == PROBE_PERF)
		r = attach_perf(u, p, path, points, count);
	else
		r = attach_links(u, p, path, points, count);
	if (r < 0) {
		uprobe_detach_all(&u, 1);
		return errinfo_set(reterr, r, "%s could not be probed (%s): %s", path,
			probe_method_name(probe_method(p)), strerror(-r));
	}
	*ret = u;
	return 0;
}
