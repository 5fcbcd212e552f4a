/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a recording's columns hold in a form of their own: sketches, stacks, steps. */
#include "answer/incidents.h"
#include "store/nodedb.h"
#include "fuzz.h"
#include "stat/sketch.h"

static void check_sketch(const uint8_t *data, size_t size)
{
	static struct sketch s, again;
	uint8_t blob[SKETCH_BLOB_MAX];
	size_t len;

	memset(&s, 0, sizeof(s));
	memset(&again, 0, sizeof(again));
	if (sketch_decode(&s, data, size) < 0) {
		MUST(memcmp(&s, &again, sizeof(s)) == 0);
		return;
	}
	len = sketch_encode(&s, blob);
	MUST(len <= sizeof(blob));
	MUST(sketch_decode(&again, blob, len) == 0);
	MUST(again.count == s.count && memcmp(again.hist, s.hist, sizeof(s.hist)) == 0);
	sketch_quantile(&s, 0.99);
}

static void check_stack(const char *text, size_t size)
{
	const struct stack_row row = {1, "", text, "", 0, size, 0},
			       ips = {1, text, "", "", size, 0, 0};
	_cleanup_buf_ struct buf out = BUF_INIT(4 * STACK_JSON_MAX), stop = BUF_INIT(4096);
	_cleanup_free_ struct stack *s = NULL, *again = NULL, *bare = NULL;
	struct stack_row written;

	stack_json_read(&ips, &bare);
	if (stack_json_read(&row, &s) < 0) {
		MUST(!s);
		return;
	}
	MUST(s->count <= STACK_FRAMES_MAX);
	stack_json_frames(s, &out, &stop);
	MUST(!out.err && out.len <= STACK_JSON_MAX);
	written = (struct stack_row){1, "", buf_str(&out), "", 0, out.len, 0};
	MUST(stack_json_read(&written, &again) == 0);
	if (!stop.len)
		MUST(again->count == s->count);
}

static void check_steps(const char *text)
{
	struct chain_step step;
	size_t count = 0;

	for (const char *p = text; (p = chain_step_next(p, &step)); count++) {
		MUST(step.layer >= text && step.layer + step.layer_len <= p);
		MUST(step.detail + step.detail_len <= p);
		MUST(count < strlen(text) + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = fuzz_text(data, size);

	check_sketch(data, size);
	check_stack(text, size);
	check_steps(text);
	return 0;
}
