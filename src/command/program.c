/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - see program.h. */
#include "command/program.h"

#include <string.h>

const struct command *program_find(const struct program *p, const char *name)
{
	for (const struct command *const *c = p->commands; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

void program_put_word(struct buf *b, const char *word)
{
	if (b->len)
		buf_putc(b, ' ');
	buf_puts(b, word);
}
