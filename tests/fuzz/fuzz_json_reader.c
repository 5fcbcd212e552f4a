/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of strangers: what jansson takes the reader takes too, and what was read, written anew, reads
 * the same. */
#include <errno.h>
#include <jansson.h>

#include "fuzz.h"
#include "json/reader.h"
#include "json/writer.h"

#define TEXT_MAX_BYTES 4096

/* copy - reads all tokens and writes them; false if the text is not JSON. */
static bool copy(const char *s, size_t len, struct buf *out, int *ret_err)
{
	struct json_writer w = json_writer_to_buf(out);
	struct json_reader r;
	enum json_read t;

	json_reader_init(&r, s, len, TEXT_MAX_BYTES);
	while ((t = json_read(&r)) != JSON_READ_BAD && t != JSON_READ_END) {
		MUST(r.p <= r.end && r.depth <= JSON_READ_DEPTH);
		if (t == JSON_READ_NULL)
			json_put_null(&w);
		else if (t == JSON_READ_BOOL)
			json_put_bool(&w, r.b);
		else if (t == JSON_READ_INT)
			json_put_int(&w, r.i);
		else if (t == JSON_READ_REAL)
			json_put_double(&w, r.d == 0 ? 0 : r.d); /* "-0" reads as the number 0 */
		else if (t == JSON_READ_STRING)
			json_put_string_len(&w, buf_str(&r.text), r.text.len);
		else if (t == JSON_READ_OBJECT)
			json_begin_object(&w);
		else if (t == JSON_READ_OBJECT_END)
			json_end_object(&w);
		else if (t == JSON_READ_ARRAY)
			json_begin_array(&w);
		else if (t == JSON_READ_ARRAY_END)
			json_end_array(&w);
		else if (t == JSON_READ_KEY)
			json_key(&w, buf_str(&r.text));
	}
	MUST(json_read(&r) == t); /* both ends stick */
	*ret_err = r.err;
	MUST((t == JSON_READ_BAD) == (r.err != 0));
	json_reader_done(&r);
	if (t == JSON_READ_END)
		MUST(json_finish(&w) == 0 || w.err == -E2BIG);
	return t == JSON_READ_END && !w.err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf first = BUF_INIT(8 << 20), second = BUF_INIT(8 << 20);
	const char *s = (const char *)data;
	json_t *tree;
	int err;

	if (copy(s, size, &first, &err)) {
		MUST(copy(buf_str(&first), first.len, &second, &err));
		MUST(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
		return 0;
	}
	if (memchr(s, 0, size))
		return 0; /* which jansson takes for the end */
	tree = json_loadb(s, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (tree)
		MUST(err == -E2BIG || err == -ENOBUFS || err == 0);
	json_decref(tree);
	return 0;
}
