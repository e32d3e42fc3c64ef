#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What swingperf says when it cannot do what it is asked: each line says what is wrong and what is accepted, and the exit
# status is 2. And its comparison of files. Needs no module. Speaks TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
# shellcheck source=../../selftests/lib/tap.sh
. selftests/lib/tap.sh
prog=$PWD/build/bin/swingperf
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Launchers, and a user's own settings.
for name in $(compgen -e | grep -E '^(SWINGCOLL|OMPI|PMI|PMIX|SLURM)_|^(RANK|WORLD_SIZE)$'); do
	unset "$name"
done

verdict() { # verdict STATUS NAME: what the last run said if it failed
	(($1 == 0)) || show "$dir/err" | tail -n 20
	result "$@"
}

says() { # says NAME PATTERN... -- ARGUMENT...: status 2, and lines that match all patterns
	local name=$1 patterns=() status=0 bad=0 pattern
	shift
	while [[ $1 != -- ]]; do
		patterns+=("$1")
		shift
	done
	shift
	"$prog" "$@" >"$dir/out" 2>"$dir/err" || status=$?
	((status == 2)) || bad=1
	for pattern in "${patterns[@]}"; do
		grep -qE -- "$pattern" "$dir/err" || bad=1
	done
	verdict $bad "$name"
}

[[ -x $prog ]] || skip_all "no $prog: make tools"

says "a CPU that does not exist" '^swingperf: --cpus 1023: expected CPUs that this process may use: [0-9]' -- --cpus 0,1023
says "something else than CPUs" '^swingperf: --cpus x: expected none, rr, or CPU numbers' -- --cpus x
says "a list without CPUs" "^swingperf: --cpus '': expected none, rr, or CPU numbers" -- --cpus ""
says "a list of a comma" "^swingperf: --cpus '': expected none, rr, or CPU numbers" -- --cpus ,
says "no such plan file" '/nope: No such file.*: expected a plan file, as swingplan export' -- -a file:/nope
says "a folder in place of a plan file" ': Is a directory: expected a plan file' -- -a file:/
says "no such topology file" '/nope: No such file.*: expected a file with a topology, see swingcoll-topology\(7\)' -- -t @/nope
says "--tune-links: topology from a file" '--tune and --tune-links need --topo as text' -- --tune-links "$dir/links" -t @/nope
says "no such tuning file" '/nope: No such file.*: expected a file that swingperf --tune' -- --tuning /nope

# Without the module every rank fails, and one of them says so; with it there is nothing to see here.
if [[ -e /dev/swingcoll ]]; then
	skip "ranks of a node report a failure once" "/dev/swingcoll exists"
else
	says "ranks of a node fail without the module" 'rank [0-7]: joining the communicator: no usable /dev/swingcoll' -- -n 8
	(($(grep -c 'joining the communicator' "$dir/err") == 1))
	verdict $? "ranks of a node report a failure once"

	tested=$prog prog=env
	says "SIGCHLD is ignored" 'no usable /dev/swingcoll' -- --ignore-signal=CHLD "$tested" -n 2
	# The other child has ended before the rank has.
	prog=bash
	says "a child of the program before" 'no usable /dev/swingcoll' -- -c ": & exec '$tested' -n 1"
	prog=$tested
fi

# Behind a launcher: the first of its processes tells, whatever comes of it then.
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$prog" -n 2 --root 9 >"$dir/out" 2>"$dir/err"
grep -q 'each process that the launcher has started (OMPI_COMM_WORLD_RANK is set) forks 2 ranks' "$dir/err" &&
	grep -q 'next: leave out -n' "$dir/err"
verdict $? "-n behind a launcher says what it does"
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "$prog" -n 2 --root 9 >"$dir/out" 2>"$dir/err"
! grep -q launcher "$dir/err"
verdict $? "-n behind a launcher: only the first process says it"
"$prog" -n 2 --root 9 >"$dir/out" 2>"$dir/err"
! grep -q launcher "$dir/err" && grep -q 'root 9: the ranks are 0 to 1' "$dir/err"
verdict $? "-n without a launcher says nothing of one"

says "--sparse: no density" '--sparse 2: expected a density from 0 to 1, and after a comma independent' -- --sparse 2
says "--sparse: no such overlap" '--sparse 0.1,rows: expected a density' -- --sparse 0.1,rows
says "--sparse: sums that are not exact" 'not exact in f16: take another --dtype' -- --sparse 0.1 -d f16
says "--sparse: another collective" '--sparse is for blocking allreduces' -- --sparse 0.1 -o reduce
says "--sparse: a sketch of floats" '--mode sketch: expected dense, pack, rows:W or auto, sketch for integers, or coded for bf16' -- --sparse 0.1 --mode sketch
says "--mode by itself" '--mode is for --sparse' -- --mode pack

# --- by the names of nccl-tests

tested=$prog
for name in all_reduce_perf all_gather_perf reduce_scatter_perf broadcast_perf reduce_perf alltoall_perf gather_perf scatter_perf; do
	prog=${tested%/*}/$name
	says "$name: types" "^$name: --datatype f8e4m3: expected one of the types that swingcoll has: int8.*bfloat16" -- -d f8e4m3
done
prog=${tested%/*}/all_reduce_perf
says "nccl-tests: all operations" '--op all: expected one of .*: sum, prod, min, max or avg' -- -o all
says "nccl-tests: all roots" '--root all: expected one rank from 0' -- -r all
says "nccl-tests: sizes" '--minbytes 1X: expected a size from 1 B to 1 TiB, such as 8, 64K' -- -b 1X
says "nccl-tests: order of sizes" 'the last size 33554432 is less than the first 67108864' -- -b 64M
says "nccl-tests: an option that it does not have" '^all_reduce_perf: -z is not an option here' -- -z 1
says "nccl-tests: too many sizes" 'more than 4096 sizes: take a larger step' -- -b 4 -e 1G -i 4
says "nccl-tests: too many ranks" '-t 16 -g 32: at most 256 ranks' -- -t 16 -g 32
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 \
	says "nccl-tests: -g behind a launcher" 'the processes of the launcher are the ranks .*: take -t 1 -g 1 and start 6 times as many' -- -t 2 -g 3
# Three ranks: root 3 is one too many. All other options are accepted.
says "nccl-tests: the usual options" '--root 3: the ranks are 0 to 2' -- \
	-b 8 -e 128M -f 2 -i 1M -t 1 -g 3 -n 20 -w 5 -o max -d bfloat16 -c 1 -r 3
prog=$tested

# --- comparison

measured() { # measured BYTES TIME_US [ERRORS [ALGO [SCHEMA]]]
	printf '{"schema":%d,"op":"allreduce","bytes":%d,"count":%d,"dtype":"f32","redop":"sum","root":-1,"asked":"%s",' \
		"${5-1}" "$1" $(($1 / 4)) "${4-auto}"
	printf '"topo":"","ranks":4,"inplace":false,"nonblocking":false,"buffers":1,"time_us":%s,"errors":%d}\n' "$2" "${3-0}"
}

compares() { # compares NAME STATUS PATTERN... -- ARGUMENT...: a comparison's status, and what it prints
	local name=$1 want=$2 patterns=() status=0 bad=0 pattern
	shift 2
	while [[ $1 != -- ]]; do
		patterns+=("$1")
		shift
	done
	shift
	"$prog" --compare "$@" >"$dir/out" 2>"$dir/err" || status=$?
	((status == want)) || bad=1
	for pattern in "${patterns[@]}"; do
		grep -qE -- "$pattern" "$dir/out" || bad=1
	done
	((!bad)) || sed 's/^/# /' "$dir/out"
	verdict $bad "$name"
}

old=$dir/old.json new=$dir/new.json
{ measured 8 2; measured 64 10; measured 1024 20; measured 4096 7; } >"$old"
{ measured 8 1; measured 64 10.9; measured 1024 20; measured 65536 90; } >"$new"
compares "times within the tolerance" 0 ' 8  allreduce .* 2\.000  faster$' ' 64 .* 0\.917  same$' ' 1024 .* 1\.000  same$' \
	'^# 3 compared: 0 slower, 1 faster, 0 wrong; geometric mean of the ratios: 1\.224$' \
	"only in $old: 1; only in $new: 1" -- "$old" "$new"
compares "times beyond the tolerance" 1 ' 64 .* 0\.917  slower$' 'compared: 1 slower' -- "$old" --tolerance 5 "$new"
compares "comparison as JSON" 1 '"schema":1,.*"bytes":64,.*"old_us":10,"new_us":10\.9,"ratio":0\.9174.*"verdict":"slower"' -- \
	"$old" --tolerance 5 --json "$new"
compares "comparison as CSV" 0 '^schema,op,bytes,count,dtype,redop,root,ranks,inplace,old_us,new_us,ratio,verdict$' \
	'^1,allreduce,8,2,f32,sum,-1,4,false,2,1,2,faster$' -- "$old" --csv "$new"
{ measured 8 1; measured 8 2; measured 8 90; } >"$new"
compares "the median of repeated runs" 0 ' 1\.000  same$' -- "$old" "$new"
measured 8 2 3 >"$new"
compares "a wrong result" 1 'wrong$' ', 1 wrong;' -- "$old" "$new"
measured 8 2 0 ring >"$new"
compares "another algorithm in the other file" 0 ' 1\.000  same$' -- "$old" "$new"
measured 8 2 0 auto >>"$new"
says "two algorithms in one file" ':2: allreduce of 8 B is there with another algorithm' -- --compare "$old" "$new"
measured 16 2 >"$new"
says "files that have nothing in common" 'no measurement in common: collective, type' -- --compare "$old" "$new"
measured 8 2 0 auto 2 >"$new"
says "a newer schema" ':1: has schema 2, known are those up to 1: use a newer swingperf' -- --compare "$old" "$new"
echo '{"mode":"dense"}' >"$new"
says "another record" ':1: expected a measurement of swingperf --json' -- --compare "$old" "$new"
echo '# swingperf' >"$new"
says "a table" ':1: no JSON: expected what swingperf --json prints' -- --compare "$old" "$new"
: >"$new"
says "an empty file" 'no measurements' -- --compare "$old" "$new"
says "--compare without the file" '/nope: No such file .*: expected a file that swingperf --json' -- -n 2 --compare /nope
says "--compare with --tune" '--compare is neither for --sparse nor for --tune' -- -n 2 --compare "$old" --tune "$new"
says "--tolerance by itself" '--tolerance is for --compare' -- --tolerance 5

# --- output that cannot be written

unwritten() { # unwritten NAME ARGUMENT...: status 2, and a line that says it
	local name=$1 status=0
	shift
	"$prog" "$@" >/dev/full 2>"$dir/err" || status=$?
	((status == 2)) && grep -q '^swingperf: cannot write to standard output$' "$dir/err"
	verdict $? "output to a full disk: $name"
}
measured 8 2 >"$new"
unwritten help --help
unwritten algorithms -a list
unwritten "a comparison" --compare "$old" "$new"

echo "1..$number"
exit $((failed > 0))
