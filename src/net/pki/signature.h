/* SPDX-License-Identifier: Apache-2.0 */
/* signature.h - HMAC-SHA256: who knows the secret can tell that a message is ours and whole. */
#pragma once

#include <stddef.h>

#define SIGNATURE_MAX 65 /* 64 hexadecimal digits */

/* signature_make - 0, or -ENOMEM. */
int signature_make(const void *secret, size_t secret_len, const void *data, size_t len,
	char out[SIGNATURE_MAX]);
