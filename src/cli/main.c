/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program `ingero`.
 *
 * It is started anew, under other names, to ask the GPU driver (record/gpu/child.h), to read foreign
 * files (record/symbol/child.h) and to run a stranger's SQL (sql/sql_worker.h). */
#include "record/gpu/child.h"
#include "record/symbol/child.h"
#include "cli/commands.h"
#include "command/program.h"
#include "sql/sql_worker.h"

int main(int argc, char **argv)
{
	if (gpu_child_is_meant(argc, argv))
		return gpu_child_main(argc, argv);
	if (symbol_child_is_meant(argc, argv))
		return symbol_child_main(argc, argv);
	if (sql_worker_is_meant(argc, argv))
		sql_worker_main();
	return dispatch_main(&ingero_program, argc, argv);
}
