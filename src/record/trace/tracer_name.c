/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_name.c - names of kernels and of ranges in a run: from the kernel half, or from the symbols of
 * the file that the launching function is in, to the store. Runs on the tracer's thread. */
#include "record/trace/tracer_private.h"

#include <signal.h>

#include <bpf/bpf.h>

#include "wire/record.h"

#define ASKED_MAX   KERNEL_TABLE_MAX /* functions whose symbol was asked for */
#define SWEEP_KEYS  4096             /* registered kernels looked at in a second */
#define TEXTS_MAX   65536
#define COUNTED_MAX 32768 /* as in the kernel half */
#define COUNTED_FEW 1024  /* to read so many takes less than a millisecond */

struct asked { /* a question to the symbol process */
	uint32_t pid;
	uint64_t function;
};

struct tracer_names {
	struct kernel_table *kernels;
	struct idmap asked; /* hash of the question -> struct asked */
	struct idmap texts; /* hash -> struct text_row */
	struct idmap alive; /* pid -> 1 alive, 2 ended: of the present sweep */
	struct wire_function cursor;
	bool has_cursor;
	uint32_t gone[256]; /* ended, counts not read yet */
	size_t gone_count;
	unsigned counted;       /* functions of which counts were read */
	uint64_t texts_dropped; /* the store had no room, or nobody memory */
};

static void take_text(struct tracer *t, const struct name_record *n)
{
	struct text_row *row;

	if (idmap_get(&t->names->texts, n->key))
		return;
	row = calloc(1, sizeof(*row));
	if (!row) {
		t->names->texts_dropped++;
		return;
	}
	row->hash = n->key;
	snprintf(row->text, sizeof(row->text), "%s", n->text);
	if (t->store && !store_writer_push_row(t->store, row)) {
		t->names->texts_dropped++;
		log_warning("the store's queue is full: names of ranges are lost");
	}
	if (idmap_put(&t->names->texts, n->key, row) < 0)
		free(row); /* stored, but not again in a new file */
}

void tracer_take_name(void *arg, const struct name_record *n)
{
	struct tracer *t = arg;

	if (n->kind == NAME_TEXT)
		take_text(t, n);
	else if (n->kind == NAME_ALIAS)
		kernel_table_alias(t->names->kernels, n->pid, n->key, n->other, n->at);
	else
		kernel_table_name(t->names->kernels, n->pid, n->key, n->at,
			n->source == SOURCE_CUDA ? KERNEL_REGISTERED : KERNEL_HANDLE, n->text,
			n->is_cut);
}

/* The function's own symbol, or at least where it is. */
static void ask_symbol(void *arg, uint32_t pid, uint64_t function)
{
	struct tracer *t = arg;
	struct asked *a;
	uint64_t hash;

	if (!t->stacks || !(a = calloc(1, sizeof(*a))))
		return;
	*a = (struct asked){pid, function};
	hash = stacks_ask(t->stacks, pid, function);
	if (!hash || idmap_put(&t->names->asked, hash, a) < 0)
		free(a);
}

bool tracer_take_symbol(struct tracer *t, const struct stack *s)
{
	const struct asked *a = t->names ? idmap_get(&t->names->asked, s->hash) : NULL;
	char where[256];

	if (!a)
		return false;
	if (s->count && s->frames[s->count - 1].symbol)
		kernel_table_symbol(t->names->kernels, a->pid, a->function, KERNEL_SYMBOL,
			s->frames[s->count - 1].symbol);
	else if (stacks_locate(t->stacks, a->pid, a->function, where, sizeof(where)))
		kernel_table_symbol(t->names->kernels, a->pid, a->function, KERNEL_UNKNOWN, where);
	return true;
}

const char *tracer_kernel_name(void *arg, uint32_t pid, uint64_t function)
{
	struct tracer *t = arg;

	return t->names ? kernel_table_find(t->names->kernels, pid, function) : NULL;
}

static bool push_kernel(void *arg, const struct kernel_row *row)
{
	struct tracer *t = arg;

	return !t->store || store_writer_push_kernel(t->store, row);
}

/* Counts of processes that have ended are read once more and taken out of the kernel's table. */
static void forget_gone(struct tracer *t, int fd)
{
	struct wire_function key, next;
	int r = t->names->gone_count ? bpf_map_get_next_key(fd, NULL, &next) : -1;

	while (r == 0) {
		key = next;
		r = bpf_map_get_next_key(fd, &key, &next);
		for (size_t i = 0; i < t->names->gone_count; i++)
			if (t->names->gone[i] == key.pid)
				bpf_map_delete_elem(fd, &key);
	}
	for (size_t i = 0; i < t->names->gone_count; i++) {
		uint64_t share = t->names->gone[i];

		bpf_map_delete_elem(probe_map(t->probe, "name_shares"), &share);
		kernel_table_gone(t->names->kernels, t->names->gone[i]);
	}
	t->names->gone_count = 0;
}

void tracer_read_kernels(struct tracer *t)
{
	int fd = probe_map(t->probe, "launched");
	uint64_t total;
	struct wire_function key, next;
	wall_time now = wall_now();
	unsigned n = 0;
	int r = bpf_map_get_next_key(fd, NULL, &next);

	for (; r == 0 && n < COUNTED_MAX; n++) {
		key = next;
		if (bpf_map_lookup_elem(fd, &key, &total) == 0)
			kernel_table_count(t->names->kernels, key.pid, key.function, now, total,
				(uint64_t)NAME_SAMPLED_X2 * tracer_launch_weight(t, key.pid),
				ask_symbol, t);
		r = bpf_map_get_next_key(fd, &key, &next);
	}
	t->names->counted = n;
}

void tracer_read_few_kernels(struct tracer *t)
{
	if (t->names && t->names->counted <= COUNTED_FEW)
		tracer_read_kernels(t);
}

uint64_t tracer_names_lost(const struct tracer *t)
{
	if (!t->names)
		return 0;
	return probe_names_lost(t->probe) + kernel_table_dropped(t->names->kernels) +
	       t->names->texts_dropped;
}

void tracer_flush_kernels(struct tracer *t)
{
	kernel_table_flush(t->names->kernels, push_kernel, t);
	forget_gone(t, probe_map(t->probe, "launched"));
}

static bool is_alive(struct tracer *t, uint32_t pid)
{
	uintptr_t known = (uintptr_t)idmap_get(&t->names->alive, pid);

	if (!known) {
		known = kill((pid_t)pid, 0) == 0 || errno != ESRCH ? 1 : 2;
		(void)idmap_put(&t->names->alive, pid, (void *)known);
	}
	return known == 1;
}

/* What ended processes registered is taken out of the kernel's table, some of it each second. */
void tracer_sweep_registered(struct tracer *t)
{
	struct tracer_names *n = t->names;
	int fd = probe_map(t->probe, "registered");
	struct wire_function next;
	int r = bpf_map_get_next_key(fd, n->has_cursor ? &n->cursor : NULL, &next);

	for (unsigned i = 0; r == 0 && i < SWEEP_KEYS; i++) {
		n->cursor = next;
		n->has_cursor = true;
		r = bpf_map_get_next_key(fd, &n->cursor, &next);
		if (is_alive(t, n->cursor.pid))
			continue;
		bpf_map_delete_elem(fd, &n->cursor);
		n->cursor = next; /* a key that is gone leads back to the first */
	}
	if (r == 0)
		return;
	n->has_cursor = false;
	idmap_done(&n->alive);
	n->alive = IDMAP_INIT(TARGETS_MAX);
}

void tracer_kernels_gone(struct tracer *t, uint32_t pid)
{
	struct tracer_names *n = t->names;

	if (!n)
		return;
	if (n->gone_count == ARRAY_SIZE(n->gone)) {
		tracer_read_kernels(t);
		tracer_flush_kernels(t);
	}
	n->gone[n->gone_count++] = pid;
}

void tracer_renew_names(struct tracer *t)
{
	struct text_row *row;
	size_t cursor = 0;

	kernel_table_renew(t->names->kernels);
	while (t->store && (row = idmap_next(&t->names->texts, &cursor, NULL)))
		if (!store_writer_push_row(t->store, row))
			log_warning("the store's queue is full: names of ranges are lost");
}

int tracer_open_names(struct tracer *t)
{
	t->names = calloc(1, sizeof(*t->names));
	if (!t->names)
		return -ENOMEM;
	t->names->asked = IDMAP_INIT(ASKED_MAX);
	t->names->texts = IDMAP_INIT(TEXTS_MAX);
	t->names->alive = IDMAP_INIT(TARGETS_MAX);
	return kernel_table_new(&t->names->kernels);
}

static void free_values(struct idmap *m)
{
	size_t cursor = 0;
	void *v;

	while ((v = idmap_next(m, &cursor, NULL)))
		free(v);
	idmap_done(m);
}

void tracer_close_names(struct tracer *t)
{
	if (!t->names)
		return;
	if (t->names->kernels)
		kernel_table_free(t->names->kernels);
	free_values(&t->names->asked);
	free_values(&t->names->texts);
	idmap_done(&t->names->alive);
	free(TAKE(t->names));
}
