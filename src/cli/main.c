/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - process set-up, then dispatch_run().
 *
 * SIGPIPE is ignored: a closed stdout shows as EPIPE, and dispatch_flush() ends quietly.
 * This program is started anew, under other names, to ask the GPU driver (agent/gpu/child.h), to
 * read foreign files (agent/symbol/child.h) and to run a stranger's SQL (sql/sql_worker.h). File
 * descriptors 0 to 2 always exist, so that a database opened later never becomes stdout. */
#include <fcntl.h>
#include <signal.h>

#include "agent/gpu/child.h"
#include "agent/symbol/child.h"
#include "base/errinfo.h"
#include "cli/dispatch.h"
#include "sql/sql_worker.h"

static int open_standard_fds(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return EXIT_FAILED;
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	if (gpu_child_is_meant(argc, argv))
		return gpu_child_main(argc, argv);
	if (symbol_child_is_meant(argc, argv))
		return symbol_child_main(argc, argv);
	if (sql_worker_is_meant(argc, argv))
		sql_worker_main();
	if (open_standard_fds() != EXIT_OK)
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN);
	return dispatch_flush(dispatch_run(argc, argv));
}
