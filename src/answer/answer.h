/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what a recording says about a time, as JSON: the data behind the HTTP API and MCP's
 * tools.
 *
 * Each answer_X() writes one object whose keys docs/api.md describes, by short questions to the store
 * (store/read/nodedb_snapshot.h); lists have ceilings and say when they cut. Names from traced
 * processes are written as they are: JSON's escapes are the writer's, other sinks' the reader's. */
#pragma once

#include "json/writer.h"
#include "store/nodedb.h"
#include "store/read/nodedb_snapshot.h"
#include "wire/names.h"

#define ANSWER_PIDS_MAX 64
#define ANSWER_TEXT_MAX 128
#define ANSWER_BYTES    (8u << 20) /* of an answer */

struct timeline_index;

struct answer_request { /* as asked; 0 and "" are not */
	uint64_t since_ns;
	bool all;
	bool until_now; /* a live recording ends now, not with its last event */
	char from[ANSWER_TEXT_MAX], to[ANSWER_TEXT_MAX];   /* as --from and --to */
	char from2[ANSWER_TEXT_MAX], to2[ANSWER_TEXT_MAX]; /* of the time it is compared with */
	uint32_t pids[ANSWER_PIDS_MAX];
	size_t pid_count;
	bool has_rank;
	int32_t rank; /* the processes that have this rank in their job */
	char node[256];
	uint8_t source; /* only this source, */
	uint16_t op;    /* and of it this op */
	size_t limit;   /* of what the answer lists */
	size_t last;    /* figures of the newest so many rows alone */
	size_t points;  /* of a series; nodes of a flame graph; pixels of a time line */
	size_t offset;  /* so many of what the answer lists come before */
	char kinds[ANSWER_TEXT_MAX];           /* of tracks, separated by commas */
	char text[ANSWER_TEXT_MAX];            /* what is looked for */
	const struct timeline_index *timeline; /* of the recording; NULL: none is at hand */
	unsigned timeline_progress;            /* of making it, of 1000 */
	bool stacks;
	bool brief;          /* what a reader with little room can do without is left out */
	struct buf *say;     /* gets the answer in a sentence or a few; NULL: nobody wants it */
	const char *flag;    /* how parameters are called in errors: "--"; NULL: by their name */
	const char *version; /* of this program, for the overview; NULL: not said */
};

struct question { /* an open recording and the time that is asked about */
	struct nodedb_snapshot *snapshot;
	const struct answer_request *request;
	struct scope scope;
	struct nodedb_range range; /* of the whole recording */
	bool live;                 /* somebody is writing it */
	bool by_default;           /* no time was asked for */
	uint64_t
		runs; /* of `ingero trace`, of which only the newest is meant; 0: all that there are */
	const char *node; /* of the recording; the first if it has several */
};

/* answer_ask - opens @path, finds the time that @request and @default_ns mean and calls @fn, which
 * starts afresh if it is called again. Without a time, of several runs in a saved file the newest is
 * meant: processes of others may have the same ids. -EINVAL a time that is none; -ESRCH no such node; else what
 * @fn or nodedb_read() returned. */
typedef int question_fn(const struct question *q, void *arg, struct errinfo *reterr);
int answer_ask(const char *path, const struct answer_request *request, uint64_t default_ns,
	question_fn *fn, void *arg, struct errinfo *reterr);

struct host_answer { /* the newest sample up to the end of the time */
	bool known;
	double cpu_pct, mem_pct, load1;
	int64_t swap_mb;
};
int answer_host(const struct question *q, struct host_answer *ret, struct errinfo *reterr);

/* A question: what to write, and which time it is about if none is asked for (0: the newest run in
 * a saved file, the last five minutes of a live one). 0 or a negative errno with a sentence. */
typedef int answer_fn(const struct question *q, struct json_writer *w, struct errinfo *reterr);
#define ANSWER_DEFAULT_NS TIME_REQUEST_LIVE_NS

/* answer_run - opens @path, finds the time and appends what @fn tells to @out, as one line.
 * -EINVAL a time that is none; -ESRCH no such node; else as nodedb_read(); -EMSGSIZE more than @out
 * may hold. */
int answer_run(const char *path, const struct answer_request *request, answer_fn *fn,
	uint64_t default_ns, struct buf *out, struct errinfo *reterr);

/* answer_limit - the number that was asked for, or @otherwise; no more than @max. */
size_t answer_limit(size_t request, size_t otherwise, size_t max);

/* answer_second_time - the scope of the time that the question's is compared with: its own but for
 * the time. -EINVAL if none was asked for, or it is none. */
int answer_second_time(const struct question *q, struct scope *ret, struct errinfo *reterr);

/* put_window - the member "window" that every answer about a time has. */
void put_window(const struct question *q, struct json_writer *w);

/* answer_end - ends the object of an answer about a time: "truncated" and "window". Returns 0. */
int answer_end(const struct question *q, struct json_writer *w, bool truncated);

/* table_put - member @key: an array of the rows of @t as objects, each column a member. */
void table_put(struct json_writer *w, const char *key, const struct sql_table *t);
/* table_put_arrays - the members "columns", "rows" (an array each) and "truncated". Blobs are hexadecimal digits: all
 * of them, or, if @blob_max is not 0, of so many bytes and written as SQL does. */
void table_put_arrays(struct json_writer *w, const struct sql_table *t, size_t blob_max);
void table_cell(struct json_writer *w, const struct sql_table *t, size_t row, int column);
/* table_put_row - the columns from @first to before @end as members. */
void table_put_row(
	struct json_writer *w, const struct sql_table *t, size_t row, int first, int end);

/* Values of a list by their column's name; what is not there or no number reads as 0, "". */
int table_column(const struct sql_table *t, const char *name); /* -1: none */
int64_t table_int(const struct sql_table *t, size_t row, int column);
double table_real(const struct sql_table *t, size_t row, int column);
const char *table_text(const struct sql_table *t, size_t row, int column);

#define JSON_US(key, ns) JSON_R(key, (ns) / (double)NS_PER_US)

answer_fn overview_json, nodes_json, sessions_json, processes_json, capabilities_json;
answer_fn ops_json, series_json, graph_metrics_json, graph_events_json, kernels_json;
answer_fn chains_json, incidents_json, collectives_json, stacks_json, flame_json, flame_diff_json;
answer_fn snapshots_json, gpus_json, losses_json, overhead_json, steps_json;
answer_fn diff_json, graph_lifecycle_json, graph_frequency_json;
answer_fn timeline_json, timeline_event_json, timeline_search_json;

#define TIME_REQUEST_LIVE_NS (300 * NS_PER_S) /* of a recording that is being written */

struct time_request {          /* as asked */
	const char *from, *to; /* base/clock.h reads them; NULL or "": not asked for */
	uint64_t since_ns;     /* only so long before the end; 0: not asked for */
	bool all;
};

struct time_end {                  /* what times are relative to */
	struct nodedb_range range; /* of everything that has a time */
	bool live; /* somebody is writing it: without a request the last five minutes */
	/* Where these end: now, for a page on which a standstill is to be seen; or with the last
	 * event, for a verdict, because a workload that hangs makes none. 0: with the range. */
	int64_t live_ns;
	const char *flag; /* how parameters are called in errors: "" or "--" */
};

static inline bool time_request_is_empty(const struct time_request *t)
{
	return !(t->from && t->from[0]) && !(t->to && t->to[0]) && !t->since_ns && !t->all;
}

/* time_request_resolve - sets both times of @ret. Without a request @default_ns is meant, and 0 is
 * all of a saved file, the last five minutes of a live one. -EINVAL with a sentence. */
int time_request_resolve(const struct time_request *t, const struct time_end *end,
	uint64_t default_ns, struct scope *ret, struct errinfo *reterr);

/* What the files that answer share. */

/* put_system - the member "system": the newest sample of the host up to the end of the time, if
 * there is one. */
int put_system(const struct question *q, struct json_writer *w, struct errinfo *reterr);

/* put_books - the member "books": hits and what became of them, if the recording says. */
int put_books(const struct question *q, struct json_writer *w, double *ret_completeness,
	struct errinfo *reterr);

/* answer_step - whole seconds, so that the time has no more than @points of them. */
int64_t answer_step(const struct question *q, size_t points);

/* put_chain_texts - member @key: the strings of the JSON array in @text; what is none is left out.
 */
void put_chain_texts(struct json_writer *w, const char *key, const char *text);

/* Samples of the GPUs in a time. */

#define GPUS_MAX 256

/* Columns of the table gpu_samples, in its order; then GPU_FIELDS. */
enum { GPUS_NODE, GPUS_TIME, GPUS_GPU, GPUS_UUID, GPUS_NAME, GPUS_PCI };

struct gpus_answer {
	struct sql_table samples; /* newest first */
	size_t newest[GPUS_MAX];  /* of each GPU: its first row */
	size_t count;
	bool truncated;
};

int answer_gpus(const struct question *q, struct gpus_answer *ret, struct errinfo *reterr);
void gpus_answer_done(struct gpus_answer *a);

/* gpus_same - whether two rows are of one GPU. */
bool gpus_same(const struct gpus_answer *a, size_t x, size_t y);

/* gpus_slowing - the reasons in @bits for which a GPU runs slower than it could. */
uint64_t gpus_slowing(int64_t bits);

struct gpu_gauge {        /* one column over the samples of a GPU */
	uint64_t samples; /* 0: it never said */
	int64_t min, max;
	double mean;
};
struct gpu_gauge gpus_gauge(const struct gpus_answer *a, size_t gpu, const char *column);
