/* SPDX-License-Identifier: Apache-2.0 */
/* delay_sentence.h - what is said about a delay, by its kind and where its chain leads to.
 *
 * A row holds for its kind and its resource, where all facts of `needs` do (advice.h); the first one that holds is
 * taken. In texts {name} stands for a value of struct delay_values, and what is in [brackets] goes if a value within is
 * not known. `head` begins the title, behind it comes the cost: "GPU clock at 544 MHz instead of 1905" ": steps take
 * 174 ms instead of 44". `why` says how it comes about, without a full stop.
 *
 * To add a sentence: a row, above those that hold in more cases. */
#pragma once

#include "diagnose/chains/delay.h"

/* X(name): all are texts, "": not known. */
#define DELAY_VALUES(X)                                                                            \
	X(who)      /* "48 × xz", "xz (pid 7)" */                                                 \
	X(others)   /* " and other programs", where {who} has less of it than they */              \
	X(stopped)  /* whom {who} stops */                                                         \
	X(detail)   /* of the resource: "0.6 CPUs" */                                              \
	X(at)       /* "in step (train.py:71)", "at train.py:71" */                                \
	X(wait)     /* likewise, where the steps wait for what another does */                     \
	X(clock)    /* "544 MHz instead of 1905" */                                                \
	X(units)    /* "steps" */                                                                  \
	X(unit)     /* "step" */                                                                   \
	X(worker)   /* name of the thread or process whose time it is */                           \
	X(kernels)  /* "softmax_warp_forward" */                                                   \
	X(types)    /* "fp32 instead of bf16" */                                                   \
	X(call)     /* "cudaMemsetAsync, about 18 a step" */                                       \
	X(work)     /* "640 launches a step instead of 320" */                                     \
	X(waits)    /* "245 times a step instead of 4" */                                          \
	X(answers)  /* "200 requests per step, 0.2 ms each" */                                     \
	X(launches) /* "640" */                                                                    \
	X(calls)    /* "cudaMalloc 72 times a step" */                                             \
	X(bytes)    /* "12 MB" */                                                                  \
	X(thread)   /* that holds what the steps wait for */                                       \
	X(reason)   /* why time is not known */

#define DELAY_VALUE_MAX 192
struct delay_values {
#define X(name) char name[DELAY_VALUE_MAX];
	DELAY_VALUES(X)
#undef X
};

struct delay_sentence {
	enum delay_kind kind;
	enum resource resource; /* RESOURCE_COUNT: any */
	unsigned needs;         /* facts (advice.h) */
	const char *head, *why;
};

/* delay_sentence_find - the row for a delay of @kind that leads to @resource; there always is one. */
const struct delay_sentence *delay_sentence_find(
	enum delay_kind kind, enum resource resource, unsigned facts);

/* All of them; the last one has no head. */
extern const struct delay_sentence delay_sentences[];

/* delay_sentence_fill - @text with its values; cut to @size. */
void delay_sentence_fill(const char *text, const struct delay_values *v, char *out, size_t size);
