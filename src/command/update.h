/* SPDX-License-Identifier: Apache-2.0 */
/* update.h - is there a newer version? Off unless ingero.yaml says so, and asked of nobody but the
 * address there: this program talks to no host that its operator did not name.
 *
 *   update:
 *     check: true                 # a notice after trace, demo, explain and check, on a terminal
 *     url: https://example.com/ingero/latest
 *     ca_cert: ca.pem             # optional
 *
 * The address answers with a version ("0.2.0"), or with JSON that has tag_name or version.
 *
 * The notice never delays a command: what it says is in ~/.ingero/update-check; a process in the
 * background fetches it anew, at most once in 24 h, and never as root. $INGERO_NO_UPDATE_NOTIFIER
 * turns it off. */
#pragma once

#include "base/errinfo.h"
#include "command/option.h"

#define UPDATE_VERSION_MAX 64

/* update_is_newer - whether version @a comes after @b: numbers between dots, a "v" in front; what
 * stands behind '-' (a pre-release) comes before the same without it. */
bool update_is_newer(const char *a, const char *b);

/* update_parse - the version in what the address answered. -EBADMSG: there is none. */
int update_parse(const char *text, char ret[UPDATE_VERSION_MAX]);

/* update_begin - before a command that people look at: begins the process in the background if
 * it is time. Call it while there is one thread. */
void update_begin(void);

/* update_end - after it: the notice, if a newer version is known. */
void update_end(void);

/* The command `version`, the same in each program. */

extern const struct command cmd_version;
