#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Programs on top of the library: the four ways of train_overlap to sum gradients give the same bits, and the products of
# swingperf overlap are right by every schedule.

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"

for program in train_overlap swingperf; do
	command -v $program > /dev/null || skip_all "$program is not on PATH"
done
echo "1..4"

# Random data in the format of the digits.
awk 'BEGIN {
	srand(7)
	for (i = 0; i < 1797; i++) {
		for (k = 0; k < 64; k++)
			printf "%d,", rand() * 17
		printf "%d\n", rand() * 10
	}
}' | gzip > "$dir/digits.csv.gz"

train() { # ranks, partitions
	train_overlap --data "$dir/digits.csv.gz" --epochs 1 -n "$1" -p "$2" > "$dir/out" 2>&1 &&
		grep -q "identical weights on all ranks" "$dir/out"
	good=$?
	[ $good -eq 0 ] || show "$dir/out"
	result $good "gradients summed in four ways, $1 ranks, $2 partitions"
}
train 2 32
train 4 7

# It keeps what it measures of this machine in a file, and reads that file the next time.
overlap() { # ranks
	XDG_CACHE_HOME=$dir swingperf overlap -n "$1" --shapes 96x32x200,7x150x61 --repeats 2 > "$dir/out" 2> "$dir/err"
	status=$?
	if grep -q "libopenblas.so.0" "$dir/err"; then
		skip "products that consume an allgather, $1 ranks" "no OpenBLAS: apt-get install libopenblas0"
		return
	fi
	[ $status -eq 0 ] || show "$dir/out" "$dir/err"
	[ $status -eq 0 ] && [ "$(grep -c "^# wrong elements: 0 OK" "$dir/out")" -ge 1 ] &&
		[ "$(cat "$dir"/swingcoll/overlap-* | grep -c "^product f32")" -eq 64 ]
	result $? "products that consume an allgather, $1 ranks"
}
overlap 2
overlap 3
[ "$failed" -eq 0 ]
