/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_completion.c - `ingero-cluster completion bash|zsh|fish`. */
#include "cluster/cli/commands.h"
#include "command/program.h"

const struct command cmd_cluster_completion = {
	.name = "completion",
	.synopsis = "completion bash|zsh|fish",
	.summary = "Print the completion script for a shell",
	.details = "  source <(ingero-cluster completion bash)      in ~/.bashrc\n"
		   "  source <(ingero-cluster completion zsh)       in ~/.zshrc, after compinit\n"
		   "  ingero-cluster completion fish | source       in ~/.config/fish/config.fish\n"
		   "`make install` installs them where the shells find them.",
	.max_args = 1,
	.run = completion_command,
};
