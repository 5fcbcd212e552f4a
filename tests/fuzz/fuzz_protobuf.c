/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf of a receiver: a message that is read whole can be written from its fields and reads the
 * same; and what an OTLP receiver answers, in both encodings. */
#include "base/text.h"
#include "fuzz.h"
#include "otlp/otlp_metric.h"
#include "protobuf/pb.h"

/* copy - writes every field of the message again. 0, or the reader's fault. */
static int copy(const void *data, size_t size, struct buf *out)
{
	struct pb_reader r = pb_reader_of(data, size);
	struct pb_field f;

	while (pb_next(&r, &f)) {
		MUST(r.at <= r.end && f.number);
		if (f.type == PB_VARINT)
			pb_put_varint(out, f.number, f.value);
		else if (f.type == PB_FIXED64)
			pb_put_fixed64(out, f.number, f.value);
		else if (f.type == PB_FIXED32)
			pb_put_fixed32(out, f.number, (uint32_t)f.value);
		else
			pb_put_bytes(out, f.number, f.data, f.len);
	}
	MUST(!pb_next(&r, &f)); /* a fault stays */
	return r.err;
}

/* walk - every field as whatever it may be asked for, messages in it included. */
static void walk(struct pb_reader *r)
{
	struct pb_field f;
	size_t len;

	while (pb_next(r, &f)) {
		struct pb_reader probe = *r, inner;

		pb_int(&probe, &f);
		pb_double(&probe, &f);
		probe = *r;
		if (pb_string(&probe, &f, &len))
			MUST(len == f.len);
		probe = *r;
		for (size_t i = 0, n = pb_packed(&probe, &f); i < n; i++)
			pb_packed_at(&f, i);
		if (f.type != PB_BYTES)
			continue;
		inner = pb_enter(r, &f);
		walk(&inner);
		if (inner.err) /* bytes that are no message are no fault of the outer one here */
			continue;
		pb_leave(r, &inner);
	}
}

static void check_answer(int r, const struct otlp_answer *a)
{
	uint32_t cp;
	int n;

	if (r < 0)
		return;
	MUST(strnlen(a->message, sizeof(a->message)) < sizeof(a->message));
	for (const char *p = a->message; *p; p += n) {
		n = text_utf8_next(p, strlen(p), &cp);
		MUST(n > 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf first = BUF_INIT(8 << 20), second = BUF_INIT(8 << 20);
	struct pb_reader r = pb_reader_of(data, size);
	struct otlp_answer a = {0};

	if (copy(data, size, &first) == 0) {
		MUST(copy(buf_str(&first), first.len, &second) == 0);
		MUST(first.len == second.len);
		MUST(!first.len || memcmp(first.data, second.data, first.len) == 0);
	}
	walk(&r);
	check_answer(otlp_answer_protobuf(data, size, &a), &a);
	a = (struct otlp_answer){0};
	check_answer(otlp_answer_json((const char *)data, size, &a), &a);
	return 0;
}
