/* SPDX-License-Identifier: Apache-2.0 */
/* audit_verify.c - reads an audit file line by line and follows its chain. See audit.h. A line of any length
 * costs no more memory than LINE_MAX_BYTES. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/path_user.h"
#include "cluster/tenant/audit_private.h"
#include "json/reader.h"

struct chain {
	const char *path, *noted;
	struct audit_span *span;
	uint64_t lines;
	struct errinfo *reterr;
};

struct link { /* what a line says of its place */
	int64_t seq;
	char prev[DIGEST_HEX];
};

static int fail_at(const struct chain *c, const char *what)
{
	return errinfo_set_exit(c->reterr, EXIT_BAD_DATA, -EBADMSG,
		"%s: line %llu %s: keep the file as evidence and look at who could write to it",
		c->path, (unsigned long long)c->lines, what);
}

static bool read_members(struct json_reader *r, struct link *ret)
{
	enum json_read token;

	while ((token = json_read(r)) == JSON_READ_KEY) {
		bool is_seq = json_read_is(r, "seq"), is_prev = json_read_is(r, "prev");

		token = json_read(r);
		if (is_seq && token == JSON_READ_INT)
			ret->seq = r->i;
		else if (is_prev && token == JSON_READ_STRING)
			snprintf(ret->prev, sizeof(ret->prev), "%s", buf_str(&r->text));
		else if (!json_skip(r, token))
			return false;
	}
	return token == JSON_READ_OBJECT_END && json_read(r) == JSON_READ_END;
}

/* read_link - -EBADMSG: it is no line of ours. */
static int read_link(const char *line, size_t len, struct link *ret)
{
	struct json_reader r;
	bool ok;
	int err;

	json_reader_init(&r, line, len, LINE_MAX_BYTES);
	ok = json_read(&r) == JSON_READ_OBJECT && read_members(&r, ret) && ret->seq > 0 &&
	     strlen(ret->prev) == DIGEST_HEX - 1;
	err = r.err == -ENOMEM ? r.err : ok ? 0 : -EBADMSG;
	json_reader_done(&r);
	return err;
}

static int take_line(struct chain *c, const char *line, size_t len)
{
	struct audit_span *s = c->span;
	struct link l = {0};
	int r = read_link(line, len, &l);

	c->lines++;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return fail_at(c, "is not a line of an audit file");
	if (!s->first) {
		s->first = (uint64_t)l.seq;
		memcpy(s->before, l.prev, sizeof(s->before));
		if (l.seq == 1 && strcmp(l.prev, AUDIT_ZEROS) != 0)
			return fail_at(c, "is not the first that was written");
	} else if ((uint64_t)l.seq != s->last + 1) {
		return fail_at(c, "does not have the number after that of the line before it");
	} else if (strcmp(l.prev, s->head) != 0) {
		return fail_at(
			c, "does not follow from the line before it, one of them was changed");
	}
	s->last = (uint64_t)l.seq;
	s->bytes += len + 1;
	r = digest_sha256(line, len, s->head);
	s->has_noted |= c->noted && !strcmp(c->noted, s->head);
	return r;
}

static int read_lines(struct chain *c, FILE *f)
{
	_cleanup_free_ char *line = malloc(LINE_MAX_BYTES);
	size_t len = 0;
	int r = 0, byte;

	if (!line)
		return -ENOMEM;
	while (r == 0 && (byte = getc_unlocked(f)) != EOF) {
		if (byte == '\n') {
			r = take_line(c, line, len);
			len = 0;
		} else if (len == LINE_MAX_BYTES) {
			c->lines++;
			return fail_at(c, "is longer than a line can be");
		} else {
			line[len++] = (char)byte;
		}
	}
	c->span->is_torn = len;
	return r < 0 ? r : ferror(f) ? -EIO : 0;
}

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

int audit_verify(
	const char *path, const char *noted, struct audit_span *ret, struct errinfo *reterr)
{
	struct audit_span span = {.before = AUDIT_ZEROS, .head = AUDIT_ZEROS};
	struct chain c = {.path = path, .noted = noted, .span = &span, .reterr = reterr};
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(file_closep) FILE *f = NULL;
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	f = fopen(path, "re");
	if (!f)
		return errinfo_set_exit(reterr, errno == ENOENT ? EXIT_NO_INPUT : 0, -errno,
			"cannot read the audit file %s: %s", path, strerror(errno));
	r = read_lines(&c, f);
	if (r == -EIO)
		return errinfo_set(reterr, r, "cannot read the audit file %s to its end", path);
	if (r < 0)
		return r;
	*ret = span;
	return 0;
}
