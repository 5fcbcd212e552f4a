/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - see program.h. */
#include "command/program.h"

#include <limits.h>
#include <string.h>

#include "base/macros.h"

/* Optimal string alignment distance between short words, on the stack. */

#define WORD_MAX 63

unsigned suggest_distance(const char *a, const char *b)
{
	unsigned char d[WORD_MAX + 1][WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return UINT_MAX;
	for (size_t i = 0; i <= la; i++)
		d[i][0] = (unsigned char)i;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			best = MIN(best, d[i - 1][j] + 1);
			best = MIN(best, d[i][j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, d[i - 2][j - 2] + 1);
			d[i][j] = (unsigned char)best;
		}
	}
	return d[la][lb];
}

int suggest_is_near(const char *typed, const char *name, unsigned *ret_distance)
{
	unsigned distance = suggest_distance(typed, name);
	size_t allowed = MAX((size_t)1, strlen(name) / 3);

	if (distance > allowed || distance >= strlen(typed))
		return 0;
	*ret_distance = distance;
	return 1;
}

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
