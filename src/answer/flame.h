/* SPDX-License-Identifier: Apache-2.0 */
/* flame.h - call stacks added up into one tree, outermost frame at the root. */
#pragma once

#include "base/idmap.h"
#include "model/stack.h"

#define FLAME_NODES_MAX (1u << 20) /* 64 MB */
#define FLAME_NAME_MAX  1024       /* bytes of a frame's text; longer ones are cut */

enum flame_kind { FLAME_NATIVE, FLAME_PYTHON, FLAME_CALL /* CUDA, NCCL */ };

struct flame_name {
	enum flame_kind kind;
	char text[]; /* nothing that acts on a terminal, no ';' */
};

struct flame_node {
	uint64_t self, total;   /* of calls that ended here; with all below, after flame_finish() */
	uint64_t self2, total2; /* the same of what it is compared with */
	uint32_t parent, name;
	uint32_t child, next; /* largest first; 0: none */
	uint32_t depth;
};

struct flame {
	struct flame_node
		*nodes; /* 0 is the root, without a name; a parent stands before its children
			 */
	size_t count, capacity;
	struct flame_name **names;
	size_t name_count, name_capacity;
	struct idmap children; /* (parent, name) to node */
	struct idmap texts;    /* hash of a name to it */
	bool function_first;   /* "forward (train.py:142)" instead of "train.py:142 forward" */
	uint64_t left_out;     /* value that found no room */
};

#define FLAME_INIT                                                                                 \
	((struct flame){                                                                           \
		.children = IDMAP_INIT(FLAME_NODES_MAX), .texts = IDMAP_INIT(FLAME_NODES_MAX)})

void flame_done(struct flame *f);

/* flame_add - @value more for @s, whose innermost frame is @op, called from there; NULL: no stack
 * is known. Consecutive frames without a name in one library are one. 0 or -ENOMEM; beyond
 * FLAME_NODES_MAX the value is in left_out. */
int flame_add(struct flame *f, const struct stack *s, unsigned source, unsigned op, uint64_t value);

/* flame_add_second - the same of what it is compared with. */
int flame_add_second(
	struct flame *f, const struct stack *s, unsigned source, unsigned op, uint64_t value);

/* flame_finish - sums up and puts siblings in order. Then the tree may be read. 0 or -ENOMEM. */
int flame_finish(struct flame *f);

/* flame_next - walks the tree: the node after @node with all above and left of it seen already; 0
 * after the last. @skip leaves out what is below @node. */
uint32_t flame_next(const struct flame *f, uint32_t node, bool skip);

static inline const struct flame_name *flame_name_of(const struct flame *f, uint32_t node)
{
	return f->names[f->nodes[node].name];
}
