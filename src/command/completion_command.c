/* SPDX-License-Identifier: Apache-2.0 */
/* completion_command.c - `completion bash|zsh|fish` of each program: what a shell needs to complete
 * its flags. */
#include <errno.h>
#include <stdio.h>

#include "command/completion.h"
#include "command/dispatch.h"

int completion_command(const struct command *cmd, void *settings, int argc, char **argv)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	const struct program *p = program_running();
	struct errinfo e = {0};
	int r = argc ? completion_script(&b, p, argv[0]) : -EINVAL;

	if (r < 0)
		return dispatch_fail(
			&e, errinfo_set(&e, r, "name the shell: %s completion bash, zsh or fish",
				    p->name));
	if (b.err)
		return dispatch_fail(&e, b.err);
	fputs(buf_str(&b), stdout);
	return EXIT_OK;
}
