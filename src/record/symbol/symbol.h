/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.h - the agent's side of the symbol process: questions go out, answers come back later.
 *
 * Reading foreign ELF, DWARF and JIT maps is done by a process without privileges (child.h), which
 * gets open files from here and nothing else. Nothing here blocks. A child that dies, or that does
 * not answer one question within SYMBOL_PATIENCE_S, is ended and begun anew within a second; what
 * it was asked is asked again once, and a file at which two children died is given up: its
 * questions are answered with nothing and the reason. So every question gets exactly one answer.
 *
 * A file is opened once and named by a number; the child keeps its tables by that number. */
#pragma once

#include "record/symbol/image.h"
#include "record/symbol/names.h"
#include "wire/stack.h"

#define SYMBOL_PATIENCE_S  20
#define SYMBOL_OFFSETS_MAX 128 /* in one question */
#define SYMBOL_NAMES_MAX   16  /* in one question */

/* An offset with this bit is no place in the file: it is the virtual address of a variable of
 * handles.h, and its frame's function is the kernel. */
#define SYMBOL_HANDLE (1ULL << 62)

struct symbol_service;

struct symbol_identity { /* answer to symbol_open() */
	int err;         /* 0; or a negative errno: the file cannot be read (text says why) */
	char text[128];
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
	unsigned build_id_len; /* 0: none */
	uint64_t load_base;    /* see image_load_base() */
	bool has_load_base;
	uint64_t eh_frame_bytes; /* how large its unwind information is */
	uint64_t text_bytes;
};

struct symbol_unwind { /* answer to symbol_ask_unwind(); valid during the call only */
	int err;
	char text[128];
	uint32_t count, rule_count;
	const uint32_t *address; /* checked: ascending; every rule < rule_count */
	const uint16_t *rule;
	const struct unwind_rule *rules;
};

struct symbol_frames { /* answer to symbol_ask_frames(): those of one offset; valid during the call
			*/
	unsigned count;
	struct names_frame frame[NAMES_INLINE_MAX];
};

struct symbol_place { /* answer to symbol_ask_places() */
	bool found;
	bool has_content; /* the first bytes as the file has them */
	uint64_t vaddr, size;
	uint8_t content[8];
};

struct symbol_handles { /* answer to symbol_ask_handles(); valid during the call only */
	int err;
	uint64_t text_offset, text_vaddr; /* where the first code is, in the file and when loaded */
	size_t count;
	const uint64_t *vaddr; /* checked: ascending */
};

/* Answers. @file is the number from symbol_open(), @ticket the asker's own. Any may be NULL. */
struct symbol_sink {
	void (*identity)(void *arg, uint32_t file, const struct symbol_identity *i);
	void (*unwind)(void *arg, uint32_t file, const struct symbol_unwind *u);
	/* @err: 0, or a negative errno: the file was given up; then all counts are 0. */
	void (*frames)(void *arg, uint32_t file, uint64_t ticket, int err,
		const struct symbol_frames *f, size_t count);
	void (*places)(void *arg, uint32_t file, uint64_t ticket, int err,
		const struct symbol_place *p, size_t count);
	void *arg;
	void (*handles)(void *arg, uint32_t file, const struct symbol_handles *h);
};

/* symbol_start - begin the child. Fails only for want of memory: a child that cannot be started is
 * tried again. *ret is released with symbol_stop(). */
int symbol_start(const struct symbol_sink *sink, struct symbol_service **ret);
DECLARE_FREE(struct symbol_service, symbol_stop)

/* symbol_open - name a file; @fd and @debug_fd (-1: none) become the service's, but stay the
 * caller's on failure. *ret_file is its number, from 1, never used again. The identity follows as
 * an answer. -EBADF; -ENOSPC beyond the ceiling of files; -ENOBUFS as for questions;
 * -ENOMEM. */
int symbol_open(struct symbol_service *s, int fd, int debug_fd, uint32_t *ret_file);

/* symbol_add_debug - @debug_fd, which becomes the service's, holds the debug information of @file:
 * names asked for from now on may come from it. */
void symbol_add_debug(struct symbol_service *s, uint32_t file, int debug_fd);

/* symbol_open_perfmap - a JIT's map: its offsets are addresses, and of frames only the function is
 * known. Opened anew to read it again. No identity follows. */
int symbol_open_perfmap(struct symbol_service *s, int fd, uint32_t *ret_file);

/* symbol_close - the number is no longer valid. Questions that the child has not been sent yet are
 * answered with -ECANCELED. */
void symbol_close(struct symbol_service *s, uint32_t file);

/* Questions. -ENOBUFS if too many wait already: ask again later; -ENOENT: no such file; -EINVAL: no
 * or too many offsets or names, a name too long, unwinding by a JIT's map; -ENOMEM. Questions about
 * names and places go before those about unwinding, which may take seconds. */
int symbol_ask_unwind(struct symbol_service *s, uint32_t file);
int symbol_ask_frames(struct symbol_service *s, uint32_t file, uint64_t ticket,
	const uint64_t *offsets, const bool *is_return, size_t count);
int symbol_ask_places(struct symbol_service *s, uint32_t file, uint64_t ticket,
	const char *const *names, size_t count);
int symbol_ask_handles(struct symbol_service *s, uint32_t file);

/* symbol_poll - hand on the answers that have come and look after the child. To be called often, on
 * one thread, the one that symbol_start() was called on: the child dies with it. Answers come from
 * here only, so a sink may ask, open and close, but neither poll nor stop. */
void symbol_poll(struct symbol_service *s);

struct symbol_health {
	int pid;            /* of the child; 0: none at the moment */
	unsigned deaths;    /* children that ended or were ended */
	size_t waiting;     /* questions without an answer yet */
	size_t given_up;    /* files */
	char last_end[128]; /* how the last one ended; "" */
	char note[128];     /* what its confinement lacks on this kernel; "" */
};
void symbol_health(const struct symbol_service *s, struct symbol_health *ret);
