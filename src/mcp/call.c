/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - see call.h. */
#include "mcp/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/tree.h"
#include "mcp/rpc.h"

#define SENTENCE_MAX 1024

void call_progress(const struct call *c, double done, double total, const char *message)
{
	_cleanup_json_ json_t *note = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT(RPC_BYTES_MAX);

	if (!c->notify || !c->progress_token)
		return;
	note = rpc_notification("notifications/progress",
		json_pack("{s:O, s:f, s:f, s:s*}", "progressToken", (json_t *)c->progress_token,
			"progress", done, "total", total, "message", message));
	if (note && json_tree_write(note, RPC_DUMP, &text) == 0)
		c->notify(c->notify_arg, text.data, text.len);
}

int answer_init(struct answer *a)
{
	*a = (struct answer){.content = json_array()};
	return a->content ? 0 : -ENOMEM;
}

void answer_done(struct answer *a)
{
	json_decref(a->content);
	json_decref(a->structured);
	*a = (struct answer){0};
}

void answer_text(struct answer *a, const char *text)
{
	json_t *block = json_pack("{s:s, s:s}", "type", "text", "text", text);

	if (!block)
		block = json_pack("{s:s, s:s}", "type", "text", "text", "(not UTF-8)");
	json_array_append_new(a->content, block);
}

void answer_structured_as_text(struct answer *a, const char *mark)
{
	_cleanup_buf_ struct buf text = BUF_INIT(2 * RPC_BYTES_MAX);

	if (mark)
		buf_printf(&text, "[%s]\n", mark);
	json_tree_write(a->structured, RPC_DUMP, &text);
	if (mark)
		buf_printf(&text, "\n[/%s]", mark);
	answer_text(a, text.err ? "the answer is too large" : buf_str(&text));
	json_decref(a->structured);
	a->structured = NULL;
}

void answer_fail(struct answer *a, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_clear(a->content);
	json_decref(a->structured);
	a->structured = NULL;
	a->failed = true;
	answer_text(a, text);
}
