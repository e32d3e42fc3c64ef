#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What swingperf prints of real measurements: the table by the names of nccl-tests, CSV, JSON, and a comparison with the
# JSON of an earlier run. tools/swingperf/test.sh has what needs no module.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
[ -e /dev/swingcoll ] || skip_all "swingcoll is not loaded"
command -v all_reduce_perf > /dev/null || skip_all "all_reduce_perf is not on PATH"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
echo 1..9

# nccl NAME SIZES REDOP ROOT ARGUMENT...: rows of 13 columns with these sizes, and nothing wrong
nccl() {
	name=$1 sizes=$2 redop=$3 root=$4
	shift 4
	"$name" -g 2 -n 2 -w 0 "$@" > "$dir/out" 2> "$dir/err" &&
		awk -v sizes="$sizes" -v redop="$redop" -v root="$root" '
			/^#/ { next }
			NF != 13 || $4 != redop || $5 != root || $9 != 0 || $13 != 0 { print "row: " $0; bad = 1 }
			{ got = got (got ? " " : "") $1 "/" $2 "/" $3 }
			END { if (got != sizes) { print "sizes: " got; bad = 1 } exit bad }' "$dir/out" > "$dir/bad"
	status=$?
	[ $status -eq 0 ] || show "$dir/err" "$dir/bad"
	result $status "$name $*"
}

nccl all_reduce_perf "8/4/bfloat16 16/8/bfloat16 32/16/bfloat16" max -1 -b 8 -e 32 -f 2 -d bfloat16 -o max
nccl all_gather_perf "1024/128/float 2048/256/float" none -1 -b 1K -e 2K -i 1K
nccl reduce_scatter_perf "4096/256/double" avg -1 -b 4K -e 4K -d double -o avg
nccl broadcast_perf "64/32/half" none 1 -b 64 -e 64 -d half -r 1

perf() {
	swingperf -n 2 --sizes 8,4K --iters 2 --repeats 1 --outofplace "$@" 2> "$dir/err"
}

perf --json > "$dir/old.json" && [ "$(grep -c '^{"schema":1,"op":"allreduce","bytes":' "$dir/old.json")" -eq 2 ]
result $? "JSON has the version of its schema"

perf --csv > "$dir/csv" &&
	[ "$(head -n 1 "$dir/csv")" = "$(head -n 1 "$dir/old.json" | grep -o '"[a-z0-9_]*":' | tr -d '":' | paste -s -d ,)" ] &&
	[ "$(wc -l < "$dir/csv")" -eq 3 ] && grep -q '^1,allreduce,8,2,f32,sum,-1,auto,' "$dir/csv"
status=$?
[ $status -eq 0 ] || show "$dir/err" "$dir/csv"
result $status "CSV has the members of JSON"

# How long an operation takes is no matter here: slower than 1000 % is a status of its own.
perf --compare "$dir/old.json" --tolerance 1000 > "$dir/out"
status=$?
[ $status -le 1 ] && grep -q '^# 2 compared: ' "$dir/out" && [ "$(grep -c '^ .* allreduce .* out-of-place ' "$dir/out")" -eq 2 ]
status=$?
[ $status -eq 0 ] || show "$dir/err" "$dir/out"
result $status "a run compared with an earlier one"

sed 's/"time_us":[^,]*/"time_us":0.001/' "$dir/old.json" > "$dir/quick.json"
perf --compare "$dir/quick.json" > "$dir/out"
[ $? -eq 1 ] && grep -q ' slower$' "$dir/out"
result $? "a run slower than an earlier one has status 1"

perf > /dev/full
[ $? -eq 2 ] && grep -q '^swingperf: cannot write to standard output$' "$dir/err"
result $? "a table that cannot be written has status 2"
[ "$failed" -eq 0 ]
