#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Programs on top of the library: the four ways of train_overlap to sum gradients give the same bits, as do all modes of
# sparse allreduces in train_words; the products of swingperf overlap are right by every schedule; the sums of swingperf
# --sparse have known hashes. SWC_TEST_SHORT=1: one number of ranks for each of the first two, and fewer data.

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"

for program in train_overlap train_words swingperf; do
	command -v $program > /dev/null || skip_all "$program is not on PATH"
done
if [ "${SWC_TEST_SHORT-}" ]; then echo "1..8"; else echo "1..10"; fi

# Random data in the format of the digits.
lines=1797
[ -z "${SWC_TEST_SHORT-}" ] || lines=600
awk -v lines=$lines 'BEGIN {
	srand(7)
	for (i = 0; i < lines; i++) {
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
[ "${SWC_TEST_SHORT-}" ] || train 2 32
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
[ "${SWC_TEST_SHORT-}" ] || overlap 2
overlap 3

# Two kinds of files with some words in common.
for kind in a b; do
	awk -v kind=$kind 'BEGIN {
		srand(kind == "a" ? 3 : 5)
		for (i = 0; i < 100; i++) {
			for (k = 0; k < 20; k++)
				printf "%s%c%c ", rand() < 0.5 ? kind : "c", 97 + rand() * 26, 97 + rand() * 26
			printf "\n\n"
		}
	}' > "$dir/$kind-text"
done
train_words -n 3 "$dir/a-text" "$dir/b-text" > "$dir/out" 2>&1 && grep -q "^OK: identical weights" "$dir/out"
good=$?
[ $good -eq 0 ] || show "$dir/out"
result $good "gradients summed by all modes of sparse allreduces, 3 ranks"

sparse() { # ranks, count, density and overlap, type, seed, hash of the sum
	swingperf --sparse "$3" --seed "$5" -n "$1" -d "$4" --sizes $(($2 * 4)) --warmup 1 --repeats 1 --iters 1 --json > "$dir/out" 2>&1 &&
		[ "$(grep -c "\"fnv1a64\":\"$6\"" "$dir/out")" -eq "$(grep -c '"mode"' "$dir/out")" ] &&
		[ "$(grep -c '"mode"' "$dir/out")" -ge 2 ]
	good=$?
	[ $good -eq 0 ] || show "$dir/out"
	result $good "sparse vectors of $1 ranks, $3"
}
sparse 4 65536 0.05,independent i32 1 c4683b7fd28f453d
sparse 3 10007 0.2,mixed:0.5 i32 9 cc78951688688b4d
sparse 5 40000 0.1,rows:16 f32 2 5141254bc36b45d9
sparse 2 1000 0.3,identical i32 1 b6c327de197027d6
sparse 4 20000 0.2,disjoint f32 3 1f6f9e6ca371b63d
[ "$failed" -eq 0 ]
