/* SPDX-License-Identifier: Apache-2.0 */
/* service_rights.h - with whose rights the cluster's services use files, and what they give up before the first
 * stranger speaks: docs/adr/0013-rights-to-files.md, docs/adr/0022-cluster-as-root.md. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/path_user.h"

#define SERVICE_PATHS_MAX 24

struct service_rights {
	const char *writes[SERVICE_PATHS_MAX]; /* folders, made if they are missing */
	size_t write_count;
	/* Files that are read again, and such as are written, with the rights that each path has: who
	 * opens them takes these (path_user_enter()). */
	const char *reads[SERVICE_PATHS_MAX];
	size_t read_count;
	const char *own[SERVICE_PATHS_MAX];
	size_t own_count;
	char file_folder[PATH_MAX]; /* of service_rights_write_file() */
	bool sql;      /* begins processes for SQL on DuckDB, whose library is loaded */
	bool low_port; /* listens on a port below 1024 */
};

/* service_rights_write, service_rights_read, service_rights_own - one more; NULL is none. One over the
 * ceiling is left out, and refused by the kernel when it is used. */
void service_rights_write(struct service_rights *s, const char *folder);
/* service_rights_write_file - the folder of the file @path; of one file. */
void service_rights_write_file(struct service_rights *s, const char *path);
void service_rights_read(struct service_rights *s, const char *path);
void service_rights_own(struct service_rights *s, const char *path);

/* service_rights_enter - from here to path_user_leave() this thread uses files with the rights of whoever may change
 * names in the @count @folders, which has to be one user. Nothing unless root runs. -EPERM with a sentence. */
int service_rights_enter(const char *const *folders, size_t count, struct path_user *ret_before,
	struct errinfo *reterr);

/* service_rights_files - the same of s->writes, which are made. */
int service_rights_files(
	const struct service_rights *s, struct path_user *ret_before, struct errinfo *reterr);

/* service_rights_confine - then everything that @s does not name is given up for good. To be called while there is
 * one thread. */
void service_rights_confine(const struct service_rights *s);
