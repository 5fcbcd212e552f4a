/* SPDX-License-Identifier: Apache-2.0 */
/* embedded.c - see embedded.h. Runs on the tracer's thread; what it reads of a file goes through
 * elfsym.h, which believes nothing of it.
 *
 * A file holds a library if it has all of some functions that whoever offers the library must have.
 * Wrappers that load the real one have those they need: CTranslate2 exports six functions of NCCL, and
 * JAX has stubs of all, which were assembled and have no size. */
#include "record/discover/embedded.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "record/discover/discover.h"
#include "record/discover/elfsym.h"
#include "record/discover/maps.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/log.h"

#define KNOWN_MAX   16384       /* files that were looked at; beyond, all are forgotten */
#define MAPPED_MAX  8192        /* files of one process */
#define NAMES_BYTES (256 << 20) /* of .symtab's names that are read; a second at most */
#define LOADS       "dlsym"     /* imported by whatever loads libraries by itself */

static const struct {
	enum target_library_kind kind;
	const char *functions[4];
} libraries[] = {
	{TARGET_CUDART,
		{"cudaMalloc", "cudaMemcpyAsync", "cudaLaunchKernel", "cudaStreamSynchronize"}},
	{TARGET_NCCL, {"ncclAllReduce", "ncclCommInitRank", "ncclCommCount", "ncclCommUserRank"}},
};

#define FUNCTIONS ARRAY_SIZE(libraries[0].functions)

struct embedded {
	struct idmap known; /* identity of a file -> its kinds, + 1 */
};

struct mapped {
	uint64_t dev, inode, start, end;
	bool deleted;
	const char *path;
};

struct mapped_list {
	struct mapped *files;
	size_t count, room;
	char paths[1 << 20];
	size_t paths_used;
	size_t dropped;
	int error;
};

int embedded_new(struct embedded **ret)
{
	struct embedded *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->known = IDMAP_INIT(KNOWN_MAX);
	*ret = e;
	return 0;
}

void embedded_free(struct embedded *e)
{
	idmap_done(&e->known);
	free(e);
}

/* ---- one file ---- */

static int kinds_of(struct elfsym *elf, bool exported, unsigned *kinds)
{
	const char *names[ARRAY_SIZE(libraries) * FUNCTIONS];
	uint64_t sizes[ARRAY_SIZE(names)];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		names[i] = libraries[i / FUNCTIONS].functions[i % FUNCTIONS];
	r = elfsym_sizes(elf, names, ARRAY_SIZE(names), exported, sizes);
	if (r < 0)
		return r;
	for (size_t k = 0; k < ARRAY_SIZE(libraries); k++) {
		bool all = true;

		for (size_t i = 0; i < FUNCTIONS; i++)
			all = all && sizes[k * FUNCTIONS + i];
		*kinds |= all ? 1u << libraries[k].kind : 0;
	}
	return 0;
}

unsigned embedded_kinds(int fd, const char *name)
{
	_cleanup_(elfsym_closep) struct elfsym *elf = NULL;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;
	unsigned kinds = 0;

	if (own < 0)
		return 0;
	if (elfsym_open_fd(own, &elf, NULL) < 0) {
		close(own);
		return 0;
	}
	if (elfsym_is_program(elf) || kinds_of(elf, true, &kinds) < 0 || kinds)
		return kinds; /* what NCCL's stand-ins hold besides is their own business */
	r = elfsym_names_bytes(elf) ? elfsym_mentions(elf, LOADS) : 0;
	if (r > 0 && elfsym_names_bytes(elf) > NAMES_BYTES)
		log_warning("%s is not searched for a CUDA runtime: its symbol table is too large",
			name);
	else if (r > 0)
		(void)kinds_of(elf, false, &kinds);
	return kinds;
}

/* ---- those of a process ---- */

/* What is ours by name needs no look, but libtorch_cuda may hold another. */
static bool is_known_by_name(const char *path, size_t len)
{
	const char *base = memrchr(path, '/', len);
	enum target_library_kind kind;

	return !base ||
	       (discover_library_kind(base + 1, (size_t)(path + len - base - 1), &kind) == 0 &&
		       kind != TARGET_TORCH_CUDA);
}

static bool take_mapping(void *arg, const struct maps_entry *m)
{
	struct mapped_list *l = arg;

	if (!m->executable || !m->inode || !m->path_len || is_known_by_name(m->path, m->path_len))
		return true;
	/* the pieces of one file follow each other */
	if (l->count && l->files[l->count - 1].inode == m->inode &&
		l->files[l->count - 1].dev == m->dev)
		return true;
	l->error = ARRAY_RESERVE(l->files, l->room, l->count + 1, MAPPED_MAX);
	if (l->error == -ENOMEM)
		return false;
	if (l->error < 0 || m->path_len >= TARGET_PATH_MAX ||
		l->paths_used + m->path_len + 1 > sizeof(l->paths)) {
		l->dropped++;
		return true;
	}
	l->files[l->count++] = (struct mapped){.dev = m->dev,
		.inode = m->inode,
		.start = m->start,
		.end = m->end,
		.deleted = m->deleted,
		.path = l->paths + l->paths_used};
	memcpy(l->paths + l->paths_used, m->path, m->path_len);
	l->paths_used += m->path_len;
	l->paths[l->paths_used++] = 0;
	return true;
}

/* An inode's number may come again for another file; that one has another time. As the kernel remembers it: no file
 * system is asked, which could be a user's program that does not answer. */
static uint64_t identity_of(int root, const struct mapped *m)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_CACHED};
	_cleanup_fd_ int fd =
		root >= 0 ? (int)syscall(SYS_openat2, root, m->path, &how, sizeof(how)) : -1;
	struct statx st = {0};

	if (fd >= 0)
		(void)statx(
			fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_CTIME, &st);
	return hash_number(
		       hash_number(hash_number(m->dev + 1) ^ m->inode) ^
		       hash_number(st.stx_size + 1) ^
		       (uint64_t)(st.stx_ctime.tv_sec * (int64_t)NS_PER_S + st.stx_ctime.tv_nsec)) |
	       1;
}

static struct target_library row_of(const struct mapped *m, enum target_library_kind kind)
{
	struct target_library l = {.kind = kind,
		.embedded = true,
		.dev = m->dev,
		.inode = m->inode,
		.map_start = m->start,
		.map_end = m->end,
		.deleted = m->deleted};

	snprintf(l.path, sizeof(l.path), "%s", m->path);
	return l;
}

/* The kinds of @m, looked at if it is new; -EAGAIN: there is no time for that now. */
static int look(struct embedded *e, const char *root, uint32_t pid, int root_fd,
	const struct mapped *m, mono_time until)
{
	uint64_t id = identity_of(root_fd, m);
	uintptr_t known = (uintptr_t)idmap_get(&e->known, id);
	struct target_library l;
	unsigned kinds;
	int fd;

	if (known)
		return (int)(known - 1);
	if (mono_now().ns > until.ns)
		return -EAGAIN;
	l = row_of(m, TARGET_CUDART);
	fd = discover_library_open(root, pid, &l);
	if (fd < 0)
		return 0; /* it is going away, or is asked again */
	kinds = embedded_kinds(fd, m->path);
	close(fd);
	if (idmap_put(&e->known, id, (void *)(uintptr_t)(kinds + 1)) == -ENOBUFS) {
		idmap_done(&e->known);
		e->known = IDMAP_INIT(KNOWN_MAX);
	}
	return (int)kinds;
}

static void mapped_list_freep(struct mapped_list **l)
{
	if (*l)
		free((*l)->files);
	free(*l);
}

int embedded_find(struct embedded *e, const char *root, uint32_t pid, struct target_library *rows,
	size_t count, size_t max, size_t *ret_dropped, bool *ret_is_partial)
{
	_cleanup_(mapped_list_freep) struct mapped_list *l = calloc(1, sizeof(*l));
	mono_time until = {mono_now().ns + EMBEDDED_LOOK_NS};
	_cleanup_fd_ int root_fd = -1;
	char path[PATH_MAX];
	int r;

	if (!l)
		return -ENOMEM;
	r = maps_read(root, pid, take_mapping, l);
	if (r < 0 || l->error == -ENOMEM)
		return r < 0 ? r : -ENOMEM;
	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/root", root, pid) < (int)sizeof(path))
		root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*ret_dropped += l->dropped;
	*ret_is_partial = false;
	for (size_t i = 0; i < l->count; i++) {
		r = look(e, root, pid, root_fd, &l->files[i], until);
		*ret_is_partial |= r == -EAGAIN;
		for (size_t k = 0; r > 0 && k < ARRAY_SIZE(libraries); k++) {
			if (!(r >> libraries[k].kind & 1))
				continue;
			if (count < max)
				rows[count++] = row_of(&l->files[i], libraries[k].kind);
			else
				++*ret_dropped;
		}
	}
	return (int)count;
}
