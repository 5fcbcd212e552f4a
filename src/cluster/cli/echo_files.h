/* SPDX-License-Identifier: Apache-2.0 */
/* echo_files.h - what `ingero-cluster echo` does with the files of a store that nobody has open. Each prints one
 * line, and one more for each thing that is damaged, missing or brought back. */
#pragma once

#include "cluster/cli/flags.h"

int echo_files_backup(const struct echo_flags *f, const char *to, struct errinfo *reterr);
int echo_files_verify(const char *folder, struct errinfo *reterr);
/* echo_files_repair - @backup NULL: there is none. */
int echo_files_repair(
	const struct echo_flags *f, const char *folder, const char *backup, struct errinfo *reterr);
int echo_files_restore(const char *from, const char *to, struct errinfo *reterr);
/* echo_files_export - @cluster NULL: all. */
int echo_files_export(const struct echo_flags *f, const char *cluster, const char *table,
	const char *path, struct errinfo *reterr);
