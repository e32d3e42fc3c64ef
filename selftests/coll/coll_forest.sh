#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Plans of forests on random networks of 2 to 12 ranks, through the kernel, for each collective. swingperf checks all
# elements. Needs swingplan and swingperf on PATH. SWC_TEST_SEED repeats a run.

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"

for program in swingplan swingperf; do
	command -v $program > /dev/null || skip_all "$program is not on PATH"
done
rounds=200
[ -z "$SWC_TEST_SHORT" ] || rounds=6
seed=${SWC_TEST_SEED:-$(date +%s)}
echo "1..5"
echo "# SWC_TEST_SEED=$seed"

# A tree of ranks and a switch or two, and more links at random. Prints the number of ranks.
network() { # network ROUND
	awk -v seed="$((seed + $1))" -v file="$dir/graph" 'BEGIN {
		srand(seed)
		ranks = 2 + int(rand() * 11)
		n = ranks + int(rand() * 3)
		for (i = ranks; i < n; i++)
			print "switch n" i > file
		for (i = 1; i < n; i++)
			print "n" i, "n" int(rand() * i), 1 + int(rand() * 5) > file
		for (i = int(rand() * 2 * n); i; i--) {
			a = int(rand() * n)
			b = int(rand() * n)
			if (a != b)
				print "n" a, "n" b, 1 + int(rand() * 5) > file
		}
		print ranks
	}'
}

one() { # one ROUND OP OPTION...
	round=$1 op=$2
	shift 2
	n=$(network "$round")
	swingplan forest --graph "$dir/graph" --op "$op" "$@" --pieces $((1 + round % 5)) --out "$dir/plan" \
		> /dev/null 2> "$dir/err" || return 1
	case $op in
	broadcast | reduce) set -- --root 1 ;;
	*) set -- ;;
	esac
	swingperf -n "$n" -o "$op" "$@" --algo "file:$dir/plan" --dtype i32 --sizes 4100 --slot-max -1 --time-ms 1 \
		--repeats 1 --json > "$dir/out" 2> "$dir/err" && grep -q '"algo":"forest"' "$dir/out"
}

status=0 i=0
while [ $i -lt "$rounds" ] && [ $status -eq 0 ]; do
	case $((i % 6)) in
	0) one $i allreduce --roots any ;;
	1) one $i allgather ;;
	2) one $i reduce_scatter ;;
	3) one $i broadcast --root 1 ;;
	4) one $i reduce --root 1 ;;
	*) one $i allreduce ;;
	esac
	status=$?
	i=$((i + 1))
done
[ $status -eq 0 ] || show "$dir/graph" "$dir/err"
result $status "$i random networks, with right results"

swingplan forest --topo mesh:2x3 --pieces 40 --out "$dir/plan" > /dev/null &&
	swingperf -n 6 --topo mesh:2x3 --algo "file:$dir/plan" --sizes 1M --slot-max -1 --time-ms 1 --repeats 1 --json \
		> "$dir/out" 2> "$dir/err"
status=$?
[ $status -eq 0 ] || show "$dir/err"
result $status "many segments"

for op in allreduce allgather; do
	swingperf -n 6 --topo mesh:2x3 --algo forest:4 -o $op --sizes 4100 --slot-max -1 --time-ms 1 --repeats 1 --json \
		> "$dir/out" 2> "$dir/err" && grep -q '"algo":"forest"' "$dir/out"
	status=$?
	[ $status -eq 0 ] || break
done
[ $status -eq 0 ] || show "$dir/err"
result $status "the library's forest"

swingperf -n 11 --topo 'mesh:2x2*3,2,4,2' --algo forest:4 --sizes 4100 --slot-max -1 --time-ms 1 --repeats 1 --json \
	> "$dir/out" 2> "$dir/err" && grep -q '"algo":"forest"' "$dir/out"
status=$?
[ $status -eq 0 ] || show "$dir/err"
result $status "nodes with several ranks"

echo 'links ring:6@1Gbps,0-1=0.1Gbps' > "$dir/tuning"
swingperf -n 6 --topo ring:6@1Gbps --tuning "$dir/tuning" --sizes 1M --slot-max -1 --time-ms 1 --repeats 1 --json \
	> "$dir/out" 2> "$dir/err" && grep -q '"algo":"forest"' "$dir/out" &&
	swingperf -n 6 --topo ring:6@1Gbps --sizes 1M --slot-max -1 --time-ms 1 --repeats 1 --json \
		> "$dir/out" 2> "$dir/err" && ! grep -q '"algo":"forest"' "$dir/out"
status=$?
[ $status -eq 0 ] || show "$dir/out" "$dir/err"
result $status "the automatic choice takes a forest where a link is slow"
