/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - rank, job, GPUs, container and pod of a process, from its environment and control group.
 *
 * Launchers are asked in the order of their table; the first with a valid rank names the process.
 * What it leaves open (PMIx has no variable for the local rank) is taken from a later one that says
 * the same rank. A launcher whose numbers contradict each other is not believed at all.
 *
 * The environment is the one the process was started with: it follows fork and exec, not setenv().
 */
#include "record/discover/identity.h"

#include <limits.h>

#include "base/bounded.h"
#include "base/file.h"
#include "base/text.h"
#include "record/discover/discover.h"

/* Reads /proc/PID/environ in pieces and keeps only what was asked for.
 *
 * The environment is hostile: any bytes, any number of variables, no NUL at all, of any length (the
 * area is the process's own and may have been overwritten). Memory is fixed: one piece, and one
 * variable, of which no more than the longest wanted one is kept. It may also keep its reader waiting, so it is read
 * beside (base/bounded.h). */

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

#define WORLD_MAX (1 << 24) /* 16 million ranks: beyond any machine, and exact in every type */
#define NODE_MAX  253       /* bytes: a DNS name */

static const struct launcher {
	const char *name;
	const char *rank, *local_rank[2], *world_size[2];
} launchers[] = {
	{"torchrun", "RANK", {"LOCAL_RANK"}, {"WORLD_SIZE"}},
	{"openmpi", "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_LOCAL_RANK"},
		{"OMPI_COMM_WORLD_SIZE"}},
	{"pmix", "PMIX_RANK", {"PMIX_LOCAL_RANK"}, {"PMIX_SIZE"}},
	{"pmi", "PMI_RANK", {"PMI_LOCAL_RANK", "MPI_LOCALRANKID"}, {"PMI_SIZE"}},
	{"mvapich", "MV2_COMM_WORLD_RANK", {"MV2_COMM_WORLD_LOCAL_RANK"}, {"MV2_COMM_WORLD_SIZE"}},
	{"slurm", "SLURM_PROCID", {"SLURM_LOCALID"}, {"SLURM_NTASKS", "SLURM_NPROCS"}},
	{"kubernetes", "JOB_COMPLETION_INDEX", {NULL}, {NULL}},
};

static const struct {
	const char *system, *key;
	bool is_address; /* its last part counts */
} jobs[] = {
	{"slurm", "SLURM_JOB_ID", false},
	{"slurm", "SLURM_JOBID", false},
	{"pbs", "PBS_JOBID", false},
	{"lsf", "LSB_JOBID", false},
	{"ecs", "ECS_CONTAINER_METADATA_URI_V4", true},
	{"ecs", "ECS_CONTAINER_METADATA_URI", true},
};

static const char *const pod_keys[] = {
	"KUBERNETES_SERVICE_HOST", "POD_NAME", "HOSTNAME", "POD_NAMESPACE"};

/* Which GPUs the process sees, by CUDA, or where that says nothing by the container's runtime. */
static const char *const gpu_keys[] = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"};

static size_t list_keys(const char *keys[VARIABLES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
		const struct launcher *l = &launchers[i];

		keys[n++] = l->rank;
		for (size_t k = 0; k < 2; k++) {
			if (l->local_rank[k])
				keys[n++] = l->local_rank[k];
			if (l->world_size[k])
				keys[n++] = l->world_size[k];
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		keys[n++] = jobs[i].key;
	for (size_t i = 0; i < ARRAY_SIZE(pod_keys); i++)
		keys[n++] = pod_keys[i];
	for (size_t i = 0; i < ARRAY_SIZE(gpu_keys); i++)
		keys[n++] = gpu_keys[i];
	return n;
}
STATIC_ASSERT(ARRAY_SIZE(launchers) * 5 + ARRAY_SIZE(jobs) + ARRAY_SIZE(pod_keys) +
		      ARRAY_SIZE(gpu_keys) <=
	      VARIABLES_MAX);

/* ---- rank ---- */

/* Digits only, below @limit. False also for "", " 1", "+1", "0x1". */
static bool parse_number(const char *s, int32_t limit, int32_t *ret)
{
	int64_t v = 0;

	if (!s || !*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		v = v * 10 + (*s - '0');
		if (v >= limit)
			return false;
	}
	*ret = (int32_t)v;
	return true;
}

static const char *first_of(const struct variables *v, const char *const keys[2])
{
	const char *value = keys[0] ? variables_get(v, keys[0]) : NULL;

	return !value && keys[1] ? variables_get(v, keys[1]) : value;
}

/* What one launcher says. known is 0 if it says nothing that can be believed. */
static struct placement place_by(const struct launcher *l, const struct variables *v)
{
	const char *world = first_of(v, l->world_size), *local = first_of(v, l->local_rank);
	struct placement p = {.known = PLACEMENT_RANK};
	int32_t limit = WORLD_MAX;

	if (world) {
		if (!parse_number(world, WORLD_MAX + 1, &p.world_size) || p.world_size == 0)
			return (struct placement){0};
		p.known |= PLACEMENT_WORLD_SIZE;
		limit = p.world_size;
	}
	if (!parse_number(variables_get(v, l->rank), limit, &p.rank))
		return (struct placement){0};
	if (parse_number(local, limit, &p.local_rank))
		p.known |= PLACEMENT_LOCAL_RANK;
	return p;
}

static void add_place(struct placement *p, const struct placement *more)
{
	uint32_t gain = more->known & ~p->known;

	if (!(more->known & PLACEMENT_RANK) || more->rank != p->rank)
		return;
	if (gain & PLACEMENT_WORLD_SIZE &&
		(!(p->known & PLACEMENT_LOCAL_RANK) || p->local_rank < more->world_size)) {
		p->world_size = more->world_size;
		p->known |= PLACEMENT_WORLD_SIZE;
	}
	if (gain & PLACEMENT_LOCAL_RANK &&
		(!(p->known & PLACEMENT_WORLD_SIZE) || more->local_rank < p->world_size)) {
		p->local_rank = more->local_rank;
		p->known |= PLACEMENT_LOCAL_RANK;
	}
}

static void find_place(const struct variables *v, struct identity *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
		struct placement p = place_by(&launchers[i], v);

		if (!p.known)
			continue;
		if (!id->place.known) {
			id->place = p;
			id->launcher = launchers[i].name;
		} else {
			add_place(&id->place, &p);
		}
	}
}

/* ---- job and pod ---- */

/* Ids of batch systems: printable, no spaces. */
static bool is_id(const char *s)
{
	for (const char *p = s; *p; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return *s != 0;
}

static void find_job(const struct variables *v, const struct cgroup *c, struct identity *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		const char *value = variables_get(v, jobs[i].key), *slash;
		size_t len;

		if (!value)
			continue;
		slash = jobs[i].is_address ? strrchr(value, '/') : NULL;
		if (slash)
			value = slash + 1;
		if (!is_id(value))
			continue;
		len = strlen(value);
		/* On Fargate the container's number stands behind the task: TASK-NUMBER. */
		if (slash && strspn(value, "0123456789abcdef") == 32 && value[32] == '-')
			len = 32;
		if (strlen(jobs[i].system) + 1 + len >= sizeof(id->job))
			continue;
		snprintf(id->job, sizeof(id->job), "%s:%.*s", jobs[i].system, (int)len, value);
		return;
	}
	if (c->ecs_task[0])
		snprintf(id->job, sizeof(id->job), "ecs:%.100s", c->ecs_task);
}

/* ---- GPUs ---- */

/* The runtime's list counts where it has names that are the same everywhere: numbers are the machine's, CUDA's begin at 0 in
 * each container. */
static void find_gpus(const struct variables *v, struct identity *id)
{
	const char *cuda = variables_get(v, gpu_keys[0]), *runtime = variables_get(v, gpu_keys[1]);
	size_t n = 0;

	if (!cuda && runtime && (!strncmp(runtime, "GPU-", 4) || !strncmp(runtime, "MIG-", 4)))
		cuda = runtime;
	for (; cuda && *cuda; cuda++)
		if (*cuda > ' ' && *cuda <= '~')
			id->visible_gpus[n++] = *cuda;
	id->visible_gpus[n] = 0;
}

/* Names of pods and namespaces are DNS names (RFC 1123). */
static bool is_dns_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len < IDENTITY_NAME_MAX &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len;
}

/* The first line of a file as the process sees it. */
static bool read_inside(const char *root, uint32_t pid, const char *file, char *out, size_t size)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	uint32_t uid = 0;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/root", root, pid) >=
		(int)sizeof(path))
		return false;
	(void)discover_uid(root, pid, &uid); /* gone: there is nothing to read either */
	fd = bounded_open_inside(uid, path, file, 0, NULL);
	if (fd < 0)
		return false;
	n = read(fd, out, size - 1);
	if (n < 0)
		return false;
	out[n] = 0;
	out[strcspn(out, "\n")] = 0;
	return true;
}

/* In a pod the host name is the pod's, unless it shares the node's network and with it its name. */
static void find_pod(const char *root, uint32_t pid, const struct variables *v,
	const struct cgroup *c, struct identity *id)
{
	const char *name = variables_get(v, "POD_NAME"),
		   *namespace = variables_get(v, "POD_NAMESPACE");
	char node[IDENTITY_NAME_MAX] = "", line[IDENTITY_NAME_MAX];

	if (!c->in_pod && !variables_get(v, "KUBERNETES_SERVICE_HOST"))
		return;
	if (!name) {
		name = variables_get(v, "HOSTNAME");
		if (!name && read_inside(root, pid, "/etc/hostname", line, sizeof(line)))
			name = line;
		file_read_line(root, "/proc/sys/kernel/hostname", node, sizeof(node));
		if (name && strcmp(name, node) == 0)
			name = NULL;
	}
	if (name && is_dns_name(name))
		snprintf(id->pod, sizeof(id->pod), "%s", name);
	if (!namespace &&
		read_inside(root, pid, "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
			line, sizeof(line)))
	namespace = line;
	if (namespace && is_dns_name(namespace))
		snprintf(id->namespace, sizeof(id->namespace), "%s", namespace);
}

static void read_exe(const char *root, uint32_t pid, char out[TARGET_PATH_MAX])
{
	char path[PATH_MAX];
	ssize_t n = -1;

	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/exe", root, pid) < (int)sizeof(path))
		n = readlink(path, out, TARGET_PATH_MAX);
	if (n < 0 || n >= TARGET_PATH_MAX)
		n = 0;
	out[n] = 0;
}

int identity_read(const char *root, uint32_t pid, struct process *ret)
{
	_cleanup_free_ struct process *p = calloc(1, sizeof(*p));
	_cleanup_free_ struct variables *v = calloc(1, sizeof(*v));
	const char *keys[VARIABLES_MAX];
	struct discover_process before, after;
	struct cgroup c = {0};
	int r;

	if (!p || !v)
		return -ENOMEM;
	r = discover_process_stat(root, pid, &before);
	if (r < 0)
		return -ESRCH;
	p->identity.launcher = "";
	r = variables_read(root, pid, keys, list_keys(keys), v);
	if (r == -ENOMEM)
		return r;
	p->identity.environ_unreadable = r < 0;
	p->identity.environ_cut = v->cut;
	(void)cgroup_read(root, pid, &c);
	find_place(v, &p->identity);
	find_job(v, &c, &p->identity);
	find_gpus(v, &p->identity);
	find_pod(root, pid, v, &c, &p->identity);
	read_exe(root, pid, p->identity.exe);
	discover_program(root, pid, p->script, &p->cpus);
	memcpy(p->identity.container_id, c.container_id, sizeof(c.container_id));
	memcpy(p->identity.pod_uid, c.pod_uid, sizeof(c.pod_uid));
	memcpy(p->identity.cgroup_path, c.path, sizeof(c.path));
	memcpy(p->identity.cpu_group, c.cpu_path, sizeof(c.cpu_path));
	memcpy(p->identity.memory_group, c.memory_path, sizeof(c.memory_path));
	r = discover_process_stat(root, pid, &after);
	if (r < 0 || after.vsize_bytes == 0) {
		/* It has ended. A short process may have told all that matters before. */
		if (!v->whole)
			return -ESRCH;
		after = before;
	}
	if (after.start_ticks != before.start_ticks)
		return -ESRCH;
	p->pid = pid;
	p->start_ticks = after.start_ticks;
	memcpy(p->comm, after.comm, sizeof(p->comm));
	*ret = *p;
	return 0;
}

int identity_node_check(const char *name, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	text_escape_terminal(&b, name);
	if (name[0] && !strchr(name, ':') && strlen(name) <= NODE_MAX &&
		strcmp(buf_str(&b), name) == 0)
		return 0;
	return errinfo_set(reterr, -EINVAL,
		"invalid node name '%.260s': it must have 1 to %d bytes and no colon or control character, because event ids are node:seq; give another with --node",
		buf_str(&b), NODE_MAX);
}
