/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_state.h - the values that the stand-in NVML answers with: the lines of the file that
 * SIM_NVML_STATE names, as they are at the moment of the call. The format is in NVML.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NVML_STATE_MAX 65536 /* bytes of the file that are looked at */

/* nvml_state_refresh - read the file again if it was changed. Without a file, or while it cannot
 * be read, every value is its default. */
void nvml_state_refresh(void);

/* nvml_state_text - the rest of the line that begins with @key and a space, cut to @size, or
 * @otherwise. @gpu is a device's number and prefixes the key with "gpuN."; -1: no prefix. */
void nvml_state_text(int gpu, const char *key, const char *otherwise, char *out, size_t size);

/* nvml_state_number - likewise; what is no number counts as @otherwise. */
uint64_t nvml_state_number(int gpu, const char *key, uint64_t otherwise);
