/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - the files that code comes from: each opened once, with its identity, unwind table, and
 * the names that were asked of it.
 *
 * Everything that must read a file is asked of the symbol process and comes later; here is what is
 * known so far. A file stays, as does what is known of it, until there is no room for another and
 * nobody maps it: the ceilings are on files and names. Files of the same build id share a table and
 * the symbol process's work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/stack/table.h"
#include "record/symbol/symbol.h"
#include "base/idmap.h"
#include "model/stack.h"

#define STACK_FILES_MAX   2000      /* that the symbol process is given */
#define STACK_NAMES_MAX   200000    /* addresses whose names are kept */
#define STACK_HANDLES_MAX (1 << 19) /* variables with handles, of all files; 8 bytes each */

enum stack_handles_state { HANDLES_NOT_ASKED, HANDLES_ASKED, HANDLES_KNOWN };
enum stack_table_state { TABLE_NOT_ASKED, TABLE_ASKED, TABLE_READY, TABLE_FAILED };

struct stack_name { /* what is known of one address */
	bool is_known;
	uint8_t count; /* 0: there is no name */
	struct stack_frame *frames;
};

struct stack_file {
	char name[128]; /* base name */
	char root[32];  /* of the file system it came from: "/proc/PID/root", or "" */
	uint64_t key;   /* of its inode */
	bool is_marked;
	uint32_t number; /* in the symbol process; 0: it could not be opened */
	bool is_identified;
	bool is_generated; /* code of a JIT: offsets are addresses */
	int err;           /* why it cannot be read; 0 */
	uint64_t identity; /* see struct stack_mapping */
	uint64_t load_base;
	bool has_load_base;
	uint64_t eh_frame_bytes;
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
	unsigned build_id_len;
	enum stack_table_state table_state;
	struct stack_table table;
	bool table_wanted; /* a walk ended for want of it */
	enum stack_handles_state handles_state;
	uint64_t *handles; /* variables that hold kernels' handles (symbol/handles.h), ascending */
	size_t handle_count;
	uint64_t text_offset, text_vaddr; /* of its first code; where there are handles */
	/* Python */
	bool may_be_python, places_asked, places_known;
	struct symbol_place places[4];    /* of python_symbol_names */
	struct idmap names;               /* 2 * offset + is_return -> struct stack_name */
	uint64_t ask[SYMBOL_OFFSETS_MAX]; /* keys not yet asked for */
	size_t ask_count;
};

struct stack_files;

/* stack_files_new - @changed is called when a table has come, or what Python needs. */
typedef void stack_file_changed(void *arg, struct stack_file *f);
int stack_files_new(struct probe *p, stack_file_changed *changed, void *arg, struct intern *texts,
	struct stack_files **ret);
void stack_files_free(struct stack_files *fs);
DEFINE_CLEANUP(struct stack_files *, stack_files_free)

/* stack_files_find - the file (dev, inode) if it is known. */
struct stack_file *stack_files_find(struct stack_files *fs, uint64_t dev, uint64_t inode);

/* stack_files_add - a new file, open as @fd, which becomes the symbol process's. @fd < 0: it cannot
 * be opened, and its addresses have no names. NULL: no room. */
struct stack_file *stack_files_add(struct stack_files *fs, uint64_t dev, uint64_t inode,
	const char *root, const char *path, int fd);

/* stack_files_generated - a JIT's map of names. NULL: no room. */
struct stack_file *stack_files_generated(struct stack_files *fs, int fd);

/* stack_file_renew - the map of @f has grown and is open as @fd, which becomes the symbol
 * process's: what had no name is asked for again. */
void stack_file_renew(struct stack_files *fs, struct stack_file *f, int fd);

/* stack_file_want_table - a walk needs it. */
void stack_file_want_table(struct stack_files *fs, struct stack_file *f);

/* stack_file_want_handles - where @f keeps handles of kernels; asked for once. */
void stack_file_want_handles(struct stack_files *fs, struct stack_file *f);

/* stack_file_name - what is known of @offset (which may have SYMBOL_HANDLE); asked for if that is nothing. NULL: no room. */
const struct stack_name *stack_file_name(
	struct stack_files *fs, struct stack_file *f, uint64_t offset, bool is_return);

/* stack_files_is_full - a file or a table found no room: those that nobody maps may go. To make
 * room: stack_file_mark() each that is in use, then stack_files_sweep() the others, when no stack
 * waits for names. */
bool stack_files_is_full(const struct stack_files *fs);
void stack_file_mark(struct stack_file *f);
void stack_files_sweep(struct stack_files *fs);

/* stack_files_poll - send questions, take answers. Returns how many names have come in all. */
uint64_t stack_files_poll(struct stack_files *fs);

uint64_t stack_files_table_bytes(const struct stack_files *fs);
void stack_files_health(const struct stack_files *fs, struct symbol_health *ret);
