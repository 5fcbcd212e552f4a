/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - every command, in the order of `ingero help`. How to add one: commands.h. */
#include "cli/commands.h"

const struct command *const commands[] = {
	&cmd_check,
	&cmd_trace,
	&cmd_explain,
	&cmd_query,
	&cmd_export,
	&cmd_dashboard,
	&cmd_mcp,
	&cmd_merge,
	&cmd_annotate,
	&cmd_demo,
	&cmd_completion,
	&cmd_version,
	NULL,
};
