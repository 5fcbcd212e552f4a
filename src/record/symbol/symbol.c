/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.c - the service's face: files are opened and questions put in; exchange.c does the rest.
 */
#include "record/symbol/symbol.h"

#include <sys/resource.h>

#include "record/symbol/child.h"
#include "record/symbol/exchange.h"
#include "record/symbol/protocol.h"
#include "base/clock.h"

#define FILES_MAX     2048
#define QUESTIONS_MAX 4096
#define OTHER_FILES   1024 /* descriptors that the rest of the agent needs */

/* ---- files ---- */

static int file_new(
	struct symbol_service *s, enum protocol_source source, struct question_file **ret)
{
	struct question_file *f;
	int r;

	if (s->file_count >= s->settings.files_max || s->last_file == UINT32_MAX)
		return -ENOSPC;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->number = s->last_file + 1;
	f->fd = f->debug_fd = -1;
	f->source = source;
	r = idmap_put(&s->files, f->number, f);
	if (r < 0) {
		free(f);
		return r;
	}
	s->last_file++;
	s->file_count++;
	*ret = f;
	return 0;
}

static int ask(struct symbol_service *s, struct question_file *f, enum protocol_kind kind,
	uint64_t ticket, size_t count, size_t body_bytes, struct question **ret)
{
	struct question *q;

	if (exchange_waiting(s) >= s->settings.questions_max)
		return -ENOBUFS;
	q = question_new(f, kind, ticket, count, body_bytes);
	if (!q)
		return -ENOMEM;
	q->number = ++s->last_number;
	f->waiting++;
	question_append(exchange_queue(s, q), q);
	if (ret)
		*ret = q;
	return 0;
}

int symbol_open(struct symbol_service *s, int fd, int debug_fd, uint32_t *ret_file)
{
	struct question_file *f;
	int r = fd < 0 ? -EBADF : file_new(s, PROTOCOL_ELF, &f);

	if (r < 0)
		return r;
	r = ask(s, f, PROTOCOL_IDENTITY, 0, 0, 0, NULL);
	if (r < 0) {
		idmap_remove(&s->files, f->number);
		exchange_file_free(s, f);
		return r;
	}
	f->fd = fd;
	f->debug_fd = debug_fd;
	*ret_file = f->number;
	return 0;
}

void symbol_add_debug(struct symbol_service *s, uint32_t file, int debug_fd)
{
	struct question_file *f = idmap_get(&s->files, file);

	if (!f || f->debug_fd >= 0)
		close(debug_fd);
	else
		f->debug_fd = debug_fd;
}

int symbol_open_perfmap(struct symbol_service *s, int fd, uint32_t *ret_file)
{
	struct question_file *f;
	int r = fd < 0 ? -EBADF : file_new(s, PROTOCOL_PERFMAP, &f);

	if (r < 0)
		return r;
	f->fd = fd;
	*ret_file = f->number;
	return 0;
}

void symbol_close(struct symbol_service *s, uint32_t file)
{
	struct question_file *f = idmap_remove(&s->files, file);

	if (!f)
		return;
	f->closed = true;
	f->next = s->closed;
	s->closed = f;
}

/* ---- questions ---- */

/* One that asks for all there is in a program or library. */
static int ask_whole(struct symbol_service *s, uint32_t file, enum protocol_kind kind)
{
	struct question_file *f = idmap_get(&s->files, file);

	if (!f)
		return -ENOENT;
	return f->source == PROTOCOL_ELF ? ask(s, f, kind, 0, 0, 0, NULL) : -EINVAL;
}

int symbol_ask_unwind(struct symbol_service *s, uint32_t file)
{
	return ask_whole(s, file, PROTOCOL_UNWIND);
}

int symbol_ask_handles(struct symbol_service *s, uint32_t file)
{
	return ask_whole(s, file, PROTOCOL_HANDLES);
}

int symbol_ask_frames(struct symbol_service *s, uint32_t file, uint64_t ticket,
	const uint64_t *offsets, const bool *is_return, size_t count)
{
	struct question_file *f = idmap_get(&s->files, file);
	struct protocol_offset *body;
	struct question *q;
	int r;

	if (!f)
		return -ENOENT;
	if (!count || count > SYMBOL_OFFSETS_MAX)
		return -EINVAL;
	r = ask(s, f, PROTOCOL_FRAMES, ticket, count, count * sizeof(*body), &q);
	if (r < 0)
		return r;
	body = (struct protocol_offset *)q->body;
	for (size_t i = 0; i < count; i++)
		body[i] = (struct protocol_offset){offsets[i], is_return[i]};
	return 0;
}

int symbol_ask_places(struct symbol_service *s, uint32_t file, uint64_t ticket,
	const char *const *names, size_t count)
{
	struct question_file *f = idmap_get(&s->files, file);
	struct protocol_name *body;
	struct question *q;
	int r;

	if (!f)
		return -ENOENT;
	if (!count || count > SYMBOL_NAMES_MAX)
		return -EINVAL;
	if (EXISTS(i, count, strlen(names[i]) >= PROTOCOL_NAME_MAX))
		return -EINVAL;
	r = ask(s, f, PROTOCOL_PLACES, ticket, count, count * sizeof(*body), &q);
	if (r < 0)
		return r;
	body = (struct protocol_name *)q->body;
	for (size_t i = 0; i < count; i++)
		snprintf(body[i].text, sizeof(body[i].text), "%s", names[i]);
	return 0;
}

/* ---- life ---- */

void symbol_poll(struct symbol_service *s)
{
	if (s->polling)
		return;
	s->polling = true;
	exchange_poll(s);
	s->polling = false;
}

void symbol_health(const struct symbol_service *s, struct symbol_health *ret)
{
	*ret = (struct symbol_health){
		.pid = s->reader.reaped ? 0 : s->reader.pid,
		.deaths = s->reader.deaths,
		.waiting = exchange_waiting(s),
		.given_up = s->given_up,
	};
	memcpy(ret->last_end, s->reader.last_end, sizeof(ret->last_end));
	memcpy(ret->note, s->reader.note, sizeof(ret->note));
}

/* Two descriptors a file; as many files as the limits let it have. */
static size_t files_within_limits(size_t wanted)
{
	rlim_t needed = PROTOCOL_FILES_MAX * wanted + OTHER_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return wanted;
	if (limit.rlim_cur < needed) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= needed)
		return wanted;
	return MAX(limit.rlim_cur / (2 * PROTOCOL_FILES_MAX), (rlim_t)16); /* half of them */
}

int symbol_start_with(const struct symbol_settings *settings, const struct symbol_sink *sink,
	struct symbol_service **ret)
{
	struct symbol_service *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->settings = *settings;
	s->settings.files_max = files_within_limits(settings->files_max);
	s->sink = *sink;
	s->files = IDMAP_INIT(settings->files_max);
	s->answer = BUF_INIT(EXCHANGE_ANSWER_MAX);
	s->polled_ns = mono_now().ns;
	reader_init(&s->reader, settings->child_name, settings->longest_ns);
	symbol_poll(s);
	*ret = s;
	return 0;
}

int symbol_start(const struct symbol_sink *sink, struct symbol_service **ret)
{
	static const struct symbol_settings settings = {
		.child_name = SYMBOL_CHILD_NAME,
		.patience_ns = SYMBOL_PATIENCE_S * NS_PER_S,
		.longest_ns = READER_LONGEST_NS,
		.files_max = FILES_MAX,
		.questions_max = QUESTIONS_MAX,
	};

	return symbol_start_with(&settings, sink, ret);
}

void symbol_stop(struct symbol_service *s)
{
	struct question_file *f;
	size_t cursor = 0;

	reader_done(&s->reader);
	while (s->sent_count)
		free(s->sent[--s->sent_count]);
	question_free_all(&s->quick);
	question_free_all(&s->unwind);
	while ((f = idmap_next(&s->files, &cursor, NULL)))
		exchange_file_free(s, f);
	while ((f = s->closed)) {
		s->closed = f->next;
		exchange_file_free(s, f);
	}
	idmap_done(&s->files);
	buf_done(&s->answer);
	free(s);
}
