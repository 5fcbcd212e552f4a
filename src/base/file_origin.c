/* SPDX-License-Identifier: Apache-2.0 */
/* file_origin.c - see file_origin.h. A mount is found by its number, which statx(2) tells from memory. Devices do not
 * help: btrfs and overlay show others in stat(2) than in mountinfo. But one with a major number is a disk. */
#include "base/file_origin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define MOUNTINFO_MAX (16 << 20) /* of lines up to 4 KiB: overlay's */

/* "fuse.sshfs NAME rw,user_id=1000,group_id=1000,allow_other" */
static enum file_origin judge(const char *type, bool is_ours)
{
	size_t len = strcspn(type, "\n");
	const char *options = memrchr(type, ' ', len);
	const char *user = options ? strstr(options, ",user_id=") : NULL;

	if (strncmp(type, "fuse", 4) != 0)
		return FILE_ORIGIN_TRUSTED;
	return is_ours && user && user < type + len && !strncmp(user, ",user_id=0,", 11)
		       ? FILE_ORIGIN_TRUSTED
		       : FILE_ORIGIN_USERS;
}

enum file_origin file_origin_judge(const char *text, uint64_t mount, bool is_ours)
{
	const char *type;
	char *end;

	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		uint64_t number = strtoull(line, &end, 10);
		bool is_it = end > line && *end == ' ' && number == mount;

		end = (char *)line + strcspn(line, "\n");
		type = is_it ? strstr(line, " - ") : NULL; /* spaces in names are escaped */
		if (type && type < end)
			return judge(type + 3, is_ours);
	}
	return FILE_ORIGIN_UNKNOWN;
}

static enum file_origin look(const char *path, uint64_t mount, bool is_ours)
{
	_cleanup_buf_ struct buf text = BUF_INIT(MOUNTINFO_MAX);

	if (file_read(path, MOUNTINFO_MAX, &text) < 0)
		return FILE_ORIGIN_UNKNOWN;
	return file_origin_judge(buf_str(&text), mount, is_ours);
}

int file_origin(int fd, const char *mountinfo, struct statx *ret)
{
	const char *const ours[] = {"/proc/self/mountinfo", "/proc/1/mountinfo"};
	enum file_origin o = FILE_ORIGIN_UNKNOWN;
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID,
		    &st) < 0)
		return -errno;
	*ret = st;
	if (st.stx_dev_major)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(ours) && o == FILE_ORIGIN_UNKNOWN; i++)
		o = look(ours[i], st.stx_mnt_id, true);
	if (o == FILE_ORIGIN_UNKNOWN && mountinfo)
		o = look(mountinfo, st.stx_mnt_id, false);
	return o == FILE_ORIGIN_TRUSTED ? 0 : -EREMOTE;
}
