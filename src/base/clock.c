/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - reads the two clocks and measures the offset between them.
 * The offset is taken as the tightest of several bracketed readings (mono, wall, mono), so that a
 * preemption between two readings does not become a false clock step. */
#include "base/clock.h"

#include <ctype.h>
#include <time.h>

#include "base/macros.h"

/* Pure but for the time zone of the process. Every field is checked before it
 * is used, and nothing may follow what was read. */

#define SECONDS_MAX (WALL_NS_MAX / (int64_t)NS_PER_S)
#define DAY_S       86400
#define DAYS_MAX    400         /* of a recording that a time of the clock is looked for on */
#define EPOCH_MIN   100000000LL /* 1973: a smaller number is more likely a slip than a time */

struct moment { /* what a text says */
	bool has_date, has_zone;
	int year, month, day, hour, minute, second, zone_s;
	int64_t fraction_ns;
};

/* Exactly @digits digits at *s. */
static bool take_number(const char **s, int digits, int low, int high, int *ret)
{
	int v = 0;

	for (int i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)(*s)[i]))
			return false;
		v = v * 10 + ((*s)[i] - '0');
	}
	if (v < low || v > high)
		return false;
	*s += digits;
	*ret = v;
	return true;
}

static bool take_char(const char **s, char c)
{
	if (**s != c)
		return false;
	++*s;
	return true;
}

/* ".25" as 250,000,000 ns; up to nine digits. */
static bool take_fraction(const char **s, int64_t *ret_ns)
{
	int64_t scale = NS_PER_S / 10, v = 0;

	if (!take_char(s, '.'))
		return true;
	if (!isdigit((unsigned char)**s))
		return false;
	for (; isdigit((unsigned char)**s); ++*s, scale /= 10) {
		if (!scale)
			return false;
		v += (**s - '0') * scale;
	}
	*ret_ns = v;
	return true;
}

static int month_days(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (leap && month == 2);
}

static bool take_date(const char **s, struct moment *m)
{
	if (!take_number(s, 4, 1970, 2200, &m->year) || !take_char(s, '-') ||
		!take_number(s, 2, 1, 12, &m->month) || !take_char(s, '-') ||
		!take_number(s, 2, 1, month_days(m->year, m->month), &m->day))
		return false;
	m->has_date = true;
	return true;
}

static bool take_clock(const char **s, struct moment *m)
{
	if (!take_number(s, 2, 0, 23, &m->hour) || !take_char(s, ':') ||
		!take_number(s, 2, 0, 59, &m->minute))
		return false;
	if (!take_char(s, ':'))
		return true;
	return take_number(s, 2, 0, 59, &m->second) && take_fraction(s, &m->fraction_ns);
}

/* Nothing, "Z", " UTC", "+01:00", "-0130". */
static bool take_zone(const char **s, struct moment *m)
{
	int sign = **s == '-' ? -1 : 1, hours, minutes;

	if (!**s)
		return true;
	m->has_zone = true;
	if (take_char(s, 'Z') || take_char(s, 'z'))
		return true;
	if (!strcmp(*s, " UTC")) {
		*s += strlen(*s);
		return true;
	}
	if (!take_char(s, '+') && !take_char(s, '-'))
		return false;
	if (!take_number(s, 2, 0, 14, &hours))
		return false;
	(void)take_char(s, ':');
	if (!take_number(s, 2, 0, 59, &minutes))
		return false;
	m->zone_s = sign * (hours * 3600 + minutes * 60);
	return true;
}

static bool read_moment(const char *s, struct moment *m)
{
	*m = (struct moment){0};
	if (strlen(s) > 5 && s[4] == '-') {
		if (!take_date(&s, m))
			return false;
		if (*s == 'T' || *s == 't' || (*s == ' ' && isdigit((unsigned char)s[1]))) {
			s++;
			if (!take_clock(&s, m))
				return false;
		}
	} else if (!take_clock(&s, m)) {
		return false;
	}
	return take_zone(&s, m) && !*s;
}

/* The local time @tm with the zone's clock set forward, or not; false: it shows that at no moment. */
static bool local_time(struct tm tm, int is_dst, time_t *ret)
{
	struct tm shown = {0}, asked = tm;

	asked.tm_isdst = is_dst;
	*ret = mktime(&asked);
	return *ret != (time_t)-1 && localtime_r(ret, &shown) && shown.tm_isdst == is_dst &&
	       shown.tm_hour == tm.tm_hour && shown.tm_min == tm.tm_min;
}

/* In the hour that comes twice when clocks are set back, a range begins in the first and ends in the second. */
static time_t seconds_of(const struct moment *m, bool end)
{
	time_t first, second;
	struct tm tm = {.tm_year = m->year - 1900,
		.tm_mon = m->month - 1,
		.tm_mday = m->day,
		.tm_hour = m->hour,
		.tm_min = m->minute,
		.tm_sec = m->second,
		.tm_isdst = -1};

	if (m->has_zone)
		return timegm(&tm) - m->zone_s;
	if (local_time(tm, 1, &first) && local_time(tm, 0, &second))
		return end ? MAX(first, second) : MIN(first, second);
	return mktime(&tm);
}

static int finish(const struct moment *m, bool end, int64_t *ret_ns)
{
	time_t s = seconds_of(m, end);

	if (s < 0 || s > SECONDS_MAX)
		return -ERANGE;
	*ret_ns = (int64_t)s * (int64_t)NS_PER_S + m->fraction_ns;
	return 0;
}

/* The day of @ns in the moment's zone. */
static void set_day(struct moment *m, int64_t ns)
{
	time_t s = (time_t)(MAX(ns, INT64_C(0)) / (int64_t)NS_PER_S);
	struct tm tm = {0};

	if (m->has_zone) {
		s += m->zone_s;
		gmtime_r(&s, &tm);
	} else {
		localtime_r(&s, &tm);
	}
	m->year = tm.tm_year + 1900;
	m->month = tm.tm_mon + 1;
	m->day = tm.tm_mday;
}

static int on_the_day(struct moment *m, const struct when_span *span, bool end, int64_t *ret_ns)
{
	int64_t day_ns = DAY_S * (int64_t)NS_PER_S;
	int64_t step = end ? -day_ns : day_ns, from = end ? span->last_ns : span->first_ns;
	int64_t t;

	/* One day more than the span has: its ends lie anywhere in their days. */
	for (int i = 0; i <= MIN((span->last_ns - span->first_ns) / day_ns + 1, DAYS_MAX); i++) {
		set_day(m, from + i * step);
		if (finish(m, end, &t) == 0 && t >= span->first_ns && t <= span->last_ns) {
			*ret_ns = t;
			return 0;
		}
	}
	set_day(m, from);
	return finish(m, end, ret_ns);
}

static int read_epoch(const char *s, int64_t *ret_ns)
{
	static const struct {
		int64_t below, scale;
	} units[] = {{100000000000LL, NS_PER_S}, {100000000000000LL, NS_PER_MS},
		{100000000000000000LL, NS_PER_US}, {0, 1}};
	int64_t v, fraction = 0;
	char *end;
	size_t i = 0;

	errno = 0;
	v = strtoll(s, &end, 10);
	if (errno || v < EPOCH_MIN)
		return errno ? -ERANGE : -EINVAL;
	while (i + 1 < ARRAY_SIZE(units) && v >= units[i].below)
		i++;
	if (*end && (i != 0 || !take_fraction((const char **)&end, &fraction) || *end))
		return -EINVAL;
	if (v / (int64_t)(NS_PER_S / (uint64_t)units[i].scale) > SECONDS_MAX)
		return -ERANGE;
	*ret_ns = v * units[i].scale + fraction;
	return 0;
}

int when_parse(const char *s, const struct when_span *span, bool end, int64_t *ret_ns)
{
	struct moment m;

	if (s[0] && strspn(s, "0123456789.") == strlen(s) && isdigit((unsigned char)s[0]))
		return read_epoch(s, ret_ns);
	if (!read_moment(s, &m))
		return -EINVAL;
	return m.has_date ? finish(&m, end, ret_ns) : on_the_day(&m, span, end, ret_ns);
}

const char *when_utc(char out[WHEN_UTC_MAX], wall_time t)
{
	int64_t fraction_ns = t.ns % (int64_t)NS_PER_S;
	time_t s = (time_t)(t.ns / (int64_t)NS_PER_S) - (fraction_ns < 0);
	struct tm tm = {0};
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(out, WHEN_UTC_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, WHEN_UTC_MAX - n, ".%09lldZ",
		(long long)(fraction_ns + (fraction_ns < 0 ? (int64_t)NS_PER_S : 0)));
	return out;
}

#define STEP_THRESHOLD_NS 1000000 /* 1 ms: far above NTP slewing between two refreshes */

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

mono_time mono_now(void)
{
	return (mono_time){read_ns(CLOCK_MONOTONIC)};
}

wall_time wall_now(void)
{
	return (wall_time){(int64_t)read_ns(CLOCK_REALTIME)};
}

static int64_t measure_offset(void)
{
	uint64_t best_width = UINT64_MAX;
	int64_t best = 0;

	for (int i = 0; i < 8; i++) {
		uint64_t a = read_ns(CLOCK_MONOTONIC);
		uint64_t w = read_ns(CLOCK_REALTIME);
		uint64_t b = read_ns(CLOCK_MONOTONIC);

		if (b - a < best_width) {
			best_width = b - a;
			best = (int64_t)w - (int64_t)(a + (b - a) / 2);
		}
	}
	return best;
}

void clock_map_init(struct clock_map *m)
{
	*m = (struct clock_map){.offset_ns = measure_offset()};
}

bool clock_map_refresh(struct clock_map *m)
{
	int64_t now = measure_offset();
	int64_t delta = now - m->offset_ns;

	m->offset_ns = now;
	if (delta > -STEP_THRESHOLD_NS && delta < STEP_THRESHOLD_NS)
		return false;
	m->step_ns += delta;
	m->steps++;
	if ((uint64_t)llabs(delta) <= m->largest_ns)
		return false;
	m->largest_ns = (uint64_t)llabs(delta);
	return true;
}
