/* SPDX-License-Identifier: Apache-2.0 */
/* decode_name.c - see decode_name.h. The kernel half is ours, the text is a stranger's: any bytes. */
#include "record/capture/decode_name.h"

#include <errno.h>
#include <string.h>

int decode_name(
	const void *data, size_t len, const struct clock_map *clock, struct name_record *ret)
{
	const struct wire_name *n = data;
	size_t room;

	if (len < sizeof(*n) || n->h.version != WIRE_VERSION || n->h.size > len ||
		n->h.size < sizeof(*n) || n->kind < NAME_OF_FUNCTION || n->kind > NAME_TEXT)
		return -EBADMSG;
	room = n->h.size - sizeof(*n);
	if (n->kind == NAME_ALIAS ? room != 0 : !memchr(n->text, 0, room))
		return -EBADMSG;
	*ret = (struct name_record){
		.kind = (enum wire_name_kind)n->kind,
		.source = n->h.source,
		.pid = n->h.pid,
		.at = clock_map_wall(clock, (mono_time){n->h.start_ns}),
		.key = n->key,
		.other = n->other,
		.is_cut = n->is_cut,
		.text = n->kind == NAME_ALIAS ? "" : n->text,
	};
	return 0;
}
