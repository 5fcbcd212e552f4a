/* SPDX-License-Identifier: Apache-2.0 */
/* dashboard.c - the files of the dashboard's page (files.h). */
#include "base/macros.h"
#include "web/files.h"
#include "web/web.h"

#define X(symbol, ...) extern const char web_##symbol[], web_##symbol##_end[];
WEB_FILES(X)
#undef X

static struct web_file files[] = {
#define X(symbol, path_, file_, type_)                                                             \
	{.path = path_, .type = type_, .data = web_##symbol, .end = web_##symbol##_end},
	WEB_FILES(X)
#undef X
};

struct web_site web_dashboard = {.files = files, .count = ARRAY_SIZE(files)};
