/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h - SHA-256 of a text, for names that must come out the same everywhere, and of a file. */
#pragma once

#include <stddef.h>

#define DIGEST_HEX 65 /* bytes of the digits with their NUL */

/* digest_sha256 - 0, or -ENOMEM. */
int digest_sha256(const void *data, size_t len, char ret[DIGEST_HEX]);

/* digest_sha256_file - 0, or what open(2) or read(2) gave. */
int digest_sha256_file(const char *path, char ret[DIGEST_HEX]);

/* digest_sha256_fd - of what @fd holds from its offset on. @pace is told of each @bytes that were read and may
 * wait; what it returns other than 0 ends it. NULL: nobody is told. */
typedef int digest_pace(void *arg, size_t bytes);
int digest_sha256_fd(int fd, digest_pace *pace, void *arg, char ret[DIGEST_HEX]);

/* digest_hmac - HMAC-SHA256: who knows the secret can tell that a message is ours and whole. 0, or -ENOMEM. */
int digest_hmac(
	const void *secret, size_t secret_len, const void *data, size_t len, char out[DIGEST_HEX]);
