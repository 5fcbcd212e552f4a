/* SPDX-License-Identifier: Apache-2.0 */
/* ingero.yaml: an error has a sentence with the file in it, and lists keep to their ceiling. */
#include "command/config_file.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *c = NULL;
	struct errinfo e = {0};

	if (config_file_read("etc/ingero.yaml", (const char *)data, size, &c, &e) < 0) {
		MUST(!c && strstr(e.text, "ingero.yaml"));
		return 0;
	}
	MUST(c && c->fleet_nodes.count <= CONFIG_LIST_MAX);
	for (size_t i = 0; i < c->fleet_nodes.count; i++)
		MUST(c->fleet_nodes.items[i]);
	for (size_t i = 0; i < c->dashboard_names.count; i++)
		MUST(c->dashboard_names.items[i]);
	config_free(c);
	return 0;
}
