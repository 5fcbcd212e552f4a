/* SPDX-License-Identifier: Apache-2.0 */
/* What the symbol process answers, after a file has taken it over: every text and number that the
 * agent gets lies inside the answer. */
#include <fcntl.h>
#include <sys/mman.h>

#include "record/symbol/protocol.h"
#include "record/symbol/exchange.h"
#include "fuzz.h"

static void check_frames(const struct reply *r)
{
	static struct symbol_frames frames[SYMBOL_OFFSETS_MAX];
	const char *data = (const char *)r->data;
	size_t count = r->size % 8 + 1;
	struct errinfo e = {0};
	int err = 0;

	if (reply_frames(r, frames, count, &err, &e) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		MUST(frames[i].count <= NAMES_INLINE_MAX);
		for (unsigned k = 0; k < frames[i].count; k++) {
			const struct names_frame *f = &frames[i].frame[k];

			if (f->function)
				MUST(f->function >= data &&
					memchr(f->function, 0,
						r->size - (size_t)(f->function - data)));
			if (f->file)
				MUST(f->file >= data &&
					memchr(f->file, 0, r->size - (size_t)(f->file - data)));
		}
	}
}

static void check_unwind(const struct reply *r, const uint8_t *table, size_t size)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct reply_table keep = {0};
	struct symbol_unwind u = {0};
	struct errinfo e = {0};

	MUST(fd >= 0 && write(fd, table, size) == (ssize_t)size);
	MUST(fcntl(fd, F_ADD_SEALS, PROTOCOL_SEALS) == 0);
	if (reply_unwind(r, fd, &u, &keep, &e) == 0 && !u.err)
		for (uint32_t i = 0; i < u.count; i++) {
			MUST(u.rule[i] < u.rule_count);
			MUST(i == 0 || u.address[i - 1] < u.address[i]);
		}
	reply_table_done(&keep);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *copy = malloc(size ? size : 1);
	struct symbol_place places[SYMBOL_NAMES_MAX];
	struct reply r = {copy, size}, status;
	struct symbol_identity id = {0};
	struct protocol_status ok = {0};
	struct errinfo e = {0};
	int err;

	MUST(copy);
	memcpy(copy, data, size);
	if (reply_identity(&r, &id, &e) == 0)
		MUST(id.build_id_len <= IMAGE_BUILD_ID_MAX &&
			strnlen(id.text, sizeof(id.text)) < sizeof(id.text));
	check_frames(&r);
	reply_places(&r, places, 1 + size % SYMBOL_NAMES_MAX, &err, &e);
	status = (struct reply){(uint8_t *)&ok, sizeof(ok)};
	check_unwind(&status, data, size);
	return 0;
}
