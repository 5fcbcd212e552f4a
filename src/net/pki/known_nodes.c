/* SPDX-License-Identifier: Apache-2.0 */
/* known_nodes.c - see known_nodes.h. */
#include "net/pki/known_nodes.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path_user.h"

#define BLANKS " \t\r"

void known_nodes_done(struct known_nodes *k)
{
	free(k->rows);
	*k = (struct known_nodes){0};
}

/* What an endpoint is made of: a name, an address in brackets, a port. */
static bool is_node(const char *s, size_t len)
{
	if (!len || len >= TLS_NODE_MAX)
		return false;
	return !EXISTS(i, len, s[i] <= ' ' || s[i] > '~' || s[i] == '#');
}

static int add(
	struct known_nodes *k, const char *node, size_t len, const struct tls_pin *pin, size_t line)
{
	struct known_node *p;

	if (k->count == KNOWN_NODES_MAX)
		return -E2BIG;
	p = realloc(k->rows, (k->count + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	k->rows = p;
	p += k->count++;
	*p = (struct known_node){.pin = *pin, .line = line};
	memcpy(p->node, node, len);
	return 0;
}

int known_nodes_add(struct known_nodes *k, const char *node, const struct tls_pin *pin)
{
	return is_node(node, strlen(node)) ? add(k, node, strlen(node), pin, 0) : -EINVAL;
}

/* parse_line - 0, also for one that means nothing; -EBADMSG. */
static int parse_line(const char *s, size_t len, size_t number, struct known_nodes *k)
{
	size_t node_len, hex_len;
	struct tls_pin pin;
	const char *hex;

	while (len && strchr(BLANKS, s[len - 1]))
		len--;
	while (len && strchr(BLANKS, *s))
		s++, len--;
	if (!len || *s == '#')
		return 0;
	for (node_len = 0; node_len < len && !strchr(BLANKS, s[node_len]); node_len++)
		;
	for (hex = s + node_len; hex < s + len && strchr(BLANKS, *hex); hex++)
		;
	hex_len = (size_t)(s + len - hex);
	if (!is_node(s, node_len) || tls_pin_parse(hex, hex_len, &pin) < 0)
		return -EBADMSG;
	return add(k, s, node_len, &pin, number);
}

int known_nodes_parse(const char *path, const char *text, size_t len, struct known_nodes *ret,
	struct errinfo *reterr)
{
	_cleanup_(known_nodes_done) struct known_nodes k = {0};
	const char *p = text, *end = text + len;

	for (size_t number = 1; p < end; number++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t line_len = (size_t)((newline ? newline : end) - p);
		int r = memchr(p, 0, line_len) ? -EBADMSG : parse_line(p, line_len, number, &k);

		if (r == -EBADMSG)
			return errinfo_set_exit(reterr, EXIT_CONFIG, r,
				"%s: line %zu: expected a node and the SHA-256 of its certificate: gpu-1:8080 3b1f…",
				path, number);
		if (r < 0)
			return errinfo_set_exit(reterr, EXIT_CONFIG, r,
				r == -E2BIG ? "%s has more than %d lines"
					    : "not enough memory to read %s",
				path, KNOWN_NODES_MAX);
		p = newline ? newline + 1 : end;
	}
	*ret = k;
	k = (struct known_nodes){0};
	return 0;
}

static int check_rights(const char *path, struct errinfo *reterr)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if ((st.st_mode & 022) ||
		(st.st_uid != geteuid() && st.st_uid != path_user_now() && st.st_uid != 0))
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"other users can change %s, which says whom to trust: run `chmod 600 %s` as its owner",
			path, path);
	return 0;
}

static int read_text(const char *path, struct buf *b, struct errinfo *reterr)
{
	int r = check_rights(path, reterr);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = file_read(path, KNOWN_NODES_BYTES_MAX, b);
	return r < 0 && r != -ENOENT ? errinfo_set_exit(reterr, EXIT_CONFIG, r,
					       "cannot read %s: %s", path, strerror(-r))
				     : 0;
}

int known_nodes_load(const char *path, struct known_nodes *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(KNOWN_NODES_BYTES_MAX);
	int r = read_text(path, &b, reterr);

	return r < 0 ? r : known_nodes_parse(path, buf_str(&b), b.len, ret, reterr);
}

enum known_verdict known_nodes_judge(const struct known_nodes *k, const char *node,
	const struct tls_pin *shown, size_t *ret_line)
{
	enum known_verdict verdict = KNOWN_STRANGER;

	for (size_t i = 0; i < k->count; i++) {
		if (strcasecmp(k->rows[i].node, node) != 0)
			continue;
		if (tls_pin_equal(&k->rows[i].pin, shown))
			return KNOWN_MATCH;
		if (verdict == KNOWN_STRANGER)
			*ret_line = k->rows[i].line;
		verdict = KNOWN_CHANGED;
	}
	return verdict;
}

/* add_line - to what the file holds by now. */
static int add_line(
	const char *path, const char *node, const struct tls_pin *pin, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(KNOWN_NODES_BYTES_MAX);
	_cleanup_(known_nodes_done) struct known_nodes k = {0};
	char hex[2 * TLS_PIN_BYTES + 1];
	size_t line;
	int r = read_text(path, &b, reterr);

	r = r ?: known_nodes_parse(path, buf_str(&b), b.len, &k, reterr);
	if (r < 0 || known_nodes_judge(&k, node, pin, &line) == KNOWN_MATCH)
		return r;
	if (b.len && b.data[b.len - 1] != '\n')
		buf_putc(&b, '\n');
	tls_pin_text(pin, hex);
	buf_printf(&b, "%s %s\n", node, hex);
	r = b.err ? b.err : file_write_atomic(path, b.data, b.len, 0600);
	if (r < 0)
		return errinfo_set_exit(
			reterr, EXIT_NO_CREATE, r, "cannot write %s: %s", path, strerror(-r));
	return 0;
}

int known_nodes_remember(
	const char *path, const char *node, const struct tls_pin *pin, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_fd_ int lock = -1;
	char folder[PATH_MAX];
	int r;

	if (!is_node(node, strlen(node)))
		return errinfo_set(reterr, -EINVAL, "this node cannot be remembered");
	r = path_user_enter(path, &before, reterr);
	if (r < 0)
		return r;
	snprintf(folder, sizeof(folder), "%s", path);
	dirname(folder);
	mkdir(folder, 0700);
	lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
			"cannot use the folder %s: %s", folder, strerror(errno));
	return add_line(path, node, pin, reterr);
}
