/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - the one list of the page's files: the assembler embeds them (files.S), web.c finds
 * them. */
#pragma once

#define WEB_HTML "text/html; charset=utf-8"
#define WEB_CSS  "text/css; charset=utf-8"
#define WEB_JS   "text/javascript; charset=utf-8"
#define WEB_SVG  "image/svg+xml"

/* X(symbol, path, file, type) */
/* clang-format off */
#define WEB_FILES(X)                                                                               \
	X(index, "/", "index.html", WEB_HTML)                                                      \
	X(style, "/style.css", "style.css", WEB_CSS)                                               \
	X(icon, "/icon.svg", "icon.svg", WEB_SVG)                                                  \
	X(app, "/js/app.js", "js/app.js", WEB_JS)
/* clang-format on */
