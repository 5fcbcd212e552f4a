/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - see annotate.h. Input and socket are watched together, so that a writer that is fed line
 * by line through a pipe sees its answers while the pipe is still open. At most WINDOW lines are
 * unanswered at a time, fewer than the tracer takes before it stops reading, so neither side can
 * wait for the other. */

#include <poll.h>
#include <sys/socket.h>

#include "record/annotate/annotate.h"
#include "base/socket_path.h"

#define WINDOW    128
#define ANSWER_MS 10000

struct client {
	int fd, input_fd;
	struct annotate_result *result;
	char in[2 * ANNOTATION_LINE_MAX]; /* of the input */
	size_t in_len;
	char answer[4096]; /* of the socket */
	size_t answer_len;
	bool at_end, too_long;
	uint64_t line;                  /* of the input, being looked at */
	uint64_t waiting_lines[WINDOW]; /* numbers of the lines not answered yet */
	size_t head, waiting;
	struct annotation scratch;
};

int annotate_client_connect(const char *path, int *ret_fd, struct errinfo *reterr)
{
	int r = socket_path_connect(path, 0, ret_fd, reterr);

	if (r == 0 || r == -ENAMETOOLONG)
		return r;
	if (r == -EACCES || r == -EPERM)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EACCES,
			"no permission for %s: run as the user of `ingero trace`, or give your group access with `ingero trace --annotate-socket-gid`",
			path);
	if (r == -EAGAIN)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EAGAIN,
			"the tracer at %s is busy: try again", path);
	return errinfo_set_exit(reterr, EXIT_NO_FEATURE, r,
		"no tracer is listening at %s (%s): start one with `ingero trace --annotate`", path,
		strerror(-r));
}

static void note_refused(struct client *c, uint64_t line, const struct errinfo *e)
{
	struct annotate_result *r = c->result;

	if (!r->refused++) {
		r->first_line = line;
		r->first_error = *e;
	}
}

static int gone(struct errinfo *reterr)
{
	return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EPIPE,
		"the tracer closed the connection before it acknowledged all lines");
}

static int send_line(struct client *c, const char *line, size_t len, struct errinfo *reterr)
{
	struct errinfo e = {0};

	c->line++;
	if (len && line[len - 1] == '\r')
		len--;
	if (strspn(line, " \t\r\n") >= len)
		return 0; /* a blank line means nothing */
	if (annotate_line_parse(line, len, wall_now(), &c->scratch, &e) < 0) {
		note_refused(c, c->line, &e);
		return 0;
	}
	for (size_t done = 0; done <= len;) {
		const char *from = done < len ? line + done : "\n";
		ssize_t n = send(c->fd, from, done < len ? len - done : 1, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return gone(reterr);
		done += (size_t)n;
	}
	c->waiting_lines[(c->head + c->waiting) % WINDOW] = c->line;
	c->waiting++;
	c->result->sent++;
	return 0;
}

/* Sends the complete lines of the buffer as far as the window allows. */
static int send_lines(struct client *c, struct errinfo *reterr)
{
	size_t begin = 0;
	int r = 0;

	while (r == 0 && c->waiting < WINDOW && begin < c->in_len) {
		char *end = memchr(c->in + begin, '\n', c->in_len - begin);
		size_t len = end ? (size_t)(end - c->in) - begin : c->in_len - begin;

		if (!end && !c->at_end)
			break;
		if (c->too_long)
			c->too_long = false; /* the rest of a line that was refused */
		else
			r = send_line(c, c->in + begin, len, reterr);
		begin += len + (end != NULL);
	}
	memmove(c->in, c->in + begin, c->in_len - begin);
	c->in_len -= begin;
	if (c->in_len == sizeof(c->in) && !memchr(c->in, '\n', c->in_len)) {
		struct errinfo e = {0};

		errinfo_set(
			&e, -EINVAL, "the line is longer than %d bytes", ANNOTATION_LINE_MAX - 1);
		if (!c->too_long)
			note_refused(c, ++c->line, &e);
		c->too_long = true;
		c->in_len = 0;
	}
	return r;
}

static int read_input(struct client *c, struct errinfo *reterr)
{
	ssize_t n = read(c->input_fd, c->in + c->in_len, sizeof(c->in) - c->in_len);

	if (n < 0 && errno != EINTR && errno != EAGAIN)
		return errinfo_set(reterr, -EIO, "cannot read the input: %s", strerror(errno));
	c->at_end |= n == 0;
	if (n > 0)
		c->in_len += (size_t)n;
	return 0;
}

static int take_answer(struct client *c, const char *line, size_t len, struct errinfo *reterr)
{
	uint64_t number = c->waiting ? c->waiting_lines[c->head] : 0;
	struct errinfo e = {0};
	int64_t id;
	int r = annotate_line_parse_answer(line, len, &id, &e);

	if (r == -EREMOTEIO && !c->waiting) /* turned away at the door */
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EAGAIN, "%s", e.text);
	if (r == -EBADMSG || !c->waiting)
		return errinfo_set(reterr, -EBADMSG, "invalid reply from the tracer");
	c->head = (c->head + 1) % WINDOW;
	c->waiting--;
	if (r < 0)
		note_refused(c, number, &e);
	else
		c->result->stored++;
	return 0;
}

static int read_answers(struct client *c, struct errinfo *reterr)
{
	ssize_t n = recv(c->fd, c->answer + c->answer_len, sizeof(c->answer) - c->answer_len, 0);
	char *end;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0)
		return gone(reterr);
	c->answer_len += (size_t)n;
	while ((end = memchr(c->answer, '\n', c->answer_len))) {
		size_t len = (size_t)(end - c->answer);
		int r = take_answer(c, c->answer, len, reterr);

		if (r < 0)
			return r;
		memmove(c->answer, end + 1, c->answer_len - len - 1);
		c->answer_len -= len + 1;
	}
	return c->answer_len < sizeof(c->answer)
		       ? 0
		       : errinfo_set(reterr, -EBADMSG, "invalid reply from the tracer");
}

static int wait_for_either(struct client *c, struct errinfo *reterr)
{
	bool want_input = !c->at_end && c->waiting < WINDOW && c->in_len < sizeof(c->in);
	struct pollfd fds[] = {{c->fd, POLLIN, 0}, {want_input ? c->input_fd : -1, POLLIN, 0}};
	int r = poll(fds, 2, c->waiting ? ANSWER_MS : -1);

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	if (r == 0)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -ETIMEDOUT,
			"the tracer has not acknowledged for %d s", ANSWER_MS / 1000);
	if (fds[0].revents) {
		r = read_answers(c, reterr);
		if (r < 0)
			return r;
	}
	return fds[1].revents ? read_input(c, reterr) : 0;
}

int annotate_client_send(int fd, int input_fd, struct annotate_result *ret, struct errinfo *reterr)
{
	_cleanup_free_ struct client *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -ENOMEM;
	*ret = (struct annotate_result){0};
	c->fd = fd;
	c->input_fd = input_fd;
	c->result = ret;
	while (r == 0 && (!c->at_end || c->in_len || c->waiting)) {
		r = wait_for_either(c, reterr);
		r = r ?: send_lines(c, reterr);
	}
	return r;
}
