# SPDX-License-Identifier: GPL-2.0-only
# What the tests of DMA engines share; to be sourced by bash. Needs the module swc_dma_provider, an engine for tests:
# SWC_DMA_KO, or beside swingcoll.ko.
# shellcheck shell=bash
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
before=$(cat $knobs/dma)
# An engine that is left, perhaps one that fails, would be used by later tests.
trap 'rm -f "$log"; [[ ! -e $engine ]] || forbid_engine; echo "$before" >$knobs/dma' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

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
# command runs again. Afterwards ${grown[COUNTER]} is what the last run has added. Status 77: no engine is worth its use.
use_engine() { # use_engine MODE 'COUNTER...'|held|once COMMAND...: until all counters grow, or with an engine held
	local mode=$1 until=$2 end=$((SECONDS + 2 * event_s)) name knob
	shift 2
	while :; do
		# Nothing fails or hangs while the engine is measured.
		for knob in ${later:-}; do
			echo 0 >"$engine/${knob%=*}"
		done
		find_engine "$mode" >&2 || return 77
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

# Partitioned collectives, and ranks that fail in the midst of them. In the short form only those tests in which an engine
# has something to do: it is all that runs again until the counters have grown.
partitions() {
	if [[ ${SWC_TEST_SHORT-} ]]; then
		"$bin/coll_partitioned" large random && "$bin/fail_partitioned" killed dies
	else
		"$bin/coll_partitioned" && "$bin/fail_partitioned"
	fi
}

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
	use_engine "${mode:-always}" "${until:-once}" "${work:-collectives}" || status=$?
	if [[ ${idle:-} ]]; then
		remove_engine || status=1
	else
		forbid_engine || status=1
	fi
	((status == 77)) || { has_grown "$2" dma_bytes && has_grown "$3" dma_fallbacks; } || status=1
	((!status)) || echo "# ${options[*]}: ${grown[dma_bytes]} bytes moved, ${grown[dma_fallbacks]} fallbacks"
	return $status
}

snapshot

finish() {
	all_released && (($(counter dma_chans_acquired) > 0))
	result $? "all channels are released"
	exit $((failed > 0))
}
