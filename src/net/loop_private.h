/* SPDX-License-Identifier: Apache-2.0 */
/* loop_private.h - the loop as the rest of net/ sees it. */
#pragma once

#include "net/loop.h"

struct event_base *loop_base(struct loop *l);
