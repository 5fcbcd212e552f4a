/* SPDX-License-Identifier: Apache-2.0 */
/* thresholds.h - every threshold of the engine: what it is, in which unit, and why.
 *
 * To add one: a row here. Each is moved by a fifth up and down over the corpus (make check-full), and at most
 * one verdict in fifty may change by it: a value on which more hangs is no threshold but an accident. What is
 * a ceiling on memory or time, or a unit, stays where it is used. */
#pragma once

/* X(NAME, value, unit, reason) */
#define THRESHOLDS(X)                                                                              \
	THRESHOLDS_COMMON(X) THRESHOLDS_CONTRASTS(X) THRESHOLDS_CHAINS(X) THRESHOLDS_FINDINGS(X)

/* What several rules weigh by. */
#define THRESHOLDS_COMMON(X)                                                                        \
	X(MOST, 0.6, "share",                                                                       \
		"so many are most: units of one kind, distances, launches, time in one place")      \
	X(FEW, 0.1, "share",                                                                        \
		"so few do not count: units between two classes, time between long ones, rows")     \
	X(PART, 0.25, "share", "of a growth, a period or rows: a cause of its own; of pairs")       \
	X(LITTLE, 0.2, "share",                                                                     \
		"of a unit or of the largest: no more than that is left, or beside it")             \
	X(LEAST, 4, "units or rows",                                                                \
		"fewer say nothing: no ordinary, no usual distance, no end of compiling")           \
	X(AGAIN, 3, "times", "fewer distances, stretches, readings or long units are a chance")     \
	X(IN_A_ROW, 5, "units or rows",                                                             \
		"a longer stretch is a state; fewer leave a gap by chance")                         \
	X(FAR_MORE, 4, "times as much",                                                             \
		"new or foreign work, where there was or others have this much less")               \
	X(HALF_MORE, 1.5, "times as long",                                                          \
		"beyond starting, beyond what probes cost, beyond a CPU that is slower everywhere") \
	X(MORE, 1.3, "times as much",                                                               \
		"work of units of another kind; slow ones where a period makes fewer")              \
	X(BEYOND, 5.0, "standard deviations",                                                       \
		"lengths beyond the bulk, rows of slow ones beyond chance")                         \
	X(CHANCE, 0.05, "probability", "of a period by any order")                                  \
	X(CHANCE_SURE, 0.001, "probability", "likewise, where nothing else tells")

#define THRESHOLDS_CONTRASTS(X)                                                                      \
	X(WARMUP_STEPS, 20, "units", "at most so many, and a fifth of all, are the start")           \
	X(PLANS_NS, 6e10, "ns",                                                                      \
		"in which libraries make plans for new shapes: a warm-up until then")                \
	X(COMPILE_LATE, 0.33, "share of the time", "since code was first made: the end of it")       \
	X(WAIT_SHARE, 0.125, "share of the mean unit",                                               \
		"a wait for the GPU as long is one for several units")                               \
	X(SLOW_RATIO, 1.15, "times ordinary", "no user complains of less")                           \
	X(SLOW_SPREAD, 3.0, "standard deviations",                                                   \
		"medians of two classes, by the spread of the shorter one")                          \
	X(FAR, 9.0, "standard deviations",                                                           \
		"of ordinary ones, to their shorter side: an exponential tail comes to 6.5")         \
	X(VALLEY, 0.25, "share of units beside",                                                     \
		"in the middle between two groups; of one group 1")                                  \
	X(DRIFT_UNITS, 24, "units", "fewer have no trend to speak of")                               \
	X(DRIFT_FOLLOWS, 0.5, "correlation",                                                         \
		"of the length with time: of 50 units one in ten thousand has it by chance")         \
	X(SHIFT_RATIO, 1.12, "times before",                                                         \
		"a change that lasts shows at less than single slow units do")                       \
	X(SHIFT_AGAINST, 0.15, "share of pairs",                                                     \
		"of one before and one after a change the earlier is longer: by chance 0.5")         \
	X(SHIFT_SURE, 0.1, "share of pairs", "likewise, where lengths alone split them as well")     \
	X(SHIFT_UNITS, 12, "units",                                                                  \
		"on each side of a change: fewer are too easily longer by chance")                   \
	X(VARIED_HALVES, 3, "times as many",                                                         \
		"slow ones in one half as in the other, at most: so from the beginning on")          \
	X(WORK_UNITS, 16, "units",                                                                   \
		"of each class with counted work: fewer have no correlation to speak of")            \
	X(WORK_FOLLOWS, 0.8, "correlation", "of a unit's work with its length")                      \
	X(WORK_LEAST, 0.5, "growth of work a growth of length", "below it, it is not the work")      \
	X(WORK_MOST, 2.0, "growth of work a growth of length", "likewise above it")                  \
	X(REGROUP_WAITS, 2, "waits", "likewise, beyond it: one more is no other work")               \
	X(REGROUP_OFTEN, 0.125, "long ones to each short one", "rarer ones are not the unit")        \
	X(REGROUP_UNITS, 8, "units", "of the larger ones: else there is nothing to compare")         \
	X(CLOCKED, 0.25, "correlation",                                                              \
		"of a unit's length with the next's, negative: where a clock begins them it is 0.5") \
	X(PAUSE_SPREAD, 0.5, "of the median",                                                        \
		"of sleeps, four in five of them: the program's own are as long each time")          \
	X(PROBED, 0.7, "share of a unit", "launches were probed in it, which costs time")            \
	X(PROBED_NEAR, 8, "units", "on each side of probed ones, to compare them with")

#define THRESHOLDS_CHAINS(X)                                                                               \
	X(MATRIX_LAUNCHES, 50, "launches", "fewer matrix products say nothing of a job")                   \
	X(MATRIX_GAIN, 0.8, "share of the wait",                                                           \
		"goes with a type that tensor cores take: vit_train 0.82, jax_float64 0.81")               \
	X(CHAIN_MOST, 0.5, "share of a delay", "so much of it: then it is the one to name")                \
	X(CHAIN_PART, 0.3, "share of a delay",                                                             \
		"a group's own count of what it was denied is of all its threads: less will do")           \
	X(KEPT_OFF_NS, 4e6, "ns",                                                                          \
		"a thread is ready and its CPU idles: a scheduler balances sooner")                        \
	X(MASK_IDLE, 60, "percent of the other CPUs",                                                      \
		"busy less than this, they were free while threads waited for few")                        \
	X(MASK_WAITS, 20, "waits", "so many on the same few CPUs are no accident")                         \
	X(LIMIT_EVENTS, 8, "reclaims at the limit", "fewer are a moment's")                                \
	X(SWAP_GROWN, 16, "MB", "of swap: less is what a kernel moves there at leisure")                   \
	X(MEMORY_STALLED, 5, "percent of the time",                                                        \
		"in which some task of the machine waited for memory")                                     \
	X(MEMORY_LEFT, 0.05, "share of memory", "below it a kernel reclaims all the time")                 \
	X(PAGE_NS, 5000, "ns", "at most, of a page that is touched for the first time")                    \
	X(GPU_HOT, 83, "degrees Celsius", "where slowdown by heat begins on most boards")                  \
	X(GPU_NEAR, 0.95, "share of a power limit", "drawn: at it; a lower limit: lowered")                \
	X(GPU_LOW_CLOCK, 0.85, "share of the highest",                                                     \
		"below it something holds it; boards under heavy work run above")                          \
	X(GPU_BUSY, 30, "percent", "with less to do a GPU may lower its clock itself")                     \
	X(GPU_LASTING, 0.8, "share of readings", "with a low clock: it is low all along")                  \
	X(GPU_CLOCK_DROP, 0.07, "share higher", "before: boost alone moves it by some percent")            \
	X(GPU_NEIGHBOURS, 0.5, "processes", "more on the GPU while steps are slow, on average")            \
	X(GPU_RATE_MORE, 3e9, "bytes/s", "a quarter of what PCIe 3 can do")                                \
	X(LAUNCHES_MANY, 3000, "launches",                                                                 \
		"from one wait to the next, while the GPU idles: a step of a usual model has up to 1,700") \
	X(EXECUTES_MANY, 32, "starts",                                                                     \
		"of what JAX has compiled, in a step: compiled whole it has few")                          \
	X(SYNCS_MANY, 32, "waits",                                                                         \
		"for the GPU in a unit while it idles: a usual step has some for its loss and its norms")  \
	X(PIECE_NS, 2e6, "ns",                                                                             \
		"from one wait for the GPU to the next, at most: longer ones are worth a wait")            \
	X(PIECE_LAUNCHES, 4, "launches", "between two such waits, at most: more are a model's")            \
	X(PIECE_COUNTED, 0.5, "launches", "likewise at least: fewer are not all counted")                  \
	X(WORK_RATIO, 1.1, "times ordinary", "launches or bytes: slow steps have more to do")              \
	X(WORK_BYTES, 65536, "bytes", "of a step, beyond the ratio: less is bookkeeping")                  \
	X(WORK_LAUNCHES, 2, "launches", "so few more are of a step that was cut elsewhere")                \
	X(ADDED_IN_STEP, 0.5, "calls a step", "a call or kernel that came belongs to every other")         \
	X(ADDED_BEFORE, 0.05, "share of later ones", "of setting up, in the same bucket")                  \
	X(ADDED_SURE, 200, "launches", "that ordinary steps would have made: one in 16 counts")

#define THRESHOLDS_FINDINGS(X)                                                                          \
	X(WASTE, 0.15, "share of a unit", "less of it in every unit is not worth a word")               \
	X(HOST_WASTE, 0.5, "share of a unit",                                                           \
		"of the program's own code, processes and GIL in every unit: every one has some")       \
	X(HOST_BOUND, 0.4, "share of a unit",                                                           \
		"of host code where the GPU is hardly ever waited for: it has nothing to do meanwhile") \
	X(HOST_SERVER, 0.8, "share of a unit", "of one function of a server, whose work that is")       \
	X(PACED_SHARE, 0.7, "share of units", "take about as long as usual: a loop, no server")         \
	X(PACED_RATIO, 1.6, "times the usual", "is about as long")                                      \
	X(SAMPLED_NS, 1e8, "ns", "ten samples: fewer do not say where")                                 \
	X(PAUSE, 20, "units", "a pause on purpose is that rare, and that long")                         \
	X(HIGH_SHARE, 0.1, "share of the time", "lost to a difference: HIGH")                           \
	X(MEDIUM_SHARE, 0.03, "share of the time", "likewise MEDIUM")                                   \
	X(WHOLE_HIGH, 0.3, "share of the time",                                                         \
		"lost in every unit: HIGH; there is no ordinary one to show it")                        \
	X(HIGH_SURE, 0.6, "confidence", "for HIGH")                                                     \
	X(MEDIUM_SURE, 0.4, "confidence", "for MEDIUM")                                                 \
	X(OTHER_TIME, 0.05, "share of the time", "and of so much")                                      \
	X(LEAST_SHARE, 0.01, "share of the time", "less is not reported")                               \
	X(JUDGED_NS, 3e11, "ns",                                                                        \
		"of the time around slow units, at least: what a live view holds")                      \
	X(LEAST_NS, 2e7, "ns", "likewise: a few short units are no job")                                \
	X(UNITS_HALF, 2, "units", "give half of the confidence of many")                                \
	X(SURE_SEEN, 0.98, "confidence",                                                                \
		"another process was seen to have it: of 28 such in the corpus 25 right")               \
	X(SURE_MEASURED, 0.93, "confidence", "a call or a wait took its time")                          \
	X(SURE_OWN, 0.8, "confidence", "of code of the program: 5 of 13 right before, all now")         \
	X(UNKNOWN_MOST, 0.55, "confidence", "where the cause is unknown: never HIGH")                   \
	X(DOUBT, 0.7, "times the confidence",                                                           \
		"where it may have nothing to do, or have just begun")                                  \
	X(WHOLE_MORE, 2, "times what ordinary units have", "it is a difference")                        \
	X(WHOLE_FAR, 5, "times what slow units lost", "in all units: then that is the news")            \
	X(SWAP_RATIO, 8, "times the bytes", "go to the GPU in slow units: another model")               \
	X(SWAP_BYTES, 67108864, "bytes", "likewise, at least")                                          \
	X(RARELY, 8, "units", "one in so many at most writes: a checkpoint")

enum threshold {
#define X(NAME, ...) THRESHOLD_##NAME,
	THRESHOLDS(X)
#undef X
		THRESHOLD_COUNT
};

/* The table in force. Only the sensitivity run (tests/corpus) lets it point elsewhere. */
extern const double *thresholds;
extern const double thresholds_default[THRESHOLD_COUNT];

#define THRESHOLD(NAME) (thresholds[THRESHOLD_##NAME])
