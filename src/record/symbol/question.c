/* SPDX-License-Identifier: Apache-2.0 */
/* question.c - lists of questions. A list owns what is in it. */
#include "record/symbol/question.h"

#include <stdlib.h>

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
	if (!l->tail)
		l->tail = q;
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
