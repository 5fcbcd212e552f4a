/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names.c - see kernel_names.h. */
#include "agent/answer/kernel_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/answer/answer_private.h"
#include "base/idmap.h"
#include "wire/op_kind.h"

#define ANONYMOUS "(anonymous namespace)"
#define NAMED     2 /* kernels that a sentence names */

const char *kernel_name_short(const char *name, char out[KERNEL_SHORT_MAX])
{
	size_t n = 0;

	if (strncmp(name, "void ", 5) == 0)
		name += 5;
	while (*name && *name != '<' && n + 4 < KERNEL_SHORT_MAX) {
		size_t skip = strlen(ANONYMOUS "::");

		if (strncmp(name, ANONYMOUS "::", skip) == 0) {
			name += skip;
			continue;
		}
		if (*name == '(')
			break;
		out[n++] = *name++;
	}
	out[n] = 0;
	if (*name && *name != '<' && *name != '(')
		snprintf(out + n, KERNEL_SHORT_MAX - n, "…");
	return out;
}

/* The launches of an incident, by function, the most first. */
struct launched {
	uint64_t function[INCIDENT_EVIDENCE];
	unsigned calls[INCIDENT_EVIDENCE];
	size_t count;
	unsigned total;
};

static void add_launch(struct launched *l, uint64_t function)
{
	size_t i = 0;

	while (i < l->count && l->function[i] != function)
		i++;
	if (i == ARRAY_SIZE(l->function))
		return;
	if (i == l->count) {
		l->function[l->count++] = function;
		l->calls[i] = 0;
	}
	l->calls[i]++;
	l->total++;
	for (; i && l->calls[i] > l->calls[i - 1]; i--) {
		unsigned calls = l->calls[i];
		uint64_t f = l->function[i];

		l->calls[i] = l->calls[i - 1];
		l->function[i] = l->function[i - 1];
		l->calls[i - 1] = calls;
		l->function[i - 1] = f;
	}
}

static const char *find_name(const struct sql_table *names, uint32_t pid, uint64_t function)
{
	for (size_t i = 0; i < names->row_count; i++)
		if (table_int(names, i, 0) == pid && (uint64_t)table_int(names, i, 1) == function)
			return table_text(names, i, 2);
	return NULL;
}

/* "Kernel of the launches that show it: softmax_warp_forward (12 of 16)." */
static void put_sentence(
	const struct launched *l, const struct sql_table *names, struct incident *inc)
{
	size_t used = strlen(inc->explanation), named = 0;
	char text[NAMED * (KERNEL_SHORT_MAX + 64)] = "", name[KERNEL_SHORT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < l->count && named < NAMED; i++) {
		const char *full = find_name(names, inc->pid, l->function[i]);

		if (!full || !*full || 2 * l->calls[i] < l->total)
			continue; /* one among many tells nothing */
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s (%u of %u)",
			named ? ", " : "", kernel_name_short(full, name), l->calls[i], l->total);
		named++;
	}
	if (named)
		snprintf(inc->explanation + used, sizeof(inc->explanation) - used,
			"%sKernel%s of the launches that show it: %s.", used ? " " : "",
			named > 1 ? "s" : "", text);
}

struct naming {
	const struct nodedb_content *content;
	struct explanation *e;
	const struct launched *launched; /* parallel to the incidents */
};

static int put_names(struct nodedb_snapshot *s, void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table names = {0};
	const struct naming *n = arg;
	const struct scope scope = {.node = n->content->node[0] ? n->content->node : NULL};
	int r = nodedb_snapshot_list(s, NODEDB_KERNEL_NAMES, &scope, 0, &names, reterr);

	for (size_t i = 0; r == 0 && i < n->e->count; i++)
		put_sentence(&n->launched[i], &names, &n->e->incidents[i]);
	return r;
}

/* Notes the launches among the evidence; false: there are none. */
static bool find_launches(
	const struct nodedb_content *c, const struct explanation *e, struct launched *launched)
{
	struct idmap of = IDMAP_INIT(INCIDENT_EVIDENCE * (e->count + 1)); /* seq -> its launched */
	bool any = false;

	for (size_t i = 0; i < e->count; i++)
		for (int k = 0; k < e->incidents[i].evidence_count; k++)
			(void)idmap_put(&of, e->incidents[i].evidence[k], &launched[i]);
	for (size_t i = 0; of.used && i < c->event_count; i++) {
		const struct event *v = &c->events[i];
		struct launched *l;

		if (!op_kind_is_launch(v->source, v->op) || !v->arg0 || v->flags & WIRE_NESTED)
			continue;
		l = idmap_get(&of, v->seq);
		if (l)
			add_launch(l, v->arg0);
		any |= l != NULL;
	}
	idmap_done(&of);
	return any;
}

int kernel_names_put(const char *path, const struct nodedb_content *c, struct explanation *e,
	struct errinfo *reterr)
{
	_cleanup_free_ struct launched *launched = calloc(e->count + 1, sizeof(*launched));
	struct naming n = {c, e, launched};

	if (!launched)
		return -ENOMEM;
	if (!find_launches(c, e, launched))
		return 0;
	return nodedb_snapshot_read(path, put_names, &n, reterr);
}
