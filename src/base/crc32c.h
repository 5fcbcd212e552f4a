/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.h - CRC-32C (Castagnoli), which finds every damage of up to 32 bits in a row. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* crc32c - of @data after what @crc is the sum of; 0: of nothing. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
