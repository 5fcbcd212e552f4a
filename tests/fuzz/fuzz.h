/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what the targets share.
 *
 * A target gives foreign bytes to one parser and asserts what must hold of every answer: nothing is
 * taken beyond the end, two ways to feed the same bytes agree, what was read can be written and
 * read again. Not to crash is the sanitizers' part.
 *
 * To add a target: fuzz_X.c with LLVMFuzzerTestOneInput(), its name in meson.build, a few inputs of
 * each kind in corpus/X/ (tests/fuzz/seeds writes those that can be made), then
 * `make fuzz TARGET=X`. An input that broke something stays in corpus/X/ under a name that says
 * what it broke. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* MUST - an invariant; if it does not hold, the process ends so that libFuzzer keeps the input. */
#define MUST(what)                                                                                 \
	do {                                                                                       \
		if (!(what))                                                                       \
			fuzz_broken(__FILE__, __LINE__, #what);                                    \
	} while (0)
_noreturn_ void fuzz_broken(const char *file, int line, const char *what);

/* fuzz_file - a file without a name that holds the bytes; the caller closes it. */
int fuzz_file(const void *data, size_t size);

/* fuzz_place - writes the bytes into a file with a name, the same one each time, and returns it. It
 * is removed at the end of the process. */
const char *fuzz_place(const char *name, const void *data, size_t size);

/* fuzz_folder - the folder of fuzz_place(). */
const char *fuzz_folder(void);

/* Takes numbers and texts from the front of an input; zeros when it is used up. */
struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

uint8_t fuzz_u8(struct fuzz_input *in);
uint32_t fuzz_u32(struct fuzz_input *in);
uint64_t fuzz_u64(struct fuzz_input *in);

/* fuzz_text - all that is left as a string of its own, which the caller frees. */
char *fuzz_text(const void *data, size_t size);
