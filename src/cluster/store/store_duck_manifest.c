/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_manifest.c - the manifest: which parts there are, and up to which journal position their
 * rows reach. A JSON object, replaced whole:
 *   format 2, id, durable, next_id, dropped_rows, clock_ns,
 *   parts: [{id, cluster, folder, bytes, sha256, received_ns, positions: [first, last],
 *            tables: {events: [rows, first, last], …}}],
 *   missing: [likewise, and why], losses: [[first, last, since_ns, until_ns]],
 *   sha256: of all bytes before this member
 * There are two of the same, the copy written first. What a new manifest makes needless (parts, the journal) is
 * removed only when both are on disk: so either of them, also one that a crash has left older or newer than the
 * other, is a state that the store can go on from. Format 1 had no sums; it becomes format 2 with the next
 * change. */
#include <jansson.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/file.h"
#include "cluster/store/store_duck_private.h"
#include "json/tree.h"
#include "json/writer.h"

#define FORMAT     2
#define FORMAT_OLD 1 /* without a sum; no single bit turns one of these digits into the other */
#define SUM_KEY    ",\"sha256\":\""
#define SUM_TAIL   (sizeof(SUM_KEY) - 1 + DIGEST_HEX - 1 + strlen("\"}\n"))

static void put_part(struct json_writer *w, const struct part *p)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_U("id", p->id), JSON_S("cluster", p->cluster), JSON_S("folder", p->folder),
		JSON_U("bytes", p->bytes), JSON_S("sha256", p->sha256),
		JSON_I("received_ns", p->received_ns));
	json_key(w, "positions");
	json_begin_array(w);
	json_put_uint(w, p->first);
	json_put_uint(w, p->last);
	json_end_array(w);
	if (*p->why)
		json_string_member(w, "why", p->why);
	json_key(w, "tables");
	json_begin_object(w);
	for (int t = 0; t < TABLE_COUNT; t++) {
		json_key(w, store_tables[t].name);
		json_begin_array(w);
		json_put_uint(w, p->rows[t]);
		json_put_int(w, p->first_ns[t]);
		json_put_int(w, p->last_ns[t]);
		json_end_array(w);
	}
	json_end_object(w);
	json_end_object(w);
}

static void put_parts(struct json_writer *w, const char *key, const struct parts *p)
{
	json_key(w, key);
	json_begin_array(w);
	for (size_t i = 0; i < p->count; i++)
		put_part(w, p->items[i]);
	json_end_array(w);
}

static void put_losses(struct json_writer *w, const struct losses *l)
{
	json_key(w, "losses");
	json_begin_array(w);
	for (size_t i = 0; i < l->count; i++) {
		json_begin_array(w);
		json_put_uint(w, l->items[i].first);
		json_put_uint(w, l->items[i].last);
		json_put_int(w, l->items[i].since_ns);
		json_put_int(w, l->items[i].until_ns);
		json_end_array(w);
	}
	json_end_array(w);
}

/* The sum takes the place of the closing brace. */
static int put_sum(struct buf *text)
{
	char sum[DIGEST_HEX];
	int r = text->err;

	if (r == 0) {
		while (text->data[--text->len] != '}')
			;
		r = digest_sha256(text->data, text->len, sum);
	}
	if (r == 0)
		buf_printf(text, SUM_KEY "%s\"}\n", sum);
	return r ?: text->err;
}

int manifest_write(const char *folder, const struct manifest *m, struct errinfo *reterr)
{
	static const char *const names[] = {STORE_MANIFEST_COPY, STORE_MANIFEST_NAME};
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_MANIFEST_MAX);
	struct json_writer w = json_writer_to_buf(&text);
	char path[STORE_PATH_MAX] = "the manifest";
	int r;

	json_begin_object(&w);
	JSON_PUT(&w, JSON_I("format", FORMAT), JSON_S("id", m->id), JSON_U("durable", m->durable),
		JSON_U("next_id", m->next_id), JSON_U("dropped_rows", m->dropped_rows),
		JSON_I("clock_ns", m->clock_ns));
	put_parts(&w, "parts", &m->parts);
	put_parts(&w, "missing", &m->missing);
	put_losses(&w, &m->losses);
	json_end_object(&w);
	r = json_finish(&w);
	r = r ?: put_sum(&text);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		r = file_write_atomic(path, text.data, text.len, 0600);
	}
	return r == 0 ? 0 : errinfo_set(reterr, r, "%s cannot be written: %s", path, strerror(-r));
}

void manifest_new_id(char out[STORE_ID])
{
	uint64_t n[2] = {0};

	if (getrandom(n, sizeof(n), 0) != (ssize_t)sizeof(n))
		n[0] = (uint64_t)wall_now().ns; /* it cannot fail once the system is up */
	snprintf(out, STORE_ID, "%016" PRIx64 "%016" PRIx64, n[0], n[1]);
}

/* ---- reading ---- */

static bool read_uint(const json_t *o, const char *key, uint64_t *ret)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*ret = (uint64_t)json_integer_value(v);
	return true;
}

static bool read_text(const json_t *o, const char *key, char *ret, size_t size)
{
	const char *v = json_string_value(json_object_get(o, key));

	return v && snprintf(ret, size, "%s", v) < (int)size;
}

/* A table that this part does not know yet has no rows in it. */
static bool read_tables(const json_t *o, struct part *p)
{
	const json_t *tables = json_object_get(o, "tables");

	for (int t = 0; t < TABLE_COUNT; t++) {
		const json_t *row = json_object_get(tables, store_tables[t].name);

		if (!row)
			continue;
		if (json_array_size(row) != 3)
			return false;
		p->rows[t] = (uint64_t)json_integer_value(json_array_get(row, 0));
		p->first_ns[t] = json_integer_value(json_array_get(row, 1));
		p->last_ns[t] = json_integer_value(json_array_get(row, 2));
	}
	return json_is_object(tables);
}

static int read_part(const json_t *o, struct parts *ret)
{
	_cleanup_(part_freep) struct part *p = calloc(1, sizeof(*p));
	const char *cluster = json_string_value(json_object_get(o, "cluster"));
	const char *why = json_string_value(json_object_get(o, "why"));
	const json_t *positions = json_object_get(o, "positions");
	int r;

	if (!p)
		return -ENOMEM;
	if (!cluster || !read_uint(o, "id", &p->id) || !read_uint(o, "bytes", &p->bytes) ||
		!read_text(o, "folder", p->folder, sizeof(p->folder)) ||
		!(*p->folder && *p->folder != '.' && !strchr(p->folder, '/')) ||
		!read_text(o, "sha256", p->sha256, sizeof(p->sha256)) || !read_tables(o, p))
		return -EBADMSG;
	p->received_ns = json_integer_value(json_object_get(o, "received_ns"));
	p->first = (uint64_t)json_integer_value(json_array_get(positions, 0));
	p->last = (uint64_t)json_integer_value(json_array_get(positions, 1));
	if (why)
		snprintf(p->why, sizeof(p->why), "%s", why);
	p->cluster = strdup(cluster);
	r = p->cluster ? parts_add(ret, p) : -ENOMEM;
	if (r == 0)
		p = NULL;
	return r;
}

static int read_parts(const json_t *list, struct parts *ret)
{
	int r = json_is_array(list) ? 0 : -EBADMSG;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		r = read_part(json_array_get(list, i), ret);
	return r;
}

static int read_losses(const json_t *list, struct losses *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const json_t *row = json_array_get(list, i);

		r = ARRAY_RESERVE(ret->items, ret->room, ret->count + 1, STORE_LOSSES_MAX);
		if (r == 0)
			ret->items[ret->count++] = (struct store_loss){
				.first = (uint64_t)json_integer_value(json_array_get(row, 0)),
				.last = (uint64_t)json_integer_value(json_array_get(row, 1)),
				.since_ns = json_integer_value(json_array_get(row, 2)),
				.until_ns = json_integer_value(json_array_get(row, 3))};
	}
	return r;
}

static int read_object(const json_t *o, struct manifest *ret)
{
	uint64_t format;
	int r;

	if (!read_uint(o, "format", &format) || (format != FORMAT && format != FORMAT_OLD) ||
		!read_uint(o, "durable", &ret->durable) ||
		!read_uint(o, "next_id", &ret->next_id) ||
		!read_uint(o, "dropped_rows", &ret->dropped_rows))
		return -EBADMSG;
	ret->unsummed = format == FORMAT_OLD;
	(void)read_text(o, "id", ret->id, sizeof(ret->id)); /* old ones have none */
	ret->clock_ns = json_integer_value(json_object_get(o, "clock_ns"));
	r = read_parts(json_object_get(o, "parts"), &ret->parts);
	if (r == 0 && !ret->unsummed)
		r = read_parts(json_object_get(o, "missing"), &ret->missing);
	return r ?: read_losses(json_object_get(o, "losses"), &ret->losses);
}

void manifest_done(struct manifest *m)
{
	parts_done(&m->parts);
	parts_done(&m->missing);
	free(m->losses.items);
}

/* 1: the bytes fit the sum behind them; 0: there is none; -EBADMSG. */
static int check_sum(const struct buf *text)
{
	char sum[DIGEST_HEX];
	const char *tail = text->data + text->len - SUM_TAIL;
	int r;

	if (text->len < SUM_TAIL || memcmp(tail, SUM_KEY, sizeof(SUM_KEY) - 1) != 0)
		return 0;
	r = digest_sha256(text->data, (size_t)(tail - text->data), sum);
	return r ?: memcmp(tail + sizeof(SUM_KEY) - 1, sum, DIGEST_HEX - 1) ? -EBADMSG : 1;
}

static int read_file(const char *path, struct buf *text, struct manifest *ret)
{
	_cleanup_(manifest_done) struct manifest m = {0};
	json_t *tree = NULL;
	int r = file_read(path, STORE_MANIFEST_MAX, text), summed = 0;

	if (r == 0)
		r = summed = check_sum(text);
	if (r >= 0)
		r = json_tree_read(text->data, text->len, JSON_REJECT_DUPLICATES, &tree, NULL);
	if (r == 0) {
		r = read_object(tree, &m);
		json_decref(tree);
	}
	if (r == 0 && m.unsummed == (summed == 1))
		r = -EBADMSG;
	if (r == 0) {
		*ret = m;
		m = (struct manifest){0};
	}
	return r == -EINVAL ? -EBADMSG : r;
}

int manifest_read(const char *folder, struct manifest *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_MANIFEST_MAX),
				 copied = BUF_INIT(STORE_MANIFEST_MAX);
	_cleanup_(manifest_done) struct manifest copy = {0};
	char path[STORE_PATH_MAX];
	int r, second;

	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_COPY, folder);
	second = read_file(path, &copied, &copy);
	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_NAME, folder);
	r = read_file(path, &text, ret);
	if (r == 0) {
		ret->is_alone = second < 0 || text.len != copied.len ||
				memcmp(text.data, copied.data, text.len) != 0;
		ret->copy_is_damaged = second == -EBADMSG || second == -EIO;
		return 0;
	}
	if (second == 0 && (r == -EBADMSG || r == -ENOENT || r == -EIO)) {
		*ret = copy;
		ret->was_copy = true;
		copy = (struct manifest){0};
		return 0;
	}
	if (r == -ENOENT && second == -ENOENT)
		return r;
	if (r == -EBADMSG || r == -ENOENT)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"%s is damaged or of a newer program, and so is its copy: restore a backup of the store",
			path);
	return errinfo_set(reterr, r, "%s cannot be read: %s", path, strerror(-r));
}
