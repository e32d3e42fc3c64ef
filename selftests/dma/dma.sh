#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Copies by DMA engines: whatever an engine does, results are right, and its channels are released afterwards.
# SWC_TEST_SHORT=1: without what other cases have in combination, and fewer users that are killed.
# shellcheck disable=SC2317 # functions that are called by name
set -u

# shellcheck source=dma_engine.sh
. "$(dirname "$0")/dma_engine.sh"
short=${SWC_TEST_SHORT-}
if [[ $short ]]; then echo 1..18; else echo 1..23; fi

idle=1 with -- MORE NONE
result $? "all copies by an engine, released when idle"
if [[ ! $short ]]; then
	with out_of_order=1 -- MORE NONE
	result $? "transfers complete out of order"
	with align=6 -- MORE NONE
	result $? "an engine that needs alignment to 64 bytes"
	with rate_mbps=200 delay_us=100 -- MORE NONE
	result $? "a slow engine"
	with fail_every=7 -- MORE MORE
	result $? "every seventh transfer fails"
fi
with max_seg=4096 max_descs=4 -- MORE NONE
result $? "short transfers, few descriptors"
with align=8 channels=1 -- MORE NONE
result $? "alignment to 256 bytes, one channel"
later=fail_nth=3 with out_of_order=1 -- MORE MORE
result $? "one transfer fails, out of order"
with fail_every=1 -- NONE MORE
result $? "every transfer fails"
later=hang_nth=20 with -- MORE MORE
result $? "a transfer hangs"

# ------------------------------------------------------------------ what is moved

insmod "$ko"
three=(swingperf -n 3 -d i32 --sizes 300000 --slot-max -1 --iters 2 --repeats 1 --warmup 0)
sums=''
use_engine always held "${three[@]}" --outofplace -a direct1 -r sum && sums=${grown[dma_bytes]} &&
	use_engine always dma_bytes "${three[@]}" --outofplace -a direct1 -r bxor && ((sums == 0 && grown[dma_bytes] > 0))
result $? "xor by the engine, sums by the CPU (${sums:-?} and ${grown[dma_bytes]} bytes)"
use_engine always dma_bytes "${three[@]}" --inplace -o allgather -a direct2 && ((grown[dma_bytes] > 0))
result $? "an allgather in place, which has a copy less (${grown[dma_bytes]} bytes)"
use_engine always dma_jobs_prepared "${three[@]}" --inplace -a direct1 -r bxor && ((grown[dma_jobs_prepared] > 0))
result $? "copies after barriers are prepared ahead (${grown[dma_jobs_prepared]})"
use_engine always dma_bytes "$bin/coll_overlap" && ((grown[dma_bytes] > 0))
result $? "allgathers overlapped with products, many transfers ahead"
forbid_engine
result $? "channels are released when engines are forbidden"
if [[ ! $short ]]; then
	work=partitions with -- MORE NONE
	result $? "partitions, with ranks that are killed"
fi
work=partitions later=fail_every=5 with out_of_order=1 -- MORE MORE
result $? "partitions, out of order and with errors"

# ------------------------------------------------------------------ users that are killed

knob_counts() { (($(cat "$engine/$1"))); }

# The engine works at whatever KNOB makes it do when its user is killed; its driver cannot be unloaded meanwhile.
killed() { # killed KNOB=VALUE|'' AFTER COUNTER OPTION...: until COUNTER shows it; KNOB is AFTER in the end
	local knob=${1%=*} pid status=0
	insmod "$ko" "${@:4}" || return 1
	find_engine always
	echo 2 >$engine/rate_mbps
	swingperf -n 3 -o allgather --sizes 3000000 --slot-max -1 --iters 100 >/dev/null 2>&1 &
	pid=$!
	wait_for knob_counts in_flight || status=1
	[[ ! $knob ]] || echo "${1#*=}" >"$engine/$knob"
	wait_for knob_counts "$3" || status=1
	! rmmod swc_dma_provider 2>/dev/null || status=1
	kill -9 $pid
	wait $pid 2>/dev/null
	[[ ! $knob ]] || echo "$2" >"$engine/$knob"
	echo 0 >$engine/rate_mbps
	{ "$bin/helper" check && collectives >"$log" 2>&1 && forbid_engine; } || status=1
	((!status)) || echo "# $*"
	return $status
}
killed hang_nth=3 0 hung && killed fail_every=2 0 failed && {
	[[ $short ]] || { killed '' 0 in_flight && killed max_descs=1 256 exhausted && killed delay_us=30000 0 in_flight; }
}
result $? "users are killed while an engine works for them"
killed '' 0 in_flight align=6 max_descs=8 && {
	[[ $short ]] || { killed '' 0 in_flight out_of_order=1 && killed hang_nth=3 0 hung out_of_order=1 max_seg=65536; }
}
result $? "likewise with other limits of the engine"

# ------------------------------------------------------------------ engines and the CPU

# An engine that only takes the time of a real one: what it fails at, the CPU copies; the rest of the data is wrong.
without_data() {
	local status=0 more=(swingperf -n 3 -o allgather --sizes 3000000 --slot-max -1 --iters 10 --repeats 1 --check 0)
	insmod "$ko" touch=N rate_mbps=500 delay_us=10 || return 1
	later='fail_every=5 hang_nth=20' use_engine always dma_fallbacks "${more[@]}" || status=1
	forbid_engine && ((!status && grown[dma_fallbacks] > 1)) && return
	echo "# ${grown[dma_fallbacks]} fallbacks"
	return 1
}
without_data
result $? "an engine that moves no data, with errors and a hang"

mode=auto with rate_mbps=5 -- NONE NONE
result $? "auto: an engine that is slower than the CPU is not used"
mode=never with -- NONE NONE
result $? "never: no engine is used"
finish
