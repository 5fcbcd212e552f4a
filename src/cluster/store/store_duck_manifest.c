/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_manifest.c - the manifest: which parts there are, and up to which journal position their
 * rows reach. A JSON object, replaced whole:
 *   format 1, durable, next_id, dropped_rows,
 *   parts: [{id, cluster, folder, bytes, sha256, received_ns, tables: {events: [rows, first, last], …}}] */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cluster/store/store_duck_private.h"
#include "json/tree.h"
#include "json/writer.h"

#define FORMAT 1

static void put_part(struct json_writer *w, const struct part *p)
{
	json_begin_object(w);
	json_uint_member(w, "id", p->id);
	json_string_member(w, "cluster", p->cluster);
	json_string_member(w, "folder", p->folder);
	json_uint_member(w, "bytes", p->bytes);
	json_string_member(w, "sha256", p->sha256);
	json_int_member(w, "received_ns", p->received_ns);
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

int manifest_write(const char *folder, const struct manifest *m, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_MANIFEST_MAX);
	struct json_writer w = json_writer_to_buf(&text);
	char path[STORE_PATH_MAX];
	int r;

	json_begin_object(&w);
	json_int_member(&w, "format", FORMAT);
	json_uint_member(&w, "durable", m->durable);
	json_uint_member(&w, "next_id", m->next_id);
	json_uint_member(&w, "dropped_rows", m->dropped_rows);
	json_key(&w, "parts");
	json_begin_array(&w);
	for (size_t i = 0; i < m->parts.count; i++)
		put_part(&w, m->parts.items[i]);
	json_end_array(&w);
	json_end_object(&w);
	r = json_finish(&w);
	buf_putc(&text, '\n');
	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_NAME, folder);
	if (r == 0)
		r = text.err ? text.err : file_write_atomic(path, text.data, text.len, 0600);
	return r == 0 ? 0 : errinfo_set(reterr, r, "%s cannot be written: %s", path, strerror(-r));
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

static bool folder_is_plain(const char *folder)
{
	return *folder && *folder != '.' && !strchr(folder, '/');
}

static int read_part(const json_t *o, struct parts *ret)
{
	_cleanup_(part_freep) struct part *p = calloc(1, sizeof(*p));
	const char *cluster = json_string_value(json_object_get(o, "cluster"));
	int r;

	if (!p)
		return -ENOMEM;
	if (!cluster || !read_uint(o, "id", &p->id) || !read_uint(o, "bytes", &p->bytes) ||
		!read_text(o, "folder", p->folder, sizeof(p->folder)) ||
		!folder_is_plain(p->folder) ||
		!read_text(o, "sha256", p->sha256, sizeof(p->sha256)) || !read_tables(o, p))
		return -EBADMSG;
	p->received_ns = json_integer_value(json_object_get(o, "received_ns"));
	p->cluster = strdup(cluster);
	r = p->cluster ? parts_add(ret, p) : -ENOMEM;
	if (r == 0)
		p = NULL;
	return r;
}

static int read_object(const json_t *o, struct manifest *ret)
{
	const json_t *parts = json_object_get(o, "parts");
	uint64_t format;
	int r = 0;

	if (!read_uint(o, "format", &format) || format != FORMAT || !json_is_array(parts) ||
		!read_uint(o, "durable", &ret->durable) ||
		!read_uint(o, "next_id", &ret->next_id) ||
		!read_uint(o, "dropped_rows", &ret->dropped_rows))
		return -EBADMSG;
	for (size_t i = 0; r == 0 && i < json_array_size(parts); i++)
		r = read_part(json_array_get(parts, i), &ret->parts);
	return r;
}

void manifest_done(struct manifest *m)
{
	parts_done(&m->parts);
}

int manifest_read(const char *folder, struct manifest *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_MANIFEST_MAX);
	_cleanup_(manifest_done) struct manifest m = {0};
	char path[STORE_PATH_MAX];
	json_t *tree = NULL;
	int r;

	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_NAME, folder);
	r = file_read(path, STORE_MANIFEST_MAX, &text);
	if (r == -ENOENT)
		return r;
	if (r == 0)
		r = json_tree_read(text.data, text.len, JSON_REJECT_DUPLICATES, &tree, NULL);
	if (r == 0) {
		r = read_object(tree, &m);
		json_decref(tree);
	}
	if (r == -EINVAL || r == -EBADMSG)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"%s is damaged or of a newer program: restore a backup of the store", path);
	if (r < 0)
		return errinfo_set(reterr, r, "%s cannot be read: %s", path, strerror(-r));
	*ret = m;
	m.parts = (struct parts){0};
	return 0;
}
