/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - the hashes that tables here use: of a number, of bytes, and of names that strangers choose. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* hash_number - splitmix64's finisher: every bit of @v changes half of the result's. */
static inline uint64_t hash_number(uint64_t v)
{
	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
	return v ^ (v >> 31);
}

/* hash_words - of @len bytes, a multiple of eight, on this machine alone. */
static inline uint64_t hash_words(const void *data, size_t len)
{
	uint64_t h = len, word;

	for (size_t i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, (const char *)data + i, sizeof(word));
		h = hash_number(h ^ word);
	}
	return h;
}

/* hash_bytes - FNV-1a. */
static inline uint64_t hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

/* hash_name - SipHash-2-4: who does not know the key cannot make up two names with the same hash. */
uint64_t hash_name(const char *name, size_t len);

/* hash_name_key - a key that nobody knows, before the first name is hashed: for services and the tracer, once. Without it runs repeat. -EIO:
 * the kernel has no random numbers. */
int hash_name_key(void);

/* CRC-32C (Castagnoli), which finds every damage of up to 32 bits in a row. */

/* crc32c - of @data after what @crc is the sum of; 0: of nothing. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
