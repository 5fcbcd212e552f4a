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
	X(address, "/js/address.js", "js/address.js", WEB_JS)                                      \
	X(app, "/js/app.js", "js/app.js", WEB_JS)                                                  \
	X(boot, "/js/boot.js", "js/boot.js", WEB_JS)                                               \
	X(chart, "/js/chart.js", "js/chart.js", WEB_JS)                                            \
	X(choices, "/js/choices.js", "js/choices.js", WEB_JS)                                      \
	X(client, "/js/client.js", "js/client.js", WEB_JS)                                         \
	X(compare, "/js/compare.js", "js/compare.js", WEB_JS)                                      \
	X(dom, "/js/dom.js", "js/dom.js", WEB_JS)                                                  \
	X(evidence, "/js/evidence.js", "js/evidence.js", WEB_JS)                                   \
	X(flame, "/js/flame.js", "js/flame.js", WEB_JS)                                            \
	X(flame_panel, "/js/flame_panel.js", "js/flame_panel.js", WEB_JS)                          \
	X(format, "/js/format.js", "js/format.js", WEB_JS)                                         \
	X(graphs, "/js/graphs.js", "js/graphs.js", WEB_JS)                                         \
	X(hardware, "/js/hardware.js", "js/hardware.js", WEB_JS)                                   \
	X(health, "/js/health.js", "js/health.js", WEB_JS)                                         \
	X(incidents, "/js/incidents.js", "js/incidents.js", WEB_JS)                                \
	X(operations, "/js/operations.js", "js/operations.js", WEB_JS)                             \
	X(parts, "/js/parts.js", "js/parts.js", WEB_JS)                                            \
	X(ranks, "/js/ranks.js", "js/ranks.js", WEB_JS)                                            \
	X(readable, "/js/readable.js", "js/readable.js", WEB_JS)                                   \
	X(recording, "/js/recording.js", "js/recording.js", WEB_JS)                                \
	X(sql, "/js/sql.js", "js/sql.js", WEB_JS)                                                  \
	X(steps, "/js/steps.js", "js/steps.js", WEB_JS)                                            \
	X(timeline, "/js/timeline.js", "js/timeline.js", WEB_JS)                                   \
	X(timeline_draw, "/js/timeline_draw.js", "js/timeline_draw.js", WEB_JS)                    \
	X(timeline_event, "/js/timeline_event.js", "js/timeline_event.js", WEB_JS)                 \
	X(timeline_input, "/js/timeline_input.js", "js/timeline_input.js", WEB_JS)                 \
	X(timeline_rows, "/js/timeline_rows.js", "js/timeline_rows.js", WEB_JS)
/* clang-format on */

/* For the assembler: files in read-only data, each between web_X and web_X_end. */
/* clang-format off */
#define EMBED(symbol, path_, file_, type_)                                                         \
	.global web_##symbol; .type web_##symbol, %object;                                         \
	web_##symbol: .incbin file_; .size web_##symbol, . - web_##symbol;                         \
	.global web_##symbol##_end; web_##symbol##_end: .byte 0;
/* clang-format on */
