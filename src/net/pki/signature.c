/* SPDX-License-Identifier: Apache-2.0 */
/* signature.c - see signature.h. */
#include "net/pki/signature.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

int signature_make(const void *secret, size_t secret_len, const void *data, size_t len,
	char out[SIGNATURE_MAX])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int digest_len = 0;

	if (!HMAC(EVP_sha256(), secret, (int)secret_len, data, len, digest, &digest_len))
		return -ENOMEM;
	for (unsigned int i = 0; i < digest_len; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	return 0;
}
