/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - the registry of files, and the questions asked of them. Runs on the tracer's thread.
 *
 * Unwind tables are asked for as soon as a file is known: those of all of PyTorch take 3 MB. Only
 * giants wait until a first walk has ended there. */
#include "record/stack/space.h"

#include "record/python/python.h"
#include "record/stack/remote.h"
#include "base/hash.h"
#include "base/log.h"

#define EAGER_BYTES (128u << 20) /* of .eh_frame */
#define BATCHES_MAX 512          /* questions for names under way */

struct batch { /* a question for names under way */
	struct stack_file *file;
	size_t count;
	uint64_t keys[SYMBOL_OFFSETS_MAX];
};

struct stack_files {
	struct symbol_service *symbols;
	struct stack_tables *tables;
	struct intern *texts;
	stack_file_changed *changed;
	void *arg;
	struct idmap by_inode;  /* mixed (dev, inode) -> file */
	struct idmap by_number; /* of the symbol process -> file */
	struct stack_file **all;
	size_t count;
	size_t names;     /* kept */
	size_t handles;   /* likewise */
	uint64_t answers; /* names that have come */
	uint64_t next_ticket;
	struct idmap batches; /* ticket -> struct batch */
	bool told_full;
	bool is_full;
};

static uint64_t inode_key(uint64_t dev, uint64_t inode)
{
	return hash_number(hash_number(dev + 1) ^ inode);
}

/* ---- answers ---- */

static struct stack_file *same_build(struct stack_files *fs, const struct stack_file *f)
{
	for (size_t i = 0; i < fs->count; i++) {
		struct stack_file *o = fs->all[i];

		if (o != f && o->is_identified && o->number && o->build_id_len &&
			o->build_id_len == f->build_id_len &&
			memcmp(o->build_id, f->build_id, f->build_id_len) == 0)
			return o;
	}
	return NULL;
}

static void ask_table(struct stack_files *fs, struct stack_file *f)
{
	if (f->table_state != TABLE_NOT_ASKED || !f->is_identified || f->is_generated)
		return;
	if (f->eh_frame_bytes > EAGER_BYTES && !f->table_wanted)
		return;
	if (symbol_ask_unwind(fs->symbols, f->number) == 0)
		f->table_state = TABLE_ASKED;
}

static void open_debug_file(struct stack_files *fs, const struct stack_file *f)
{
	int fd = foreign_open_debug(f->root, f->build_id, f->build_id_len);

	if (fd >= 0)
		symbol_add_debug(fs->symbols, f->number, fd);
}

static void take_identity(void *arg, uint32_t number, const struct symbol_identity *i)
{
	struct stack_files *fs = arg;
	struct stack_file *f = idmap_get(&fs->by_number, number), *same;

	if (!f)
		return;
	f->is_identified = true;
	f->err = i->err;
	f->has_load_base = i->has_load_base;
	f->load_base = i->load_base;
	f->eh_frame_bytes = i->eh_frame_bytes;
	f->build_id_len = i->build_id_len;
	memcpy(f->build_id, i->build_id, sizeof(f->build_id));
	if (i->err) {
		log_info("no symbols in %s: %s", f->name, i->text);
		f->table_state = TABLE_FAILED;
	}
	if (f->build_id_len) {
		uint64_t h = f->build_id_len;

		for (unsigned k = 0; k < f->build_id_len; k++)
			h = hash_number(h ^ f->build_id[k]);
		f->identity = h;
	}
	same = same_build(fs, f);
	if (same) {
		symbol_close(fs->symbols, f->number);
		idmap_remove(&fs->by_number, f->number);
		f->number = same->number;
		f->table_state = same->table_state;
		f->table = same->table;
		f->places_asked = same->places_asked;
		f->places_known = same->places_known;
		memcpy(f->places, same->places, sizeof(f->places));
	} else if (!i->err) {
		open_debug_file(fs, f);
		ask_table(fs, f);
	}
	fs->changed(fs->arg, f);
}

/* What a number's answer says holds for every file of that build. */
static void for_number(struct stack_files *fs, uint32_t number,
	void (*tell)(struct stack_file *f, const void *what), const void *what)
{
	for (size_t i = 0; i < fs->count; i++)
		if (fs->all[i]->number == number) {
			tell(fs->all[i], what);
			fs->changed(fs->arg, fs->all[i]);
		}
}

static void send_table(struct stack_file *f, const void *what)
{
	const struct stack_table *t = what;

	f->table_state = t ? TABLE_READY : TABLE_FAILED;
	if (t)
		f->table = *t;
}

static void take_unwind(void *arg, uint32_t number, const struct symbol_unwind *u)
{
	struct stack_files *fs = arg;
	struct stack_file *f = idmap_get(&fs->by_number, number);
	struct stack_table t;
	int r = u->err ? u->err : stack_tables_add(fs->tables, u, &t);

	if (!f)
		return;
	fs->is_full |= r == -ENOSPC;
	if (r == -ENOSPC && !fs->told_full) {
		fs->told_full = true;
		log_warning("unwind tables reached their limit of %u MB: stacks through %s and "
			    "later files may end early",
			STACK_TABLES_BYTES >> 20, f->name);
	} else if (r < 0) {
		log_info("%s has no unwind table: %s", f->name, u->err ? u->text : strerror(-r));
	}
	for_number(fs, number, send_table, r < 0 ? NULL : &t);
}

static void name_set(struct stack_files *fs, struct stack_file *f, uint64_t key,
	const struct symbol_frames *from)
{
	struct stack_name *n = idmap_get(&f->names, key);

	if (!n || n->is_known)
		return;
	n->is_known = true;
	fs->answers++;
	if (!from || !from->count)
		return;
	n->frames = calloc(from->count, sizeof(*n->frames));
	if (!n->frames)
		return;
	n->count = (uint8_t)from->count;
	for (unsigned i = 0; i < from->count; i++) {
		n->frames[i].symbol = intern(fs->texts, from->frame[i].function);
		n->frames[i].line = from->frame[i].line;
		n->frames[i].file =
			intern(fs->texts, from->frame[i].file ? from->frame[i].file : f->name);
	}
}

static void take_frames(void *arg, uint32_t number, uint64_t ticket, int err,
	const struct symbol_frames *frames, size_t count)
{
	struct stack_files *fs = arg;
	struct batch *b = idmap_remove(&fs->batches, ticket);

	if (!b)
		return;
	if (err == -ECANCELED && b->file->ask_count + b->count <= SYMBOL_OFFSETS_MAX) {
		/* the number is another one by now: the same build's, or a renewed map's */
		memcpy(b->file->ask + b->file->ask_count, b->keys, b->count * sizeof(*b->keys));
		b->file->ask_count += b->count;
		b->count = 0;
	}
	for (size_t i = 0; i < b->count; i++)
		name_set(fs, b->file, b->keys[i], !err && i < count ? &frames[i] : NULL);
	free(b);
}

static void send_places(struct stack_file *f, const void *what)
{
	memcpy(f->places, what, sizeof(f->places));
	f->places_known = true;
}

static void take_places(void *arg, uint32_t number, uint64_t ticket, int err,
	const struct symbol_place *p, size_t count)
{
	struct symbol_place places[4] = {0};

	for (size_t i = 0; !err && i < count && i < ARRAY_SIZE(places); i++)
		places[i] = p[i];
	for_number(arg, number, send_places, places);
}

static void set_handles(
	struct stack_files *fs, struct stack_file *f, const struct symbol_handles *h)
{
	size_t count = h->err ? 0 : h->count;

	f->handles_state = HANDLES_KNOWN;
	if (!count || f->handles)
		return;
	if (fs->handles + count > STACK_HANDLES_MAX) {
		log_warning("kernels of %s that processes launched before the trace have no names: "
			    "there are too many",
			f->name);
		return;
	}
	f->handles = malloc(count * sizeof(*f->handles));
	if (!f->handles)
		return;
	memcpy(f->handles, h->vaddr, count * sizeof(*f->handles));
	f->handle_count = count;
	f->text_offset = h->text_offset;
	f->text_vaddr = h->text_vaddr;
	fs->handles += count;
}

static void take_handles(void *arg, uint32_t number, const struct symbol_handles *h)
{
	struct stack_files *fs = arg;

	for (size_t i = 0; i < fs->count; i++)
		if (fs->all[i]->number == number)
			set_handles(fs, fs->all[i], h);
}

/* ---- files ---- */

int stack_files_new(struct probe *p, stack_file_changed *changed, void *arg, struct intern *texts,
	struct stack_files **ret)
{
	_cleanup_(stack_files_freep) struct stack_files *fs = calloc(1, sizeof(*fs));
	struct symbol_sink sink = {take_identity, take_unwind, take_frames, take_places, .arg = fs,
		.handles = take_handles};
	int r;

	if (!fs)
		return -ENOMEM;
	fs->changed = changed;
	fs->arg = arg;
	fs->texts = texts;
	fs->by_inode = IDMAP_INIT(STACK_FILES_MAX);
	fs->by_number = IDMAP_INIT(STACK_FILES_MAX);
	fs->batches = IDMAP_INIT(BATCHES_MAX);
	fs->all = calloc(STACK_FILES_MAX, sizeof(*fs->all));
	if (!fs->all)
		return -ENOMEM;
	r = stack_tables_new(p, &fs->tables);
	r = r ?: symbol_start(&sink, &fs->symbols);
	if (r < 0)
		return r;
	*ret = TAKE(fs);
	return 0;
}

static void file_free(struct stack_file *f)
{
	struct stack_name *n;
	size_t cursor = 0;

	while ((n = idmap_next(&f->names, &cursor, NULL))) {
		free(n->frames);
		free(n);
	}
	idmap_done(&f->names);
	free(f->handles);
	free(f);
}

void stack_files_free(struct stack_files *fs)
{
	struct batch *b;
	size_t cursor = 0;

	if (fs->symbols)
		symbol_stop(fs->symbols);
	while ((b = idmap_next(&fs->batches, &cursor, NULL)))
		free(b);
	for (size_t i = 0; i < fs->count; i++)
		file_free(fs->all[i]);
	free(fs->all);
	idmap_done(&fs->batches);
	idmap_done(&fs->by_inode);
	idmap_done(&fs->by_number);
	if (fs->tables)
		stack_tables_free(fs->tables);
	free(fs);
}

struct stack_file *stack_files_find(struct stack_files *fs, uint64_t dev, uint64_t inode)
{
	return idmap_get(&fs->by_inode, inode_key(dev, inode));
}

static struct stack_file *enter_file(struct stack_files *fs, const char *path)
{
	struct stack_file *f;

	if (fs->count == STACK_FILES_MAX) {
		fs->is_full = true;
		return NULL;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->names = IDMAP_INIT(STACK_NAMES_MAX);
	snprintf(f->name, sizeof(f->name), "%s", basename(path));
	fs->all[fs->count++] = f;
	return f;
}

struct stack_file *stack_files_add(struct stack_files *fs, uint64_t dev, uint64_t inode,
	const char *root, const char *path, int fd)
{
	struct stack_file *f = enter_file(fs, path);

	if (!f || idmap_put(&fs->by_inode, inode_key(dev, inode), f) < 0) {
		if (fd >= 0)
			close(fd);
		return f;
	}
	f->key = f->identity = inode_key(dev, inode);
	snprintf(f->root, sizeof(f->root), "%s", root);
	f->may_be_python = python_is_file(f->name);
	if (fd < 0 || symbol_open(fs->symbols, fd, -1, &f->number) < 0) {
		f->table_state = TABLE_FAILED;
		if (fd >= 0)
			close(fd);
	} else if (idmap_put(&fs->by_number, f->number, f) < 0) {
		f->number = 0;
		f->table_state = TABLE_FAILED;
	}
	return f;
}

struct stack_file *stack_files_generated(struct stack_files *fs, int fd)
{
	struct stack_file *f = enter_file(fs, "[generated]");

	if (!f) {
		close(fd);
		return NULL;
	}
	f->is_generated = true;
	if (symbol_open_perfmap(fs->symbols, fd, &f->number) < 0)
		close(fd);
	else if (idmap_put(&fs->by_number, f->number, f) < 0)
		f->number = 0;
	return f;
}

/* ---- making room ---- */

bool stack_files_is_full(const struct stack_files *fs)
{
	return fs->is_full;
}

void stack_file_mark(struct stack_file *f)
{
	f->is_marked = true;
}

static bool is_asked(const struct stack_files *fs, const struct stack_file *f)
{
	const struct batch *b;
	size_t cursor = 0;

	while ((b = idmap_next(&fs->batches, &cursor, NULL)))
		if (b->file == f)
			return true;
	return f->table_state == TABLE_ASKED || f->handles_state == HANDLES_ASKED ||
	       (f->places_asked && !f->places_known) ||
	       (f->number && !f->is_identified && !f->is_generated);
}

/* Another file of the same build, which then stands for the number. */
static struct stack_file *shares_number(const struct stack_files *fs, const struct stack_file *f)
{
	for (size_t i = 0; i < fs->count; i++)
		if (fs->all[i] != f && fs->all[i]->number == f->number)
			return fs->all[i];
	return NULL;
}

void stack_files_sweep(struct stack_files *fs)
{
	struct stack_file *other;

	for (size_t i = 0; i < fs->count;) {
		struct stack_file *f = fs->all[i];

		if (f->is_marked || is_asked(fs, f)) {
			f->is_marked = false;
			i++;
			continue;
		}
		other = f->number ? shares_number(fs, f) : NULL;
		if (idmap_get(&fs->by_inode, f->key) == f)
			idmap_remove(&fs->by_inode, f->key);
		if (other) {
			if (idmap_get(&fs->by_number, f->number) == f)
				(void)idmap_put(&fs->by_number, f->number, other); /* it replaces */
		} else if (f->number) {
			symbol_close(fs->symbols, f->number);
			idmap_remove(&fs->by_number, f->number);
			stack_tables_drop(fs->tables, &f->table);
		}
		fs->names -= f->names.used;
		fs->handles -= f->handle_count;
		file_free(f);
		fs->all[i] = fs->all[--fs->count];
	}
	fs->is_full = false;
}

/* ---- names ---- */

static void ask_names(struct stack_files *fs, struct stack_file *f)
{
	bool is_return[SYMBOL_OFFSETS_MAX];
	uint64_t offsets[SYMBOL_OFFSETS_MAX];
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return;
	b->file = f;
	b->count = f->ask_count;
	memcpy(b->keys, f->ask, f->ask_count * sizeof(*f->ask));
	for (size_t i = 0; i < b->count; i++) {
		offsets[i] = b->keys[i] >> 1;
		is_return[i] = b->keys[i] & 1;
	}
	if (idmap_put(&fs->batches, ++fs->next_ticket, b) < 0) {
		free(b);
		return;
	}
	if (symbol_ask_frames(
		    fs->symbols, f->number, fs->next_ticket, offsets, is_return, b->count) < 0) {
		idmap_remove(&fs->batches, fs->next_ticket);
		free(b);
		return;
	}
	f->ask_count = 0;
}

static void ask_name(struct stack_files *fs, struct stack_file *f, uint64_t key)
{
	f->ask[f->ask_count++] = key;
	if (f->ask_count == SYMBOL_OFFSETS_MAX)
		ask_names(fs, f);
}

const struct stack_name *stack_file_name(
	struct stack_files *fs, struct stack_file *f, uint64_t offset, bool is_return)
{
	uint64_t key = offset << 1 | is_return;
	struct stack_name *n = idmap_get(&f->names, key);

	if (n)
		return n;
	if (fs->names == STACK_NAMES_MAX || !f->number || f->ask_count == SYMBOL_OFFSETS_MAX)
		return NULL;
	n = calloc(1, sizeof(*n));
	if (!n || idmap_put(&f->names, key, n) < 0) {
		free(n);
		return NULL;
	}
	fs->names++;
	ask_name(fs, f, key);
	return n;
}

void stack_file_renew(struct stack_files *fs, struct stack_file *f, int fd)
{
	struct stack_name *n;
	size_t cursor = 0;
	uint64_t key;
	uint32_t number;

	if (symbol_open_perfmap(fs->symbols, fd, &number) < 0) {
		close(fd);
		return;
	}
	if (f->number) {
		idmap_remove(&fs->by_number, f->number);
		symbol_close(fs->symbols, f->number);
	}
	f->number = idmap_put(&fs->by_number, number, f) < 0 ? 0 : number;
	while (f->number && (n = idmap_next(&f->names, &cursor, &key)))
		if (n->is_known && !n->count && f->ask_count < SYMBOL_OFFSETS_MAX) {
			n->is_known = false;
			ask_name(fs, f, key);
		}
}

void stack_file_want_table(struct stack_files *fs, struct stack_file *f)
{
	f->table_wanted = true;
	ask_table(fs, f);
}

void stack_file_want_handles(struct stack_files *fs, struct stack_file *f)
{
	if (f->handles_state != HANDLES_NOT_ASKED)
		return;
	if (f->is_generated || f->err || !f->number)
		f->handles_state = HANDLES_KNOWN; /* it has none, or nobody can tell */
	else if (f->is_identified && symbol_ask_handles(fs->symbols, f->number) == 0)
		f->handles_state = HANDLES_ASKED;
}

uint64_t stack_files_poll(struct stack_files *fs)
{
	for (size_t i = 0; i < fs->count; i++) {
		struct stack_file *f = fs->all[i];

		ask_table(fs, f);
		/* Not before its debug file is there, which only its identity tells of. */
		if (f->ask_count && (f->is_identified || f->is_generated))
			ask_names(fs, f);
		if (f->may_be_python && f->is_identified && !f->err && !f->places_asked)
			f->places_asked = symbol_ask_places(fs->symbols, f->number, 0,
						  python_symbol_names, 4) == 0;
	}
	symbol_poll(fs->symbols);
	return fs->answers;
}

uint64_t stack_files_table_bytes(const struct stack_files *fs)
{
	return stack_tables_bytes(fs->tables);
}

void stack_files_health(const struct stack_files *fs, struct symbol_health *ret)
{
	symbol_health(fs->symbols, ret);
}
