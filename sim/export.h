/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - how a stand-in library exports a function that people put probes on: each is a
 * function of its own at an address of its own, never inlined, cloned or merged with an equal one.
 */
#pragma once

#if defined(__clang__)
#define SIM_EXPORT __attribute__((visibility("default"), noinline))
#else
#define SIM_EXPORT __attribute__((visibility("default"), noipa))
#endif
