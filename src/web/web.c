/* SPDX-License-Identifier: Apache-2.0 */
/* web.c - see web.h. An entity tag is a hash of the content, made at the first look, so that a
 * browser that has a file asks only whether it is still the same. Any thread may look. */
#include "web/web.h"

#include "base/hash.h"
#include "base/mutex.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void make_ready(struct web_site *s)
{
	MUTEX_HELD(&lock);

	for (size_t i = 0; !s->ready && i < s->count; i++) {
		struct web_file *f = &s->files[i];

		f->len = (size_t)(f->end - f->data);
		snprintf(f->etag, sizeof(f->etag), "\"%016" PRIx64 "\"",
			hash_bytes(f->data, f->len));
	}
	s->ready = true;
}

const struct web_file *web_next(struct web_site *s, const struct web_file *f)
{
	make_ready(s);
	if (!f)
		return s->files;
	return ++f < s->files + s->count ? f : NULL;
}

const struct web_file *web_find(struct web_site *s, const char *path)
{
	const struct web_file *f = NULL;

	if (!strcmp(path, "/index.html"))
		path = "/";
	while ((f = web_next(s, f)))
		if (!strcmp(f->path, path))
			return f;
	return NULL;
}

void web_reply(struct web_site *s, struct http_exchange *x, const struct http_request *q)
{
	const struct web_file *f = web_find(s, q->path);
	const char *have = http_head_get(&q->head, "if-none-match");

	if (!f) {
		http_reply_error(x, 404, "no such path");
		return;
	}
	http_reply_field(x, "content-security-policy", WEB_POLICY);
	http_reply_field(x, "etag", f->etag);
	http_reply_field(x, "cache-control", "no-cache"); /* ask, but need not fetch */
	if (have && !strcmp(have, f->etag))
		http_reply(x, 304, f->type, NULL, 0);
	else
		http_reply(x, 200, f->type, f->data, f->len);
}
