/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program `ingero-cluster`. */
#include "cluster/cli/commands.h"
#include "command/dispatch.h"

int main(int argc, char **argv)
{
	return dispatch_main(&cluster_program, argc, argv);
}
