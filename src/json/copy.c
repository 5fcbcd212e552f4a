/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - see copy.h. No recursion: the reader counts the levels. */
#include "json/copy.h"

static void put(struct json_reader *r, enum json_read token, struct json_writer *w)
{
	switch (token) {
	case JSON_READ_NULL: json_put_null(w); break;
	case JSON_READ_BOOL: json_put_bool(w, r->b); break;
	case JSON_READ_INT: json_put_int(w, r->i); break;
	case JSON_READ_REAL: json_put_double(w, r->d); break;
	case JSON_READ_STRING: json_put_string_len(w, buf_str(&r->text), r->text.len); break;
	case JSON_READ_KEY: json_key(w, buf_str(&r->text)); break;
	case JSON_READ_OBJECT: json_begin_object(w); break;
	case JSON_READ_OBJECT_END: json_end_object(w); break;
	case JSON_READ_ARRAY: json_begin_array(w); break;
	case JSON_READ_ARRAY_END: json_end_array(w); break;
	case JSON_READ_BAD:
	case JSON_READ_END: break;
	}
}

bool json_copy_value(struct json_reader *r, enum json_read token, struct json_writer *w)
{
	bool nested = token == JSON_READ_OBJECT || token == JSON_READ_ARRAY;
	unsigned outside = r->depth - 1;

	put(r, token, w);
	while (nested && r->depth > outside) {
		token = json_read(r);
		if (token == JSON_READ_BAD)
			return false;
		put(r, token, w);
	}
	return token != JSON_READ_BAD;
}
