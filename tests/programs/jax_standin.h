/* SPDX-License-Identifier: Apache-2.0 */
/* jax_standin.h - see jax_standin.c. */
#pragma once

int jax_call(int round);
