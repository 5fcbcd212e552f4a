/* SPDX-License-Identifier: Apache-2.0 */
/* path_user.c - see path_user.h.
 *
 * The path is walked name by name, by descriptor. Who may change a name in a folder:
 *  1. its owner, if that is not root;
 *  2. in a folder that everybody writes to, with the sticky bit (/tmp): the owner of what has the
 *     name. If nothing has it yet, whoever makes it first: the caller makes it with O_EXCL, under
 *     sudo as the invoking user, to whom it is to belong;
 *  3. in such a folder without the sticky bit: everybody;
 *  4. in a folder to which a group other than root's may write, but not everybody: its members, of whom nothing is known but
 *     what they made. Such are /var/log of some distributions, so that nothing is refused there: what somebody else made has that
 *     one's rights.
 * Calls to the kernel are made directly where the C library would change all threads. */
#include "base/path_user.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The place of a user's files, and their owner under sudo.
 *
 * In a folder that another user controls, files are made with that user's rights (base/path_user.h,
 * by the callers). In one of root's, only what this process has just created is ever given away, by
 * descriptor and never by name. SQLite gives -wal and -shm the owner of the database file. */

#define HOME_FILE "ingero.db"

/* The home folder of @uid; "" if unknown. */
static void home_of(uid_t uid, char *out, size_t size)
{
	struct passwd pw, *found = NULL;
	char space[4096];

	out[0] = 0;
	if (getpwuid_r(uid, &pw, space, sizeof(space), &found) == 0 && found && pw.pw_dir)
		snprintf(out, size, "%s", pw.pw_dir);
}

int owner_home_file(const char *name, char **ret_path, struct errinfo *reterr)
{
	char home[PATH_MAX] = "";
	char *path;
	uid_t uid;
	gid_t gid;

	if (path_user_invoking(&uid, &gid))
		home_of(uid, home, sizeof(home));
	else if (getenv("HOME"))
		snprintf(home, sizeof(home), "%s", getenv("HOME"));
	if (!home[0])
		home_of(geteuid(), home, sizeof(home));
	if (!home[0])
		return errinfo_set(reterr, -ENOENT, "unknown home folder for %s", name);
	if (asprintf(&path, "%s/.ingero/%s", home, name) < 0)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

int store_default_path(char **ret_path, struct errinfo *reterr)
{
	const char *set = getenv("INGERO_DB");
	char *copy;
	int r;

	if (!set || !*set) {
		r = owner_home_file(HOME_FILE, ret_path, reterr);
		return r == -ENOENT
			       ? errinfo_set(reterr, r,
					 "unknown home folder for the database: give its path with --db")
			       : r;
	}
	copy = strdup(set);
	if (!copy)
		return -ENOMEM;
	*ret_path = copy;
	return 0;
}

int owner_give(int fd)
{
	uid_t uid;
	gid_t gid;

	/* With the rights of another, what was made is that one's already. */
	if (!path_user_invoking(&uid, &gid) || path_user_now() != 0)
		return 0;
	return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

static int make_and_give(const char *folder, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (mkdir(folder, 0755) < 0) {
		r = -errno;
		return errinfo_set(reterr, r, "cannot create folder %s for the database: %s",
			folder, strerror(-r));
	}
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : owner_give(fd);
	if (r < 0) {
		rmdir(folder);
		return errinfo_set(reterr, r, "cannot change the owner of folder %s: %s", folder,
			strerror(-r));
	}
	return 0;
}

int owner_make_folder(const char *path, bool *ret_made, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_free_ char *folder = strdup(path);
	struct stat st;
	char *slash;
	uid_t uid;
	gid_t gid;
	int r;

	if (!folder)
		return -ENOMEM;
	*ret_made = false;
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0; /* the working folder, or the root: both are there */
	*slash = 0;
	r = path_user_enter(folder, &before, reterr);
	if (r < 0)
		return r;
	if (lstat(folder, &st) == 0) {
		if (S_ISLNK(st.st_mode) && path_user_invoking(&uid, &gid) && st.st_uid != 0)
			return errinfo_set(reterr, -EACCES,
				"folder %s is a symbolic link, which is not followed under sudo: "
				"give the real path with --db",
				folder);
		return 0;
	}
	if (errno != ENOENT)
		return errinfo_set(reterr, -errno, "folder %s: %s", folder, strerror(errno));
	r = make_and_give(folder, reterr);
	if (r < 0)
		return r;
	*ret_made = true;
	return 0;
}

#define LINKS_MAX  40 /* as the kernel */
#define GROUPS_MAX 1024

struct walk {
	char rest[2 * PATH_MAX]; /* names still to be walked */
	int folder;              /* O_PATH */
	int links;
	bool ended, shared; /* the last name was met; everybody may make names in its folder */
	bool under_sudo;
	uid_t sudo_uid, uid; /* uid: found */
	gid_t sudo_gid, gid;
};

static bool parse_id(const char *name, unsigned *ret)
{
	const char *text = getenv(name);
	unsigned long v;
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || v >= UINT_MAX) /* (uid_t)-1 means "leave as it is" */
		return false;
	*ret = (unsigned)v;
	return true;
}

bool path_user_invoking(uid_t *ret_uid, gid_t *ret_gid)
{
	unsigned uid, gid;

	if (geteuid() != 0 || !parse_id("SUDO_UID", &uid) || !parse_id("SUDO_GID", &gid))
		return false;
	*ret_uid = uid;
	*ret_gid = gid;
	return true;
}

uid_t path_user_now(void)
{
	if (geteuid() != 0) /* which a service may be forbidden to ask for */
		return geteuid();
	return (uid_t)setfsuid((uid_t)-1); /* an id that is refused tells the present one */
}

static int found(struct walk *w, uid_t uid, gid_t gid)
{
	w->uid = uid;
	w->gid = gid;
	return 1;
}

/* 1: somebody other than root may change @name, and w->uid is who. @entry is what has the name;
 * NULL: nothing. */
static int judge(struct walk *w, const char *name, const struct stat *entry, struct errinfo *reterr)
{
	struct stat folder;
	bool is_of_group;

	if (fstat(w->folder, &folder) < 0)
		return -errno;
	is_of_group = (folder.st_mode & (S_IWGRP | S_IWOTH)) == S_IWGRP && folder.st_gid != 0;
	if (!w->ended && !w->rest[strspn(w->rest, "/")]) {
		w->ended = true; /* a link here has more names to come: of those nothing is said */
		w->shared = folder.st_mode & S_IWOTH || is_of_group;
	}
	if (folder.st_uid != 0)
		return found(w, folder.st_uid, folder.st_gid);
	if (is_of_group && entry && entry->st_uid != 0)
		return found(w, entry->st_uid, entry->st_gid);
	if (!(folder.st_mode & S_IWOTH))
		return 0;
	if (folder.st_mode & S_ISVTX) {
		if (entry && entry->st_uid != 0)
			return found(w, entry->st_uid, entry->st_gid);
		if (entry || !w->under_sudo)
			return 0;
	}
	if (w->under_sudo)
		return found(w, w->sudo_uid, w->sudo_gid);
	return errinfo_set(reterr, -EPERM,
		"any user can replace %.100s in its folder, so root does not write there: run "
		"`chmod +t` or `chmod o-w` on the folder, or choose another",
		name);
}

static void go_to(struct walk *w, int folder)
{
	if (w->folder >= 0)
		close(w->folder);
	w->folder = folder;
}

/* The names that the link @name stands for come first. */
static int follow(struct walk *w, const char *name)
{
	char target[PATH_MAX], rest[sizeof(w->rest)];
	ssize_t len = readlinkat(w->folder, name, target, sizeof(target) - 1);
	int n;

	if (len < 0)
		return -errno;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	target[len] = 0;
	n = snprintf(rest, sizeof(rest), "%s/%s", target, w->rest);
	if (n < 0 || (size_t)n >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(w->rest, rest, (size_t)n + 1);
	if (target[0] == '/')
		go_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	return w->folder < 0 ? -errno : 0;
}

/* Takes the next name off w->rest. 0: none is left. */
static int next_name(struct walk *w, char name[NAME_MAX + 1])
{
	const char *start = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(start, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, start, len);
	name[len] = 0;
	memmove(w->rest, start + len, strlen(start + len) + 1);
	return len > 0;
}

/* 1: w->uid may change the path; 0: only root may. */
static int walk_path(struct walk *w, struct errinfo *reterr)
{
	char name[NAME_MAX + 1];
	int r;

	while ((r = next_name(w, name)) > 0) {
		struct stat entry;
		bool there = fstatat(w->folder, name, &entry, AT_SYMLINK_NOFOLLOW) == 0;

		if (!there && errno != ENOENT)
			return -errno;
		r = judge(w, name, there ? &entry : NULL, reterr);
		if (r != 0 || !there)
			return r;
		if (S_ISLNK(entry.st_mode)) {
			r = follow(w, name);
			if (r < 0)
				return r;
			continue;
		}
		if (!S_ISDIR(entry.st_mode))
			return 0;
		r = openat(w->folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (r < 0)
			return -errno;
		go_to(w, r);
	}
	return r;
}

static int walk_from_root(const char *path, struct walk *w, struct errinfo *reterr)
{
	char here[PATH_MAX] = "";
	int n, r;

	/* A relative path too is made absolute by those who open it. */
	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return -errno;
	n = snprintf(w->rest, sizeof(w->rest), "%s/%s", here, path);
	if (n < 0 || n >= PATH_MAX)
		return errinfo_set(reterr, -ENAMETOOLONG, "%.100s…: the path is too long", path);
	w->under_sudo = path_user_invoking(&w->sudo_uid, &w->sudo_gid);
	w->folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = w->folder < 0 ? -errno : walk_path(w, reterr);
	if (w->folder >= 0)
		close(w->folder);
	return r;
}

/* Who has another's rights by now may have to look where that one cannot. */
static int find_user(const char *path, struct walk *w, struct errinfo *reterr)
{
	uid_t now = path_user_now();
	int r;

	errinfo_set(reterr, 0, "%s", "");
	r = walk_from_root(path, w, reterr);
	if (r == -EACCES && now != 0) {
		setfsuid(0);
		*w = (struct walk){.folder = -1};
		r = walk_from_root(path, w, reterr);
		setfsuid(now);
	}
	if (r < 0 && reterr && !reterr->text[0])
		errinfo_set(reterr, r, "%s: %s", path, strerror(-r));
	return r;
}

/* The groups of @w->uid as at login; of a user whom the machine does not know, the folder's. */
static int find_groups(struct walk *w, gid_t *groups)
{
	struct passwd pw, *entry = NULL;
	char space[4096];
	int count = GROUPS_MAX;

	if (getpwuid_r(w->uid, &pw, space, sizeof(space), &entry) != 0 || !entry)
		return 0;
	w->gid = pw.pw_gid;
	return getgrouplist(pw.pw_name, pw.pw_gid, groups, &count) < 0 ? 0 : count;
}

static int set_ids(uid_t uid, gid_t gid, const gid_t *groups, int count)
{
	/* Not by the C library's setgroups(), which changes all threads. Groups first: afterwards
	 * the rights to do so are still there, for only those to files go with the uid. */
	if (syscall(SYS_setgroups, count, groups) < 0)
		return -errno;
	setfsgid(gid);
	setfsuid(uid);
	return path_user_now() == uid && (gid_t)setfsgid((gid_t)-1) == gid ? 0 : -EPERM;
}

static int remember(struct path_user *before)
{
	int n = getgroups(0, NULL);

	before->groups = n < 0 ? NULL : calloc((size_t)n + 1, sizeof(gid_t));
	if (!before->groups)
		return n < 0 ? -errno : -ENOMEM;
	before->group_count = getgroups(n, before->groups);
	before->uid = path_user_now();
	before->gid = (gid_t)setfsgid((gid_t)-1);
	before->changed = true;
	return before->group_count < 0 ? -errno : 0;
}

int path_user_enter(const char *path, struct path_user *ret_before, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_free_ gid_t *groups = NULL;
	struct walk w = {.folder = -1};
	int r;

	*ret_before = PATH_USER_INIT;
	if (geteuid() != 0)
		return 0;
	r = find_user(path, &w, reterr);
	if (r < 0)
		return r;
	ret_before->shared = w.shared;
	if (r == 0) /* root's alone */
		w.uid = 0;
	if (w.uid == path_user_now())
		return 0;
	groups = calloc(GROUPS_MAX, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	r = remember(&before);
	if (r < 0)
		return r;
	r = find_groups(&w, groups);
	r = set_ids(w.uid, w.gid, groups, r);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot use %s as user %u: %s", path, (unsigned)w.uid,
			strerror(-r));
	before.shared = w.shared;
	*ret_before = before;
	before = PATH_USER_INIT;
	return 0;
}

int path_user_find(const char *path, uid_t *ret, struct errinfo *reterr)
{
	struct walk w = {.folder = -1};
	int r = geteuid() == 0 ? find_user(path, &w, reterr) : 0;

	if (r < 0)
		return r;
	*ret = r ? w.uid : geteuid();
	return 0;
}

int path_user_check(const char *path, struct errinfo *reterr)
{
	uid_t uid;

	if (geteuid() != 0 || (path_user_find(path, &uid, reterr) == 0 && uid == path_user_now()))
		return 0;
	return errinfo_set(reterr, -EPERM,
		"another program just created %s: remove it, or choose another", path);
}

void path_user_leave(struct path_user *before)
{
	if (before->changed && before->group_count >= 0)
		(void)set_ids(before->uid, before->gid, before->groups, before->group_count);
	free(before->groups);
	*before = PATH_USER_INIT;
}
