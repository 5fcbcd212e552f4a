/* SPDX-License-Identifier: Apache-2.0 */
/* web.h - pages: files that are part of the program. The dashboard's and the cluster's.
 *
 * To add a file: put it in src/web/page (the cluster's own: src/web/cluster/page), a row in the site's
 * files.h, its name in meson.build. */
#pragma once

#include "net/server/server.h"

/* What a page needs, and nothing more: no script or style in the document itself, nothing from
 * another server, no frames. */
#define WEB_POLICY                                                                                 \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "            \
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

#define WEB_TAG_BYTES sizeof("\"0123456789abcdef\"")

struct web_file {
	const char *path, *type;  /* "/js/app.js", "text/javascript; charset=utf-8" */
	const char *data, *end;   /* followed by a 0 */
	char etag[WEB_TAG_BYTES]; /* with its quotes; changes with the content */
	size_t len;
};

struct web_site {
	struct web_file *files;
	size_t count;
	bool ready; /* lengths and tags are there */
};

extern struct web_site web_dashboard, web_cluster;

/* web_find - the file of @s at @path; "/" and "/index.html" are one. NULL if there is none. It lives
 * as long as the program. */
const struct web_file *web_find(struct web_site *s, const char *path);

/* web_next - the file after @f, the first after NULL; NULL after the last. */
const struct web_file *web_next(struct web_site *s, const struct web_file *f);

/* web_reply - answers @x with the file of @s that @q asks for; 404 if there is none. */
void web_reply(struct web_site *s, struct http_exchange *x, const struct http_request *q);
