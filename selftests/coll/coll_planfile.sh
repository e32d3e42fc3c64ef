#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A plan that goes through a file into the kernel, and the automatic choice by a file of measured times.
# Needs swingplan and swingperf on PATH.

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"

algo_of() { # of swingperf's JSON
	sed -n 's/.*"algo":"\([^"]*\)".*/\1/p' | head -n 1
}

perf() {
	swingperf -n 4 --dtype i32 --sizes 4100 --time-ms 5 --repeats 1 --json "$@"
}

for program in swingplan swingperf; do
	command -v $program > /dev/null || skip_all "$program is not on PATH"
done
echo "1..8"

swingplan export --algo swing-b --topo torus:2x2 --out "$dir/swing.plan" 2> "$dir/err"
result $? "a plan is exported"
got=$(perf --algo "file:$dir/swing.plan" 2> "$dir/err" | algo_of)
[ "$got" = swing-b ]
result $? "the kernel runs it, with right sums ($got)"

# Through the kernel, not by slots, which need no plan.
perf --algo "file:$dir/swing.plan" -o barrier --slot-max -1 > /dev/null 2> "$dir/err"
status=$?
[ $status -eq 0 ] || show "$dir/err"
result $status "a barrier is possible beside it"
perf --algo "file:$dir/swing.plan" -o allgather --slot-max -1 > /dev/null 2> "$dir/err"
status=$?
[ $status -ne 0 ] && grep -q "swing.plan is for allreduce" "$dir/err"
result $? "another collective is refused with the file's name"

sed '$d' "$dir/swing.plan" > "$dir/short.plan"
perf --algo "file:$dir/short.plan" > /dev/null 2> "$dir/err"
status=$?
[ $status -ne 0 ] && grep -q "short.plan" "$dir/err"
result $? "a truncated plan is refused with its name"

perf --topo torus:2x2 --reorder --tune "$dir/tuning" > /dev/null 2>&1
[ "$(grep -c '^allreduce i32 torus:2x2 4096\|^allreduce i32 torus:2x2 4100' "$dir/tuning")" -gt 10 ]
result $? "every algorithm is measured ($(wc -l < "$dir/tuning") lines)"

best=$(sort -k6,6g "$dir/tuning" | head -n 1 | cut -d ' ' -f 5)
got=$(perf --topo torus:2x2 --reorder --slot-max -1 --tuning "$dir/tuning" 2> "$dir/err" | algo_of)
[ -n "$best" ] && [ "$got" = "$best" ]
result $? "the fastest algorithm is chosen ($best)"

echo "allreduce i32 torus:2x2 10 ring fast" > "$dir/tuning"
perf --topo torus:2x2 --tuning "$dir/tuning" > /dev/null 2> "$dir/err"
status=$?
[ $status -eq 2 ] && grep -q "line 1: expected a time" "$dir/err"
result $? "a bad line of a tuning file is refused with its number"
[ "$failed" -eq 0 ]
