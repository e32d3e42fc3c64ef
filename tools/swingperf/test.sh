#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What swingperf says when it cannot do what it is asked: each line says what is wrong and what is accepted, and the exit
# status is 2. Needs no module. Speaks TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
prog=$PWD/build/bin/swingperf
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Launchers, and a user's own settings.
for name in $(compgen -e | grep -E '^(SWINGCOLL|OMPI|PMI|PMIX|SLURM)_|^(RANK|WORLD_SIZE)$'); do
	unset "$name"
done

number=0 failed=0

result() { # result STATUS NAME: what the last run said if it failed
	number=$((number + 1))
	if (($1)); then
		sed 's/^/# /' "$dir/err" | tail -n 20
		echo "not ok $number - $2"
		failed=1
	else
		echo "ok $number - $2"
	fi
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
	result $bad "$name"
}

[[ -x $prog ]] || { echo "1..0 # SKIP no $prog: make tools"; exit; }

says "a CPU that does not exist" '^swingperf: --cpus 1023: expected CPUs that this process may use: [0-9]' -- --cpus 0,1023
says "something else than CPUs" '^swingperf: --cpus x: expected none, rr, or CPU numbers' -- --cpus x
says "no such plan file" '/nope: No such file.*: expected a plan file, as swingplan export' -- -a file:/nope
says "a folder in place of a plan file" ': Is a directory: expected a plan file' -- -a file:/
says "no such topology file" '/nope: No such file.*: expected a file with a topology, see swingcoll-topology\(7\)' -- -t @/nope
says "no such tuning file" '/nope: No such file.*: expected a file that swingperf --tune' -- --tuning /nope

# Without the module every rank fails, and one of them says so; with it there is nothing to see here.
if [[ -e /dev/swingcoll ]]; then
	result 0 "ranks of a node report a failure once # SKIP /dev/swingcoll exists"
else
	says "ranks of a node fail without the module" 'rank [0-7]: joining the communicator: no usable /dev/swingcoll' -- -n 8
	(($(grep -c 'joining the communicator' "$dir/err") == 1))
	result $? "ranks of a node report a failure once"
fi

# Behind a launcher: the first of its processes tells, whatever comes of it then.
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$prog" -n 2 --root 9 >"$dir/out" 2>"$dir/err"
grep -q 'each process that the launcher has started (OMPI_COMM_WORLD_RANK is set) forks 2 ranks' "$dir/err" &&
	grep -q 'next: leave out -n' "$dir/err"
result $? "-n behind a launcher says what it does"
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "$prog" -n 2 --root 9 >"$dir/out" 2>"$dir/err"
! grep -q launcher "$dir/err"
result $? "-n behind a launcher: only the first process says it"
"$prog" -n 2 --root 9 >"$dir/out" 2>"$dir/err"
! grep -q launcher "$dir/err" && grep -q 'root 9: the ranks are 0 to 1' "$dir/err"
result $? "-n without a launcher says nothing of one"

says "--sparse: no density" '--sparse 2: expected a density from 0 to 1, and after a comma independent' -- --sparse 2
says "--sparse: no such overlap" '--sparse 0.1,rows: expected a density' -- --sparse 0.1,rows
says "--sparse: sums that are not exact" 'not exact in f16: take another --dtype' -- --sparse 0.1 -d f16
says "--sparse: another collective" '--sparse is for blocking allreduces' -- --sparse 0.1 -o reduce
says "--sparse: a sketch of floats" '--mode sketch: expected dense, pack, rows:W or auto, or sketch for integers' -- --sparse 0.1 --mode sketch
says "--mode by itself" '--mode is for --sparse' -- --mode pack

echo "1..$number"
exit $failed
