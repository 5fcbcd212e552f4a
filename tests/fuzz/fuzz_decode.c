/* SPDX-License-Identifier: Apache-2.0 */
/* Records as they come out of the kernel's rings: events, and code objects of Python. Half the
 * inputs are given the size and version they would be refused for otherwise. */
#include <errno.h>

#include "record/capture/reader.h"
#include "record/stack/code.h"
#include "fuzz.h"

static const size_t sizes[] = {sizeof(struct wire_call), sizeof(struct wire_sched),
	sizeof(struct wire_block), sizeof(struct wire_nccl), sizeof(struct wire_net),
	sizeof(struct wire_tcp), sizeof(struct wire_process)};

static void check_event(void *record, size_t len)
{
	static const struct clock_map clock = {.offset_ns = 1700000000000000000};
	struct collective c, c_again;
	struct event e, again, untouched;
	char peer[EVENT_PEER_MAX];

	memset(&e, 0xa5, sizeof(e));
	untouched = e;
	if (decode_event(record, len, &clock, &e, &c) < 0) {
		MUST(memcmp(&e, &untouched, sizeof(e)) == 0);
		return;
	}
	MUST(strnlen(e.comm, sizeof(e.comm)) < sizeof(e.comm));
	MUST(strnlen(event_peer_comm(&e), COMM_LEN) < COMM_LEN);
	MUST(strlen(event_peer(&e, peer)) < sizeof(peer));
	/* What lay where it is decoded to does not shine through. */
	memset(&again, 0x5a, sizeof(again));
	MUST(decode_event(record, len, &clock, &again, &c_again) == 0);
	MUST(strcmp(e.comm, again.comm) == 0 && e.family == again.family);
	MUST(memcmp(e.peer_comm, again.peer_comm, COMM_LEN) == 0);
	MUST(e.arg0 == again.arg0 && e.arg1 == again.arg1 && e.dur_ns == again.dur_ns);
}

static void check_code(const void *record, size_t len)
{
	const struct stack_record_code *r = record;
	struct intern texts = INTERN_INIT(1 << 20);
	struct stack_codes *codes = NULL;
	const struct stack_code *code;

	MUST(stack_codes_new(&texts, &codes) == 0);
	if (stack_codes_take(codes, record, len) == 0) {
		code = stack_codes_find(codes, r->h.pid, r->code, r->lines);
		MUST(code && code->lines_bytes <= len);
		MUST(memcmp(code->lines, r->line_table, code->lines_bytes) == 0);
		MUST(stack_codes_take(codes, record, len) == 0); /* once more replaces it */
	}
	stack_codes_free(codes);
	intern_done(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *record = NULL;
	struct wire_header *h;
	uint8_t how;

	if (size < 1)
		return 0;
	how = data[0];
	size--;
	record = malloc(size ? size : 1);
	MUST(record);
	memcpy(record, data + 1, size);
	if (how & 0x80) {
		check_code(record, size);
		return 0;
	}
	h = (struct wire_header *)record;
	if (how & 1 && size >= sizeof(*h)) {
		h->size = (uint16_t)sizes[how / 2 % ARRAY_SIZE(sizes)];
		h->version = WIRE_VERSION;
	}
	check_event(record, size);
	return 0;
}
