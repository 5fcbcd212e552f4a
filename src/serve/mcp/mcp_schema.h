/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_schema.h - the arguments of tools as JSON Schema, one a line. What a tool answers has no
 * schema: clients put every schema that is listed into the model's context, whether a tool is used
 * or not (25 kB of them), and the names in answers speak for themselves or stand in the server's
 * instructions. */
#pragma once

/* A closed object of the arguments, each of which ends with a comma (ARG_TSC, which has none, ends
 * every list), and those that have to be there. */
#define ARGUMENTS(members)                                                                         \
	"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" members ARG_TSC "}}"
#define ARGUMENTS_WITH(required, members)                                                          \
	"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"" required            \
	"\"],\"properties\":{" members ARG_TSC "}}"

#define TEXT(name, most, about)                                                                    \
	"\"" name "\":{\"type\":\"string\",\"maxLength\":" #most ",\"description\":\"" about "\"},"
#define CHOICE(name, values, about)                                                                \
	"\"" name "\":{\"type\":\"string\",\"enum\":[" values "],\"description\":\"" about "\"},"
#define NUMBER(name, least, most, otherwise, about)                                                \
	"\"" name "\":{\"type\":\"integer\",\"minimum\":" #least ",\"maximum\":" #most             \
	",\"default\":" #otherwise ",\"description\":\"" about "\"},"
#define NUMBER_FROM(name, least, about)                                                            \
	"\"" name "\":{\"type\":\"integer\",\"minimum\":" #least ",\"description\":\"" about "\"},"
#define PID_RULE "\"type\":\"integer\",\"minimum\":1,\"maximum\":4194304"

/* Arguments that many tools have. */
#define ARG_SINCE                                                                                  \
	TEXT("since", 64,                                                                          \
		"Only this long before the end: 30s, 5m, 1h30m, 2d. 0s: all. Default: "            \
		"all, of a recording that is being written the last 5m.")
#define ARG_PID  "\"pid\":{" PID_RULE ",\"description\":\"Only this process.\"},"
#define ARG_RANK NUMBER_FROM("rank", 0, "Only this rank of the job.")
#define ARG_PIDS                                                                                   \
	"\"pids\":{\"type\":\"array\",\"maxItems\":63,\"items\":{" PID_RULE                        \
	"},\"description\":\"Only these processes.\"},"
#define ARG_TOP_N NUMBER("top_n", -1, 1000, 10, "The worst n; -1: all.")
#define ARG_OP    TEXT("op", 64, "Only this operation: cudaStreamSync, ncclAllReduce, …")
#define ARG_ROWS  NUMBER("limit", 1, 10000, 1000, "Rows at most.")
#define ARG_TSC                                                                                    \
	"\"tsc\":{\"type\":\"boolean\",\"default\":true,\"description\":\"false: complete, long "  \
	"names.\"}"
