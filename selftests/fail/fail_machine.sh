#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Changes the machine while ranks run collectives and are killed: processors and memory go offline and come back, the
# machine sleeps, pages are merged, split, compacted and migrated, processes change their cgroup, and somebody tries to
# unload the module. Collectives go on with right results, and everything is released.
#
# MACHINE_SECONDS: for so long, 20 if not set, 8 with SWC_TEST_SHORT=1. MACHINE_SEED: the same order of changes as in another run.
# shellcheck disable=SC2317 # changes are called by name
set -u
bin=${OUTPUT:-.}

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
short=${SWC_TEST_SHORT-}
seconds=${MACHINE_SECONDS:-${short:+8}} seconds=${seconds:-20} seed=${MACHINE_SEED:-$SRANDOM}
echo "# MACHINE_SEED=$seed"
RANDOM=$seed

group=/sys/fs/cgroup/swc-test
log=$(mktemp)
# Settings, and what they were. Of a list, the choice is in brackets.
settings=(/sys/power/pm_test /sys/module/suspend/parameters/pm_test_delay /sys/kernel/mm/ksm/run
	/sys/kernel/mm/transparent_hugepage/enabled)
declare -A before
for file in "${settings[@]}"; do
	[[ ! -w $file ]] || before[$file]=$(sed -E 's/.*\[(.*)\].*/\1/' "$file")
done
# A line for each change, and why one is not possible.
declare -A done_ refused missing

# --- changes: each makes the change and undoes it; its status tells whether the kernel did it ------------------

cpus() {
	local cpu online=(/sys/devices/system/cpu/cpu[1-9]*/online)
	[[ -w ${online[0]} ]] || { missing[cpus]='one processor only' && return; }
	cpu=${online[RANDOM % ${#online[@]}]}
	echo 0 >"$cpu" && pause && echo 1 >"$cpu"
}

# Pinned and kernel pages do not move: most blocks stay.
memory() {
	local block blocks=(/sys/devices/system/memory/memory*/state)
	[[ -w ${blocks[0]} ]] || { missing[memory]='no memory hotplug in this kernel' && return; }
	block=${blocks[RANDOM % ${#blocks[@]}]}
	echo offline >"$block" && pause && echo online >"$block"
}

# To where all processes are frozen, and back after a second: the devices of the testbed do not bear being suspended.
sleeps() {
	local delay=/sys/module/suspend/parameters/pm_test_delay
	[[ -w /sys/power/pm_test && -w $delay ]] || { missing[sleeps]='no pm_test in this kernel' && return; }
	echo 1 >"$delay" && echo freezer >/sys/power/pm_test && echo freeze >/sys/power/state
}

# Processes are frozen while one of them waits for a rank that does not come.
frozen() {
	local status=0
	"$bin/helper" join &
	wait_for grep -q '(helper) D' "/proc/$!/stat"
	sleeps || status=$?
	kill -9 $!
	wait $! 2>/dev/null
	return $status
}

merging() {
	[[ -w /sys/kernel/mm/ksm/run ]] || { missing[merging]='no KSM in this kernel' && return; }
	echo 1 >/sys/kernel/mm/ksm/run && pause && echo 2 >/sys/kernel/mm/ksm/run
}

huge_pages() {
	local enabled=/sys/kernel/mm/transparent_hugepage/enabled
	[[ -w $enabled ]] || { missing[huge_pages]='no transparent huge pages in this kernel' && return; }
	echo always >"$enabled" && pause && echo never >"$enabled" && pause && echo madvise >"$enabled"
}

compaction() {
	[[ -w /proc/sys/vm/compact_memory ]] || { missing[compaction]='not in this kernel' && return; }
	echo 1 >/proc/sys/vm/compact_memory && echo 3 >/proc/sys/vm/drop_caches
}

migration() {
	[[ -e $group/a/cpuset.mems && -d /sys/devices/system/node/node1 ]] ||
		{ missing[migration]='one memory node only' && return; }
	echo 1 >"$group/a/cpuset.mems" && pause && echo 0 >"$group/a/cpuset.mems" && pause && echo 0-1 >"$group/a/cpuset.mems"
}

# Between two groups, of which one reclaims memory all the time.
groups() {
	local pid moved=0 to=$group/a
	[[ -d $group/b ]] || { missing[groups]='no cgroup v2' && return; }
	((RANDOM % 2)) || to=$group/b
	for pid in $(pgrep -f "$bin/fail_storm"); do
		echo "$pid" >"$to/cgroup.procs" && moved=1 # it may have ended
	done
	((moved))
}

unload() {
	! rmmod swingcoll || { echo "# the module was unloaded while it was in use" && unloaded=yes; }
}

pause() { sleep 0.$((RANDOM % 3))$((RANDOM % 10)); }

cleanup() {
	local pid file
	for file in "${!before[@]}"; do
		echo "${before[$file]}" >"$file"
	done
	cat "$group"/*/cgroup.procs 2>/dev/null | while read -r pid; do
		echo "$pid" >/sys/fs/cgroup/cgroup.procs
	done
	rmdir "$group"/* "$group" 2>/dev/null
	rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- all of them -------------------------------------------------------------

changes=(groups cpus memory sleeps merging huge_pages compaction migration unload)
echo "1..$((${#changes[@]} + 3))"
frozen
status=$?
if [[ ${missing[sleeps]-} ]]; then
	skip 'the machine sleeps while a rank waits for others' "${missing[sleeps]}"
else
	result $status 'the machine sleeps while a rank waits for others'
fi

[[ -e /sys/fs/cgroup/cgroup.controllers ]] || mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
	echo '+memory +cpuset' >/sys/fs/cgroup/cgroup.subtree_control
	mkdir "$group" && echo '+memory +cpuset' >"$group/cgroup.subtree_control"
	mkdir "$group/a" "$group/b"
	echo 8M >"$group/b/memory.high"
fi 2>"$log"
show "$log"

# Between two kills, nobody else has the device open.
coproc "$bin/helper" hold
# shellcheck disable=SC2154 # set by coproc
holder=$COPROC_PID
read -r _ <&"${COPROC[0]}"
unloaded=''
STORM_SECONDS=$seconds "$bin/fail_storm" >"$log.storm" 2>&1 &
storm=$!
wait_for pgrep -f "$bin/fail_storm"
# Each once, groups first, which need the storm; then any of them.
try=("${changes[@]}")
while ((${#try[@]})) || kill -0 $storm 2>/dev/null; do
	change=${try[0]:-${changes[RANDOM % ${#changes[@]}]}}
	try=("${try[@]:1}")
	if $change 2>/dev/null; then
		done_[$change]=$((${done_[$change]-0} + 1))
	else
		refused[$change]=$((${refused[$change]-0} + 1))
	fi
done
wait $storm
status=$?
kill "$holder"
show "$log.storm"
rm -f "$log.storm"
for change in "${changes[@]}"; do
	if [[ ${missing[$change]-} ]]; then
		skip "$change" "${missing[$change]}"
	elif [[ $change = memory && ! ${done_[memory]-} ]]; then
		skip memory "none of ${refused[memory]} blocks could be emptied"
	else
		[[ ${done_[$change]-} ]] && [[ $change != unload || ! $unloaded ]]
		result $? "$change: ${done_[$change]-0} done, ${refused[$change]-0} refused by the kernel"
	fi
done
result $status "collectives and kills go on"
"$bin/helper" check
result $? "collectives work afterwards"
exit $((failed > 0))
