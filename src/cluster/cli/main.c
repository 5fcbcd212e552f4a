/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program `ingero-cluster`.
 *
 * It is started anew, under another name, to run a stranger's SQL (duck/duck_worker.h). */
#include "cluster/cli/commands.h"
#include "duck/duck_worker.h"

int main(int argc, char **argv)
{
	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	return dispatch_main(&cluster_program, argc, argv);
}
