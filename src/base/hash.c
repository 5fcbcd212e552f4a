/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/random.h>

static uint64_t name_key[2] = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};

int hash_name_key(void)
{
	static bool is_made;

	if (!is_made && getrandom(name_key, sizeof(name_key), 0) != sizeof(name_key))
		return -EIO;
	is_made = true;
	return 0;
}

static uint64_t rotate(uint64_t v, int by)
{
	return v << by | v >> (64 - by);
}

static void mix(uint64_t v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t hash_name(const char *name, size_t len)
{
	uint64_t v[4] = {name_key[0] ^ 0x736f6d6570736575ULL, name_key[1] ^ 0x646f72616e646f6dULL,
		name_key[0] ^ 0x6c7967656e657261ULL, name_key[1] ^ 0x7465646279746573ULL};

	for (size_t i = 0; i <= len / 8; i++) {
		size_t left = len - i * 8 < 8 ? len - i * 8 : 8;
		uint64_t word = left < 8 ? (uint64_t)len << 56 : 0;

		for (size_t k = 0; k < left; k++)
			word |= (uint64_t)(unsigned char)name[i * 8 + k] << 8 * k;
		v[3] ^= word;
		mix(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Eight bytes at a time, each looked up in a table of its own that already
 * holds what the bytes behind it make of it. */

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 with its bits the other way round */

static uint32_t tables[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;

		for (int bit = 0; bit < 8; bit++)
			v = v >> 1 ^ (v & 1 ? POLYNOMIAL : 0);
		tables[0][i] = v;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
}

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *p = data;

	pthread_once(&once, make_tables);
	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8)
		crc = tables[7][(crc ^ p[0]) & 255] ^ tables[6][(crc >> 8 ^ p[1]) & 255] ^
		      tables[5][(crc >> 16 ^ p[2]) & 255] ^ tables[4][(crc >> 24 ^ p[3]) & 255] ^
		      tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
	for (; len; len--, p++)
		crc = crc >> 8 ^ tables[0][(crc ^ *p) & 255];
	return ~crc;
}
