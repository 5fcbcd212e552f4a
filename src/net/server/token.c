/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - see token.h. Invariants: at most TOKEN_SET_MAX hashes are held, and every one of them
 * is compared with whatever is shown, so that the time tells nothing. */
#include "net/server/token.h"

#include <ctype.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/secret_file.h"

#define TOKENS_MAX   1024 /* of a file */
#define TOKEN_BYTES  512  /* of one token at most */
#define FILE_MAX     (1u << 20)
#define RANDOM_BYTES 24
#define TEXT_BYTES   (2 * RANDOM_BYTES + 1)
#define FILE_BYTES   256 /* more than that is no file of ours */

struct token_set {
	char *path, *variable;
	struct token_hash hash[TOKEN_SET_MAX];
	size_t count;
};
STATIC_ASSERT(sizeof(((struct token_hash *)NULL)->sha256) == SHA256_DIGEST_LENGTH);

struct token_list { /* what is being read */
	const char *from;
	struct token_set *set; /* NULL: only the first is wanted */
	char *first;
};

static void list_done(struct token_list *l)
{
	if (l->first)
		OPENSSL_cleanse(l->first, strlen(l->first));
	free(l->first);
}

static int check_token(const char *from, const char *s, size_t len, struct errinfo *reterr)
{
	if (len < TOKEN_BYTES_MIN)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"a token in %s has fewer than %d characters: create one with `openssl rand -hex 32`",
			from, TOKEN_BYTES_MIN);
	if (len > TOKEN_BYTES)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"a token in %s has more than %d characters", from, TOKEN_BYTES);
	if (EXISTS(i, len, !isgraph((unsigned char)s[i])))
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"a token in %s contains blanks or characters not allowed in HTTP", from);
	return 0;
}

int token_hash_of(const char *from, const char *text, size_t len, struct token_hash *ret,
	struct errinfo *reterr)
{
	int r = check_token(from, text, len, reterr);

	if (r < 0)
		return r;
	*ret = (struct token_hash){0};
	return SHA256((const unsigned char *)text, len, ret->sha256) ? 0 : -ENOMEM;
}

static int add_token(struct token_list *l, const char *s, size_t len, struct errinfo *reterr)
{
	int r = check_token(l->from, s, len, reterr);

	if (r < 0)
		return r;
	if (!l->set) {
		l->first = l->first ?: strndup(s, len);
		return l->first ? 0 : -ENOMEM;
	}
	if (l->set->count == TOKENS_MAX)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -E2BIG,
			"%s contains more than %d tokens", l->from, TOKENS_MAX);
	return token_hash_of(l->from, s, len, &l->set->hash[l->set->count++], reterr);
}

/* add_lines - one token a line; '#' at the begin of a line or behind a blank begins a comment. */
static int add_lines(struct token_list *l, const char *text, struct errinfo *reterr)
{
	while (*text) {
		size_t line = strcspn(text, "\n"), start = strspn(text, " \t\r"), end;
		int r;

		if (start < line && text[start] != '#') {
			end = start + strcspn(text + start, " \t\r\n");
			start = MIN(start, end);
			if (end + strspn(text + end, " \t\r") < line &&
				text[end + strspn(text + end, " \t\r")] != '#')
				end = line; /* a blank within: refused below */
			r = add_token(l, text + start, end - start, reterr);
			if (r < 0)
				return r;
		}
		text += line;
		text += *text == '\n';
	}
	return 0;
}

static int read_tokens(
	struct token_list *l, const char *path, const char *variable, struct errinfo *reterr)
{
	const char *value = variable ? getenv(variable) : NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(FILE_MAX);
	int r;

	if (!path) {
		l->from = variable;
		return value && *value ? add_lines(l, value, reterr) : 0;
	}
	l->from = path;
	r = secret_file_read(path, "token file", FILE_MAX, &b, reterr);
	if (r < 0)
		return r;
	if (strlen(buf_str(&b)) != b.len)
		return errinfo_set_exit(
			reterr, EXIT_CONFIG, -EINVAL, "%s is not a text file", path);
	r = add_lines(l, buf_str(&b), reterr);
	OPENSSL_cleanse(b.data, b.len);
	return r;
}

static int fail_empty(const char *from, struct errinfo *reterr)
{
	return errinfo_set_exit(reterr, EXIT_CONFIG, -ENODATA,
		"%s contains no token: create one with `openssl rand -hex 32`", from);
}

int token_set_new(
	const char *path, const char *variable, struct token_set **ret, struct errinfo *reterr)
{
	_cleanup_(token_set_freep) struct token_set *t = calloc(1, sizeof(*t));
	struct token_list list = {.set = t};
	int r;

	if (!t)
		return -ENOMEM;
	r = read_tokens(&list, path, variable, reterr);
	if (r < 0)
		return r;
	if (path && !t->count)
		return fail_empty(path, reterr);
	t->path = path ? strdup(path) : NULL;
	t->variable = variable ? strdup(variable) : NULL;
	if ((path && !t->path) || (variable && !t->variable))
		return -ENOMEM;
	*ret = t->count ? TAKE(t) : NULL;
	return 0;
}

int token_set_of(const char *text, struct token_set **ret, struct errinfo *reterr)
{
	_cleanup_(token_set_freep) struct token_set *t = calloc(1, sizeof(*t));
	struct token_list list = {.from = "memory", .set = t};
	int r = t ? add_token(&list, text, strlen(text), reterr) : -ENOMEM;

	if (r == 0)
		*ret = TAKE(t);
	return r;
}

int token_set_of_lines(
	const char *from, const char *text, struct token_set **ret, struct errinfo *reterr)
{
	_cleanup_(token_set_freep) struct token_set *t = calloc(1, sizeof(*t));
	struct token_list list = {.from = from, .set = t};
	int r = t ? add_lines(&list, text, reterr) : -ENOMEM;

	if (r == 0 && !t->count)
		r = fail_empty(from, reterr);
	if (r == 0)
		*ret = TAKE(t);
	return r;
}

const struct token_hash *token_set_hashes(const struct token_set *t, size_t *ret_count)
{
	*ret_count = t->count;
	return t->hash;
}

int token_set_replace(struct token_set *t, const struct token_hash *hashes, size_t count)
{
	if (count > TOKEN_SET_MAX)
		return -E2BIG;
	memcpy(t->hash, hashes, count * sizeof(*hashes));
	t->count = count;
	return 0;
}

int token_set_of_hashes(const struct token_hash *hashes, size_t count, struct token_set **ret)
{
	_cleanup_(token_set_freep) struct token_set *t = calloc(1, sizeof(*t));
	int r = t ? token_set_replace(t, hashes, count) : -ENOMEM;

	if (r == 0)
		*ret = TAKE(t);
	return r;
}

void token_set_free(struct token_set *t)
{
	OPENSSL_cleanse(t->hash, sizeof(t->hash));
	free(t->path);
	free(t->variable);
	free(t);
}

int token_set_reload(struct token_set *t, struct errinfo *reterr)
{
	struct token_set *fresh = NULL;
	int r;

	if (!t->path) /* a process's environment does not change from outside */
		return 0;
	r = token_set_new(t->path, NULL, &fresh, reterr);
	if (r < 0)
		return r;
	memcpy(t->hash, fresh->hash, sizeof(t->hash));
	t->count = fresh->count;
	token_set_free(fresh);
	return 0;
}

static uint64_t first_bytes(const unsigned char hash[SHA256_DIGEST_LENGTH])
{
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(n); i++)
		n = n << 8 | hash[i];
	return n ? n : 1;
}

uint64_t token_hash_number(const struct token_hash *h)
{
	return first_bytes(h->sha256);
}

uint64_t token_number(const char *text, size_t len)
{
	unsigned char hash[SHA256_DIGEST_LENGTH] = {0};

	/* Without memory it is a number that no token has. */
	(void)SHA256((const unsigned char *)text, len, hash);
	return first_bytes(hash);
}

static bool is_over(const struct token_hash *h, uint64_t now_ns, int64_t wall_ns)
{
	return (h->until_ns && now_ns >= h->until_ns) ||
	       (h->expires_ns && wall_ns >= h->expires_ns);
}

uint64_t token_set_find(const struct token_set *t, const char *authorization)
{
	unsigned char shown[SHA256_DIGEST_LENGTH];
	uint64_t now_ns = mono_now().ns;
	int64_t wall_ns = wall_now().ns;
	size_t len;
	int same = 0;

	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return 0;
	authorization += 7;
	authorization += strspn(authorization, " ");
	len = strlen(authorization);
	if (len > TOKEN_BYTES || !SHA256((const unsigned char *)authorization, len, shown))
		return 0;
	for (size_t i = 0; i < t->count; i++)
		same |= (CRYPTO_memcmp(shown, t->hash[i].sha256, sizeof(shown)) == 0) &
			!is_over(&t->hash[i], now_ns, wall_ns);
	return same ? first_bytes(shown) : 0;
}

int token_read(const char *path, const char *variable, char **ret, struct errinfo *reterr)
{
	_cleanup_(list_done) struct token_list list = {0};
	int r = read_tokens(&list, path, variable, reterr);

	if (r < 0)
		return r;
	if (path && !list.first)
		return errinfo_set_exit(
			reterr, EXIT_CONFIG, -ENODATA, "%s contains no token", path);
	*ret = TAKE(list.first);
	return 0;
}

/* ---- a token of the server's own, made once and kept in a file ---- */

int token_make(char **ret)
{
	unsigned char bytes[RANDOM_BYTES];
	char *text = malloc(TEXT_BYTES);

	if (!text)
		return -ENOMEM;
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
		free(text);
		return -EIO;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	*ret = text;
	return 0;
}

static bool is_private(int dir, int fd)
{
	struct stat folder, file;

	return fstat(dir, &folder) == 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
	       !(file.st_mode & 077) && file.st_nlink == 1 &&
	       (file.st_uid == geteuid() || file.st_uid == 0 || file.st_uid == folder.st_uid);
}

static int read_kept(int dir, const char *name, char **ret, struct errinfo *reterr)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char text[FILE_BYTES] = "";
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!is_private(dir, fd))
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"other users can access the file %s: remove it and a new one is created",
			name);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = 0;
	if (n < TOKEN_BYTES_MIN || strlen(text) != (size_t)n)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"the file %s contains no token: remove it and a new one is created", name);
	*ret = strdup(text);
	OPENSSL_cleanse(text, sizeof(text));
	return *ret ? 0 : -ENOMEM;
}

static int write_all(int fd, const char *token, int (*give)(int fd))
{
	char line[TEXT_BYTES + 1];
	int n = snprintf(line, sizeof(line), "%s\n", token);

	if (write(fd, line, (size_t)n) != n)
		return errno ? -errno : -EIO;
	if (fchmod(fd, 0600) < 0 || fsync(fd) < 0)
		return -errno;
	return give ? give(fd) : 0;
}

/* -EEXIST: somebody was faster. */
static int write_new(int dir, const char *name, const char *token, int (*give)(int fd))
{
	_cleanup_fd_ int fd = -1;
	char temporary[64];
	int r;

	snprintf(temporary, sizeof(temporary), ".token.%d", (int)getpid());
	unlinkat(dir, temporary, 0);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, token, give);
	if (r == 0 && linkat(dir, temporary, dir, name, 0) < 0)
		r = -errno;
	unlinkat(dir, temporary, 0);
	return r;
}

int token_keep(int dir, const char *name, int (*give)(int fd), char **ret, struct errinfo *reterr)
{
	_cleanup_free_ char *fresh = NULL;
	int r = read_kept(dir, name, ret, reterr);

	if (r == -ENOENT) {
		r = token_make(&fresh);
		r = r ?: write_new(dir, name, fresh, give);
		if (r == 0)
			*ret = TAKE(fresh);
		else if (r == -EEXIST)
			r = read_kept(dir, name, ret, reterr);
	}
	if (r == -EPERM || r == -EINVAL || r >= 0)
		return r;
	return errinfo_set(reterr, r, "the file %s: %s", name, strerror(-r));
}
