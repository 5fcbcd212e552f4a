/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - a value from a reader to a writer: what a stranger sent, as JSON of our own making. */
#pragma once

#include "json/reader.h"
#include "json/writer.h"

/* json_copy_value - writes the value that @token begins. False if the reader fails in it; the
 * writer's error is told by json_finish(). */
bool json_copy_value(struct json_reader *r, enum json_read token, struct json_writer *w);
