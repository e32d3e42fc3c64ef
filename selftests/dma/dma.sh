#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Copies by DMA engines: whatever an engine does, results are right, and its channels are released afterwards.
# Needs the module swc_dma_provider, an engine for tests: SWC_DMA_KO, or beside swingcoll.ko.
# shellcheck disable=SC2317 # functions that wait_for runs
set -u
bin=${OUTPUT:-.}
knobs=/sys/module/swingcoll/parameters
engine=/sys/module/swc_dma_provider/parameters

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
[[ -e $knobs/dma ]] || skip_all "swingcoll is not loaded, or this kernel has no DMA engines"
ko=${SWC_DMA_KO:-../build/modules/$(uname -r)/swc_dma_provider.ko}
[[ -e $ko ]] || skip_all "no swc_dma_provider.ko: set SWC_DMA_KO"
for program in swingperf swingctl; do
	command -v $program >/dev/null || skip_all "$program is not on PATH"
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# ------------------------------------------------------------------ counters

counter() { swingctl stats | awk -v name="$1" '$1 == name { print $2 }'; }

declare -A count grown
snapshot() {
	local name value _
	while read -r name value _; do
		grown[$name]=$((value - ${count[$name]:-0}))
		count[$name]=$value
	done < <(swingctl stats)
}

# ------------------------------------------------------------------ engines

all_released() { (($(counter dma_chans_acquired) == $(counter dma_chans_released))); }

# The module has taken an engine, or has tried and released those that there are.
has_decided() { # has_decided CHANNELS: so many were acquired before
	[[ $(cat "$knobs/dma_least") = none ]] || return 0
	(($(counter dma_chans_acquired) > $1)) && all_released
}

# The first use only makes the module look for an engine, in the background.
look_for_engine() { # look_for_engine MODE
	local acquired
	echo "$1" >$knobs/dma
	acquired=$(counter dma_chans_acquired)
	swingperf -n 2 -o broadcast --sizes 100000 --iters 1 --repeats 1 --warmup 0 --slot-max -1 >/dev/null 2>&1
	wait_for has_decided "$acquired"
}

# The module measures engines, and a busy machine makes them slow: what "share" needs is measured again until it is at
# most so much, or for so long; a copy is a third of a message or all of it.
share_bytes=2000000
find_engine() { # find_engine MODE: have an engine; with "share", $least is the size of a copy from which on it is used
	local mode=$1 end=$((SECONDS + event_s / 4))
	if [[ $mode = never ]]; then
		echo never >$knobs/dma
		return
	fi
	while look_for_engine "$mode"; do
		least=$(cat "$knobs/dma_least")
		[[ $mode != auto ]] || return 0
		if [[ $least != none ]]; then
			[[ $mode = share ]] && ((least > share_bytes && SECONDS < end)) || return 0
		fi
		((SECONDS < end + event_s)) || break
		echo never >$knobs/dma
	done
	echo "# no engine is found: $(swingctl stats | tr -s ' ' | grep dma_ | tr '\n' ' ')"
	return 1
}

# An engine is released after three idle seconds, which a busy machine may let pass before a command uses it: then the
# command runs again. Afterwards ${grown[COUNTER]} is what the last run has added.
use_engine() { # use_engine MODE 'COUNTER...'|held|once COMMAND...: until all counters grow, or with an engine held
	local mode=$1 until=$2 end=$((SECONDS + 2 * event_s)) name knob
	shift 2
	while :; do
		# Nothing fails or hangs while the engine is measured.
		for knob in ${later:-}; do
			echo 0 >"$engine/${knob%=*}"
		done
		find_engine "$mode" >&2 || return 1
		for knob in ${later:-}; do
			echo "${knob#*=}" >"$engine/${knob%=*}"
		done
		size=200000 algorithm=''
		# Whole elements: swingperf leaves out the rest.
		[[ $mode != share ]] ||
			size=$((6 * (least > share_bytes ? least : share_bytes) / 64 * 64)) algorithm='-a direct1'
		snapshot
		"$@" >"$log" 2>&1 || {
			show "$log"
			return 1
		}
		snapshot
		((SECONDS < end)) || return 0
		case $until in
		once) return 0 ;;
		held) ! all_released && return 0 ;;
		*)
			for name in $until; do
				((grown[$name])) || continue 2
			done
			return 0
			;;
		esac
	done
}

remove_engine() { wait_for rmmod swc_dma_provider; }

# Channels that are forbidden are released; then the driver can be unloaded. So it can after some idle seconds.
forbid_engine() {
	echo never >$knobs/dma
	remove_engine
}

# ------------------------------------------------------------------ one engine, one kind of work

# Every collective that copies, with results checked.
collectives() {
	local op
	for op in allgather broadcast allreduce; do
		# shellcheck disable=SC2086 # words
		swingperf -n 3 -o $op $algorithm -d i32 --redop bxor --sizes "64,$size" --slot-max -1 \
			--outofplace --iters 1 --repeats 1 --warmup 0 || return
	done
}

# Partitioned collectives, and ranks that fail in the midst of them.
partitions() { "$bin/coll_partitioned" && "$bin/fail_partitioned"; }

has_grown() { # has_grown MORE|NONE COUNTER
	if [[ $1 = MORE ]]; then
		((grown[$2]))
	else
		((!grown[$2]))
	fi
}

# An engine with these options moves bytes or not, with transfers that the CPU had to repeat or not. Variables: mode,
# work (the command), later (knobs of the engine to set once it is in use), idle (wait for the release).
with() { # with OPTION... -- MORE|NONE MORE|NONE
	local options=() status=0 until=''
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	[[ $2 = NONE ]] || until+=' dma_bytes'
	[[ $3 = NONE ]] || until+=' dma_fallbacks'
	insmod "$ko" "${options[@]}" || return 1
	use_engine "${mode:-always}" "${until:-once}" "${work:-collectives}" || status=1
	if [[ ${idle:-} ]]; then
		remove_engine || status=1
	else
		forbid_engine || status=1
	fi
	has_grown "$2" dma_bytes && has_grown "$3" dma_fallbacks || status=1
	((!status)) || echo "# ${options[*]}: ${grown[dma_bytes]} bytes moved, ${grown[dma_fallbacks]} fallbacks"
	return $status
}

before=$(cat $knobs/dma)
snapshot
echo 1..28

idle=1 with -- MORE NONE
result $? "all copies by an engine, released when idle"
with out_of_order=1 -- MORE NONE
result $? "transfers complete out of order"
with max_seg=4096 max_descs=4 -- MORE NONE
result $? "short transfers, few descriptors"
with align=6 -- MORE NONE
result $? "an engine that needs alignment to 64 bytes"
with align=8 channels=1 -- MORE NONE
result $? "alignment to 256 bytes, one channel"
with rate_mbps=200 delay_us=100 -- MORE NONE
result $? "a slow engine"
with fail_every=7 -- MORE MORE
result $? "every seventh transfer fails"
later=fail_nth=3 with out_of_order=1 -- MORE MORE
result $? "one transfer fails, out of order"
with fail_every=1 -- NONE MORE
result $? "every transfer fails"
later=hang_nth=20 with -- MORE MORE
result $? "a transfer hangs"

# ------------------------------------------------------------------ what is moved

insmod "$ko"
three=(swingperf -n 3 -d i32 --sizes 300000 --slot-max -1 --iters 2 --repeats 1 --warmup 0)
use_engine always held "${three[@]}" --outofplace -a direct1 -r sum && sums=${grown[dma_bytes]} &&
	use_engine always dma_bytes "${three[@]}" --outofplace -a direct1 -r bxor && ((sums == 0 && grown[dma_bytes] > 0))
result $? "xor by the engine, sums by the CPU ($sums and ${grown[dma_bytes]} bytes)"
use_engine always dma_bytes "${three[@]}" --inplace -o allgather -a direct2 && ((grown[dma_bytes] > 0))
result $? "an allgather in place, which has a copy less (${grown[dma_bytes]} bytes)"
use_engine always dma_jobs_prepared "${three[@]}" --inplace -a direct1 -r bxor && ((grown[dma_jobs_prepared] > 0))
result $? "copies after barriers are prepared ahead (${grown[dma_jobs_prepared]})"
use_engine always dma_bytes "$bin/coll_overlap" && ((grown[dma_bytes] > 0))
result $? "allgathers overlapped with products, many transfers ahead"
forbid_engine
result $? "channels are released when engines are forbidden"
work=partitions with -- MORE NONE
result $? "partitions, with ranks that are killed"
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
killed '' 0 in_flight && killed hang_nth=3 0 hung && killed fail_every=2 0 failed &&
	killed max_descs=1 256 exhausted && killed delay_us=30000 0 in_flight
result $? "users are killed while an engine works for them"
killed '' 0 in_flight out_of_order=1 && killed hang_nth=3 0 hung out_of_order=1 max_seg=65536 &&
	killed '' 0 in_flight align=6 max_descs=8
result $? "likewise out of order, with short transfers, and with alignment"

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

# At this rate, what is measured takes longer than a busy machine is late.
mode=share with rate_mbps=200 -- MORE NONE
result $? "copies shared with the CPU"
mode=share later=fail_every=3 with rate_mbps=200 out_of_order=1 -- MORE MORE
result $? "shared, every third transfer fails"
mode=share later=hang_nth=9 with rate_mbps=200 -- MORE MORE
result $? "shared, and a transfer hangs"

# The size of a message is known when the engine has been measured.
broadcast() { swingperf -n 2 -o broadcast -a direct1 --sizes "$size" --iters 1 --repeats 1 --warmup 0; }
insmod "$ko" rate_mbps=200
use_engine share dma_bytes broadcast
status=$?
moved=${grown[dma_bytes]} copied=${grown[bytes_copied]}
forbid_engine && ((!status && moved > 0 && copied > 0 && (moved + copied) % size == 0))
result $? "shared, each byte once (engine $moved, CPU $copied, message $size)"

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

mode=auto with rate_mbps=5 -- NONE NONE
result $? "auto: an engine that is slower than the CPU is not used"
mode=never with -- NONE NONE
result $? "never: no engine is used"

all_released && (($(counter dma_chans_acquired) > 0))
result $? "all channels are released"
echo "$before" >$knobs/dma
exit $((failed > 0))
