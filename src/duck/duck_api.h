/* SPDX-License-Identifier: Apache-2.0 */
/* duck_api.h - the functions of libduckdb.so that are used here, as our own declarations of its stable C
 * interface. One row a function: duck_api.X is it after duck_load(). */
#pragma once

#include "base/errinfo.h"

typedef struct duck_handle *duck_handle; /* database, connection, config, type, chunk, …: opaque */

struct duck_result { /* given by value to fetch_chunk(), so its size matters */
	uint64_t unused[5];
	void *internal;
};

union duck_string { /* a VARCHAR in a vector */
	struct {
		uint32_t len;
		char prefix[4];
		const char *data;
	};
	struct {
		uint32_t inlined_len; /* the same as len */
		char inlined[12];
	};
};
#define DUCK_STRING_INLINED 12

enum duck_type_id {
	DUCK_ID_BOOLEAN = 1,
	DUCK_ID_TINYINT,
	DUCK_ID_SMALLINT,
	DUCK_ID_INTEGER,
	DUCK_ID_BIGINT,
	DUCK_ID_UTINYINT,
	DUCK_ID_USMALLINT,
	DUCK_ID_UINTEGER,
	DUCK_ID_UBIGINT,
	DUCK_ID_FLOAT,
	DUCK_ID_DOUBLE,
	DUCK_ID_HUGEINT = 16,
	DUCK_ID_VARCHAR = 17,
	DUCK_ID_DECIMAL = 19,
};

enum duck_statement_type { DUCK_STATEMENT_SELECT = 1, DUCK_STATEMENT_EXPLAIN = 4 };

/* X(result, name without duckdb_, arguments) */
#define DUCK_FUNCTIONS(X)                                                                          \
	X(const char *, library_version, (void))                                                   \
	X(void, free, (void *p))                                                                   \
	X(int, create_config, (duck_handle * ret))                                                 \
	X(int, set_config, (duck_handle config, const char *name, const char *value))              \
	X(void, destroy_config, (duck_handle * config))                                            \
	X(int, open_ext, (const char *path, duck_handle *ret, duck_handle config, char **error))   \
	X(void, close, (duck_handle * database))                                                   \
	X(int, connect, (duck_handle database, duck_handle * ret))                                 \
	X(void, disconnect, (duck_handle * connection))                                            \
	X(void, interrupt, (duck_handle connection))                                               \
	X(int, query, (duck_handle connection, const char *text, struct duck_result *ret))         \
	X(void, destroy_result, (struct duck_result * result))                                     \
	X(const char *, result_error, (struct duck_result * result))                               \
	X(uint64_t, column_count, (struct duck_result * result))                                   \
	X(const char *, column_name, (struct duck_result * result, uint64_t column))               \
	X(duck_handle, column_logical_type, (struct duck_result * result, uint64_t column))        \
	X(duck_handle, fetch_chunk, (struct duck_result result))                                   \
	X(uint64_t, extract_statements,                                                            \
		(duck_handle connection, const char *text, duck_handle *ret))                      \
	X(const char *, extract_statements_error, (duck_handle extracted))                         \
	X(void, destroy_extracted, (duck_handle * extracted))                                      \
	X(int, prepare_extracted_statement,                                                        \
		(duck_handle connection, duck_handle extracted, uint64_t index,                    \
			duck_handle * ret))                                                        \
	X(const char *, prepare_error, (duck_handle statement))                                    \
	X(int, prepared_statement_type, (duck_handle statement))                                   \
	X(uint64_t, prepared_statement_column_count, (duck_handle statement))                      \
	X(const char *, prepared_statement_column_name, (duck_handle statement, uint64_t column))  \
	X(int, prepared_statement_column_type, (duck_handle statement, uint64_t column))           \
	X(void, destroy_prepare, (duck_handle * statement))                                        \
	X(int, execute_prepared_streaming, (duck_handle statement, struct duck_result * ret))      \
	X(duck_handle, create_logical_type, (int type))                                            \
	X(void, destroy_logical_type, (duck_handle * type))                                        \
	X(int, get_type_id, (duck_handle type))                                                    \
	X(uint8_t, decimal_scale, (duck_handle type))                                              \
	X(int, decimal_internal_type, (duck_handle type))                                          \
	X(duck_handle, create_data_chunk, (duck_handle * types, uint64_t count))                   \
	X(void, destroy_data_chunk, (duck_handle * chunk))                                         \
	X(void, data_chunk_reset, (duck_handle chunk))                                             \
	X(uint64_t, data_chunk_get_size, (duck_handle chunk))                                      \
	X(void, data_chunk_set_size, (duck_handle chunk, uint64_t size))                           \
	X(duck_handle, data_chunk_get_vector, (duck_handle chunk, uint64_t column))                \
	X(uint64_t, vector_size, (void))                                                           \
	X(void *, vector_get_data, (duck_handle vector))                                           \
	X(uint64_t *, vector_get_validity, (duck_handle vector))                                   \
	X(void, vector_ensure_validity_writable, (duck_handle vector))                             \
	X(void, unsafe_vector_assign_string_element_len,                                           \
		(duck_handle vector, uint64_t row, const char *text, uint64_t len))                \
	X(int, appender_create_ext,                                                                \
		(duck_handle connection, const char *catalog, const char *schema,                  \
			const char *table, duck_handle *ret))                                      \
	X(const char *, appender_error, (duck_handle appender))                                    \
	X(int, append_data_chunk, (duck_handle appender, duck_handle chunk))                       \
	X(int, appender_clear, (duck_handle appender))                                             \
	X(int, appender_flush, (duck_handle appender))                                             \
	X(int, appender_destroy, (duck_handle * appender))

struct duck_api {
#define X(result, name, arguments) result(*name) arguments;
	DUCK_FUNCTIONS(X)
#undef X
};
extern struct duck_api duck_api;

struct duck_connection {
	duck_handle handle;
};

int duck_error(const char *message, struct errinfo *reterr);
