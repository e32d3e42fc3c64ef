#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The recipes for bpftrace in tools/examples, beside programs of which is known what they do.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
recipes=$(realpath ../tools/examples/bpftrace)
[[ -d $recipes ]] || skip_all "no $recipes"
for program in bpftrace swingperf; do
	command -v $program >/dev/null || skip_all "no $program: tools/setup bpftrace"
done
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug || skip_all "no debugfs"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

recipe() { # recipe NAME COMMAND: what it prints is in $log
	timeout -k 5 120 bpftrace "$recipes/$1.bt" -c "$2" </dev/null >"$log" 2>&1
}

echo 1..3
perf=$(command -v swingperf)
recipe latency "$perf -n 2 -o allgather --sizes 3000 --iters 7 --repeats 1 --warmup 0 --slot-max -1"
contains "latency of each collective and size" $? "$log" '^@us\[allgather, 3000\]:' '^\[.*\|@'

# Rank 1 is the last of all 20 times, and rank 0 never.
recipe stragglers "$(realpath "${OUTPUT:-.}")/helper late"
contains "the rank that comes last" $(($? || $(grep -cE '^@last\[[0-9]+, 0\]' "$log"))) "$log" \
	'^@last\[[0-9]+, 1\]: 20$' '^@us_after_first\[[0-9]+, 1\]:'

# Members that are killed, leave or abort.
recipe failures "$(realpath "${OUTPUT:-.}")/fail_death"
contains "failures, with the rank at fault" $? "$log" \
	'^[0-9:]+ communicator [0-9]+ fails at operation [0-9]+: error -[0-9]+, culprit rank [0-9]' \
	'^[0-9:]+ communicator [0-9]+, operation [0-9]+, rank [0-9]+: error -[0-9]+ after [0-9]+ us, culprit rank [0-9]' \
	'^@operations\[-[0-9]+\]: [1-9]'
((!failed))
