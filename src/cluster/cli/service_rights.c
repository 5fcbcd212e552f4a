/* SPDX-License-Identifier: Apache-2.0 */
/* service_rights.c - see service.h.
 *
 * A service writes from many threads, DuckDB's among them, and all have the rights that the first one had when it
 * began them. So there is one user for all that is written; files that are only read have their own
 * (path_user_enter() where they are read), for which CAP_SETUID is kept if one of them needs it. */
#include "cluster/cli/service.h"

#include <libgen.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include "base/confine_thread.h"
#include "base/macros.h"
#include "duck/duck_worker.h"

/* What every service reads: names of hosts and users, certificates of authorities, time zones, the machine. */
static const char *const system_files[] = {"/etc/resolv.conf", "/run/systemd/resolve", "/etc/hosts",
	"/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/passwd",
	"/etc/group", "/etc/ssl", "/etc/pki", "/usr/lib/ssl", "/usr/share/ca-certificates",
	"/usr/local/share/ca-certificates", "/etc/localtime", "/usr/share/zoneinfo", "/proc",
	"/sys/devices/system", "/sys/fs/cgroup", "/dev/null", "/dev/urandom"};

struct places { /* of which landlock is told */
	char *items[4 * SERVICE_PATHS_MAX];
	size_t count;
};

static void places_done(struct places *p)
{
	while (p->count)
		free(p->items[--p->count]);
}

static void places_add(struct places *p, char *path)
{
	if (path && p->count < ARRAY_SIZE(p->items))
		p->items[p->count++] = path;
	else
		free(path);
}

/* The folder of @path: a file in it is replaced, not changed. */
static void places_add_folder(struct places *p, const char *path)
{
	_cleanup_free_ char *copy = path ? strdup(path) : NULL;

	places_add(p, copy ? strdup(dirname(copy)) : NULL);
}

void service_rights_write(struct service_rights *s, const char *folder)
{
	if (folder && s->write_count < ARRAY_SIZE(s->writes))
		s->writes[s->write_count++] = folder;
}

void service_rights_write_file(struct service_rights *s, const char *path)
{
	if (path && snprintf(s->file_folder, sizeof(s->file_folder), "%s", path) <
			    (int)sizeof(s->file_folder))
		service_rights_write(s, dirname(s->file_folder));
}

void service_rights_read(struct service_rights *s, const char *path)
{
	if (path && s->read_count < ARRAY_SIZE(s->reads))
		s->reads[s->read_count++] = path;
}

void service_rights_own(struct service_rights *s, const char *path)
{
	if (path && s->own_count < ARRAY_SIZE(s->own))
		s->own[s->own_count++] = path;
}

static int make_folder(const char *folder, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(folder, &before, reterr);

	if (r == 0 && mkdir(folder, 0700) < 0 && errno != EEXIST)
		r = errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
			"cannot create the folder %s: %s; give another", folder, strerror(errno));
	return r;
}

/* Who may change a name in @folder. */
static int find_user(const char *folder, uid_t *ret, struct errinfo *reterr)
{
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s/x", folder) >= (int)sizeof(name))
		return errinfo_set(reterr, -ENAMETOOLONG, "%.100s…: the path is too long", folder);
	return path_user_find(name, ret, reterr);
}

int service_rights_enter(const char *const *folders, size_t count, struct path_user *ret_before,
	struct errinfo *reterr)
{
	uid_t first = geteuid(), uid;
	int r = 0;

	*ret_before = PATH_USER_INIT;
	for (size_t i = 0; i < count; i++) {
		r = find_user(folders[i], i ? &uid : &first, reterr);
		if (r < 0)
			return r;
		if (i && uid != first)
			return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
				"user %u can write to the folder %s, and user %u to the folder %s: as root, use folders of one user",
				(unsigned)first, folders[0], (unsigned)uid, folders[i]);
	}
	if (!count)
		return 0;
	return path_user_enter(FORMATTED(PATH_MAX, "%s/x", folders[0]), ret_before, reterr);
}

int service_rights_files(
	const struct service_rights *s, struct path_user *ret_before, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->write_count; i++)
		r = make_folder(s->writes[i], reterr);
	return r < 0 ? r : service_rights_enter(s->writes, s->write_count, ret_before, reterr);
}

static bool has_other_user(const char *const *paths, size_t count)
{
	uid_t uid;

	return EXISTS(i, count, path_user_find(paths[i], &uid, NULL) < 0 || uid != path_user_now());
}

/* CAP_KILL ends a process for SQL, which is another user's. */
static uint64_t capabilities(const struct service_rights *s)
{
	return (s->sql ? CONFINE_CAP(CAP_KILL) : 0) |
	       (s->low_port ? CONFINE_CAP(CAP_NET_BIND_SERVICE) : 0) |
	       (has_other_user(s->reads, s->read_count) || has_other_user(s->own, s->own_count)
			       ? CONFINE_CAP(CAP_SETUID) | CONFINE_CAP(CAP_SETGID)
			       : 0);
}

void service_rights_confine(const struct service_rights *s)
{
	static const struct spawn_program programs[] = {{DUCK_WORKER_NAME, NULL}};
	_cleanup_(places_done) struct places writes = {.count = 0}, reads = {.count = 0};
	struct confine_server c = {.capabilities = capabilities(s)};

	for (size_t i = 0; i < s->write_count; i++)
		places_add(&writes, realpath(s->writes[i], NULL));
	for (size_t i = 0; i < s->own_count; i++)
		places_add_folder(&writes, s->own[i]);
	for (size_t i = 0; i < ARRAY_SIZE(system_files); i++)
		places_add(&reads, strdup(system_files[i]));
	for (size_t i = 0; i < s->read_count; i++) {
		_cleanup_free_ char *real = realpath(s->reads[i], NULL);

		places_add_folder(&reads, s->reads[i]);
		places_add_folder(&reads, real);
	}
	c.files = (struct confine_files){.folders = (const char *const *)writes.items,
		.folder_count = writes.count,
		.readable = (const char *const *)reads.items,
		.readable_count = reads.count};
	c.programs = programs;
	c.program_count = s->sql ? ARRAY_SIZE(programs) : 0;
	confine_server(&c);
}
