/* SPDX-License-Identifier: Apache-2.0 */
/* caller.c - see trace_command.h.
 *
 * sudo resets the environment, and PATH with it, so that the python3 of the user's virtual environment is not found
 * in ours. But sudo itself was started with the user's, which root reads in /proc. It is believed only of a process
 * that is sudo's own program, set-user-ID root, and whose real user is the one whom SUDO_UID names. */
#include "cli/trace_command.h"

#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/path_user.h"

#define ENVIRON_MAX   (4u << 20) /* the kernel's limit for words and variables together is 6 MiB */
#define VARIABLES_MAX 65536
#define PASSWD_BYTES  4096

void caller_done(struct caller *c)
{
	for (size_t i = 0; i < c->env_count; i++)
		free(c->envp[i]);
	free(c->envp);
	free(c->name);
	*c = CALLER_INIT;
}

/* ---- the environment ---- */

static size_t find_variable(const struct caller *c, const char *name, size_t len)
{
	size_t i = 0;

	while (i < c->env_count && (strncmp(c->envp[i], name, len) != 0 || c->envp[i][len] != '='))
		i++;
	return i;
}

const char *caller_variable(const struct caller *c, const char *name)
{
	size_t i = find_variable(c, name, strlen(name));

	return i < c->env_count ? c->envp[i] + strlen(name) + 1 : NULL;
}

/* @text is NAME=VALUE. */
static int set_variable(struct caller *c, const char *text)
{
	size_t i = find_variable(c, text, strcspn(text, "="));
	int r = ARRAY_RESERVE(c->envp, c->env_room, c->env_count + 2, VARIABLES_MAX);
	char *copy = r < 0 ? NULL : strdup(text);

	if (!copy)
		return r == -ENOBUFS ? -E2BIG : -ENOMEM;
	if (i < c->env_count)
		free(c->envp[i]);
	c->envp[i] = copy;
	c->env_count = MAX(c->env_count, i + 1);
	c->envp[c->env_count] = NULL;
	return 0;
}

static int set_value(struct caller *c, const char *name, const char *value)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PATH_MAX);

	buf_printf(&b, "%s=%s", name, value);
	return b.err ? b.err : set_variable(c, buf_str(&b));
}

static void unset_variable(struct caller *c, const char *name)
{
	size_t i = find_variable(c, name, strlen(name));

	if (i == c->env_count)
		return;
	free(c->envp[i]);
	c->envp[i] = c->envp[--c->env_count];
	c->envp[c->env_count] = NULL;
}

/* A name, and not the value of an option: sudo -p x=y ingero … */
static bool is_assignment(const char *word)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	size_t len = strspn(word, letters);

	return len && word[len] == '=' && (word[0] < '0' || word[0] > '9');
}

int caller_take_environ(struct caller *c, const char *text, size_t len)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < len; i += strnlen(text + i, len - i) + 1)
		if (memchr(text + i, '=', strnlen(text + i, len - i)))
			r = set_variable(c, text + i);
	return r;
}

static size_t count_words(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += !text[i];
	return n;
}

int caller_take_assignments(struct caller *c, const char *sudo, size_t len, size_t own_words)
{
	size_t words = count_words(sudo, len), ours = words - MIN(own_words, words), first = 0,
	       n = 0;
	int r = 0;

	/* the assignments are the last words before ours */
	for (size_t i = 0; n < ours; i += strlen(sudo + i) + 1, n++)
		if (!is_assignment(sudo + i))
			first = n + 1;
	n = 0;
	for (size_t i = 0; r == 0 && n < ours; i += strlen(sudo + i) + 1, n++)
		if (n >= first)
			r = set_variable(c, sudo + i);
	return r;
}

static int read_process(pid_t pid, const char *name, struct buf *b)
{
	return file_read(FORMATTED(64, "/proc/%d/%s", (int)pid, name), ENVIRON_MAX, b);
}

/* Whether process @pid is sudo, called by user @uid. */
static bool is_sudo_of(pid_t pid, uid_t uid)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ENVIRON_MAX);
	char link[64], name[PATH_MAX] = "";
	const char *base, *line;
	struct stat st;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	if (readlink(link, name, sizeof(name) - 1) < 0 || stat(link, &st) < 0 || st.st_uid != 0 ||
		!(st.st_mode & S_ISUID) || read_process(pid, "status", &b) < 0)
		return false;
	base = strrchr(name, '/');
	line = strstr(buf_str(&b), "\nUid:");
	return base && (!strcmp(base, "/sudo") || !strcmp(base, "/sudo-rs")) && line &&
	       strtoul(line + strlen("\nUid:"), NULL, 10) == uid;
}

static int take_sudo(struct caller *c, pid_t sudo)
{
	_cleanup_buf_ struct buf environment = BUF_INIT(ENVIRON_MAX + 1),
				 words = BUF_INIT(ENVIRON_MAX + 1), own = BUF_INIT(ENVIRON_MAX + 1);
	int r = read_process(sudo, "environ", &environment);

	r = r ?: read_process(sudo, "cmdline", &words);
	r = r ?: read_process(getpid(), "cmdline", &own);
	r = r ?: caller_take_environ(c, buf_str(&environment), environment.len);
	return r
		       ?: caller_take_assignments(c, buf_str(&words), words.len,
				  count_words(buf_str(&own), own.len));
}

/* Ours, as far as sudo made it root's made the user's again. */
static int take_own(struct caller *c, const struct passwd *pw)
{
	static const char *const of_sudo[] = {
		"SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND", "SUDO_HOME", "MAIL"};
	int r = 0;

	for (char **v = environ; r == 0 && *v; v++)
		if (strchr(*v, '='))
			r = set_variable(c, *v);
	if (!pw || r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(of_sudo); i++)
		unset_variable(c, of_sudo[i]);
	r = set_value(c, "HOME", pw->pw_dir);
	r = r ?: set_value(c, "USER", pw->pw_name);
	r = r ?: set_value(c, "LOGNAME", pw->pw_name);
	return r < 0 ? r : set_value(c, "SHELL", pw->pw_shell);
}

int caller_find(struct caller *ret, struct errinfo *reterr)
{
	struct passwd entry, *pw = NULL;
	char space[PASSWD_BYTES];
	pid_t parent = getppid();
	int r;

	*ret = CALLER_INIT;
	ret->is_other = path_user_invoking(&ret->uid, &ret->gid);
	if (!ret->is_other) {
		r = take_own(ret, NULL);
	} else {
		if (getpwuid_r(ret->uid, &entry, space, sizeof(space), &pw) == 0 && pw)
			ret->name = strdup(pw->pw_name);
		if (is_sudo_of(parent, ret->uid)) {
			r = take_sudo(ret, parent);
		} else {
			r = take_own(ret, pw);
			snprintf(ret->note, sizeof(ret->note),
				"not started by sudo itself: the command gets the environment of this shell");
		}
	}
	return r < 0 ? errinfo_set(reterr, r, "cannot read the environment for the command: %s",
			       strerror(-r))
		     : 0;
}

/* ---- its rights ---- */

/* Order: groups and capabilities of files need what the change of user takes away. */
int caller_become(const struct caller *c)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (!c->is_other)
		return 0;
	/* what sudo left open is root's; the pipe to this program's parent is closed by execve(2), too */
	if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	if ((c->name ? initgroups(c->name, c->gid) : setgroups(1, &c->gid)) < 0 ||
		setresgid(c->gid, c->gid, c->gid) < 0 || setresuid(c->uid, c->uid, c->uid) < 0)
		return -errno;
	if (c->uid != 0 && (syscall(SYS_capset, &header, none) < 0 || setuid(0) == 0))
		return -EPERM; /* it must not be possible to come back */
	return 0;
}
