/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the program `ingero-cluster`: the rows that commands.c lists; each is defined in its
 * cmd_X.c. To add a command: as in cli/commands.h. */
#pragma once

#include "command/program.h"

extern const struct program cluster_program;

extern const struct command cmd_all;
extern const struct command cmd_audit;
extern const struct command cmd_blame;
extern const struct command cmd_cluster_demo;
extern const struct command cmd_echo;
extern const struct command cmd_fleet;
extern const struct command cmd_simulate;
extern const struct command cmd_stress;
