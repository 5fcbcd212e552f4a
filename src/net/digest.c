/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - see digest.h. */
#include "net/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "base/file.h"
#include "base/macros.h"

#define READ_BYTES (256u << 10)

static void put_hex(const unsigned char bytes[SHA256_DIGEST_LENGTH], char ret[DIGEST_HEX])
{
	for (size_t i = 0; i < SHA256_DIGEST_LENGTH; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

int digest_sha256(const void *data, size_t len, char ret[DIGEST_HEX])
{
	unsigned char bytes[SHA256_DIGEST_LENGTH];

	if (!SHA256(data, len, bytes))
		return -ENOMEM;
	put_hex(bytes, ret);
	return 0;
}

static int digest_read(int fd, EVP_MD_CTX *context, digest_pace *pace, void *arg)
{
	_cleanup_free_ unsigned char *data = malloc(READ_BYTES);
	ssize_t n = 0;
	int r = 0;

	if (!data || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	while (r == 0 && (n = read(fd, data, READ_BYTES)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && EVP_DigestUpdate(context, data, (size_t)n) != 1)
			return -ENOMEM;
		if (n > 0 && pace)
			r = pace(arg, (size_t)n);
	}
	return r;
}

int digest_sha256_fd(int fd, digest_pace *pace, void *arg, char ret[DIGEST_HEX])
{
	unsigned char bytes[SHA256_DIGEST_LENGTH];
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	int r = context ? digest_read(fd, context, pace, arg) : -ENOMEM;

	if (r == 0 && EVP_DigestFinal_ex(context, bytes, NULL) != 1)
		r = -ENOMEM;
	EVP_MD_CTX_free(context);
	if (r == 0)
		put_hex(bytes, ret);
	return r;
}

int digest_sha256_file(const char *path, char ret[DIGEST_HEX])
{
	_cleanup_fd_ int fd = file_open_regular(path);

	return fd < 0 ? fd : digest_sha256_fd(fd, NULL, NULL, ret);
}

int digest_hmac(
	const void *secret, size_t secret_len, const void *data, size_t len, char out[DIGEST_HEX])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int digest_len = 0;

	if (!HMAC(EVP_sha256(), secret, (int)secret_len, data, len, digest, &digest_len))
		return -ENOMEM;
	put_hex(digest, out);
	return 0;
}
