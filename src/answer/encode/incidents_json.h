/* SPDX-License-Identifier: Apache-2.0 */
/* incidents_json.h - incidents as JSON: the members of an answer that is open. */
#pragma once

#include "answer/answer.h"
#include "answer/incidents.h"

/* incidents_put - "incidents" (of @request: the first of them, or the one whose id is its text), "total",
 * "examined" and "data". */
void incidents_put(struct json_writer *w, const struct incidents_answer *a,
	const struct answer_request *request);

/* incidents_find - NULL: there is none with that id. */
const struct incident *incidents_find(const struct incidents_answer *a, const char *id);
