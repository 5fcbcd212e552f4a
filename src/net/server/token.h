/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - bearer tokens: who holds one may ask.
 *
 * Tokens come from a file (one a line, '#' begins a comment, mode & 077 is 0) or from an
 * environment variable, never from a command line. Only their SHA-256 is kept; comparing takes the
 * same time whatever is compared. */
#pragma once

#include "base/errinfo.h"

struct token_set;

struct token_hash { /* what is kept of a token */
	unsigned char sha256[32];
	uint64_t until_ns;  /* of the monotonic clock: not valid from then on; 0: no such end */
	int64_t expires_ns; /* likewise, of the wall clock */
};

#define TOKEN_BYTES_MIN 16 /* shorter ones are refused: they can be guessed */

/* token_set_new - @path NULL: of the environment variable @variable; if that is not set either,
 * *ret is NULL and 0 is returned. */
int token_set_new(
	const char *path, const char *variable, struct token_set **ret, struct errinfo *reterr);

/* token_set_of - the one token @text. */
int token_set_of(const char *text, struct token_set **ret, struct errinfo *reterr);

/* token_set_of_lines - @text as a token file's content; @from names it in sentences. */
int token_set_of_lines(
	const char *from, const char *text, struct token_set **ret, struct errinfo *reterr);
DECLARE_FREE(struct token_set, token_set_free)

/* token_set_reload - reads the file again; after a failure the old tokens stay. */
int token_set_reload(struct token_set *t, struct errinfo *reterr);

/* token_set_of_hashes, token_set_replace - a set of these, and these in the place of those that a set
 * without a file holds. -E2BIG: more than TOKEN_SET_MAX; everything stays. */
#define TOKEN_SET_MAX 3072
int token_set_of_hashes(const struct token_hash *hashes, size_t count, struct token_set **ret);
int token_set_replace(struct token_set *t, const struct token_hash *hashes, size_t count);
const struct token_hash *token_set_hashes(const struct token_set *t, size_t *ret_count);

/* token_hash_of - of the token @text, if it may be one; @from is where it stands. */
int token_hash_of(const char *from, const char *text, size_t len, struct token_hash *ret,
	struct errinfo *reterr);
uint64_t token_hash_number(const struct token_hash *h); /* as of token_set_find() */

/* token_set_find - which of them @authorization ("Bearer …", NULL: not there) holds: a number that is
 * the same in every run; 0: none of them. */
uint64_t token_set_find(const struct token_set *t, const char *authorization);

/* token_number - that of any text: the first bytes of its SHA-256, never 0. */
uint64_t token_number(const char *text, size_t len);

/* token_read - the one token that a client sends: of @path, else of @variable, else NULL. The
 * caller frees it. */
int token_read(const char *path, const char *variable, char **ret, struct errinfo *reterr);

/* token_make - a new one that cannot be guessed; the caller frees it. */
int token_make(char **ret);

/* token_keep - the token in the file @name of the folder @dir, a descriptor. Made, for its owner
 * alone, if there is none: then @give, unless NULL, may hand the file to another user. Links are not
 * followed, and a file that others can read, or that is neither this user's, root's nor the folder's
 * owner's, is refused with a sentence. The caller frees *ret. */
int token_keep(int dir, const char *name, int (*give)(int fd), char **ret, struct errinfo *reterr);
