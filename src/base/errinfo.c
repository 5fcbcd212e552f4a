/* SPDX-License-Identifier: Apache-2.0 */
/* errinfo.c - sentences for people and the exit code that goes with them. No state. */
#include "base/errinfo.h"

static void write_text(struct errinfo *e, int code, const char *fmt, va_list ap)
{
	if (!e)
		return;
	e->exit_code = code;
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
}

int errinfo_set(struct errinfo *reterr, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_text(reterr, 0, fmt, ap);
	va_end(ap);
	return err;
}

int errinfo_set_exit(struct errinfo *reterr, enum exit_code code, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_text(reterr, code, fmt, ap);
	va_end(ap);
	return err;
}

int errinfo_exit_code(const struct errinfo *e, int err)
{
	static const struct {
		int err;
		enum exit_code code;
	} map[] = {
		{EINVAL, EXIT_USAGE},
		{EBADMSG, EXIT_BAD_DATA},
		{EISDIR, EXIT_BAD_DATA},
		{ENOENT, EXIT_NO_INPUT},
		{ESRCH, EXIT_NO_INPUT},
		{EOPNOTSUPP, EXIT_NO_FEATURE},
		{ENOSYS, EXIT_NO_FEATURE},
		{EIO, EXIT_IO},
		{ENOSPC, EXIT_IO},
		{EDQUOT, EXIT_IO},
		{EFBIG, EXIT_IO},
		{EROFS, EXIT_NO_CREATE},
		{EBUSY, EXIT_TRY_AGAIN},
		{EAGAIN, EXIT_TRY_AGAIN},
		{EPERM, EXIT_NO_PERMISSION},
		{EACCES, EXIT_NO_PERMISSION},
	};

	if (e && e->exit_code)
		return e->exit_code;
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (map[i].err == -err)
			return map[i].code;
	return EXIT_FAILED;
}
