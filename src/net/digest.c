/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - see digest.h. */
#include "net/digest.h"

#include <openssl/sha.h>
#include <stdio.h>

void digest_sha256(const void *data, size_t len, char ret[DIGEST_HEX])
{
	unsigned char bytes[SHA256_DIGEST_LENGTH];

	SHA256(data, len, bytes);
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}
