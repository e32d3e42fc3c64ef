#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A short tour on a machine where the module is loaded: a check of the system, two training runs whose gradients
# swingcoll sums, and a small table of times. Ends with the three lines that matter; exit status 0 if all is well.

here=$(dirname "$(readlink -f "$0")")
bin=${BIN:-$here/../../build/bin}
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT

heading()
{
	printf '\n== %s\n\n' "$1"
}

step() # step NAME COMMAND...
{
	name=$1
	shift
	{ "$@" 2>&1 || echo "$name" >> "$out/bad"; } | tee "$out/$name"
}

for p in swingctl swingperf train_digits train_overlap; do
	[ -x "$bin/$p" ] && continue
	echo "demo: $bin/$p is missing: build with make, or set BIN" >&2
	exit 2
done

heading "Is everything there? (swingctl doctor)"
# By io_uring where it is allowed: then it must work.
uring=auto
if doctor=$("$bin/swingctl" doctor); then
	printf '%s\n' "$doctor"
	case $doctor in *"OK    io_uring"*) uring=must ;; esac
else
	printf '%s\n\n' "$doctor"
	echo "demo: FAILED: see the lines above for what to do"
	exit 1
fi

heading "Training on 4 processes, gradients summed in the kernel (train_digits)"
step train_digits "$bin/train_digits" --io-uring $uring

heading "Four ways to sum gradients while training goes on, with the same result (train_overlap)"
step train_overlap "$bin/train_overlap" --epochs 1

heading "Allreduce between 2 processes, every element checked (swingperf)"
step swingperf "$bin/swingperf" -n 2 --sizes 8,4K,64K,1M,16M --time-ms 100

heading "What the kernel counted (swingctl stats)"
stats=$("$bin/swingctl" stats) || echo "swingctl stats" >> "$out/bad"
printf '%s\n' "$stats" | grep -E '^(ops|bytes|comms|timeouts|mismatches|pages)'

pinned=$(printf '%s\n' "$stats" |
	awk '$1 == "pages_pinned" { n = $2 } $1 == "pages_unpinned" { n -= $2 } END { print n + 0 }')
# Others may be using it on this machine.
if [ "$pinned" != 0 ] && "$bin/swingctl" status | grep -q '^no communicators'; then
	echo "$pinned pages are pinned, though nothing runs"
	echo "pinned pages" >> "$out/bad"
fi

echo
if [ -e "$out/bad" ]; then
	echo "demo: FAILED: $(paste -sd , "$out/bad")"
	exit 1
fi
right=$(sed -n 's/^epoch.* held out *\([0-9.]*\) %.*/\1/p' "$out/train_digits" | tail -n 1)
echo "demo: trained a network on 4 processes: $right % right, the same bits on all of them"
echo "demo: allreduce of up to 16 MiB, every element checked: none wrong"
echo "demo: OK, and no page is left pinned"
