/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <pthread.h>

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
