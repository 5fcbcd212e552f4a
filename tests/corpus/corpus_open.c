/* SPDX-License-Identifier: Apache-2.0 */
/* corpus_open.c - the recording and the accounts that a corpus file holds (corpus.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/contrasts/contrast.h"
#include "base/array.h"
#include "base/macros.h"
#include "base/search.h"
#include "corpus.h"

#define ROWS(c, NAME)  ((c)->tables[CORPUS_##NAME].rows)
#define COUNT(c, NAME) ((c)->tables[CORPUS_##NAME].count)

static int open_stacks(struct corpus *c)
{
	const struct corpus_stack *from = ROWS(c, STACK);
	const struct stack_frame *frames = ROWS(c, FRAME);
	size_t n = COUNT(c, STACK), at = 0;

	c->stacks = calloc(n + 1, sizeof(*c->stacks));
	c->stack_items = calloc(n + 1, sizeof(*c->stack_items));
	if (!c->stacks || !c->stack_items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (from[i].frames > COUNT(c, FRAME) - at)
			return -EBADMSG;
		c->stacks[i] = (struct stack){.hash = from[i].hash,
			.frames = frames + at,
			.count = from[i].frames,
			.stop = from[i].stop ? from[i].stop : ""};
		c->stack_items[i] = &c->stacks[i];
		at += from[i].frames;
	}
	c->stack_list = (struct stack_list){c->stack_items, n};
	return 0;
}

static int open_buckets(struct corpus *c)
{
	const struct corpus_bucket *from = ROWS(c, BUCKET);
	struct aggregate *to = ROWS(c, AGGREGATE);

	for (size_t i = 0; i < COUNT(c, BUCKET); i++) {
		if (from[i].row >= COUNT(c, AGGREGATE) || from[i].bucket >= BUCKET_COUNT)
			return -EBADMSG;
		to[from[i].row].sketch.hist[from[i].bucket] = from[i].count;
	}
	return 0;
}

static void open_books(struct corpus *c)
{
	const struct corpus_book *b = ROWS(c, BOOK);
	const struct corpus_source *s = ROWS(c, SOURCE);

	if (!COUNT(c, BOOK))
		return;
	c->rec.node = b->node ? b->node : "";
	if (!b->has_books)
		return;
	c->books.unclean = b->unclean;
	c->books.unclean_ns = b->unclean_ns;
	c->books.launch_watched = b->launch_watched;
	c->books.launch_error = b->launch_error;
	snprintf(c->books.missing, sizeof(c->books.missing), "%s", b->missing ? b->missing : "");
	for (size_t i = 0; i < COUNT(c, SOURCE); i++)
		if (s[i].source < WIRE_SOURCE_MAX)
			c->books.source[s[i].source] = (struct account){.hits = s[i].hits,
				.stored = s[i].stored,
				.aggregated = s[i].aggregated,
				.lost = {s[i].lost}};
	c->rec.books = &c->books;
}

struct cursor { /* what of the tables the accounts before have had */
	size_t units, keys, parts;
};

static uint32_t at_most_32(uint64_t ns)
{
	return (uint32_t)MIN(ns, (uint64_t)UINT32_MAX);
}

static int open_parts(
	const struct corpus *c, struct cursor *at, uint64_t quantum_ns, struct process_account *a)
{
	const struct corpus_part *parts = (const struct corpus_part *)ROWS(c, PART) + at->parts;

	if (a->part_count > COUNT(c, PART) - at->parts)
		return -EBADMSG;
	a->parts = calloc(a->part_count + 1, sizeof(*a->parts));
	if (!a->parts)
		return -ENOMEM;
	for (size_t i = 0; i < a->part_count; i++) {
		if (parts[i].key >= a->key_count)
			return -EBADMSG;
		a->parts[i] = (struct account_part){.key = parts[i].key,
			.stack_ns = at_most_32(parts[i].stack * quantum_ns),
			.wait_ns = at_most_32(parts[i].wait * quantum_ns),
			.ns = parts[i].length * quantum_ns};
	}
	at->parts += a->part_count;
	return 0;
}

static int open_units(const struct corpus *c, const struct corpus_account *from, struct cursor *at,
	struct process_account *a)
{
	const struct corpus_unit *units = (const struct corpus_unit *)ROWS(c, UNIT) + at->units;
	uint64_t quantum_ns = from->quantum_ns;
	int64_t now = from->start_ns;

	for (size_t i = 0; i < a->unit_count; i++) {
		struct step_span *s = &a->units[i];

		now += (int64_t)(units[i].gap * quantum_ns);
		*s = (struct step_span){.start_ns = now,
			.end_ns = now + (int64_t)(units[i].length * quantum_ns),
			.launches = units[i].launches,
			.copy_bytes = units[i].copy_bytes,
			.waits = units[i].waits,
			.launches_off = units[i].launches_off,
			.probed_ns = units[i].probed * quantum_ns,
			.open_ns = units[i].open * quantum_ns,
			.backwards = units[i].backwards,
			.executes = units[i].executes,
			.loads = units[i].loads};
		now = s->end_ns;
		a->part_count += units[i].parts;
		a->part_end[i] = a->part_count;
	}
	return open_parts(c, at, quantum_ns, a);
}

/* Of a file from before it was kept: by the name of the C library's function. */
static bool sleeps_by_clock(const struct corpus *c, const struct tally_part *key)
{
	static const char *const names[] = {"nanosleep", "timedwait", "clockwait", "abstimed"};
	const struct stack *s = stack_find(c->rec.stacks, key->stack_hash);

	for (size_t i = 0; s && i < s->count && !stack_frame_is_python(&s->frames[i]); i++)
		for (size_t k = 0; s->frames[i].symbol && k < ARRAY_SIZE(names); k++)
			if (strstr(s->frames[i].symbol, names[k]))
				return key->line == ACCOUNT_ASLEEP || key->line == ACCOUNT_NETWORK;
	return false;
}

static int open_account(struct corpus *c, const struct corpus_account *from, struct cursor *at,
	struct process_account *a)
{
	int r;

	if (from->units > COUNT(c, UNIT) - at->units || from->keys > COUNT(c, KEY) - at->keys)
		return -EBADMSG;
	*a = (struct process_account){.pid = from->pid,
		.tid = from->tid,
		.origin = (enum step_origin)from->origin,
		.confidence = from->confidence,
		.is_derived = from->is_derived,
		.units = calloc(from->units + 1, sizeof(*a->units)),
		.unit_count = from->units,
		.part_end = calloc(from->units + 1, sizeof(*a->part_end)),
		.keys = calloc(from->keys + 1, sizeof(*a->keys)),
		.key_count = from->keys};
	memcpy(a->comm, from->comm, COMM_LEN);
	if (!a->units || !a->part_end || !a->keys)
		return -ENOMEM;
	for (size_t i = 0; i < a->key_count; i++) {
		a->keys[i] = ((const struct tally_part *)ROWS(c, KEY))[at->keys + i];
		a->keys[i].by_clock |= sleeps_by_clock(c, &a->keys[i]);
	}
	r = open_units(c, from, at, a);
	at->units += from->units;
	at->keys += from->keys;
	return r;
}

static int open_accounts(struct corpus *c)
{
	const struct corpus_account *from = ROWS(c, ACCOUNT);
	struct account_set *set = &c->accounts.accounts;
	struct cursor at = {0};
	int r = 0;

	set->items = calloc(COUNT(c, ACCOUNT) + 1, sizeof(*set->items));
	if (!set->items)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < COUNT(c, ACCOUNT); i++) {
		r = open_account(c, &from[i], &at, &set->items[i]);
		set->count++;
	}
	return r;
}

/* Of a recording that is cut, processes may not have begun. */
int corpus_contrast(struct corpus *c)
{
	const struct account_set *all = &c->accounts.accounts;
	_cleanup_free_ struct process_account *begun = calloc(all->count + 1, sizeof(*begun));
	struct account_set set = {.items = begun};

	if (!begun)
		return -ENOMEM;
	step_report_done(&c->accounts.report);
	for (size_t i = 0; i < all->count; i++) {
		if (account_read_stacks(&all->items[i], c->rec.stacks) < 0)
			return -ENOMEM;
		if (all->items[i].unit_count)
			begun[set.count++] = all->items[i];
	}
	return contrast_all(&set, &c->accounts.report);
}

int corpus_open(struct corpus *c)
{
	int r;

	c->rec = (struct recording){.events = ROWS(c, EVENT),
		.event_count = COUNT(c, EVENT),
		.aggregates = ROWS(c, AGGREGATE),
		.aggregate_count = COUNT(c, AGGREGATE),
		.samples = ROWS(c, SAMPLE),
		.sample_count = COUNT(c, SAMPLE),
		.gpus = ROWS(c, GPU),
		.gpu_count = COUNT(c, GPU),
		.collectives = ROWS(c, COLLECTIVE),
		.collective_count = COUNT(c, COLLECTIVE),
		.homes = ROWS(c, HOME),
		.home_count = COUNT(c, HOME),
		.labels = ROWS(c, LABEL),
		.label_count = COUNT(c, LABEL),
		.ledger = ROWS(c, LEDGER),
		.ledger_count = COUNT(c, LEDGER),
		.kernels = ROWS(c, KERNEL),
		.kernel_count = COUNT(c, KERNEL),
		.containers = ROWS(c, CONTAINER),
		.container_count = COUNT(c, CONTAINER),
		.stacks = &c->stack_list,
		.accounts = &c->accounts,
		.node = ""};
	r = open_stacks(c);
	if (r == 0)
		r = open_buckets(c);
	if (r == 0)
		r = open_accounts(c);
	if (r < 0)
		return r;
	open_books(c);
	c->accounts.rec = &c->rec;
	return corpus_contrast(c);
}

/* How many of a table's rows, in order of their times, which stand at @offset, are before @until_ns. */
static size_t count_before(
	const struct corpus *c, enum corpus_table_id table, size_t offset, int64_t until_ns)
{
	const struct corpus_list *l = &c->tables[table];
	size_t size = corpus_table(table).row_size;

	return LOWER_BOUND(i, l->count,
		((const wall_time *)((const char *)l->rows + i * size + offset))->ns < until_ns);
}

static void cut_account(
	const struct corpus_account *whole, int64_t until_ns, struct process_account *a)
{
	size_t n = 0;

	while (n < whole->units && a->units[n].end_ns <= until_ns)
		n++;
	a->unit_count = n;
	a->part_count = n ? a->part_end[n - 1] : 0;
}

int corpus_cut(struct corpus *c, int64_t until_ns)
{
	const struct corpus_account *whole = ROWS(c, ACCOUNT);
	struct account_set *set = &c->accounts.accounts;

	c->rec.event_count = count_before(c, CORPUS_EVENT, offsetof(struct event, start), until_ns);
	c->rec.ledger_count =
		count_before(c, CORPUS_LEDGER, offsetof(struct ledger_row, start), until_ns);
	c->rec.aggregate_count =
		count_before(c, CORPUS_AGGREGATE, offsetof(struct aggregate, bucket), until_ns);
	c->rec.sample_count =
		count_before(c, CORPUS_SAMPLE, offsetof(struct host_sample, time), until_ns);
	c->rec.gpu_count = count_before(c, CORPUS_GPU, offsetof(struct gpu_sample, time), until_ns);
	c->rec.container_count = count_before(
		c, CORPUS_CONTAINER, offsetof(struct container_sample, time), until_ns);
	c->rec.collective_count = count_before(
		c, CORPUS_COLLECTIVE, offsetof(struct collective_row, start), until_ns);
	for (size_t i = 0; i < set->count; i++)
		cut_account(&whole[i], until_ns, &set->items[i]);
	return corpus_contrast(c);
}

void corpus_done(struct corpus *c)
{
	account_task_done(&c->accounts);
	for (int i = 0; i < CORPUS_COUNT; i++)
		free(c->tables[i].rows);
	for (size_t i = 0; i < c->text_count; i++)
		free(c->texts[i]);
	free(c->texts);
	free(c->stacks);
	free(c->stack_items);
	*c = (struct corpus){0};
}
