/* SPDX-License-Identifier: Apache-2.0 */
/* elfsym_linked.c - where an ELF file says that its libraries are. Hostile input, as in elfsym.c: every offset is
 * checked by elfsym_read(), counts and lengths have ceilings. */
#include "record/discover/elfsym_private.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

#define ENTRIES_MAX 4096 /* of the dynamic section */
#define STRING_MAX  4096

static int find_dynamic(const struct elfsym *e, uint64_t *ret_offset, size_t *ret_count)
{
	for (size_t i = 0; i < e->segment_count; i++)
		if (e->segments[i].p_type == PT_DYNAMIC) {
			*ret_offset = e->segments[i].p_offset;
			*ret_count = MIN(
				e->segments[i].p_filesz / sizeof(Elf64_Dyn), (uint64_t)ENTRIES_MAX);
			return 0;
		}
	return -ENOENT;
}

/* The string at @at, which is cut where the file ends. */
static int read_string(struct elfsym *e, uint64_t at, char out[STRING_MAX])
{
	size_t len = at < e->size ? MIN(e->size - at, (uint64_t)STRING_MAX - 1) : 0;
	int r = len ? elfsym_read(e, at, out, len) : -EBADMSG;

	out[r < 0 ? 0 : len] = 0;
	return r;
}

int elfsym_linked(struct elfsym *e, struct buf *folders, struct buf *names)
{
	uint64_t at = 0, strings = 0;
	char text[STRING_MAX];
	size_t count = 0;
	Elf64_Dyn d;
	int r = find_dynamic(e, &at, &count);

	for (size_t i = 0; r == 0 && !strings && i < count; i++) {
		r = elfsym_read(e, at + i * sizeof(d), &d, sizeof(d));
		if (r == 0 && d.d_tag == DT_STRTAB)
			strings = elfsym_file_offset(e, d.d_un.d_ptr, PF_R);
	}
	if (r == 0 && !strings)
		return -EBADMSG;
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = elfsym_read(e, at + i * sizeof(d), &d, sizeof(d));
		if (r < 0 || d.d_tag == DT_NULL)
			break;
		if (d.d_tag != DT_NEEDED && d.d_tag != DT_RPATH && d.d_tag != DT_RUNPATH)
			continue;
		if (d.d_un.d_val > e->size)
			return -EBADMSG;
		r = read_string(e, strings + d.d_un.d_val, text);
		if (r == 0 && d.d_tag == DT_NEEDED) {
			buf_append(names, text, strlen(text) + 1);
		} else if (r == 0) {
			buf_puts(folders, folders->len ? ":" : "");
			buf_puts(folders, text);
		}
	}
	return r;
}
