/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - every command, in the order of `ingero-cluster help`. */
#include "cluster/cli/commands.h"

#include "command/update.h"

static const struct command cmd_cluster_completion = {
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

static const struct command *const commands[] = {
	&cmd_all,
	&cmd_fleet,
	&cmd_echo,
	&cmd_blame,
	&cmd_cluster_demo,
	&cmd_simulate,
	&cmd_stress,
	&cmd_audit,
	&cmd_cluster_completion,
	&cmd_version,
	NULL,
};

static const struct program_values values[] = {
	{.option = "provider", .words = "aws gcp azure lambda coreweave"},
	{.option = "engine", .words = "duckdb clickhouse"},
	{.command = "echo", .words = "backup verify restore export"},
	{.option = "protocol", .words = "grpc http/protobuf http/json"},
	{.command = "simulate",
		.option = "fault",
		.words = "none slow late drift stage moving hang link gpu expert"},
	{0},
};

static const struct program_variable variables[] = {
	{"INGERO_TOKEN", "token to require, or to show, without --token-file"},
	{"STATE_DIRECTORY",
		"root's folder for store, certificate and token (default: /var/lib/ingero-cluster)"},
	{"NO_COLOR", "if set, print no colours"},
	{"COLUMNS", "width of the terminal, if not as the terminal says"},
	{0},
};

const struct program cluster_program = {
	.name = "ingero-cluster",
	.headline = "which rank of a cluster makes the others wait, why, and what it costs",
	.no_config = true,
	.root_folder = "/var/lib/ingero-cluster",
	.commands = commands,
	.values = values,
	.variables = variables,
};
