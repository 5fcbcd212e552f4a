/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - see digest.h. */
#include "net/digest.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>

int digest_sha256(const void *data, size_t len, char ret[DIGEST_HEX])
{
	unsigned char bytes[SHA256_DIGEST_LENGTH];

	if (!SHA256(data, len, bytes))
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}
