/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_known.h - functions of ClickHouse that a stranger may use; private to store/.
 *
 * A list of what is known to be harmless, since servers gain functions that reach elsewhere with every version. To add
 * one: a row in its group in clickhouse_known.c, if it does what the top of that file says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool clickhouse_known_function(const char *name, size_t len);
/* clickhouse_known_keyword - a word that may stand before a parenthesis and is no function there. */
bool clickhouse_known_keyword(const char *word, size_t len);
