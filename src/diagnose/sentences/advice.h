/* SPDX-License-Identifier: Apache-2.0 */
/* advice.h - what to do about time that is lost: one table, chosen by evidence.
 *
 * A row holds where its kind and its resource do, all facts of `needs` and none of `lacks`. The first ADVICE_MAX that
 * hold are told, so what helps most stands first. To add one: a row; it may name a framework's functions only if it
 * needs that framework. */
#pragma once

#include "diagnose/chains/delay.h"
#include "model/incident.h"
#include "diagnose/recording.h"

/* What a program computes with, known by its stacks and by how its steps were found. Advice that names
 * the function to call is only good for who has that function. */
enum framework {
	FRAMEWORK_TORCH,
	FRAMEWORK_LIGHTNING,
	FRAMEWORK_JAX,
	FRAMEWORK_CUPY,
	FRAMEWORK_TRITON,
	FRAMEWORK_TENSORFLOW,
};

#define FRAMEWORK_BIT(f) (1u << (f))

/* frameworks_find - bits of those that the stacks of @a go through; Lightning is PyTorch as well. */
unsigned frameworks_find(const struct recording *rec, const struct step_account *a);

#define ADVICE_MAX 3

/* What is known about a delay beside its kind and its end. */
enum advice_fact {
	HAS_TORCH = FRAMEWORK_BIT(FRAMEWORK_TORCH),
	HAS_LIGHTNING = FRAMEWORK_BIT(FRAMEWORK_LIGHTNING),
	HAS_JAX = FRAMEWORK_BIT(FRAMEWORK_JAX),
	HAS_CUPY = FRAMEWORK_BIT(FRAMEWORK_CUPY),
	HAS_TRITON = FRAMEWORK_BIT(FRAMEWORK_TRITON),
	HAS_TENSORFLOW = FRAMEWORK_BIT(FRAMEWORK_TENSORFLOW),
#define HAS_FRAMEWORK (HAS_TORCH | HAS_JAX | HAS_CUPY | HAS_TRITON | HAS_TENSORFLOW)
	HAS_LOADER = 1 << 8,    /* processes or threads prepare its batches */
	HAS_PID = 1 << 9,       /* the culprit is one process */
	IS_PERIODIC = 1 << 10,  /* every so many steps */
	IS_OWN = 1 << 11,       /* the culprit is the job itself, or runs its script */
	IS_OF_TRACER = 1 << 12, /* the culprit is the tracer */
	TO_GPU = 1 << 13,       /* most bytes are copied to the GPU */
	FROM_GPU = 1 << 14,     /* most are copied from it */
	STARTS_PROCESSES = 1 << 15,
	IN_CONTAINER = 1 << 6, /* the job runs in one, or in a pod */
	IS_AWAITED =
		1 << 7, /* it is done by another thread of the program, which the units wait for */
	BY_HOST = 1 << 16,           /* what the one that is waited for does: its own code */
	BY_DISK = 1 << 17,           /* likewise: it waits for the disk */
	BY_NETWORK = 1 << 18,        /* for the network */
	IS_STOPPED = 1 << 19,        /* it is stopped */
	NEW_TYPES = 1 << 20,         /* other kernels run, of another type of numbers */
	NEW_KERNELS = 1 << 21,       /* of the same type */
	NEW_CALLS = 1 << 22,         /* calls that ordinary steps do not make */
	ON_DEFAULT_STREAM = 1 << 23, /* these are on the default stream */
	HELD_BY_THREAD = 1 << 24,    /* a thread waits for the GPU, and the steps for that one */
	MORE_WORK = 1 << 25,         /* the GPU is given more to do */
	MANY_WAITS = 1 << 26,        /* the GPU is waited for much more often; many answers are */
	NO_LEDGER = 1 << 27,         /* the recording does not say what threads did */
	IS_OF_KERNEL = 1 << 28,      /* the culprit is a thread of the kernel */
	BY_STOPPER = 1 << 29,        /* the culprit is who stops it */
	PINS_MEMORY = 1 << 30,       /* what is allocated is pinned memory of the host */
	AMONG_OTHERS = 1u << 31,     /* the culprit has less of it than the others together */
};

struct advice_row {
	enum delay_kind kind;   /* DELAY_KINDS: any */
	enum resource resource; /* RESOURCE_COUNT: any */
	unsigned needs, lacks;  /* facts */
	const char *text;       /* {who}: the culprit, {pid}: its number, {name}: without it */
};

struct advice_case {
	enum delay_kind kind;
	enum resource resource;
	unsigned facts;
	const char *who, *name; /* "xz (pid 7)", "xz" */
	uint32_t pid;
};

/* advice_put - replaces the fixes of @inc, unless no row holds. */
void advice_put(const struct advice_case *c, struct incident *inc);

/* All rows; the last one has no text. */
extern const struct advice_row advice_rows[];
