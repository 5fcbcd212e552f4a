/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_private.h - what the files of store_duck.h share.
 *
 * One DuckDB instance has everything attached: generations of live rows (databases in memory, g1, g2, …,
 * detached as a whole) and the parts (files, read-only, p1, p2, …).
 *
 * Locks, in the order in which they may be held together:
 *   write     who makes or removes parts: one seal, merge or removal at a time
 *   instance  held for reading by whoever uses the instance, for writing by who replaces it
 *   fill      who puts rows into the current generation or begins another one
 *   set       which parts and generations there are, and all numbers; held for moments only
 * A question notes under `set` what it reads, and what it reads is not detached until it is done: so it
 * sees each row once, whatever is sealed or merged meanwhile. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "cluster/store/retention_clock.h"
#include "cluster/store/store_duck.h"
#include "duck/duck.h"
#include "net/digest.h"

#define PART_FOLDER_MAX     64
#define STORE_PATH_MAX      4096
#define STORE_TEXT_MAX      (16u << 20) /* of one statement */
#define STORE_PARTS_MAX     65536
#define STORE_MANIFEST_MAX  (256u << 20)
#define STORE_MINUTE_NS     (60 * (int64_t)NS_PER_S)
#define STORE_ALIAS_MAX     32
#define STORE_MANIFEST_NAME "manifest"
#define STORE_MANIFEST_COPY "manifest.copy"
#define STORE_DAMAGED_NAME  "damaged"
#define STORE_REPAIR_MAX    (192u << 20) /* bytes of rows that are brought back at once */
#define STORE_ID            33           /* room for the digits of a store's id and a NUL */
#define STORE_LOSSES_MAX    10000
#define PART_WHY_MAX        96

/* What is known of the rows of a part. */
struct part {
	uint64_t id;
	char *cluster;
	char folder[PART_FOLDER_MAX]; /* made from the cluster's name */
	char sha256[DIGEST_HEX];
	uint64_t bytes;
	uint64_t rows[TABLE_COUNT];
	int64_t first_ns[TABLE_COUNT], last_ns[TABLE_COUNT]; /* by each table's time */
	int64_t received_ns;                                 /* when its newest row came in */
	/* Journal positions: all rows of its cluster that came between these are in it; 0: not known. */
	uint64_t first, last;
	char why[PART_WHY_MAX]; /* of a missing one: what is wrong with its file */
	/* not in the manifest: */
	unsigned users;     /* questions that read it; under `set` */
	bool gone;          /* no manifest names it: removed when nobody reads it */
	bool suspect;       /* a question failed on it, or the scrub: its sum is to be checked */
	mono_time scrubbed; /* when its sum was found right; 0: not since the start */
};

struct generation {
	uint64_t id;
	uint64_t rows[TABLE_COUNT];
	uint64_t row_count, bytes; /* as batches */
	uint64_t position;         /* that its rows reach to */
	int64_t oldest_ns;         /* by events' time; 0: none */
	mono_time begun;           /* when its first row came */
	unsigned users;
	bool gone;
};

struct parts {
	struct part **items;
	size_t count, room;
};

struct losses {
	struct store_loss *items;
	size_t count, room;
};

struct store_duck {
	struct store store;
	struct store_duck_settings settings; /* without its zeros */
	char *folder;
	int lock_fd;

	pthread_rwlock_t instance;
	struct duck *duck;
	struct duck_connection *fill, *write; /* under the mutexes of these names */
	pthread_mutex_t fill_mutex, write_mutex, set_mutex;

	/* The filling thread's: what was taken and not committed. */
	struct buf pending;
	uint64_t pending_rows, pending_position;

	/* Under `set`: */
	struct store_share *shares; /* ordered by cluster */
	size_t share_count;
	struct parts parts;                  /* those gone too, until they are removed */
	struct generation *current, *frozen; /* frozen: being sealed; NULL: none */
	struct generation *retired[64];      /* to be dropped when nobody reads them */
	size_t retired_count;
	uint64_t visible, durable, dropped_rows;
	struct parts
		missing; /* damaged: their rows count as missing until retention would drop them */
	struct losses losses;
	uint64_t checked_bytes;
	mono_time sql_asked; /* when a stranger's statement came last; 0: never */
	struct retention_clock clock;
	bool lost; /* the instance was replaced, and the filling thread does not know yet */
	int fault;
	char fault_text[256];

	/* Under `write`: */
	char id[STORE_ID]; /* see struct manifest */
	uint64_t next_id;  /* of parts and generations */
	int64_t clock_saved_ns;
	mono_time seal_after; /* a seal that failed is not tried again before */
	atomic_bool is_hurried;
	struct parts sealed; /* of `frozen`: on disk, not yet in the manifest */

	struct asking *asking;
	struct snapshots *snapshots;
	struct scrub *scrub;
};

/* ---- store_duck_share.c: whose parts go first ---- */

void shares_free(struct store_share *list, size_t count);
int shares_set(struct store *store, const struct store_share *list, size_t count);
/* shares_find_over - where all parts are larger than the ceiling: the one to go, the oldest of who is furthest over its
 * share. NULL: there is no memory. */
struct part *shares_find_over(struct store_duck *s);

bool parts_have(struct store *store, const char *cluster, size_t len);
void seal_hurry(struct store *store);

/* ---- store_duck.c: SQL ---- */

const char *part_alias(const struct part *p, char out[STORE_ALIAS_MAX]);
const char *generation_alias(const struct generation *g, char out[STORE_ALIAS_MAX]);
/* duck_quote - @text as a literal of DuckDB. */
void duck_quote(struct buf *b, const char *text);
/* put_typed_columns - as in CREATE TABLE. */
void put_typed_columns(struct buf *b, enum store_table t);
/* put_plain_columns - the same, not compressed: of a table that is read once and then removed. */
void put_plain_columns(struct buf *b, enum store_table t);
/* put_generation - statements that attach an empty generation; node_metrics is a view in it. */
void put_generation(struct buf *b, const char *alias);
/* put_node_metrics - a query that derives node_metrics from the table @events. */
void put_node_metrics(struct buf *b, const char *events);
/* put_scope - the conditions of @scope on a table; false: there are none, and nothing was put. */
bool put_scope(struct buf *b, enum store_table t, const struct store_scope *scope, bool clusters);
bool scope_has(const struct store_scope *scope, const char *cluster);
extern const char *const part_order[TABLE_COUNT]; /* by which parts are sorted */

/* ---- store_duck_live.c ---- */

int generation_new(struct store_duck *s, struct duck_connection *c, uint64_t id,
	struct generation **ret, struct errinfo *reterr);
int live_take(struct store *store, uint64_t position, const void *data, size_t len,
	struct errinfo *reterr);
int live_commit(struct store *store, struct errinfo *reterr);
/* live_fill - rows into a generation that nobody reads yet. */
int live_fill(struct duck_connection *c, const struct generation *g, const struct buf *rows,
	struct errinfo *reterr);

/* ---- store_duck_ask.c ---- */

/* What a question reads. */
struct reading {
	struct part **parts;
	size_t part_count;
	struct generation *live[2];
	size_t live_count;              /* 1 or 2 */
	uint64_t live_rows;             /* at least so many */
	uint64_t position;              /* at least up to this one */
	uint64_t durable, dropped_rows; /* as they are with these parts */
};

/* ask_once - @fn of what there is now, held meanwhile. */
typedef int ask_fn(struct store_duck *s, struct reading *reading, const struct store_scope *scope,
	const char *question, const struct store_limits *limits, struct sql_table *ret,
	struct errinfo *reterr);
int ask_once(struct store_duck *s, ask_fn *fn, const struct store_scope *scope,
	const char *question, const struct store_limits *limits, struct sql_table *ret,
	struct errinfo *reterr);

struct ask { /* statements that run, one at a time */
	struct ask *next;
	struct duck_connection *connection;
	uint64_t deadline_ns;
	bool late;
};

int asking_new(struct asking **ret);
void asking_free(struct asking *a);  /* nobody asks any more */
void asking_hurry(struct asking *a); /* whoever asks is late from now on */
/* ask_begin, ask_end - between them, what runs on the connection is interrupted when it is late. */
void ask_begin(struct asking *a, struct ask *k);
void ask_end(struct asking *a, struct ask *k);
void asking_disconnect(struct store_duck *s);
/* reading_begin - the parts and generations that may hold rows of @scope. */
int reading_begin(struct store_duck *s, const struct store_scope *scope, struct reading *ret);
void reading_end(struct store_duck *s, struct reading *r);
/* reading_suspect - one of the parts could not be read: upkeep looks at them. */
void reading_suspect(struct store_duck *s, struct reading *r);
int connection_get(struct store_duck *s, struct duck_connection **ret, struct errinfo *reterr);
void connection_put(struct asking *a, struct duck_connection *c);
/* reading_expand - a question in DuckDB's SQL on what is read. */
int reading_expand(struct reading *r, const char *question, const struct store_scope *scope,
	struct buf *ret, struct errinfo *reterr);
/* part_meets - whether it may hold rows of @scope. */
bool part_meets(const struct part *p, const struct store_scope *scope);
int ask_select(struct store *store, const struct store_scope *scope, const char *question,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr);

/* ---- store_duck_sql.c ---- */

int snapshots_new(struct store_duck *s);
void snapshots_free(struct snapshots *n);
int ask_sql(struct store *store, const struct store_scope *scope, const char *text,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr);

/* ---- store_duck_part.c ---- */

DECLARE_FREE(struct part, part_free)
bool part_folder_is(const char *name); /* a name of such a folder */
int parts_add(struct parts *p, struct part *part);
/* parts_insert - where the journal has its rows. */
int parts_insert(struct parts *p, struct part *part);
/* part_copy - what the manifest knows of it; NULL: no memory. */
struct part *part_copy(const struct part *p);
uint64_t part_rows(const struct part *p); /* without those of node_metrics, which are derived */
/* part_damaged_path - where its file is kept once it is set aside. */
void part_damaged_path(
	const struct store_duck *s, const struct part *p, char out[STORE_PATH_MAX + 64]);
/* part_check - its file against its sum: 1: damaged, and why; 0: it is whole; else it cannot be told now. */
int part_check(const struct store_duck *s, const struct part *p, char why[PART_WHY_MAX]);
void parts_done(struct parts *p); /* frees them */
int part_path(const struct store_duck *s, const struct part *p, const char *suffix,
	char out[STORE_PATH_MAX], struct errinfo *reterr);
int part_attach(struct store_duck *s, struct duck_connection *c, const struct part *p,
	struct errinfo *reterr);
/* parts_strange - 1, and the alias of one that is attached and holds what no part does: views or computed columns, which
 * would run a stranger's SQL with our rights when they are read. 0: there is none. */
int parts_strange(struct duck_connection *c, char ret[STORE_ALIAS_MAX], struct errinfo *reterr);
#define PART_STRANGE "it holds a view or a computed column, which no part does"
/* part_write - the rows of @cluster in @sources (schemas or catalogs, with the tables in them) as a new
 * file, synced under its final name. @rows: about how many they are. @derive: node_metrics from events, not from node_metrics. */
int part_write(struct store_duck *s, const char *cluster, const char *const *sources,
	size_t source_count, size_t rows, bool derive, struct part **ret, struct errinfo *reterr);

/* ---- store_duck_manifest.c ---- */

struct manifest {
	char id[STORE_ID]; /* of the store whose journal positions these are: its own, and its backups' */
	struct parts parts;
	uint64_t durable; /* journal position */
	uint64_t next_id;
	uint64_t dropped_rows;
	struct parts missing;
	struct losses losses;
	int64_t clock_ns; /* see store_duck_private.h; 0: not known */
	bool unsummed;    /* it was written by a program that knew no sums */
	bool was_copy;    /* the manifest is damaged: this is its copy */
	bool is_alone;    /* its copy is damaged, another one or not there */
	bool copy_is_damaged;
};

/* manifest_read - -ENOENT: there is none, without a sentence. */
int manifest_read(const char *folder, struct manifest *ret, struct errinfo *reterr);
/* manifest_write - the copy first: the manifest itself decides which state the store is in. */
int manifest_write(const char *folder, const struct manifest *m, struct errinfo *reterr);
/* manifest_new_id - positions from here on are nobody else's. */
void manifest_new_id(char out[STORE_ID]);
void manifest_done(struct manifest *m);

/* ---- store_duck_seal.c ---- */

bool seal_is_due(struct store_duck *s);
/* seal_now - with `write` held. What fails is in the stats too. */
int seal_now(struct store_duck *s, struct errinfo *reterr);
int seal_all(struct store *store, struct errinfo *reterr);

/* ---- store_duck_set.c: which parts and generations there are ---- */

struct change {
	struct parts *add; /* on disk and attached; taken over by the set; NULL: none */
	struct part **remove;
	size_t remove_count;
	uint64_t durable;      /* 0: as it is */
	uint64_t dropped_rows; /* that remove takes away for good */
	struct part *missing;  /* joins the missing ones, and is theirs; NULL: none */
	struct part *found;    /* one of the missing ones, which is no more; NULL: none */
};

/* set_change - the next manifest, then the set; with `write` held. On failure nothing has changed. */
int set_change(struct store_duck *s, const struct change *c, struct errinfo *reterr);
/* set_sweep - detaches and removes what is gone and nobody reads; with `write` held. */
void set_sweep(struct store_duck *s);

/* ---- store_duck_missing.c: what was kept and cannot be read any more ---- */

/* missing_count - with `set` held. */
void missing_count(
	const struct store_duck *s, const struct store_scope *scope, struct store_missing *ret);
void missing_of(struct store *store, const struct store_scope *scope, struct store_missing *ret);
int missing_lose(struct store *store, const struct store_loss *l, struct errinfo *reterr);
/* missing_expire - one that retention would have dropped by @before_ns: 1; 0: there is none; with `write` held. */
int missing_expire(struct store_duck *s, int64_t before_ns, struct errinfo *reterr);

/* ---- store_duck_scrub.c ---- */

int scrub_new(struct store_duck *s);
void scrub_free(struct scrub *x);

/* ---- store_duck_upkeep.c ---- */

/* suspects_check - parts on which a question failed: those that are damaged are missing afterwards. With no
 * lock held. */
void suspects_check(struct store_duck *s);

int upkeep_step(struct store *store, int64_t now_ns, struct errinfo *reterr);

/* ---- store_duck_live.c ---- */

/* instance_open - with the parts that there are, and an empty generation. A part that cannot be opened is
 * moved away: it is gone from the set. */
int instance_open(struct store_duck *s, struct errinfo *reterr);
void instance_close(struct store_duck *s);
/* instance_use - holds `instance` for reading, until instance_leave(). -EIO: there is none just now. */
int instance_use(struct store_duck *s, struct errinfo *reterr);
void instance_leave(struct store_duck *s);
/* part_quarantine - a damaged part leaves the set for the missing ones, and its file the folder of its cluster;
 * with `write` held. */
int part_quarantine(struct store_duck *s, struct part *p, const char *why, struct errinfo *reterr);
/* instance_check - after a failure, with no lock held but @write_held: an instance that DuckDB has given up
 * is replaced. The live rows are gone with it: visible goes back to durable. */
void instance_check(struct store_duck *s, bool write_held);

/* ---- store_duck_upkeep.c ---- */

/* store_copy_file - to a new file, synced. */
int store_copy_file(const char *from, const char *to);

/* ---- store_duck_verify.c ---- */

/* report_missing - what is missing with @p, in words. */
void report_missing(struct store_report *r, const struct part *p, const char *what);
void report_loss(struct store_report *r, const struct store_loss *l);

/* ---- store_duck_lock.c ---- */

/* store_lock - the descriptor that holds it. -EAGAIN. */
int store_lock(const char *folder, struct errinfo *reterr);

void store_fault(struct store_duck *s, int err, const struct errinfo *why);

/* Tests look in at these places, in order, each told by its name: a process may end there. */
extern void (*store_duck_at)(const char *place);
