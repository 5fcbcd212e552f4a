/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_completion.c - `ingero completion bash|zsh|fish`: what the shell needs to complete flags. */
#include <errno.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/dispatch.h"

static int completion_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct errinfo e = {0};
	int r = argc ? completion_script(&b, argv[0]) : -EINVAL;

	if (r < 0)
		return dispatch_fail(&e,
			errinfo_set(&e, r, "name the shell: ingero completion bash, zsh or fish"));
	if (b.err)
		return dispatch_fail(&e, b.err);
	fputs(buf_str(&b), stdout);
	return EXIT_OK;
}

const struct command cmd_completion = {
	.name = "completion",
	.synopsis = "completion bash|zsh|fish",
	.summary = "Print the completion script for a shell",
	.details = "  source <(ingero completion bash)      in ~/.bashrc\n"
		   "  source <(ingero completion zsh)       in ~/.zshrc, after compinit\n"
		   "  ingero completion fish | source       in ~/.config/fish/config.fish\n"
		   "`make install` installs them where the shells find them.",
	.max_args = 1,
	.run = completion_run,
};
