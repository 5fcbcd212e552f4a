/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - corpus-reduce RECORDING: the recording as a corpus file (corpus.h) on stdout.
 *
 * Kept are accounts, whole tables of once-a-second readings, homes, labels and books, a selection of events
 * (reduce.h), the kernels launched most and those that came late, and the stacks these refer to. Stacks and
 * places get small numbers: what they are called stands in their frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answer/explain.h"
#include "answer/incidents.h"
#include "base/errinfo.h"
#include "base/macros.h"
#include "reduce.h"

#define STACKS_KEPT      120
#define FRAMES_NATIVE    14 /* innermost; Python's all */
#define FRAMES_KEPT      48
#define KERNELS_KEPT     80
#define KERNELS_LATE     40
#define KERNEL_NAME_KEPT 160
#define COLLECTIVES_KEPT 2000
#define SAMPLES_KEPT     600
#define BUCKETS_KEPT     3 /* of each aggregate's histogram */

struct numbers { /* old values, ascending: the new one is 1 + the index */
	uint64_t *items;
	size_t count, room;
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int numbers_add(struct numbers *n, uint64_t v)
{
	if (!v)
		return 0;
	if (n->count == n->room) {
		uint64_t *more = realloc(n->items, (2 * n->room + 64) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		n->items = more;
		n->room = 2 * n->room + 64;
	}
	n->items[n->count++] = v;
	return 0;
}

static void numbers_settle(struct numbers *n)
{
	size_t kept = 0;

	if (n->count)
		qsort(n->items, n->count, sizeof(*n->items), by_value);
	for (size_t i = 0; i < n->count; i++)
		if (!kept || n->items[kept - 1] != n->items[i])
			n->items[kept++] = n->items[i];
	n->count = kept;
}

static uint64_t number_of(const struct numbers *n, uint64_t v)
{
	const uint64_t *at =
		v && n->count ? bsearch(&v, n->items, n->count, sizeof(v), by_value) : NULL;

	return at ? (uint64_t)(at - n->items) + 1 : 0;
}

/* Those of keys first, which are in order of their time. */
static int choose_stacks(const struct corpus *c, const struct recording *rec, struct numbers *ret)
{
	const struct tally_part *keys = c->tables[CORPUS_KEY].rows;
	const struct event *events = c->tables[CORPUS_EVENT].rows;

	for (size_t i = 0; i < c->tables[CORPUS_KEY].count; i++)
		if ((stack_find(rec->stacks, keys[i].stack_hash) &&
			    numbers_add(ret, keys[i].stack_hash) < 0) ||
			(stack_find(rec->stacks, keys[i].wait_hash) &&
				numbers_add(ret, keys[i].wait_hash) < 0))
			return -ENOMEM;
	numbers_settle(ret);
	for (size_t i = 0; i < c->tables[CORPUS_EVENT].count && ret->count < STACKS_KEPT; i++) {
		if (number_of(ret, events[i].stack_hash) ||
			!stack_find(rec->stacks, events[i].stack_hash))
			continue;
		if (numbers_add(ret, events[i].stack_hash) < 0)
			return -ENOMEM;
		numbers_settle(ret);
	}
	return 0;
}

static int add_frames(const struct stack *s, struct corpus *c, uint32_t *ret)
{
	const char *library = NULL;
	size_t native = 0;

	for (size_t i = 0; i < s->count && *ret < FRAMES_KEPT; i++) {
		const char *file = s->frames[i].file;
		bool is_next = file && (!library || strcmp(file, library) != 0);
		struct stack_frame *f;

		/* Of those farther away one for each library that is passed. */
		if (!stack_frame_is_python(&s->frames[i]) && ++native > FRAMES_NATIVE && !is_next)
			continue;
		library = file ? file : library;
		f = corpus_add(c, CORPUS_FRAME);
		if (!f)
			return -ENOMEM;
		*f = s->frames[i];
		++*ret;
	}
	return 0;
}

static int add_stacks(struct corpus *c, const struct recording *rec, const struct numbers *chosen)
{
	for (size_t i = 0; i < chosen->count; i++) {
		const struct stack *s = stack_find(rec->stacks, chosen->items[i]);
		uint32_t frames = 0;
		struct corpus_stack *row;

		if (add_frames(s, c, &frames) < 0)
			return -ENOMEM;
		row = corpus_add(c, CORPUS_STACK);
		if (!row)
			return -ENOMEM;
		*row = (struct corpus_stack){i + 1, s->stop, frames};
	}
	return 0;
}

static void renumber(struct corpus *c, const struct numbers *stacks, const struct numbers *places)
{
	struct tally_part *keys = c->tables[CORPUS_KEY].rows;
	struct event *events = c->tables[CORPUS_EVENT].rows;

	for (size_t i = 0; i < c->tables[CORPUS_KEY].count; i++) {
		keys[i].stack_hash = number_of(stacks, keys[i].stack_hash);
		keys[i].wait_hash = number_of(stacks, keys[i].wait_hash);
		keys[i].place = number_of(places, keys[i].place);
	}
	for (size_t i = 0; i < c->tables[CORPUS_EVENT].count; i++)
		events[i].stack_hash = number_of(stacks, events[i].stack_hash);
}

static int add_stacks_of_all(struct corpus *c, const struct recording *rec)
{
	struct numbers stacks = {0}, places = {0};
	const struct tally_part *keys = c->tables[CORPUS_KEY].rows;
	int r = choose_stacks(c, rec, &stacks);

	for (size_t i = 0; r == 0 && i < c->tables[CORPUS_KEY].count; i++)
		r = numbers_add(&places, keys[i].place);
	numbers_settle(&places);
	if (r == 0)
		r = add_stacks(c, rec, &stacks);
	if (r == 0)
		renumber(c, &stacks, &places);
	free(stacks.items);
	free(places.items);
	return r;
}

static int add_rows(struct corpus *c, enum corpus_table_id id, const void *rows, size_t n)
{
	size_t size = corpus_table(id).row_size;

	for (size_t i = 0; i < n; i++) {
		void *row = corpus_add(c, id);

		if (!row)
			return -ENOMEM;
		memcpy(row, (const char *)rows + i * size, size);
	}
	return 0;
}

static int add_events(struct corpus *c, const struct recording *rec)
{
	_cleanup_free_ bool *keep = calloc(rec->event_count + 1, sizeof(*keep));
	int r = keep ? reduce_events(rec->events, rec->event_count, keep) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < rec->event_count; i++)
		if (keep[i])
			r = add_rows(c, CORPUS_EVENT, &rec->events[i], 1);
	return r;
}

/* A histogram's count in its median, and in its ends: the ones that are asked for. */
static int add_aggregates(struct corpus *c, const struct recording *rec)
{
	static const double shares[BUCKETS_KEPT] = {0.25, 0.5, 0.25};
	static const double quantiles[BUCKETS_KEPT] = {0.1, 0.5, 0.95};

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct sketch *s = &rec->aggregates[i].sketch;
		struct sketch marks = {0};

		for (int k = 0; k < BUCKETS_KEPT; k++)
			sketch_add(&marks, sketch_quantile(s, quantiles[k]),
				(uint64_t)(shares[k] * (double)s->count));
		marks.count = 0;
		for (uint32_t b = 0; b < BUCKET_COUNT; b++) {
			struct corpus_bucket *row =
				marks.hist[b] ? corpus_add(c, CORPUS_BUCKET) : NULL;

			if (marks.hist[b] && !row)
				return -ENOMEM;
			if (row)
				*row = (struct corpus_bucket){(uint32_t)i, b, marks.hist[b]};
		}
		if (add_rows(c, CORPUS_AGGREGATE, &rec->aggregates[i], 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_launches(const void *a, const void *b)
{
	const struct kernel_use *x = *(const struct kernel_use *const *)a,
				*y = *(const struct kernel_use *const *)b;

	if (x->launches != y->launches)
		return x->launches > y->launches ? -1 : 1;
	return x < y ? -1 : 1;
}

static int by_first(const void *a, const void *b)
{
	const struct kernel_use *x = *(const struct kernel_use *const *)a,
				*y = *(const struct kernel_use *const *)b;

	if (x->first.ns != y->first.ns)
		return x->first.ns > y->first.ns ? -1 : 1;
	return x < y ? -1 : 1;
}

static int add_kernels(struct corpus *c, const struct recording *rec)
{
	size_t n = rec->kernel_count, late = MIN(n, (size_t)KERNELS_LATE);
	_cleanup_free_ const struct kernel_use **order = calloc(n + 1, sizeof(*order));
	_cleanup_free_ bool *keep = calloc(n + 1, sizeof(*keep));
	char name[KERNEL_NAME_KEPT];

	if (!order || !keep)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = &rec->kernels[i];
	qsort(order, n, sizeof(*order), by_launches);
	for (size_t i = 0; i < MIN(n, (size_t)KERNELS_KEPT); i++)
		keep[order[i] - rec->kernels] = true;
	qsort(order, n, sizeof(*order), by_first);
	for (size_t i = 0; i < late; i++)
		keep[order[i] - rec->kernels] = true;
	for (size_t i = 0; i < n; i++) {
		struct kernel_use *k = keep[i] ? corpus_add(c, CORPUS_KERNEL) : NULL;
		int64_t number;

		if (!keep[i])
			continue;
		snprintf(
			name, sizeof(name), "%s", rec->kernels[i].name ? rec->kernels[i].name : "");
		number = corpus_text(c, name);
		if (!k || number < 0)
			return -ENOMEM;
		*k = rec->kernels[i];
		k->name = k->name ? c->texts[number - 1] : NULL;
	}
	return 0;
}

/* Whole collectives: those of all ranks that have one number. */
static int add_collectives(struct corpus *c, const struct recording *rec)
{
	uint64_t parts = rec->collective_count / COLLECTIVES_KEPT + 1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < rec->collective_count; i++)
		if (rec->collectives[i].c.seq % parts == 0)
			r = add_rows(c, CORPUS_COLLECTIVE, &rec->collectives[i], 1);
	return r;
}

static int add_samples(struct corpus *c, enum corpus_table_id id, const void *rows, size_t n)
{
	size_t stride = n / SAMPLES_KEPT + 1, size = corpus_table(id).row_size;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i += stride)
		r = add_rows(c, id, (const char *)rows + i * size, 1);
	return r;
}

static int add_books(struct corpus *c, const struct recording *rec)
{
	struct corpus_book *b = corpus_add(c, CORPUS_BOOK);

	if (!b)
		return -ENOMEM;
	b->node = "node";
	b->has_books = rec->books != NULL;
	if (!rec->books)
		return 0;
	b->missing = rec->books->missing;
	b->unclean = rec->books->unclean;
	b->unclean_ns = rec->books->unclean_ns;
	b->launch_watched = rec->books->launch_watched;
	b->launch_error = rec->books->launch_error;
	for (uint32_t i = 0; i < WIRE_SOURCE_MAX; i++) {
		const struct account *a = &rec->books->source[i];
		struct corpus_source *s = a->hits ? corpus_add(c, CORPUS_SOURCE) : NULL;

		if (a->hits && !s)
			return -ENOMEM;
		if (s)
			*s = (struct corpus_source){
				i, a->hits, a->stored, a->aggregated, account_lost(a)};
	}
	return 0;
}

/* Where a file lies is nobody's business: what matters is whether it is of Python, of a package, or the user's. */
static void plain_path(const char *path, char *out, size_t size)
{
	static const char *const kept[] = {"site-packages/", "dist-packages/", "lib/python"};
	const char *base = strrchr(path, '/');

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const char *at = strstr(path, kept[i]);

		if (!at)
			continue;
		snprintf(out, size, "/usr/%s%s", i < 2 ? "lib/python3/" : "", at);
		return;
	}
	snprintf(out, size, "%s%s", base ? "/home/u" : "", base ? base : path);
}

static int forget_paths(struct corpus *c)
{
	struct stack_frame *frames = c->tables[CORPUS_FRAME].rows;

	for (size_t i = 0; i < c->tables[CORPUS_FRAME].count; i++) {
		struct stack_frame *f = &frames[i];
		const char *base = f->file && f->file[0] == '/' ? strrchr(f->file, '/') : NULL;
		char path[512];
		int64_t number;

		if (base)
			f->file = base + 1;
		if (!f->py_file || f->py_file[0] != '/')
			continue;
		plain_path(f->py_file, path, sizeof(path));
		number = corpus_text(c, path);
		if (number < 0)
			return -ENOMEM;
		f->py_file = c->texts[number - 1];
	}
	return 0;
}

/* Groups and containers are told apart, not named. */
static void forget_homes(struct corpus *c)
{
	struct process_home *homes = c->tables[CORPUS_HOME].rows;
	size_t n = c->tables[CORPUS_HOME].count;
	_cleanup_free_ uint64_t *keys = calloc(n + 1, sizeof(*keys));

	for (size_t i = 0; keys && i < n; i++) {
		const char *id = homes[i].container_id, *group = homes[i].cgroup_path;
		uint64_t h = UINT64_C(0xcbf29ce484222325);
		size_t first = 0;

		for (const char *p = id[0] ? id : group; *p; p++)
			h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
		keys[i] = h;
		while (keys[first] != h)
			first++;
		if (id[0])
			snprintf(homes[i].container_id, sizeof(homes[i].container_id), "%012zx",
				first + 1);
		if (homes[i].pod[0])
			snprintf(homes[i].pod, sizeof(homes[i].pod), "pod-%zu", first + 1);
		if (group[0] && strcmp(group, "/") != 0)
			snprintf(homes[i].cgroup_path, sizeof(homes[i].cgroup_path), "/group/%zu",
				first + 1);
	}
}

/* Whoever made the recording, and on which machine, is nobody's business. */
static int forget_names(struct corpus *c)
{
	struct collective_row *rows = c->tables[CORPUS_COLLECTIVE].rows;
	struct gpu_sample *gpus = c->tables[CORPUS_GPU].rows;

	for (size_t i = 0; i < c->tables[CORPUS_COLLECTIVE].count; i++)
		snprintf(rows[i].node, sizeof(rows[i].node), "node");
	for (size_t i = 0; i < c->tables[CORPUS_GPU].count; i++)
		snprintf(gpus[i].uuid, sizeof(gpus[i].uuid), "GPU-%lld", (long long)gpus[i].index);
	forget_homes(c);
	return forget_paths(c);
}

static int reduce(const struct recording *rec, const struct account_set *accounts, struct corpus *c)
{
	int r = 0;

	c->base_ns = rec->event_count ? rec->events[0].start.ns : 0;
	for (size_t i = 0; i < accounts->count; i++)
		c->base_ns = MIN(c->base_ns, accounts->items[i].units[0].start_ns);
	c->base_ns -= c->base_ns % (int64_t)NS_PER_S;
	for (size_t i = 0; r == 0 && i < accounts->count; i++)
		r = reduce_account(&accounts->items[i], c);
	if (r == 0)
		r = add_events(c, rec);
	if (r == 0)
		r = add_stacks_of_all(c, rec);
	if (r == 0)
		r = reduce_ledger(rec, c);
	if (r == 0)
		r = add_aggregates(c, rec);
	if (r == 0)
		r = add_samples(c, CORPUS_SAMPLE, rec->samples, rec->sample_count);
	if (r == 0)
		r = add_samples(c, CORPUS_GPU, rec->gpus, rec->gpu_count);
	if (r == 0)
		r = add_samples(c, CORPUS_CONTAINER, rec->containers, rec->container_count);
	if (r == 0)
		r = add_collectives(c, rec);
	if (r == 0)
		r = add_rows(c, CORPUS_HOME, rec->homes, rec->home_count);
	if (r == 0)
		r = add_rows(c, CORPUS_LABEL, rec->labels, rec->label_count);
	if (r == 0)
		r = add_kernels(c, rec);
	if (r == 0)
		r = add_books(c, rec);
	return r < 0 ? r : forget_names(c);
}

int main(int argc, char **argv)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(account_set_done) struct account_set accounts = {0};
	_cleanup_(corpus_done) struct corpus c = {0};
	struct nodedb_filter filter = incidents_filter(&(struct scope){0}, true);
	struct errinfo err = {0};
	struct recording rec;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: corpus-reduce RECORDING >FILE\n");
		return 2;
	}
	r = nodedb_read(argv[1], &filter, &content, &err);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], err.text);
		return 1;
	}
	rec = explain_recording(&content);
	r = account_make(&rec, &accounts);
	if (r == 0)
		r = reduce(&rec, &accounts, &c);
	if (r == 0)
		r = corpus_write(&c, stdout);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	return r < 0;
}
