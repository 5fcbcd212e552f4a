/* SPDX-License-Identifier: Apache-2.0 */
/* web.h - the dashboard's page: files that are part of the program.
 *
 * To add a file: put it in src/web/page, a row in files.h, its name in meson.build. */
#pragma once

#include <stddef.h>

/* What the page needs, and nothing more: no script or style in the document itself, nothing from
 * another server, no frames. Send it as Content-Security-Policy with every file. */
#define WEB_POLICY                                                                                 \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "            \
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct web_file {
	const char *path, *type; /* "/js/app.js", "text/javascript; charset=utf-8" */
	const char *etag;        /* with its quotes; changes with the content */
	const void *data;
	size_t len;
};

/* web_find - the file at @path; "/" and "/index.html" are one. NULL if there is none. It lives as
 * long as the program. */
const struct web_file *web_find(const char *path);

/* web_next - the file after @f, the first after NULL; NULL after the last. */
const struct web_file *web_next(const struct web_file *f);
