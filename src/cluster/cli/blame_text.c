/* SPDX-License-Identifier: Apache-2.0 */
/* blame_text.c - see blame_text.h. */
#include "cluster/cli/blame_text.h"

#include <stdbool.h>
#include <errno.h>
#include <stdbool.h>

#include "base/text.h"
#include "json/tree.h"

static void tree_done(json_t **t)
{
	json_decref(*t);
}

static void put_escaped(struct buf *b, const json_t *value)
{
	const char *text = json_string_value(value);

	if (text)
		text_escape_terminal(b, text);
}

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

static void put_episode(struct buf *b, const json_t *e, bool named)
{
	const json_t *fix = json_object_get(e, "fix");
	char text[TEXT_MAX];

	if (named) {
		put_escaped(b, json_object_get(e, "cluster_id"));
		buf_puts(b, ": ");
	}
	put_escaped(b, json_object_get(e, "text"));
	buf_printf(b, "\n  for %s", text_format_duration(text, number(e, "lasts_ns")));
	buf_printf(b, ", confidence %s\n",
		text_format_percent(text, json_number_value(json_object_get(e, "confidence"))));
	if (json_is_string(fix)) {
		buf_puts(b, "  fix: ");
		put_escaped(b, fix);
		buf_putc(b, '\n');
	}
}

static void put_nothing(struct buf *b, const json_t *examined)
{
	char nodes[TEXT_PLURAL_MAX], ranks[TEXT_PLURAL_MAX], collectives[TEXT_PLURAL_MAX];

	if (!number(examined, "nodes") && !number(examined, "ranks")) {
		buf_puts(b,
			"No agent has pushed anything yet: start `ingero fleet-push` on the nodes.\n");
		return;
	}
	buf_printf(b, "No straggler found. Examined: %s, %s, %s.\n",
		text_format_plural(nodes, number(examined, "nodes"), "nodes"),
		text_format_plural(ranks, number(examined, "ranks"), "ranks"),
		text_format_plural(collectives, number(examined, "collectives"), "collectives"));
	if (number(examined, "without_communicator_id"))
		buf_printf(b,
			"%s without communicator id, not matched between ranks: their tracers came late.\n",
			text_format_plural(collectives, number(examined, "without_communicator_id"),
				"collectives"));
	else if (!number(examined, "collectives"))
		buf_puts(b, "No collective has been seen: only the nodes' scores were compared.\n");
}

int blame_text(struct buf *b, const char *body, size_t len)
{
	_cleanup_(tree_done) json_t *tree = NULL;
	const json_t *examined, *episodes, *e;
	int r = json_tree_read(body, len, 0, &tree, NULL);
	uint64_t total;
	size_t i;

	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	examined = json_object_get(tree, "examined");
	episodes = json_object_get(tree, "episodes");
	if (!json_is_object(examined) || !json_is_array(episodes))
		return -EBADMSG;
	if (!json_array_size(episodes))
		put_nothing(b, examined);
	json_array_foreach (episodes, i, e)
		put_episode(b, e, number(examined, "clusters") > 1);
	total = number(tree, "total");
	if (total > json_array_size(episodes))
		buf_printf(b, "%zu more: see /api/v1/episodes.\n",
			(size_t)total - json_array_size(episodes));
	return b->err;
}
