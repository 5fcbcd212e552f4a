#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/install_deb.sh PACKAGE.deb COMMAND… - the agent's package on a machine with a GPU and without a network: dpkg -i
# alone installs it, `check` is content, COMMAND (a CUDA program that runs some ten seconds) is recorded and explained,
# installing again keeps the recording, purging leaves nothing. Needs root. Ends with 1 at the first that does not hold.
set -euo pipefail

package=$(realpath "$1")
shift
db=/var/lib/ingero/ingero.db
say() { echo "== $*"; }
fail() { echo "install_deb: $*" >&2 && exit 1; }

[ ! -e /usr/bin/ingero ] || fail "ingero is installed here already"
# shellcheck source=/dev/null # of that machine
. /etc/os-release
say "$PRETTY_NAME, Linux $(uname -r), $(getconf GNU_LIBC_VERSION), perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
dpkg -i "$package"
trap 'dpkg --purge ingero >/dev/null' EXIT
say "check"
ingero check || fail "check ended with $?"

say "trace of: $*"
mkdir -p "${db%/*}"
"$@" &
work=$!
ingero trace --duration 8s --db $db | tail -n 5 || fail "trace ended with $?"
kill $work 2>/dev/null || true
wait $work || true
calls=$(ingero query --db $db --csv "SELECT coalesce(sum(count), 0) AS n FROM event_aggregates_5s" 2>/dev/null | tr -dc '0-9' || true)
say "recorded calls: ${calls:-none}"
ingero explain --db $db | head -n 12

say "installed again, then purged"
sum=$(sha256sum <$db)
dpkg -i "$package"
[ "$sum" = "$(sha256sum <$db)" ] || fail "installing changed the recording"
trap - EXIT
dpkg --purge ingero
left=$(find / -xdev \( -path /proc -o -path /sys -o -path /var/cache -o -path /var/lib/dpkg -o -path "$PWD" \) -prune -o \
	-path '*ingero*' -not -path "${package%/*}*" -print 2>/dev/null | grep -E '^/(usr|etc|var/lib)/' || true)
[ -z "$left" ] || fail "left behind: $left"
say "nothing is left behind"
