/* SPDX-License-Identifier: Apache-2.0 */
/* thresholds.h - every threshold of the engine: what it is, in which unit, and why.
 *
 * To add one: a row here. Each is moved by a fifth up and down over the corpus (make check-full), and at most
 * one verdict in fifty may change by it: a value on which more hangs is no threshold but an accident. What is
 * a ceiling on memory or time, or a unit, stays where it is used. */
#pragma once

/* X(NAME, value, unit, reason) */
#define THRESHOLDS(X) THRESHOLDS_CONTRASTS(X)

#define THRESHOLDS_CONTRASTS(X)                                                                    \
	X(PHASE_SHARE, 0.6, "share of units",                                                      \
		"so many do the same work: others are of another phase, compared with nothing")    \
	X(WARMUP_STEPS, 20, "units", "at most so many, and a fifth of all, are the start")         \
	X(WARMUP_RATIO, 1.5, "times the median", "first units that long are still starting")       \
	X(WAIT_SHARE, 0.125, "share of the mean unit",                                             \
		"a wait for the GPU as long is one for several units")                             \
	X(WAIT_RATIO, 4, "times the median wait", "likewise")                                      \
	X(GROUP_WAITS, 4, "waits", "fewer long ones have no usual distance")                       \
	X(GROUP_SHARE, 0.6, "share of distances",                                                  \
		"so many long waits as far apart as usual: the host runs ahead in between")        \
	X(SLOW_RATIO, 1.15, "times ordinary", "less is no complaint of anybody")                   \
	X(SLOW_SPREAD, 3.0, "standard deviations",                                                 \
		"medians of two classes, by the spread of the shorter one")                        \
	X(FAR, 9.0, "standard deviations",                                                         \
		"of ordinary ones, to their shorter side: an exponential tail comes to 6.5")       \
	X(BULK, 5.0, "standard deviations",                                                        \
		"likewise, from the median: what is beyond may be a group of its own")             \
	X(VALLEY, 0.25, "share of units beside",                                                   \
		"in the middle between two groups; of one group 1")                                \
	X(VALLEY_UNITS, 5, "units", "of the smaller group: fewer leave a valley by chance")        \
	X(RUNS, 5.0, "standard deviations",                                                        \
		"slow ones follow each other that much more often than by chance")                 \
	X(PERIOD_SURE, 0.001, "probability",                                                       \
		"as PERIOD_CHANCE, where lengths alone do not tell slow ones")                     \
	X(DRIFT_UNITS, 24, "units", "fewer have no trend to speak of")                             \
	X(DRIFT_RATIO, 1.15, "times at first", "as SLOW_RATIO")                                    \
	X(DRIFT_FOLLOWS, 0.5, "correlation",                                                       \
		"of the length with time: of 50 units one in ten thousand has it by chance")       \
	X(SHIFT_RATIO, 1.12, "times before",                                                       \
		"a change that lasts shows at less than single slow units do")                     \
	X(SHIFT_AGAINST, 0.15, "share of pairs",                                                   \
		"of one before and one after a change the earlier is longer: by chance 0.5")       \
	X(SHIFT_SURE, 0.1, "share of pairs", "likewise, where lengths alone split them as well")   \
	X(SHIFT_UNITS, 12, "units",                                                                \
		"on each side of a change: fewer are too easily longer by chance")                 \
	X(ORDINARY_UNITS, 4, "units", "fewer are no ordinary to compare with")                     \
	X(ORDINARY_SHARE, 0.1, "share of units",                                                   \
		"fewer short ones are those of a host that runs ahead at first")                   \
	X(BORDER_RATIO, 1.5, "times ordinary",                                                     \
		"classes that far apart: the first long one is the border, not the first slow")    \
	X(BORDER_ROW, 3, "units", "long ones in a row: one may be a hiccup")                       \
	X(PERIODS, 3, "distances", "fewer are equal too easily")                                   \
	X(PERIOD_SHARE, 0.6, "share of distances", "slow ones come at one distance")               \
	X(PERIOD_CHANCE, 0.05, "probability", "that any order has as many at that distance")       \
	X(STRETCH_UNITS, 5, "units",                                                               \
		"slow ones in a row: a longer stretch is a state, which no period explains")       \
	X(STRETCH_SHARE, 0.25, "share of the period", "likewise, of long periods")                 \
	X(VARIED_TIMES, 3, "stretches", "units become slow again and again")                       \
	X(VARIED_HALVES, 3, "times as many",                                                       \
		"slow ones in one half as in the other, at most: so from the beginning on")        \
	X(VARIED_SHARE, 0.1, "share of units", "between ordinary and slow: there is no gap")       \
	X(WORK_UNITS, 16, "units",                                                                 \
		"of each class with counted work: fewer have no correlation to speak of")          \
	X(WORK_FOLLOWS, 0.8, "correlation", "of a unit's work with its length")                    \
	X(WORK_LEAST, 0.5, "growth of work a growth of length", "below it, it is not the work")    \
	X(WORK_MOST, 2.0, "growth of work a growth of length", "likewise above it")                \
	X(PROBED, 0.7, "share of a unit", "launches were probed in it, which costs time")          \
	X(NOT_PROBED, 0.1, "share of a unit", "they were not; those in between count for neither") \
	X(PROBED_NEAR, 8, "units", "on each side of probed ones, to compare them with")            \
	X(PROBED_TIMES, 4, "stretches", "of probed units: fewer do not tell what probes cost")     \
	X(PROBED_COST, 1.5, "times unprobed",                                                      \
		"probes never cost more: what is beyond is something else")

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
