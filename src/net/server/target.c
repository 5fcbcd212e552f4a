/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - see target.h. */
#include "net/server/target.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "net/http.h"

static char empty[] = "";
static char root[] = "/";

/* Segments "." and ".." mean something to files and nothing here: whoever sends them is guessing.
 */
static bool has_dots(const char *path)
{
	for (const char *p = path; (p = strchr(p, '/')); p++) {
		size_t len = strcspn(p + 1, "/");

		if (len <= 2 && len > 0 && strspn(p + 1, ".") >= len)
			return true;
	}
	return false;
}

static int decode_path(char *path)
{
	size_t len = strlen(path);
	int r = http_unescape(path, len, false, path, len + 1);

	if (r < 0)
		return -EINVAL;
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return -EINVAL;
	return has_dots(path) ? -EINVAL : 0;
}

/* take_authority - of "http://host/path": moves behind it. */
static int take_authority(char **text, char **ret_authority)
{
	size_t scheme = strncasecmp(*text, "http://", 7) == 0    ? 7
			: strncasecmp(*text, "https://", 8) == 0 ? 8
								 : 0;
	char *host = *text + scheme;
	size_t len = strcspn(host, "/?");

	if (!scheme || len == 0)
		return -EINVAL;
	/* One place to the left makes room for the NUL; the scheme is not needed any more. */
	memmove(host - 1, host, len);
	host[len - 1] = 0;
	*ret_authority = host - 1;
	*text = host + len;
	return 0;
}

int target_parse(char *text, struct target *ret)
{
	struct target t = {.query = empty};
	char *query;

	if (text[0] != '/' && strcmp(text, "*") != 0 && take_authority(&text, &t.authority) < 0)
		return -EINVAL;
	query = strchr(text, '?');
	if (query) {
		*query = 0;
		t.query = query + 1;
	}
	t.path = *text ? text : root;
	if (strchr(t.query, '#') || strchr(t.path, '#'))
		return -EINVAL;
	if (t.path != root && decode_path(t.path) < 0)
		return -EINVAL;
	*ret = t;
	return 0;
}
