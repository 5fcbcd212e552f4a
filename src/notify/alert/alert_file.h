/* SPDX-License-Identifier: Apache-2.0 */
/* alert_file.h - the file of `trace --notify`: who is told of this node's incidents, and from which
 * severity on.
 *
 *   min_severity: HIGH     # LOW, MEDIUM (default), HIGH, CRITICAL
 *   alerts: …              # alert/alert_config.h */
#pragma once

#include "alert/alert_config.h"
#include "model/incident.h"

struct alert_file {
	struct alert_values values;
	struct alert_list alerts;
	enum severity least;
};

/* alert_file_read - @path, or if @text is not NULL that as its content. Exit code 78 and a sentence with
 * file and line. The caller frees it with alert_file_free(). */
int alert_file_read(const char *path, const char *text, size_t len, struct alert_file **ret,
	struct errinfo *reterr);
void alert_file_free(struct alert_file *f);
DEFINE_CLEANUP(struct alert_file *, alert_file_free)
