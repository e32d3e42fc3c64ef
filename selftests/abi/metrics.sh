#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# swingctl metrics: OpenMetrics text, with the counters of swingctl stats.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
[ -e /dev/swingcoll ] || skip_all "swingcoll is not loaded"
for program in swingperf swingctl; do
	command -v $program > /dev/null || skip_all "$program is not on PATH"
done
file=$(mktemp)
trap 'rm -f "$file" "$file.bad"' EXIT
echo 1..4

swingctl metrics > "$file"
result $? "printed"

# Each metric has a type and a text before its one value, and the last line says that it is the last.
awk '
	/^# TYPE swingcoll_[a-z0-9_]+ (counter|info)$/ && !want { name = $3; suffix = $4 == "info" ? "_info" : "_total"; want = 2; next }
	/^# HELP / && want == 2 && $3 == name { want = 1; next }
	/^swingcoll_[a-z0-9_]+([{]version="[^"]+"[}])? [0-9]+$/ && want == 1 && index($1, name suffix) == 1 { want = 0; next }
	/^# EOF$/ && !want { over = NR; next }
	{ print "line " NR ": " $0; bad = 1 }
	END { exit bad || over != NR || NR < 10 }' "$file" > "$file.bad"
status=$?
[ $status = 0 ] || show "$file.bad"
result $status "each metric has its type and one value"

[ "$(sed -n 's/^swingcoll_\(.*\)_total .*/\1/p' "$file")" = "$(swingctl stats | awk '{ print $1 }')" ]
result $? "the counters of swingctl stats"

value() { awk '$1 == "swingcoll_ops_completed_total" { print $2 }' "$file"; }
before=$(value)
swingperf -n 2 --sizes 1024 --iters 4 --repeats 1 --slot-max -1 > /dev/null 2>&1
swingctl metrics > "$file"
[ "$(value)" -gt "$before" ]
result $? "counters grow"
[ "$failed" -eq 0 ]
