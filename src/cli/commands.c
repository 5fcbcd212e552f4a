/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - every command, in the order of `ingero help`, and what of the program is not in their
 * tables. How to add one: commands.h. */
#include "cli/commands.h"

#include "cli/demo_scenario.h"
#include "command/update.h"
#include "wire/names.h"

extern const struct command cmd_completion;

/* `ingero completion bash|zsh|fish`. */

const struct command cmd_completion = {
	.name = "completion",
	.synopsis = "completion bash|zsh|fish",
	.summary = "Print the completion script for a shell",
	.details = "  source <(ingero completion bash)      in ~/.bashrc\n"
		   "  source <(ingero completion zsh)       in ~/.zshrc, after compinit\n"
		   "  ingero completion fish | source       in ~/.config/fish/config.fish\n"
		   "`make install` installs them where the shells find them.",
	.max_args = 1,
	.run = completion_command,
};

static const struct command *const commands[] = {
	&cmd_check,
	&cmd_trace,
	&cmd_explain,
	&cmd_query,
	&cmd_diff,
	&cmd_export,
	&cmd_dashboard,
	&cmd_mcp,
	&cmd_merge,
	&cmd_migrate,
	&cmd_fleet_push,
	&cmd_annotate,
	&cmd_straggler_sink,
	&cmd_cert,
	&cmd_rates,
	&cmd_demo,
	&cmd_completion,
	&cmd_version,
	NULL,
};

static void put_ops(struct buf *b)
{
	for (const struct wire_op_row *o = wire_ops; o->name; o++)
		program_put_word(b, o->name);
}

static void put_scenarios(struct buf *b)
{
	for (const struct demo_scenario *s = demo_scenarios; s->name; s++)
		program_put_word(b, s->name);
}

static const struct program_values values[] = {
	{.option = "op", .put = put_ops},
	{.command = "export",
		.option = "format",
		.words = "perfetto perfetto-proto flamegraph folded"},
	{.command = "export", .option = "value", .words = "time count"},
	{.command = "trace", .option = "py-walker", .words = "auto ebpf userspace"},
	{.command = "fleet-push",
		.option = "provider",
		.words = "auto aws gcp azure lambda coreweave"},
	{.command = "demo", .put = put_scenarios},
	{.command = "cert", .words = "init issue list rotate"},
	{.command = "diff", .files = true},
	{.command = "merge", .files = true},
	{0},
};

static const struct program_variable variables[] = {
	{"INGERO_DB", "recording to use without --db"},
	{"INGERO_CONFIG", "configuration file to use without --config"},
	{"INGERO_FLEET_TOKEN", "bearer token of fleet-push without --token-file"},
	{"INGERO_NO_UPDATE_NOTIFIER",
		"if set, never look for a newer version (see update.check in ingero.yaml)"},
	{"NO_COLOR", "if set, print no colours"},
	{"COLUMNS", "width of the terminal, if not as the terminal says"},
	{0},
};

const struct program ingero_program = {
	.name = "ingero",
	.headline = "why the GPU waited: CUDA calls and the Linux kernel under them, explained",
	.commands = commands,
	.values = values,
	.variables = variables,
	.files = ".TP\n.I \\(ti/.ingero/ingero.db\n"
		 "the recording; under sudo, in the home of the invoking user\n",
};
