#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Copies that an engine and the CPU share, by what the engine was measured to do: nothing should run beside this. Skips
# what needs an engine that is worth its use, if none was measured to be for a minute: the machine is too busy.
# Channels near the memory: boot with numa=fake=2.
# shellcheck disable=SC2317 # functions that are called by name
set -u

# shellcheck source=dma_engine.sh
. "$(dirname "$0")/dma_engine.sh"
echo 1..6

outcome() { # outcome STATUS NAME
	if (($1 == 77)); then
		skip "$2" "no engine is worth its use here: run it on an idle machine"
	else
		result "$1" "$2"
	fi
}

# At this rate, what is measured takes longer than a busy machine is late.
mode=share with rate_mbps=200 -- MORE NONE
outcome $? "copies shared with the CPU"
mode=share later=fail_every=3 with rate_mbps=200 out_of_order=1 -- MORE MORE
outcome $? "shared, every third transfer fails"
mode=share later=hang_nth=9 with rate_mbps=200 -- MORE MORE
outcome $? "shared, and a transfer hangs"

# The size of a message is known when the engine has been measured.
broadcast() { swingperf -n 2 -o broadcast -a direct1 --sizes "$size" --iters 1 --repeats 1 --warmup 0; }
insmod "$ko" rate_mbps=200
use_engine share dma_bytes broadcast
status=$?
moved=${grown[dma_bytes]} copied=${grown[bytes_copied]}
forbid_engine || status=1
((status)) || ((moved > 0 && copied > 0 && (moved + copied) % size == 0)) || status=1
outcome $status "shared, each byte once (engine $moved, CPU $copied, message $size)"

near_only() {
	local far status=0
	insmod "$ko" devices=2 channels=2 || return 1
	use_engine always dma_bytes swingperf -n 2 -o broadcast --sizes 1200000 --slot-max -1 --iters 4 --repeats 1 \
		--warmup 0 || status=1
	far=$(cat $engine/far)
	forbid_engine && ((!status && grown[dma_bytes] > 0 && !far)) && return
	echo "# ${grown[dma_bytes]} bytes moved, $far transfers to another node's memory"
	return 1
}
if [[ -d /sys/devices/system/node/node1 ]]; then
	near_only
	result $? "channels of the memory's NUMA node"
else
	skip "channels of the memory's NUMA node" "only one NUMA node here: boot with numa=fake=2"
fi
finish
