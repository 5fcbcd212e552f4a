/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - what goes to the symbol process and what comes back, and who gets which answer.
 *
 * Invariants:
 *  1. A question is in exactly one place: in a queue, or sent. It leaves for its answer only.
 *  2. The child answers in order, so when it ends, sent[0] is what it was at: that file is blamed,
 *     the others go back to their queues untouched.
 *  3. Questions about unwinding have places of their own among those sent, and go first: without a
 *     table a stack ends early for good, without a name it only waits. A process brings hundreds of
 *     files, so one at a time would take a poll each.
 *  4. The sink is called with the question already out of all lists, so it may ask, open and close.
 *     A file is freed only when no question knows it.
 *  5. Time that passes between two polls (the agent was stopped) is not held against the child. */
#include "record/symbol/exchange.h"

#define EXCHANGE_UNWINDS_MAX 8 /* of these */

/* Lists of questions. A list owns what is in it. */

struct question *question_new(struct question_file *file, enum protocol_kind kind, uint64_t ticket,
	size_t count, size_t body_bytes)
{
	struct question *q = calloc(1, sizeof(*q) + body_bytes);

	if (!q)
		return NULL;
	q->file = file;
	q->kind = kind;
	q->ticket = ticket;
	q->count = (uint32_t)count;
	q->body_bytes = body_bytes;
	return q;
}

void question_append(struct question_list *l, struct question *q)
{
	q->next = NULL;
	if (l->tail)
		l->tail->next = q;
	else
		l->head = q;
	l->tail = q;
	l->count++;
}

void question_put_back(struct question_list *l, struct question *q)
{
	q->next = l->head;
	l->head = q;
	l->tail = l->tail ?: q;
	l->count++;
}

struct question *question_take(struct question_list *l)
{
	struct question *q = l->head;

	if (!q)
		return NULL;
	l->head = q->next;
	if (!l->head)
		l->tail = NULL;
	l->count--;
	q->next = NULL;
	return q;
}

void question_free_all(struct question_list *l)
{
	struct question *q;

	while ((q = question_take(l)))
		free(q);
}

#define MESSAGES_A_POLL 64 /* the socket holds no more */
#define POLL_GAP_NS     NS_PER_S
#define DEATHS_MAX      2

size_t exchange_waiting(const struct symbol_service *s)
{
	return s->quick.count + s->unwind.count + s->sent_count;
}

struct question_list *exchange_queue(struct symbol_service *s, const struct question *q)
{
	return q->kind == PROTOCOL_UNWIND ? &s->unwind : &s->quick;
}

/* ---- answers to the sink ---- */

/* Ends a question that is in no list any more. */
static void question_done(struct question *q)
{
	q->file->waiting--;
	free(q);
}

static void deliver_frames(struct symbol_service *s, const struct question *q, int err)
{
	if (s->sink.frames)
		s->sink.frames(s->sink.arg, q->file->number, q->ticket, err, s->frames, q->count);
}

static void deliver_error(struct symbol_service *s, struct question *q, int err, const char *text)
{
	struct symbol_identity identity = {.err = err};
	struct symbol_unwind unwind = {.err = err};
	const struct symbol_handles handles = {.err = err};
	static const struct symbol_place places[SYMBOL_NAMES_MAX];

	snprintf(identity.text, sizeof(identity.text), "%s", text);
	snprintf(unwind.text, sizeof(unwind.text), "%s", text);
	switch (q->kind) {
	case PROTOCOL_IDENTITY:
		if (s->sink.identity)
			s->sink.identity(s->sink.arg, q->file->number, &identity);
		break;
	case PROTOCOL_UNWIND:
		if (s->sink.unwind)
			s->sink.unwind(s->sink.arg, q->file->number, &unwind);
		break;
	case PROTOCOL_HANDLES:
		if (s->sink.handles)
			s->sink.handles(s->sink.arg, q->file->number, &handles);
		break;
	case PROTOCOL_FRAMES:
		for (size_t i = 0; i < q->count; i++)
			s->frames[i].count = 0;
		deliver_frames(s, q, err);
		break;
	default:
		if (s->sink.places)
			s->sink.places(
				s->sink.arg, q->file->number, q->ticket, err, places, q->count);
	}
	question_done(q);
}

static struct question *take_sent(struct symbol_service *s, uint64_t now)
{
	struct question *q = s->sent[0];

	s->sent_count--;
	memmove(s->sent, s->sent + 1, s->sent_count * sizeof(s->sent[0]));
	s->head_since_ns = now;
	reader_has_answered(&s->reader);
	return q;
}

static int deliver_identity(struct symbol_service *s, const struct reply *r, struct errinfo *e)
{
	struct symbol_identity identity;
	uint32_t file = s->sent[0]->file->number;
	int err = reply_identity(r, &identity, e);

	if (err < 0)
		return err;
	question_done(take_sent(s, mono_now().ns));
	if (s->sink.identity)
		s->sink.identity(s->sink.arg, file, &identity);
	return 0;
}

static int deliver_unwind(
	struct symbol_service *s, const struct reply *r, int fd, struct errinfo *e)
{
	_cleanup_(reply_table_done) struct reply_table table = {0};
	struct symbol_unwind unwind = {0};
	uint32_t file = s->sent[0]->file->number;
	int err = reply_unwind(r, fd, &unwind, &table, e);

	if (err == -EBADMSG)
		return err;
	if (err < 0) { /* the agent's own want of memory */
		unwind.err = err;
		snprintf(unwind.text, sizeof(unwind.text), "%s", strerror(-err));
	}
	question_done(take_sent(s, mono_now().ns));
	if (s->sink.unwind)
		s->sink.unwind(s->sink.arg, file, &unwind);
	return 0;
}

static int deliver_handles(struct symbol_service *s, const struct reply *r, struct errinfo *e)
{
	struct symbol_handles handles;
	uint32_t file = s->sent[0]->file->number;
	int err = reply_handles(r, &handles, e);

	if (err < 0)
		return err;
	question_done(take_sent(s, mono_now().ns));
	if (s->sink.handles)
		s->sink.handles(s->sink.arg, file, &handles);
	return 0;
}

static int deliver_listed(struct symbol_service *s, const struct reply *r, struct errinfo *e)
{
	struct symbol_place places[SYMBOL_NAMES_MAX];
	struct question *q = s->sent[0];
	int child_err = 0;
	int err = q->kind == PROTOCOL_FRAMES ? reply_frames(r, s->frames, q->count, &child_err, e)
					     : reply_places(r, places, q->count, &child_err, e);

	if (err < 0)
		return err;
	take_sent(s, mono_now().ns);
	if (q->kind == PROTOCOL_FRAMES)
		deliver_frames(s, q, child_err);
	else if (s->sink.places)
		s->sink.places(
			s->sink.arg, q->file->number, q->ticket, child_err, places, q->count);
	question_done(q);
	return 0;
}

/* ---- what the child says ---- */

/* Whether it belongs to sent[0]; its body is then kept. */
static bool keep_part(struct symbol_service *s, const struct reader_message *m)
{
	const struct question *q = s->sent_count ? s->sent[0] : NULL;

	if (!q || m->header.kind != q->kind || m->header.number != q->number ||
		m->header.file != q->file->number)
		return false;
	if (m->fd >= 0 && (q->kind != PROTOCOL_UNWIND || !m->header.last))
		return false;
	buf_append(&s->answer, m->body, m->body_bytes);
	return s->answer.err != -ENOBUFS;
}

static void take_message(struct symbol_service *s, const struct reader_message *m)
{
	struct errinfo e = {0};
	struct reply r;
	int err;

	if (!s->reader.ready) {
		reader_take_first(&s->reader, m);
		return;
	}
	if (!keep_part(s, m)) {
		reader_condemn(&s->reader, "unexpected answer");
		return;
	}
	if (!m->header.last)
		return;
	if (s->answer.err) {
		deliver_error(s, take_sent(s, mono_now().ns), s->answer.err, "no memory");
		buf_clear(&s->answer);
		return;
	}
	r = (struct reply){(uint8_t *)s->answer.data, s->answer.len};
	switch (s->sent[0]->kind) {
	case PROTOCOL_IDENTITY: err = deliver_identity(s, &r, &e); break;
	case PROTOCOL_UNWIND: err = deliver_unwind(s, &r, m->fd, &e); break;
	case PROTOCOL_HANDLES: err = deliver_handles(s, &r, &e); break;
	default: err = deliver_listed(s, &r, &e);
	}
	buf_clear(&s->answer);
	if (err < 0)
		reader_condemn(&s->reader, e.text);
}

/* ---- questions to the child ---- */

static int send_question(struct symbol_service *s, const struct question *q)
{
	const struct question_file *f = q->file;
	const struct protocol_header h = {
		.magic = PROTOCOL_MAGIC,
		.kind = (uint8_t)q->kind,
		.source = (uint8_t)f->source,
		.number = q->number,
		.file = f->number,
		.count = q->count,
	};
	const int fds[PROTOCOL_FILES_MAX] = {f->fd, f->debug_fd};

	return reader_send(&s->reader, &h, q->body, q->body_bytes, fds, f->debug_fd >= 0 ? 2 : 1);
}

static size_t unwinds_sent(const struct symbol_service *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->sent_count; i++)
		n += s->sent[i]->kind == PROTOCOL_UNWIND;
	return n;
}

/* The queue whose turn it is; NULL: none may send. */
static struct question_list *next_queue(struct symbol_service *s)
{
	size_t unwinds = unwinds_sent(s);

	if (s->unwind.count && unwinds < EXCHANGE_UNWINDS_MAX)
		return &s->unwind;
	if (s->quick.count && s->sent_count - unwinds < EXCHANGE_SENT_MAX - EXCHANGE_UNWINDS_MAX)
		return &s->quick;
	return NULL;
}

/* Why it is answered without asking; 0: it is to be asked. */
static int refusal(const struct question_file *f, const char **ret_text)
{
	*ret_text =
		f->closed ? "the file was closed" : "two symbol processes died reading this file";
	return f->closed ? -ECANCELED : f->given_up ? -EIO : 0;
}

static void send_questions(struct symbol_service *s, uint64_t now)
{
	size_t turns = exchange_waiting(s); /* what answers ask anew waits for the next poll */
	struct question_list *queue;

	while (turns-- && (queue = next_queue(s))) {
		struct question_file *f = queue->head->file;
		const char *text;
		int r = refusal(f, &text);

		if (r == 0) {
			r = send_question(s, queue->head);
			text = strerror(-r);
		}
		if (r == -EAGAIN)
			return;
		if (r < 0) {
			deliver_error(s, question_take(queue), r, text);
			continue;
		}
		if (!s->sent_count)
			s->head_since_ns = now;
		f->known_to = s->reader.births;
		s->sent[s->sent_count++] = question_take(queue);
	}
}

static void answer_all(struct symbol_service *s, int err, const char *text)
{
	struct question *q;

	for (size_t n = s->quick.count; n && (q = question_take(&s->quick)); n--)
		deliver_error(s, q, err, text);
	for (size_t n = s->unwind.count; n && (q = question_take(&s->unwind)); n--)
		deliver_error(s, q, err, text);
}

/* ---- the child's end ---- */

static void child_gone(struct symbol_service *s, uint64_t now)
{
	reader_bury(&s->reader, s->sent_count > 0, now);
	buf_clear(&s->answer);
	if (s->sent_count)
		if (++s->sent[0]->file->deaths == DEATHS_MAX) {
			s->sent[0]->file->given_up = true;
			s->given_up++;
		}
	while (s->sent_count) {
		struct question *q = s->sent[--s->sent_count];

		question_put_back(exchange_queue(s, q), q);
	}
}

static void watch_clock(struct symbol_service *s, uint64_t now)
{
	struct reader *r = &s->reader;
	uint64_t since = r->ready ? s->head_since_ns : r->started_ns;

	if ((r->ready && !s->sent_count) || now < since || now - since < s->settings.patience_ns)
		return;
	reader_condemn(r, FORMATTED(64, "it did not answer within %llu ms",
				  (unsigned long long)(s->settings.patience_ns / NS_PER_MS)));
}

/* ---- files that were closed ---- */

void exchange_file_free(struct symbol_service *s, struct question_file *f)
{
	fd_closep(&f->fd);
	fd_closep(&f->debug_fd);
	s->given_up -= f->given_up;
	s->file_count--;
	free(f);
}

/* False: it has to be told, and not now. */
static bool child_forgets(struct symbol_service *s, const struct question_file *f)
{
	const struct protocol_header h = {
		.magic = PROTOCOL_MAGIC, .kind = PROTOCOL_FORGET, .file = f->number};

	return !s->reader.ready || s->reader.condemned || f->known_to != s->reader.births ||
	       reader_send(&s->reader, &h, NULL, 0, NULL, 0) != -EAGAIN;
}

/* ---- all of it ---- */

static void pardon_gap(struct symbol_service *s, uint64_t now)
{
	uint64_t gap = now - s->polled_ns;

	if (gap > POLL_GAP_NS) {
		s->head_since_ns += gap;
		s->reader.started_ns += gap;
	}
	s->polled_ns = now;
}

void exchange_poll(struct symbol_service *s)
{
	uint64_t now = mono_now().ns;
	bool ended;
	struct question_file **link;

	pardon_gap(s, now);
	/* First whether it has ended, then what it said: nothing it sent is overlooked. */
	ended = reader_has_ended(&s->reader);
	for (int i = 0; i < MESSAGES_A_POLL && reader_receive(&s->reader, &s->message); i++) {
		take_message(s, &s->message);
		fd_closep(&s->message.fd);
	}
	if (ended)
		child_gone(s, now);
	else if (s->reader.pid)
		watch_clock(s, now);
	reader_start_when_due(&s->reader, now);
	if (s->reader.ready && !s->reader.condemned)
		send_questions(s, now);
	else if (reader_is_hopeless(&s->reader))
		answer_all(s, -ECHILD, s->reader.last_end);
	link = &s->closed;
	while (*link) {
		struct question_file *f = *link;

		if (f->waiting || !child_forgets(s, f)) {
			link = &f->next;
			continue;
		}
		*link = f->next;
		exchange_file_free(s, f);
	}
}
