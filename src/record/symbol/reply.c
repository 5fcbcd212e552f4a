/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - looks at every number of an answer before it is used.
 *
 * Invariants:
 *  1. Reading goes through struct rest: never past the end of what came.
 *  2. A table is mapped only when its file is of this kernel's memory, of the size its numbers give
 *     and sealed: it can then neither shrink under the mapping (SIGBUS) nor change after checking.
 */
#include "record/symbol/exchange.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "record/symbol/handles.h"
#include "record/symbol/unwind_table.h"

#define ERRNO_MAX 4095

struct rest { /* what is still to be read */
	const uint8_t *at;
	size_t size;
};

static bool take(struct rest *r, void *out, size_t size)
{
	if (r->size < size)
		return false;
	memcpy(out, r->at, size);
	r->at += size;
	r->size -= size;
	return true;
}

static int bad(struct errinfo *reterr, const char *what)
{
	return errinfo_set(reterr, -EBADMSG, "invalid answer: %s", what);
}

/* What is left after an error is nothing. */
static int take_status(struct rest *r, struct protocol_status *ret, struct errinfo *reterr)
{
	struct protocol_status s;

	if (!take(r, &s, sizeof(s)) || s.err > 0 || s.err < -ERRNO_MAX || (s.err && r->size))
		return bad(reterr, "status");
	s.text[sizeof(s.text) - 1] = 0;
	*ret = s;
	return 0;
}

/* ---- identity ---- */

int reply_identity(const struct reply *r, struct symbol_identity *ret, struct errinfo *reterr)
{
	struct rest rest = {r->data, r->size};
	struct protocol_identity id = {0};
	struct protocol_status status;
	int err = take_status(&rest, &status, reterr);

	if (err < 0)
		return err;
	if (!status.err && (!take(&rest, &id, sizeof(id)) || rest.size))
		return bad(reterr, "length of an identity");
	if (id.build_id_len > IMAGE_BUILD_ID_MAX)
		return bad(reterr, "length of a build id");
	*ret = (struct symbol_identity){
		.err = status.err,
		.build_id_len = id.build_id_len,
		.load_base = id.load_base,
		.has_load_base = id.has_load_base != 0,
		.eh_frame_bytes = id.eh_frame_bytes,
		.text_bytes = id.text_bytes,
	};
	memcpy(ret->text, status.text, sizeof(ret->text));
	memcpy(ret->build_id, id.build_id, sizeof(ret->build_id));
	return 0;
}

/* ---- unwind table ---- */

static int map_table(int fd, struct reply_table *ret, struct errinfo *reterr)
{
	uint64_t longest = protocol_table_bytes(UNWIND_TABLE_ROWS_MAX, UNWIND_TABLE_RULES_MAX);
	struct statfs fs;
	struct stat st;
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	void *map;

	if (seals < 0 || (seals & PROTOCOL_SEALS) != PROTOCOL_SEALS || fstatfs(fd, &fs) < 0 ||
		fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return bad(reterr, "a table that is not sealed");
	if (st.st_size < (off_t)sizeof(struct protocol_table) || (uint64_t)st.st_size > longest)
		return bad(reterr, "size of a table");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*ret = (struct reply_table){map, (size_t)st.st_size};
	return 0;
}

void reply_table_done(struct reply_table *t)
{
	if (t->map)
		munmap(t->map, t->bytes);
	*t = (struct reply_table){0};
}

static bool rules_are_valid(const struct unwind_rule *rules, uint32_t count)
{
	if (count && rules[0].cfa != UNWIND_CFA_NONE)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (rules[i].cfa > UNWIND_CFA_SIGNAL || rules[i].fp > UNWIND_AT_FP ||
			rules[i].ra > UNWIND_AT_FP)
			return false;
	return true;
}

static bool rows_are_valid(const struct symbol_unwind *u)
{
	for (uint32_t i = 0; i < u->count; i++)
		if (u->rule[i] >= u->rule_count || u->address[i] == UNWIND_END ||
			(i && u->address[i] <= u->address[i - 1]))
			return false;
	return true;
}

static int check_table(
	const struct reply_table *t, struct symbol_unwind *ret, struct errinfo *reterr)
{
	const struct protocol_table *head = t->map;

	if (head->magic != PROTOCOL_MAGIC || head->count > UNWIND_TABLE_ROWS_MAX ||
		head->rule_count > UNWIND_TABLE_RULES_MAX ||
		t->bytes != protocol_table_bytes(head->count, head->rule_count))
		return bad(reterr, "counts of a table");
	ret->count = head->count;
	ret->rule_count = head->rule_count;
	ret->rules = (const struct unwind_rule *)(head + 1);
	ret->address = (const uint32_t *)(ret->rules + ret->rule_count);
	ret->rule = (const uint16_t *)(ret->address + ret->count);
	if (!rules_are_valid(ret->rules, ret->rule_count))
		return bad(reterr, "rules of a table");
	return rows_are_valid(ret) ? 0 : bad(reterr, "rows of a table");
}

int reply_unwind(const struct reply *r, int fd, struct symbol_unwind *ret,
	struct reply_table *ret_table, struct errinfo *reterr)
{
	struct rest rest = {r->data, r->size};
	struct symbol_unwind u = {0};
	struct reply_table table = {0};
	struct protocol_status status;
	int err = take_status(&rest, &status, reterr);

	if (err < 0)
		return err;
	if (rest.size || (status.err && fd >= 0))
		return bad(reterr, "length of a table's message");
	u.err = status.err;
	memcpy(u.text, status.text, sizeof(u.text));
	if (!status.err) {
		err = map_table(fd, &table, reterr);
		err = err ?: check_table(&table, &u, reterr);
	}
	if (err < 0) {
		reply_table_done(&table);
		return err;
	}
	*ret = u;
	*ret_table = table;
	return 0;
}

/* ---- handles ---- */

int reply_handles(const struct reply *r, struct symbol_handles *ret, struct errinfo *reterr)
{
	struct rest rest = {r->data, r->size};
	struct symbol_handles h = {0};
	struct protocol_handles head = {0};
	struct protocol_status status;
	int err = take_status(&rest, &status, reterr);

	if (err < 0)
		return err;
	h.err = status.err;
	if (!status.err) {
		if (!take(&rest, &head, sizeof(head)) || rest.size % sizeof(uint64_t) ||
			rest.size / sizeof(uint64_t) > HANDLES_MAX)
			return bad(reterr, "number of handles");
		/* to where the answer began: what stood there has been read */
		h.count = rest.size / sizeof(uint64_t);
		h.vaddr = memmove(r->data, rest.at, rest.size);
		h.text_offset = head.text_offset;
		h.text_vaddr = head.text_vaddr;
	}
	for (size_t i = 1; i < h.count; i++)
		if (h.vaddr[i] <= h.vaddr[i - 1])
			return bad(reterr, "order of handles");
	*ret = h;
	return 0;
}

/* ---- frames ---- */

/* *ret is NULL where there is no text. */
static bool take_text(struct rest *r, uint16_t len, const char **ret)
{
	*ret = NULL;
	if (len == PROTOCOL_NO_TEXT)
		return true;
	if (len > NAMES_TEXT_MAX || r->size <= len || r->at[len])
		return false;
	*ret = (const char *)r->at;
	r->at += len + 1;
	r->size -= len + 1u;
	return true;
}

static bool take_frames(struct rest *r, struct symbol_frames *out)
{
	uint8_t count;

	if (!take(r, &count, 1) || count > NAMES_INLINE_MAX)
		return false;
	for (uint8_t i = 0; i < count; i++) {
		struct protocol_frame f;

		if (!take(r, &f, sizeof(f)) ||
			!take_text(r, f.function_len, &out->frame[i].function) ||
			!take_text(r, f.file_len, &out->frame[i].file))
			return false;
		out->frame[i].line = f.line;
		out->frame[i].from_start = f.from_start;
	}
	out->count = count;
	return true;
}

int reply_frames(const struct reply *r, struct symbol_frames *out, size_t count, int *ret_err,
	struct errinfo *reterr)
{
	struct rest rest = {r->data, r->size};
	struct protocol_status status;
	int err = take_status(&rest, &status, reterr);

	if (err < 0)
		return err;
	for (size_t i = 0; i < count; i++) {
		out[i].count = 0;
		if (!status.err && !take_frames(&rest, &out[i]))
			return bad(reterr, "frames");
	}
	if (rest.size)
		return bad(reterr, "more frames than were asked for");
	*ret_err = status.err;
	return 0;
}

/* ---- places ---- */

int reply_places(const struct reply *r, struct symbol_place *out, size_t count, int *ret_err,
	struct errinfo *reterr)
{
	struct rest rest = {r->data, r->size};
	struct protocol_status status;
	int err = take_status(&rest, &status, reterr);

	if (err < 0)
		return err;
	if (!status.err && rest.size != count * sizeof(struct protocol_place))
		return bad(reterr, "number of places");
	for (size_t i = 0; i < count; i++) {
		struct protocol_place p = {0};

		take(&rest, &p, sizeof(p));
		out[i] = (struct symbol_place){
			.found = p.found != 0,
			.has_content = p.found && p.has_content,
			.vaddr = p.vaddr,
			.size = p.size,
		};
		memcpy(out[i].content, p.content, sizeof(out[i].content));
	}
	*ret_err = status.err;
	return 0;
}
