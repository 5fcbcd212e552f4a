/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker_wire.c - see sql_worker_wire.h.
 *
 * Invariant: whatever a worker sends, the table that comes out lies within the ceilings of the
 * question, and every offset in it within its text. */
#include "sql/sql_worker_wire.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"

static int send_piece(int socket, const void *data, size_t len)
{
	struct iovec part = {(void *)data, len};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	do
		n = sendmsg(socket, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int sql_wire_send_bytes(int socket, const void *data, size_t len)
{
	int r = 0;

	for (size_t done = 0; r == 0 && done < len; done += SQL_WIRE_MESSAGE)
		r = send_piece(socket, (const char *)data + done,
			MIN(len - done, (size_t)SQL_WIRE_MESSAGE));
	return r;
}

static size_t cells_bytes(uint64_t rows, uint32_t columns)
{
	return (size_t)rows * columns * sizeof(struct sql_cell);
}

int sql_wire_send(int socket, const struct sql_wire_result *res)
{
	const struct sql_table *t = &res->table;
	struct sql_wire_answer head = res->head;
	const struct {
		const void *data;
		size_t len;
	} parts[] = {{res->err.text, strnlen(res->err.text, sizeof(res->err.text))},
		{res->hint ? buf_str(res->hint) : "", res->hint ? res->hint->len : 0},
		{t->names, (size_t)t->column_count * sizeof(*t->names)},
		{t->cells, cells_bytes(t->row_count, (uint32_t)t->column_count)},
		{buf_str(&t->text), t->text.len}};
	int r;

	head.magic = SQL_WIRE_MAGIC;
	head.exit_code = res->err.exit_code;
	head.sentence_len = (uint32_t)parts[0].len;
	head.hint_len = (uint32_t)parts[1].len;
	head.column_count = (uint32_t)t->column_count;
	head.row_count = t->row_count;
	head.truncated = t->truncated;
	head.text_len = t->text.len;
	r = send_piece(socket, &head, sizeof(head));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		r = sql_wire_send_bytes(socket, parts[i].data, parts[i].len);
	return r;
}

/* ---- the other end ---- */

/* One message of at most @size bytes into @out; its length. */
static ssize_t receive_piece(const struct sql_wire_wait *w, void *out, size_t size)
{
	struct pollfd p[] = {
		{.fd = w->socket, .events = POLLIN}, {.fd = w->gone, .events = POLLIN}};
	uint64_t now = mono_now().ns;
	ssize_t n;

	if (now >= w->until_ns)
		return -ETIMEDOUT;
	/* Rounded up, so that a wait that ended has reached its end. */
	n = poll(p, 2, (int)MIN((w->until_ns - now + NS_PER_MS - 1) / NS_PER_MS, (uint64_t)600000));
	if (n == 0 || (n < 0 && errno == EINTR))
		return -EAGAIN;
	if (n < 0)
		return -errno;
	if (p[1].revents)
		return -ECANCELED;
	n = recv(w->socket, out, size, MSG_TRUNC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -EPROTO;
	return n == 0 || (size_t)n > size ? -EPROTO : n;
}

int sql_wire_receive_bytes(const struct sql_wire_wait *w, void *out, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = receive_piece(w, (char *)out + done, size - done);

		if (n == -EAGAIN)
			continue;
		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return 0;
}

static bool head_fits(const struct sql_wire_answer *h, const struct sql_guard_rules *rules)
{
	size_t room = rules->bytes_max + SQL_WIRE_SLACK;

	return h->magic == SQL_WIRE_MAGIC && h->err <= 0 && h->err > -4096 &&
	       h->sentence_len < sizeof(((struct errinfo *)0)->text) &&
	       h->hint_len <= SQL_WIRE_HINT_MAX && h->column_count <= SQL_WIRE_COLUMNS_MAX &&
	       h->row_count <= rules->rows_max && h->text_len <= room &&
	       cells_bytes(h->row_count, h->column_count) <= room - h->text_len &&
	       (h->err < 0 || (h->column_count && h->text_len));
}

static bool table_fits(const struct sql_table *t)
{
	const char *text = buf_str(&t->text);

	if (EXISTS(i, t->column_count, t->names[i] >= t->text.len))
		return false;
	for (size_t i = 0; i < t->row_count * (size_t)t->column_count; i++) {
		const struct sql_cell *c = &t->cells[i];

		if (c->type > SQL_BLOB)
			return false;
		if (c->type != SQL_TEXT && c->type != SQL_BLOB)
			continue;
		if (c->offset >= t->text.len || c->len >= t->text.len - c->offset ||
			text[c->offset + c->len])
			return false;
	}
	return !t->text.len || !text[t->text.len - 1];
}

static int receive_table(const struct sql_wire_wait *w, const struct sql_wire_answer *h,
	const struct sql_guard_rules *rules, struct sql_table *t)
{
	size_t names = h->column_count * sizeof(*t->names);
	size_t cells = cells_bytes(h->row_count, h->column_count);
	_cleanup_free_ char *text = malloc(h->text_len + 1);
	int r;

	*t = (struct sql_table){.column_count = (int)h->column_count,
		.row_count = h->row_count,
		.capacity = h->row_count * h->column_count,
		.bytes_max = rules->bytes_max,
		.truncated = h->truncated,
		.names = calloc(1, names + 1),
		.cells = malloc(cells + 1),
		.text = BUF_INIT(h->text_len)};
	if (!t->names || !t->cells || !text)
		return -ENOMEM;
	r = sql_wire_receive_bytes(w, t->names, names);
	r = r ?: sql_wire_receive_bytes(w, t->cells, cells);
	r = r ?: sql_wire_receive_bytes(w, text, h->text_len);
	if (r < 0)
		return r;
	buf_append(&t->text, text, h->text_len);
	return t->text.err ? t->text.err : table_fits(t) ? 0 : -EPROTO;
}

int sql_wire_receive(const struct sql_wire_wait *w, const struct sql_guard_rules *rules,
	struct sql_wire_result *res)
{
	char hint[SQL_WIRE_HINT_MAX];
	struct sql_table t = {0};
	struct sql_wire_answer h;
	int r = sql_wire_receive_bytes(w, &h, sizeof(h));

	if (r == 0 && !head_fits(&h, rules))
		r = -EPROTO;
	r = r ?: sql_wire_receive_bytes(w, res->err.text, h.sentence_len);
	r = r ?: sql_wire_receive_bytes(w, hint, h.hint_len);
	r = r ?: receive_table(w, &h, rules, &t);
	if (r < 0) {
		sql_table_done(&t);
		return r;
	}
	res->err.text[h.sentence_len] = 0;
	res->err.exit_code = h.exit_code;
	if (res->hint)
		buf_append(res->hint, hint, strnlen(hint, h.hint_len));
	res->head = h;
	res->table = t;
	return 0;
}

int sql_wire_judge(struct sql_wire_result *res, struct errinfo *reterr)
{
	if (res->head.err == 0)
		return 0;
	sql_table_done(&res->table);
	if (reterr)
		*reterr = res->err;
	return res->head.err;
}
