/* SPDX-License-Identifier: Apache-2.0 */
/* embed.h - for the assembler: files in read-only data, each between web_X and web_X_end. */
#pragma once

/* clang-format off */
#define EMBED(symbol, path_, file_, type_)                                                         \
	.global web_##symbol; .type web_##symbol, %object;                                         \
	web_##symbol: .incbin file_; .size web_##symbol, . - web_##symbol;                         \
	.global web_##symbol##_end; web_##symbol##_end: .byte 0;
/* clang-format on */
