/* SPDX-License-Identifier: Apache-2.0 */
/* mutex.h - a mutex that is held until its block ends, whichever way that is left. */
#pragma once

#include <pthread.h>

#include "base/macros.h"

static inline pthread_mutex_t *mutex_take(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	return m;
}

static inline void mutex_givep(pthread_mutex_t **m)
{
	pthread_mutex_unlock(*m);
}

/* MUTEX_HELD(m) - from here to the end of the block; a statement among its declarations. */
#define MUTEX_HELD(m) _cleanup_(mutex_givep) _unused_ pthread_mutex_t *mutex_held_ = mutex_take(m)
