/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_table.c - see kernel_table.h. Entries are found by a hash of process and function, and
 * compared, so that two that meet there only cost a name. */
#include "record/trace/kernel_table.h"

#include <sys/random.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/log.h"

struct kernel {
	uint32_t pid;
	uint64_t function;
	wall_time since, first;
	uint64_t counted;  /* by the kernel half, as last read */
	uint64_t launches; /* twice the number not yet handed on */
	enum kernel_origin origin;
	bool is_cut, is_launched, is_asked;
	bool is_due; /* it has changed since it was handed on */
	char *name;  /* NULL: not known */
};

struct kernel_table {
	struct idmap kernels;
	struct idmap shares; /* pid -> number of its kernels */
	uint64_t dropped, salt;
};

/* Functions are numbers of the program's own choice: who does not know the salt cannot have them meet. */
static uint64_t key_of(const struct kernel_table *t, uint32_t pid, uint64_t function)
{
	return hash_number(function ^ t->salt ^ (uint64_t)pid * 0x9e3779b97f4a7c15ULL);
}

int kernel_table_new(struct kernel_table **ret)
{
	struct kernel_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->kernels = IDMAP_INIT(KERNEL_TABLE_MAX);
	t->shares = IDMAP_INIT(KERNEL_TABLE_MAX);
	if (getrandom(&t->salt, sizeof(t->salt), GRND_NONBLOCK) < 0)
		log_debug("no random numbers yet: the kernel table uses a fixed hash");
	*ret = t;
	return 0;
}

static void kernel_free(struct kernel *k)
{
	free(k->name);
	free(k);
}

void kernel_table_free(struct kernel_table *t)
{
	size_t cursor = 0;
	struct kernel *k;

	while ((k = idmap_next(&t->kernels, &cursor, NULL)))
		kernel_free(k);
	idmap_done(&t->kernels);
	idmap_done(&t->shares);
	free(t);
}

static struct kernel *find(const struct kernel_table *t, uint32_t pid, uint64_t function)
{
	struct kernel *k = idmap_get(&t->kernels, key_of(t, pid, function));

	return k && k->pid == pid && k->function == function ? k : NULL;
}

const char *kernel_table_find(const struct kernel_table *t, uint32_t pid, uint64_t function)
{
	const struct kernel *k = find(t, pid, function);

	return k ? k->name : NULL;
}

static struct kernel *find_or_make(struct kernel_table *t, uint32_t pid, uint64_t function)
{
	struct kernel *k = idmap_get(&t->kernels, key_of(t, pid, function));
	uintptr_t share;

	if (k)
		return k->pid == pid && k->function == function ? k : NULL;
	share = (uintptr_t)idmap_get(&t->shares, pid);
	k = share < KERNEL_TABLE_SHARE ? calloc(1, sizeof(*k)) : NULL;
	if (!k || idmap_put(&t->kernels, key_of(t, pid, function), k) < 0 ||
		idmap_put(&t->shares, pid, (void *)(share + 1)) < 0) {
		if (k)
			idmap_remove(&t->kernels, key_of(t, pid, function));
		free(k);
		t->dropped++;
		return NULL;
	}
	k->pid = pid;
	k->function = function;
	return k;
}

static void set_name(struct kernel *k, enum kernel_origin origin, const char *name, bool is_cut)
{
	char *copy = strdup(name);

	if (!copy)
		return;
	free(k->name);
	k->name = copy;
	k->origin = origin;
	k->is_cut = is_cut;
	k->is_due = true;
}

void kernel_table_name(struct kernel_table *t, uint32_t pid, uint64_t function, wall_time at,
	enum kernel_origin origin, const char *name, bool is_cut)
{
	struct kernel *k = name[0] ? find_or_make(t, pid, function) : NULL;

	if (!k || (k->name && k->origin == origin && !strcmp(k->name, name)))
		return;
	if (k->name && k->origin != KERNEL_UNKNOWN && k->origin != KERNEL_SYMBOL)
		k->since = k->first = at;
	set_name(k, origin, name, is_cut);
}

void kernel_table_alias(
	struct kernel_table *t, uint32_t pid, uint64_t function, uint64_t other, wall_time at)
{
	const struct kernel *k = find(t, pid, other);

	if (k && k->name)
		kernel_table_name(t, pid, function, at, k->origin, k->name, k->is_cut);
}

void kernel_table_symbol(struct kernel_table *t, uint32_t pid, uint64_t function,
	enum kernel_origin origin, const char *name)
{
	struct kernel *k = find(t, pid, function);

	if (k && name[0] && k->origin == KERNEL_UNKNOWN)
		set_name(k, origin, name, false);
}

void kernel_table_count(struct kernel_table *t, uint32_t pid, uint64_t function, wall_time at,
	uint64_t total, uint64_t weight, kernel_table_ask *ask, void *arg)
{
	struct kernel *k = find_or_make(t, pid, function);

	if (!k)
		return;
	k->is_due |= !k->is_launched || total != k->counted;
	if (!k->is_launched && !k->first.ns)
		k->first = at;
	k->is_launched = true;
	if (total > k->counted)
		k->launches += (total - k->counted) * weight;
	k->counted = total;
	if (!k->name && !k->is_asked && ask) {
		k->is_asked = true;
		ask(arg, pid, function);
	}
}

void kernel_table_flush(struct kernel_table *t, kernel_table_sink *sink, void *arg)
{
	struct kernel_row row;
	size_t cursor = 0;
	struct kernel *k;

	while ((k = idmap_next(&t->kernels, &cursor, NULL))) {
		if (!k->is_launched || !k->is_due)
			continue;
		row = (struct kernel_row){.pid = k->pid,
			.function = k->function,
			.since = k->since,
			.first = k->first,
			.launches = k->launches / 2,
			.origin = k->origin,
			.is_cut = k->is_cut};
		snprintf(row.name, sizeof(row.name), "%s", k->name ? k->name : "");
		if (!sink(arg, &row))
			return;
		k->launches %= 2;
		k->is_due = false;
	}
}

void kernel_table_gone(struct kernel_table *t, uint32_t pid)
{
	size_t cursor = 0;
	struct kernel *k;

	idmap_remove(&t->shares, pid);
	while ((k = idmap_next(&t->kernels, &cursor, NULL)))
		if (k->pid == pid)
			kernel_free(idmap_take(&t->kernels, &cursor));
}

void kernel_table_renew(struct kernel_table *t)
{
	size_t cursor = 0;
	struct kernel *k;

	while ((k = idmap_next(&t->kernels, &cursor, NULL)))
		k->is_due = true;
}

uint64_t kernel_table_dropped(const struct kernel_table *t)
{
	return t->dropped;
}
