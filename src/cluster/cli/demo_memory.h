/* SPDX-License-Identifier: Apache-2.0 */
/* demo_memory.h - the store of the demo: what its agents push is kept as if it had come from the network, in a
 * folder that ends with the demo. */
#pragma once

#include "cluster/cli/echo_service.h"
#include "cluster/simulate/simulation.h"

struct demo_memory;

/* demo_memory_place - where temporary folders are made. */
const char *demo_memory_place(void);

/* demo_memory_new - @folder NULL: a temporary one, removed by demo_memory_free(). DuckDB has been loaded. */
int demo_memory_new(
	struct loop *l, const char *folder, struct demo_memory **ret, struct errinfo *reterr);
void demo_memory_free(struct demo_memory *m);
DEFINE_CLEANUP(struct demo_memory *, demo_memory_free)

struct echo_service *demo_memory_service(struct demo_memory *m);

/* demo_memory_watch - as play_settings.watch; @arg is the demo_memory. */
void demo_memory_watch(void *arg, const struct simulation_message *m);
/* demo_memory_tell - a notice of the core, at its time. */
void demo_memory_tell(struct demo_memory *m, const struct fleet_notice *n, int64_t now_ns);
