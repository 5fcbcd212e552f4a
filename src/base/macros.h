/* SPDX-License-Identifier: Apache-2.0 */
/* macros.h - ownership and small language helpers used by every layer above wire/.
 *
 * _cleanup_(f) runs f(&variable) when the variable leaves scope; TAKE(p) hands the value out and
 * leaves NULL behind, so that a cleanup attribute and a returned pointer never fight.
 *
 * The C library's headers below are those that nearly every file uses: one that includes this, directly or by
 * another header of ours, does not name them again. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f)     __attribute__((cleanup(f)))
#define _printf_(a, b)   __attribute__((format(printf, a, b)))
#define _unused_         __attribute__((unused))
#define _noreturn_       __attribute__((noreturn))
#define STATIC_ASSERT(x) _Static_assert(x, #x)
#define ARRAY_SIZE(a)    (sizeof(a) / sizeof((a)[0]))

#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) min_a_ = (a);                                                        \
		__typeof__(b) min_b_ = (b);                                                        \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})
#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) max_a_ = (a);                                                        \
		__typeof__(b) max_b_ = (b);                                                        \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})

#define TAKE(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) *take_p_ = &(p);                                                     \
		__typeof__(p) take_v_ = *take_p_;                                                  \
		*take_p_ = NULL;                                                                   \
		take_v_;                                                                           \
	})

/* LIST_IDS - the ids of an enum whose values are listed as X(NAME, id, …), in their order. */
#define LIST_ID(NAME, id, ...) id,
#define LIST_IDS(LIST)         ((const char *const[]){LIST(LIST_ID)})

/* EXISTS(i, count, condition) - whether @condition, an expression of the index @i, holds for one below @count.
 * FIND(x, items, count, condition) - the first element of an array for which @condition, an expression of the pointer
 * @x to it, holds; NULL: there is none. FIND_ROW - likewise of a table that ends with a row without @member, or is NULL.
 *
 *	return EXISTS(i, list->count, list->pids[i] == pid);
 *	return FIND(x, list->items, list->count, x->id == id);
 *	return FIND_ROW(x, commands, name, !strcmp(x->name, name)); */
#define EXISTS(i, count, condition)                                                                \
	({                                                                                         \
		__typeof__((count) + 0) i = 0, exists_end_ = (count);                              \
                                                                                                   \
		while (i < exists_end_ && !(condition))                                            \
			i++;                                                                       \
		i < exists_end_;                                                                   \
	})
#define FIND(x, items, count, condition)                                                           \
	({                                                                                         \
		__typeof__((items) + 0) find_found_ = NULL;                                        \
                                                                                                   \
		for (size_t find_i_ = 0, find_end_ = (count); !find_found_ && find_i_ < find_end_; \
			find_i_++) {                                                               \
			__typeof__(find_found_) x = &(items)[find_i_];                             \
                                                                                                   \
			if (condition)                                                             \
				find_found_ = x;                                                   \
		}                                                                                  \
		find_found_;                                                                       \
	})
#define FIND_ROW(x, table, member, condition)                                                      \
	({                                                                                         \
		__typeof__((table) + 0) x = (table);                                               \
                                                                                                   \
		while (x && x->member && !(condition))                                             \
			x++;                                                                       \
		x && x->member ? x : NULL;                                                         \
	})

/* DEFINE_CLEANUP(type, free_fn) - makes free_fnp(), the form _cleanup_ wants. */
#define DEFINE_CLEANUP(type, free_fn)                                                              \
	static inline _unused_ void free_fn##p(type *p)                                            \
	{                                                                                          \
		if (*p)                                                                            \
			free_fn(*p);                                                               \
	}

/* DECLARE_FREE(type, free_fn) - free_fn(), which frees a @type, and free_fnp(). */
#define DECLARE_FREE(type, free_fn)                                                                \
	void free_fn(type *);                                                                      \
	DEFINE_CLEANUP(type *, free_fn)

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void fd_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_fd_   _cleanup_(fd_closep)

/* FORMATTED(size, fmt, …) - a text as an expression, for the arguments of a call: as many bytes of it as fit. It lives
 * until its block ends. */
#define FORMATTED(size, ...) format_text((char[size]){0}, size, __VA_ARGS__)

static inline _printf_(3, 4) const char *format_text(char *out, size_t size, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(out, size, fmt, args);
	va_end(args);
	return out;
}

/* Sums and products that stay at the highest number instead of beginning anew. */

static inline uint64_t capped_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t capped_product(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
