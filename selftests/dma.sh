#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Moves by DMA engines: whatever an engine does, the results are right, and it is given back afterwards.
# Needs the module swc_dma_provider, an engine for tests: SWC_DMA_KO, or beside swingcoll.ko.
set -u
bin=${OUTPUT:-.}
knobs=/sys/module/swingcoll/parameters

. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
[[ -e $knobs/dma ]] || skip_all "swingcoll is not loaded, or knows no DMA engines here"
ko=${SWC_DMA_KO:-../build/modules/$(uname -r)/swc_dma_provider.ko}
[[ -e $ko ]] || skip_all "no swc_dma_provider.ko: set SWC_DMA_KO"
for program in swingperf swingctl; do
	command -v $program >/dev/null || skip_all "$program is not on PATH"
done

counter() { swingctl stats | awk -v name="$1" '$1 == name { print $2 }'; }

# The first use of an engine only has the module look for one, in the background; whether it has come to a
# conclusion, which may be that it is of no use.
look_for_engine() {
	local tries taken given
	echo "$1" >$knobs/dma
	taken=$(counter dma_channels_taken)
	swingperf -n 2 -o broadcast --sizes 100000 --iters 1 --repeats 1 --warmup 0 --slot-max -1 >/dev/null 2>&1
	for ((tries = 0; tries < 50; tries++)); do
		[[ $(cat $knobs/dma_least) = none ]] || return 0
		given=$(counter dma_channels_given_back)
		((given == taken || given != $(counter dma_channels_taken))) || return 0
		sleep 0.1
	done
	return 1
}

# find_engine [MODE [BYTES]]: have one that is used, for so few bytes already if that is given.
find_engine() {
	local tries mode=${1:-always} least
	if [[ $mode = never ]]; then
		echo never >$knobs/dma
		return
	fi
	# On a busy machine it may be found slower than it is; once more, then.
	for ((tries = 0; tries < 10; tries++)); do
		look_for_engine "$mode" || break
		least=$(cat $knobs/dma_least)
		[[ $mode != auto ]] || return
		[[ $least = none ]] || ((least > ${2:-2000000000})) || return
		echo never >$knobs/dma
	done
	echo "# no engine is found, or none that is fast enough"
}

# Channels that are forbidden, or idle for a while, are given back; then their driver can go.
remove() {
	local tries
	for ((tries = 0; tries < 150; tries++)); do
		rmmod swc_dma_provider 2>/dev/null && return 0
		sleep 0.1
	done
	rmmod swc_dma_provider
}

# Partitions, with users that die in the midst of them.
partitions() {
	"$bin/coll_partitioned" >"$bin/dma.log" 2>&1 || {
		sed 's/^/# /' "$bin/dma.log"
		return 1
	}
}

# Every collective that copies, with results checked; or partitions.
work() {
	local op
	if [[ ${parted:-} ]]; then
		partitions
		return
	fi
	for op in allgather broadcast allreduce; do
		swingperf -n 3 -o $op -d i32 --redop "${redop:-bxor}" --sizes "64,${size:-200000}" --slot-max -1 \
			--outofplace --iters 1 --repeats 1 --warmup 0 >"$bin/dma.log" 2>&1 || {
			sed 's/^/# /' "$bin/dma.log"
			return 1
		}
	done
}

# with OPTION... -- MORE|NONE FALLBACKS: a provider with these options moves bytes, with or without fallbacks. Up to five
# times, until it does anything: on a busy machine an engine may be given back as idle before it is used.
with() {
	local options=() moved fell tries status=0
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	insmod "$ko" "${options[@]}" || return 1
	for ((tries = 0; tries < 5; tries++)); do
		find_engine "${mode:-always}" 500000
		# Not while it is being measured.
		[[ ! ${later:-} ]] || echo "${later#*=}" >"/sys/module/swc_dma_provider/parameters/${later%=*}"
		moved=$(counter dma_bytes) fell=$(counter dma_fallbacks)
		work || status=1
		moved=$(($(counter dma_bytes) - moved)) fell=$(($(counter dma_fallbacks) - fell))
		if ((status || moved || fell)) || [[ "$2 $3" != *MORE* ]]; then
			break
		fi
	done
	[[ ${idle:-} ]] || echo never >$knobs/dma
	remove || status=1
	if [[ $2 = MORE ]] && ((!moved)) || [[ $2 = NONE ]] && ((moved)); then
		status=1
	fi
	if [[ $3 = MORE ]] && ((!fell)) || [[ $3 = NONE ]] && ((fell)); then
		status=1
	fi
	((!status)) || echo "# ${options[*]}: $moved bytes moved, $fell fallbacks"
	return $status
}

before=$(cat $knobs/dma)
echo 1..28

idle=1 with -- MORE NONE
result $? "all by an engine"
with out_of_order=1 -- MORE NONE
result $? "out of order"
with max_seg=4096 max_descs=4 -- MORE NONE
result $? "short transfers, few descriptors"
with align=6 -- MORE NONE
result $? "only what is aligned"
with align=8 channels=1 -- MORE NONE
result $? "what is aligned to 256 bytes, one channel"
with rate_mbps=200 delay_us=100 -- MORE NONE
result $? "at its own pace"
with fail_every=7 -- MORE MORE
result $? "errors now and then"
later=fail_nth=3 with out_of_order=1 -- MORE MORE
result $? "one error, out of order"
with fail_every=1 -- NONE MORE
result $? "nothing but errors"
with hang_nth=20 -- MORE MORE
result $? "a transfer that hangs"

# grown COUNTER COMMAND...: by how much it grows while this runs. Up to five times, until it does, like with().
grown() {
	local name=$1 before tries
	for ((tries = 0; tries < 5; tries++)); do
		find_engine >&2
		before=$(counter "$name")
		"${@:2}" >"$bin/dma.log" 2>&1 || {
			sed 's/^/# /' "$bin/dma.log" >&2
			return 1
		}
		((before == $(counter "$name"))) || break
	done
	echo $(($(counter "$name") - before))
}
insmod "$ko"
three=(swingperf -n 3 -d i32 --sizes 300000 --slot-max -1 --iters 2 --repeats 1 --warmup 0)
sums=$(grown dma_bytes "${three[@]}" --outofplace -a direct1 -r sum) &&
	xors=$(grown dma_bytes "${three[@]}" --outofplace -a direct1 -r bxor) && ((sums == 0 && xors > 0))
result $? "the xor by an engine, sums by the CPU ($sums and $xors bytes)"
moved=$(grown dma_bytes "${three[@]}" --inplace -o allgather -a direct2) && ((moved > 0))
result $? "an allgather in place, which leaves a copy less ($moved bytes)"
prepared=$(grown dma_moves_prepared "${three[@]}" --inplace -a direct1 -r bxor) && ((prepared > 0))
result $? "moves behind barriers are prepared there ($prepared)"
moved=$(grown dma_bytes "$bin/coll_overlap") && ((moved > 0))
result $? "allgathers and the products that consume them, many transfers ahead"
echo never >$knobs/dma
remove
result $? "given back"
parted=1 with -- MORE NONE
result $? "partitions"
parted=1 later=fail_every=5 with out_of_order=1 -- MORE MORE
result $? "partitions, out of order and with errors"

# killed KNOB=VALUE AFTER OPTION...: the engine is at work, whatever it does then, when its user dies; and its driver
# cannot be unloaded meanwhile.
killed() {
	local pid tries status=0
	insmod "$ko" "${@:3}" || return 1
	find_engine
	echo 2 >$provider/rate_mbps
	swingperf -n 3 -o allgather --sizes 3000000 --slot-max -1 --iters 100 >/dev/null 2>&1 &
	pid=$!
	for ((tries = 0; tries < 100; tries++)); do
		(($(cat $provider/in_flight))) && break
		sleep 0.1
	done
	[[ ! $1 ]] || echo "${1#*=}" >"$provider/${1%=*}"
	! rmmod swc_dma_provider 2>/dev/null || status=1
	sleep 0.5
	kill -9 $pid
	wait $pid 2>/dev/null
	[[ ! $1 ]] || echo "${2:-0}" >"$provider/${1%=*}"
	echo 0 >$provider/rate_mbps
	"$bin/helper" sound && work && echo never >$knobs/dma && remove || status=1
	((!status)) || echo "# $*"
	return $status
}
provider=/sys/module/swc_dma_provider/parameters
killed "" && killed hang_nth=3 && killed fail_every=2 && killed max_descs=1 256 && killed delay_us=30000
result $? "users are killed while it works"
killed "" 0 out_of_order=1 && killed hang_nth=3 0 out_of_order=1 max_seg=65536 && killed "" 0 align=6 max_descs=8
result $? "likewise out of order, in short transfers, and aligned"

# One that only takes the time that a real one would: what it fails at is done by the CPU, the rest is not there.
timed() {
	local fell status tries
	insmod "$ko" touch=N rate_mbps=500 delay_us=10 || return 1
	for ((tries = 0; tries < 5; tries++)); do
		find_engine
		fell=$(counter dma_fallbacks)
		echo 5 >$provider/fail_every
		echo 20 >$provider/hang_nth
		swingperf -n 3 -o allgather --sizes 3000000 --slot-max -1 --iters 10 --repeats 1 --check 0 >/dev/null
		status=$?
		fell=$(($(counter dma_fallbacks) - fell))
		((!status && !fell)) || break
	done
	echo never >$knobs/dma
	remove && ((!status && fell > 1)) && return
	echo "# $fell fallbacks"
	return 1
}
timed
result $? "an engine that moves nothing, with errors and a hang"

# The CPU takes the other part of each move.
mode=share size=2000000 with -- MORE NONE
result $? "shared with the CPU"
mode=share size=2000000 later=fail_every=3 with out_of_order=1 -- MORE MORE
result $? "shared, with errors now and then"
mode=share size=2000000 later=hang_nth=9 with -- MORE MORE
result $? "shared, and a transfer hangs"

# Each move is shared: of what a broadcast copies, engines and the CPU do both.
insmod "$ko"
for ((tries = 0; tries < 5; tries++)); do
	find_engine share 1000000
	least=$(cat $knobs/dma_least)
	moved=$(counter dma_bytes) copied=$(counter bytes_copied)
	swingperf -n 2 -o broadcast --sizes 30000000 --iters 1 --repeats 1 --warmup 0 >/dev/null
	status=$?
	moved=$(($(counter dma_bytes) - moved)) copied=$(($(counter bytes_copied) - copied))
	((!status && !moved)) || break
done
echo never >$knobs/dma
remove && ((!status && moved > 0 && copied > 0 && (moved + copied) % 30000000 == 0))
result $? "each byte by one of them (engine $moved, CPU $copied; shared from $least bytes on)"

near_only() {
	local moved far status
	insmod "$ko" devices=2 channels=2 || return 1
	moved=$(grown dma_bytes swingperf -n 2 -o broadcast --sizes 1200000 --slot-max -1 --iters 4 --repeats 1 --warmup 0)
	status=$?
	far=$(cat /sys/module/swc_dma_provider/parameters/far)
	echo never >$knobs/dma
	remove && ((!status && moved > 0 && !far)) && return
	echo "# $moved bytes moved, $far transfers far away"
	return 1
}
if [[ -d /sys/devices/system/node/node1 ]]; then
	near_only
	result $? "by channels of the NUMA node of the memory"
else
	result 0 "by channels of the NUMA node of the memory # SKIP only one NUMA node here: boot with numa=fake=2"
fi

mode=auto with rate_mbps=5 -- NONE NONE
result $? "an engine that is slower than the CPU is left alone"
mode=never with -- NONE NONE
result $? "forbidden"

taken=$(counter dma_channels_taken) given=$(counter dma_channels_given_back)
((taken == given && taken > 0))
result $? "all channels are given back ($taken)"
echo "$before" >$knobs/dma
exit $((failed > 0))
