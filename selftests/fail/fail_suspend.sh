#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The machine is suspended and resumed while ranks run collectives and are killed: to where processes are frozen, then
# with all devices, without the other processors, and with what remains of the kernel. Firmware is not entered. Its
# processes must not need a file system that cannot be suspended, so it runs where there is none, in plain sh:
#
#	tools/vm/run --bare --copy build/static -- sh -c 'cd static && ./fail_suspend.sh'
#
# SUSPEND_SECONDS: for so long, 20 if not set.
set -u
cd "$(dirname "$0")" || exit
seconds=${SUSPEND_SECONDS:-20} number=0 failed=0
log=/tmp/fail_suspend.$$

skip_all() { echo "1..0 # SKIP $*" && exit 4; }
result() { # result STATUS NAME
	number=$((number + 1))
	[ "$1" = 0 ] && echo "ok $number $2" && return
	failed=1
	echo "not ok $number $2"
}

[ "$(id -u)" = 0 ] || skip_all needs root
[ -c /dev/swingcoll ] || skip_all swingcoll is not loaded
[ -w /sys/power/pm_test ] || skip_all no pm_test in this kernel
! grep -q ' 9p ' /proc/mounts || skip_all "the files are on 9p, whose device does not survive: see $0"

levels='freezer devices platform processors core'
echo TAP version 13
echo 1..7
echo 1 >/sys/module/suspend/parameters/pm_test_delay
STORM_SECONDS=$seconds ./fail_storm >"$log" 2>&1 &
storm=$!
rounds=0 bad=''
while kill -0 $storm 2>/dev/null; do
	for level in $levels; do
		# The state "mem" has all of these levels.
		echo "$level" >/sys/power/pm_test && echo mem >/sys/power/state || bad="$bad $level"
	done
	rounds=$((rounds + 1))
	# Some rounds of the ranks, too, and not only of the machine.
	sleep 2
done
wait $storm
status=$?
echo none >/sys/power/pm_test
sed 's/^/# /' "$log"
rm -f "$log"
echo "# $rounds rounds"
for level in $levels; do
	! echo "$bad " | grep -q " $level "
	result $? "suspended to $level, and resumed"
done
result $status "collectives and kills go on"
./helper check
result $? "collectives work afterwards"
exit $failed
