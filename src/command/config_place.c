/* SPDX-License-Identifier: Apache-2.0 */
/* config_place.c - which ingero.yaml is read, and which is left alone: see config_file.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "command/config_file.h"
#include "command/program.h"

static const char *chosen;

void config_file_choose(const char *path)
{
	chosen = path;
}

static bool is_owner(uid_t owner)
{
	const char *sudo = getenv("SUDO_UID");
	uid_t me = geteuid();

	return owner == 0 || owner == me ||
	       (me == 0 && sudo && *sudo && owner == (uid_t)strtoul(sudo, NULL, 10));
}

/* Whether a file that was found, not named, may be used. */
static bool is_trusted(const char *path, size_t place, const struct stat *st)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *why = !is_owner(st->st_uid)   ? "another user owns it"
			  : st->st_mode & S_IWOTH ? "it is world-writable"
						  : NULL;

	static bool told[3]; /* of the places: it is looked for more than once */

	if (!why)
		return true;
	if (told[place])
		return false;
	told[place] = true;
	text_escape_terminal(&b, path);
	fprintf(stderr, "%s%s: %s is ignored: %s; use --config to read it anyway\n",
		log_mark(LOG_LEVEL_WARNING), program_running()->name, buf_str(&b), why);
	return false;
}

static bool find(char *out, size_t size)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char own[PATH_MAX] = "";
	const char *const places[] = {"./ingero.yaml", "/etc/ingero/ingero.yaml", own};
	struct stat st;

	if (xdg && xdg[0] == '/')
		snprintf(own, sizeof(own), "%s/ingero/ingero.yaml", xdg);
	else if (home && home[0] == '/')
		snprintf(own, sizeof(own), "%s/.config/ingero/ingero.yaml", home);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!places[i][0] || stat(places[i], &st) < 0 || !is_trusted(places[i], i, &st))
			continue;
		snprintf(out, size, "%s", places[i]);
		return true;
	}
	return false;
}

int config_file_load(struct config **ret, struct errinfo *reterr)
{
	const char *named = chosen ? chosen : getenv("INGERO_CONFIG");
	char found[PATH_MAX];

	if (named && named[0])
		return config_file_read(named, NULL, 0, ret, reterr);
	if (find(found, sizeof(found)))
		return config_file_read(found, NULL, 0, ret, reterr);
	*ret = config_new();
	return *ret ? 0 : errinfo_set(reterr, -ENOMEM, "not enough memory");
}
