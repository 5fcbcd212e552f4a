/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_stdio.c - see mcp_stdio.h. A line longer than a message may be is answered as such and thrown
 * away up to its end, so that the next one is read as if nothing had happened. */
#include "serve/mcp/mcp_stdio.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

#define CHUNK     65536
#define REPLY_MAX (4u << 20)

struct lines {
	const struct dispatcher *dispatcher;
	struct dispatcher_lines session;
	int in, out;
	struct buf line; /* what has come of the current one, up to one byte too many */
	int err;         /* of writing */
};

static void write_all(struct lines *l, const char *text, size_t len)
{
	while (len && l->err == 0) {
		ssize_t n = write(l->out, text, len);

		if (n < 0 && errno != EINTR)
			l->err = -errno;
		text += MAX(n, (ssize_t)0);
		len -= (size_t)MAX(n, (ssize_t)0);
	}
}

static void note(void *arg, const char *text, size_t len)
{
	write_all(arg, text, len);
	write_all(arg, "\n", 1);
}

static void answer(struct lines *l)
{
	_cleanup_buf_ struct buf reply = BUF_INIT(REPLY_MAX);
	size_t len = l->line.len;

	if (len && l->line.data[len - 1] == '\r')
		len--;
	if (len)
		dispatcher_line(l->dispatcher, &l->session, l->line.data, len, &reply);
	write_all(l, buf_str(&reply), reply.len);
	buf_clear(&l->line);
}

/* Bytes beyond the ceiling are dropped; that there were some is seen by one that is kept. */
static void take(struct lines *l, const char *data, size_t len)
{
	size_t room = RPC_BYTES_MAX + 1 - MIN(l->line.len, (size_t)RPC_BYTES_MAX + 1);

	buf_append(&l->line, data, MIN(len, room));
}

static void feed(struct lines *l, const char *data, size_t len)
{
	while (len && l->err == 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		take(l, data, n);
		if (end)
			answer(l);
		n += end != NULL;
		data += n;
		len -= n;
	}
}

int mcp_stdio_run(const struct dispatcher *t, int in, int out, struct errinfo *reterr)
{
	struct lines l = {
		.dispatcher = t, .in = in, .out = out, .line = BUF_INIT(RPC_BYTES_MAX + 64)};
	_cleanup_free_ char *chunk = malloc(CHUNK);
	ssize_t n = 0;

	if (!chunk)
		return -ENOMEM;
	l.session.notify = note;
	l.session.notify_arg = &l;
	while (l.err == 0) {
		n = read(in, chunk, CHUNK);
		if (n > 0)
			feed(&l, chunk, (size_t)n);
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (n == 0 && l.line.len && l.err == 0)
		answer(&l);
	buf_done(&l.line);
	if (n < 0)
		return errinfo_set(reterr, -EIO, "reading messages failed: %s", strerror(errno));
	if (l.err < 0 && l.err != -EPIPE)
		return errinfo_set(reterr, -EIO, "writing a reply failed: %s", strerror(-l.err));
	return 0;
}
