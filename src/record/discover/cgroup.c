/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - names of control groups, as container runtimes make them:
 *
 *   /kubepods/burstable/pod<uid>/<id>                                 kubelet, cgroupfs driver
 *   /kubepods.slice/kubepods-pod<uid>.slice/cri-containerd-<id>.scope kubelet, systemd driver
 *   /system.slice/containerd.service/kubepods-pod<uid>.slice:cri-containerd:<id>
 *   /docker/<id>   /system.slice/docker-<id>.scope   crio-<id>.scope   libpod-<id>.scope
 *   /ecs/<task>/<id>                                                  ECS; <id> on Fargate:
 * <task>-N
 *
 * <id> is 64 hexadecimal digits. The innermost counts: a runtime in a container has both. systemd
 * writes the dashes of a pod's uid as underscores. The kernel lets no newline into a name and adds
 * " (deleted)" once the group is gone. */
#include "record/discover/identity.h"

#include <dirent.h>

#include "base/file.h"
#include "base/macros.h"
#include "record/discover/discover.h"

#define DELETED      " (deleted)"
#define FILE_MAX     (64 << 10) /* 14 hierarchies with paths of 4 KiB */
#define ID_DIGITS    64
#define ECS_DIGITS   32
#define UUID_LEN     36
#define HASH_UID_LEN 32 /* static pods have a hash instead of a UUID */

struct span {
	const char *p;
	size_t len;
};

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
	return is_hex(c) || (c >= 'g' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t hex_run(struct span s)
{
	size_t n = 0;

	while (n < s.len && is_hex(s.p[n]))
		n++;
	return n;
}

static bool copy_span(struct span s, char *out, size_t size)
{
	if (s.len >= size)
		return false;
	memcpy(out, s.p, s.len);
	out[s.len] = 0;
	return true;
}

/* Cuts the last component off @path. False when there is none. */
static bool last_component(struct span *path, struct span *ret)
{
	const char *slash = path->len ? memrchr(path->p, '/', path->len) : NULL;

	if (!slash)
		return false;
	*ret = (struct span){slash + 1, path->len - (size_t)(slash + 1 - path->p)};
	path->len = (size_t)(slash - path->p);
	return true;
}

/* 64 digits that stand alone. A conmon scope holds the container's monitor and not the container.
 */
static bool find_id(struct span c, char out[IDENTITY_CONTAINER_MAX])
{
	if (memmem(c.p, c.len, "conmon", strlen("conmon")))
		return false;
	for (size_t i = 0; i < c.len;) {
		size_t n = hex_run((struct span){c.p + i, c.len - i});
		bool alone = (i == 0 || !is_word(c.p[i - 1])) &&
			     (i + n == c.len || !is_word(c.p[i + n]));

		if (n == ID_DIGITS && alone)
			return copy_span((struct span){c.p + i, n}, out, IDENTITY_CONTAINER_MAX);
		i += MAX(n, (size_t)1);
	}
	return false;
}

/* 32 digits, and on Fargate a dash and a number behind them. */
static bool is_ecs_task(struct span c, bool numbered)
{
	size_t n = hex_run(c);

	if (n != ECS_DIGITS || (n == c.len) == numbered)
		return false;
	if (!numbered)
		return true;
	if (c.p[n++] != '-' || n == c.len)
		return false;
	while (n < c.len && c.p[n] >= '0' && c.p[n] <= '9')
		n++;
	return n == c.len;
}

static bool find_uid(struct span c, char out[IDENTITY_UID_MAX])
{
	for (size_t i = 0; i + 3 + HASH_UID_LEN <= c.len; i++) {
		size_t len = 0, dashes = 0;

		if (memcmp(c.p + i, "pod", 3) != 0 || (i > 0 && is_word(c.p[i - 1])))
			continue;
		for (const char *p = c.p + i + 3;
			len < c.len - i - 3 && (is_hex(p[len]) || p[len] == '-' || p[len] == '_');
			len++)
			dashes += !is_hex(p[len]);
		if (!(len == UUID_LEN && dashes == 4) && !(len == HASH_UID_LEN && dashes == 0))
			continue;
		copy_span((struct span){c.p + i + 3, len}, out, IDENTITY_UID_MAX);
		for (char *p = out; (p = strchr(p, '_'));)
			*p = '-';
		return true;
	}
	return false;
}

static void parse_path(struct span path, struct cgroup *ret)
{
	struct span rest = path, c, parent;

	if (path.len >= sizeof(ret->path)) {
		path.p += path.len - (sizeof(ret->path) - 1);
		path.len = sizeof(ret->path) - 1;
	}
	copy_span(path, ret->path, sizeof(ret->path));
	ret->in_pod = memmem(rest.p, rest.len, "kubepods", strlen("kubepods")) != NULL;
	while (last_component(&rest, &c)) {
		struct span above = rest;

		if (!ret->container_id[0] && !find_id(c, ret->container_id) && is_ecs_task(c, true))
			copy_span(c, ret->container_id, sizeof(ret->container_id));
		if (ret->in_pod && !ret->pod_uid[0])
			find_uid(c, ret->pod_uid);
		if (is_ecs_task(c, false) && last_component(&above, &parent) && parent.len == 3 &&
			memcmp(parent.p, "ecs", 3) == 0)
			copy_span(c, ret->ecs_task, sizeof(ret->ecs_task));
	}
}

/* Whether @word is one of @list, which has commas between them. */
static bool has_word(struct span list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list.p, *end = p + list.len; p < end;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t n = (size_t)((comma ? comma : end) - p);

		if (n == len && !memcmp(p, word, len))
			return true;
		p += n + 1;
	}
	return false;
}

/* One line "hierarchy:controllers:path"; false if it is not one. */
static bool parse_line(struct span line, struct cgroup *ret, bool *ret_unified)
{
	const char *first = memchr(line.p, ':', line.len), *second;
	size_t left, deleted = strlen(DELETED);
	struct span path, controllers;

	if (!first)
		return false;
	left = line.len - (size_t)(first + 1 - line.p);
	second = memchr(first + 1, ':', left);
	if (!second)
		return false;
	path = (struct span){second + 1, line.len - (size_t)(second + 1 - line.p)};
	if (path.len == 0 || path.p[0] != '/')
		return false;
	if (path.len > deleted && memcmp(path.p + path.len - deleted, DELETED, deleted) == 0)
		path.len -= deleted;
	*ret_unified = second == first + 1;
	parse_path(path, ret);
	controllers = (struct span){first + 1, (size_t)(second - first - 1)};
	if (path.len > 1 && has_word(controllers, "cpu"))
		memcpy(ret->cpu_path, ret->path, sizeof(ret->path));
	if (path.len > 1 && has_word(controllers, "memory"))
		memcpy(ret->memory_path, ret->path, sizeof(ret->path));
	return true;
}

void cgroup_parse(const char *text, size_t len, struct cgroup *ret)
{
	const char *end = text + len;
	char cpu_path[TARGET_PATH_MAX] = "", memory_path[TARGET_PATH_MAX] = "";
	size_t best = 0;

	*ret = (struct cgroup){0};
	for (const char *p = text; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct span line = {p, (size_t)((nl ? nl : end) - p)};
		struct cgroup c = {0};
		size_t score;
		bool unified;

		p += line.len + 1;
		if (!parse_line(line, &c, &unified))
			continue;
		score = strlen(c.path);
		if (unified && score > 1) /* "/" of a hybrid machine says nothing */
			score += 1 * TARGET_PATH_MAX;
		if (c.cpu_path[0]) {
			memcpy(cpu_path, c.cpu_path, sizeof(cpu_path));
			score += 2 * TARGET_PATH_MAX;
		}
		if (c.memory_path[0])
			memcpy(memory_path, c.memory_path, sizeof(memory_path));
		if (c.container_id[0])
			score += 4 * TARGET_PATH_MAX;
		if (score > best) {
			best = score;
			*ret = c;
		}
	}
	memcpy(ret->cpu_path, cpu_path, sizeof(cpu_path));
	memcpy(ret->memory_path, memory_path, sizeof(memory_path));
}

int cgroup_read(const char *root, uint32_t pid, struct cgroup *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(FILE_MAX);
	int r = file_read_at(root, FORMATTED(64, "/proc/%" PRIu32 "/cgroup", pid), FILE_MAX, &b);

	if (r < 0 && r != -EFBIG)
		return r == -ENOENT ? -ESRCH : r;
	cgroup_parse(buf_str(&b), b.len, ret);
	return 0;
}

/* Descendants by parent ids from /proc/PID/stat. One pass reads all processes; the
 * closure is taken over that snapshot, so a process that changes its parent meanwhile is found by
 * the next scan through its fork event. */

#define SNAPSHOT_MAX 65536
#define FAMILY_MAX   4096

struct link {
	uint32_t pid, ppid;
};

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int snapshot(const char *root, struct link *links)
{
	_cleanup_(dir_closep) DIR *d = NULL;
	struct discover_process p;
	char path[256];
	struct dirent *e;
	int n = 0;

	if (file_join(path, sizeof(path), root, "/proc") < 0)
		return -ENAMETOOLONG;
	d = opendir(path);
	if (!d)
		return -errno;
	while (n < SNAPSHOT_MAX && (e = readdir(d))) {
		uint32_t pid = (uint32_t)strtoul(e->d_name, NULL, 10);

		if (pid && discover_process_stat(root, pid, &p) == 0)
			links[n++] = (struct link){p.pid, p.ppid};
	}
	return n;
}

int family_list(const char *root, uint32_t pid, uint32_t *ret, size_t max)
{
	_cleanup_free_ struct link *links = calloc(SNAPSHOT_MAX, sizeof(*links));
	struct discover_process p;
	size_t count = 1;
	int n;

	if (!links || !max)
		return -ENOMEM;
	if (discover_process_stat(root, pid, &p) < 0)
		return -ESRCH;
	n = snapshot(root, links);
	if (n < 0)
		return n;
	ret[0] = pid;
	for (size_t i = 0; i < count; i++) /* grows while it is walked: breadth first */
		for (int k = 0; k < n && count < max; k++)
			if (links[k].ppid == ret[i] && links[k].pid != pid)
				ret[count++] = links[k].pid;
	return (int)count;
}

int family_uses_cuda(const char *root, uint32_t pid, struct errinfo *reterr)
{
	struct target_library libraries[DISCOVER_LIBRARIES_MAX];
	_cleanup_free_ uint32_t *family = calloc(FAMILY_MAX, sizeof(*family));
	struct discover_process p = {0};
	size_t dropped;
	int n;

	if (!family)
		return -ENOMEM;
	n = family_list(root, pid, family, FAMILY_MAX);
	if (n < 0)
		return errinfo_set(reterr, n, "no process %u", pid);
	for (int i = 0; i < n; i++) {
		int r = discover_libraries(
			root, family[i], libraries, DISCOVER_LIBRARIES_MAX, &dropped);

		if (r > 0 && discover_uses_cuda(libraries, (size_t)r))
			return 0;
		if (r == -EACCES || r == -EPERM)
			return errinfo_set(reterr, -EACCES, "cannot inspect process %u: %s",
				family[i],
				geteuid() ? "CAP_SYS_PTRACE is missing; run with sudo"
					  : "the kernel or a security module forbids it");
	}
	discover_process_stat(root, pid, &p);
	return errinfo_set(reterr, -EBADMSG,
		"process %u (%s) is not a CUDA process: neither it nor a child has libcudart or "
		"libcuda loaded; without --pid, ingero waits for processes that load them later",
		pid, p.comm);
}
