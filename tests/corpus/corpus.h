/* SPDX-License-Identifier: Apache-2.0 */
/* corpus.h - a recording reduced to units, accounts and facts, as text: some kB when packed by xz.
 *
 * A file is tables. A table is a line "table NAME ROWS" and a line for each column, "NAME MODE VALUES":
 * mode "=" values as they are, "+" each as the difference from the one before. "7*3" is 7 three times.
 * Times are microseconds since the file's base, plus one; 0 is no time. Texts, of processes' names to stack
 * frames, are numbers of lines in the table "text", which comes first.
 *
 * CORPUS_TABLES is the one list: what is written and read derives from it and the columns in
 * corpus_table.c. To keep more of a recording: a column there, or a table. */
#pragma once

#include <stdio.h>

#include "diagnose/contrasts/account_task.h"

/* X(NAME, name, type of a row) */
#define CORPUS_TABLES(X)                                                                           \
	X(ACCOUNT, "account", struct corpus_account)                                               \
	X(UNIT, "unit", struct corpus_unit)                                                        \
	X(KEY, "key", struct tally_part)                                                           \
	X(PART, "part", struct corpus_part)                                                        \
	X(STACK, "stack", struct corpus_stack)                                                     \
	X(FRAME, "frame", struct stack_frame)                                                      \
	X(EVENT, "event", struct event)                                                            \
	X(LEDGER, "ledger", struct ledger_row)                                                     \
	X(AGGREGATE, "aggregate", struct aggregate)                                                \
	X(BUCKET, "bucket", struct corpus_bucket)                                                  \
	X(SAMPLE, "sample", struct host_sample)                                                    \
	X(GPU, "gpu", struct gpu_sample)                                                           \
	X(CONTAINER, "container", struct container_sample)                                         \
	X(COLLECTIVE, "collective", struct collective_row)                                         \
	X(HOME, "home", struct process_home)                                                       \
	X(LABEL, "label", struct annotation_label)                                                 \
	X(KERNEL, "kernel", struct kernel_use)                                                     \
	X(BOOK, "book", struct corpus_book)                                                        \
	X(SOURCE, "source", struct corpus_source)

enum corpus_table_id {
#define X(NAME, ...) CORPUS_##NAME,
	CORPUS_TABLES(X)
#undef X
		CORPUS_COUNT
};

/* Of struct process_account; its units, keys and parts follow the last one's. Their times are multiples of the
 * quantum, so that a unit still adds up. */
struct corpus_account {
	int64_t start_ns;
	uint64_t quantum_ns;
	uint32_t pid, tid;
	char comm[COMM_LEN];
	uint32_t origin;
	double confidence;
	uint8_t is_derived;
	uint32_t units, keys;
};

struct corpus_unit {
	uint32_t gap, length, probed, open; /* gap: after the unit before */
	uint64_t launches, copy_bytes, waits;
	uint8_t launches_off;
	uint32_t backwards, loads, executes;
	uint32_t parts;
};

struct corpus_part {
	uint32_t key, length;
	uint32_t stack, wait; /* stack_ns and wait_ns, where keys differ by that alone */
};

struct corpus_stack {
	uint64_t hash;
	const char *stop;
	uint32_t frames;
};

struct corpus_bucket { /* of an aggregate's histogram */
	uint32_t row, bucket;
	uint64_t count;
};

struct corpus_book { /* one row, or none */
	const char *node, *missing;
	uint8_t has_books;
	uint32_t unclean;
	int64_t unclean_ns;
	double launch_watched, launch_error;
};

struct corpus_source { /* of struct accounting */
	uint32_t source;
	uint64_t hits, stored, aggregated, lost;
};

struct corpus_list {
	void *rows;
	size_t count, room;
};

struct corpus { /* a file in memory */
	int64_t base_ns;
	struct corpus_list tables[CORPUS_COUNT];
	char **texts; /* by number, from 1 on */
	size_t text_count, text_room;
	/* What is made of the tables for those who read recordings: */
	struct recording rec;
	struct account_task accounts;
	struct stack *stacks;
	struct stack **stack_items;
	struct stack_list stack_list;
	struct accounting books;
};

enum corpus_kind {
	KIND_UINT, /* of 1, 2, 4 or 8 bytes */
	KIND_INT,  /* of 4 or 8 */
	KIND_NS,   /* uint64_t, two digits are kept */
	KIND_TIME, /* int64_t since the epoch */
	KIND_DOUBLE,
	KIND_CHARS, /* an array that ends with NUL */
	KIND_TEXT,  /* const char *; NULL: none */
	KIND_PEER,  /* struct event's peer_comm; of an address "#" and its bytes */
};

struct corpus_column {
	const char *name;
	enum corpus_kind kind;
	size_t offset, size;
};

struct corpus_table {
	const char *name;
	size_t row_size;
	const struct corpus_column *columns; /* up to one without a name */
};

struct corpus_table corpus_table(enum corpus_table_id id);

/* corpus_add - a zeroed row at the end of a table; NULL: no memory. */
void *corpus_add(struct corpus *c, enum corpus_table_id table);

/* corpus_text - the number of @text, which is added if it is new; 0: NULL. -1: no memory. */
int64_t corpus_text(struct corpus *c, const char *text);

/* corpus_write - 0 or a negative errno. */
int corpus_write(struct corpus *c, FILE *out);

/* corpus_read - the next file of @in into @ret, which is all zero; released with corpus_done(). Returns 1,
 * 0: there is no further one, or a negative errno with a message on stderr. */
int corpus_read(FILE *in, struct corpus *ret);

/* corpus_open - makes c->rec and c->accounts of what was read: accounts as they were, contrasts made anew.
 * 0 or a negative errno. */
int corpus_open(struct corpus *c);

/* corpus_contrast - makes the contrasts again, for instance after a threshold was moved. */
int corpus_contrast(struct corpus *c);

/* corpus_cut - c->rec and c->accounts are what was there at @until_ns; INT64_MAX: all of it. 0 or a negative errno. */
int corpus_cut(struct corpus *c, int64_t until_ns);

void corpus_done(struct corpus *c);
