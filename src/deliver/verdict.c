/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - see verdict.h. */
#include "deliver/verdict.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"

enum backlog_outcome verdict_http(int status)
{
	switch (status) {
	case 429:
	case 502:
	case 503:
	case 504: return BACKLOG_AGAIN;
	default: return status >= 200 && status < 300 ? BACKLOG_SENT : BACKLOG_REFUSED;
	}
}

enum backlog_outcome verdict_grpc(int status)
{
	switch (status) {
	case 0: return BACKLOG_SENT;
	case 1:  /* CANCELLED */
	case 4:  /* DEADLINE_EXCEEDED */
	case 10: /* ABORTED */
	case 11: /* OUT_OF_RANGE */
	case 14: /* UNAVAILABLE */
	case 15: /* DATA_LOSS */ return BACKLOG_AGAIN;
	default: return BACKLOG_REFUSED;
	}
}

uint64_t verdict_retry_after(const char *text, wall_time now)
{
	unsigned long seconds;
	struct tm date = {0};
	const char *end;
	int64_t when;

	if (!text)
		return 0;
	if (isdigit((unsigned char)*text)) {
		errno = 0;
		seconds = strtoul(text, (char **)&end, 10);
		if (*end)
			return 0;
		return errno ? BACKLOG_ASKED_MAX
			     : MIN(seconds, BACKLOG_ASKED_MAX / NS_PER_S) * NS_PER_S;
	}
	end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
	if (!end || *end)
		return 0;
	when = timegm(&date) - now.ns / (int64_t)NS_PER_S;
	return when > 0 ? MIN((uint64_t)when, BACKLOG_ASKED_MAX / NS_PER_S) * NS_PER_S : 0;
}
