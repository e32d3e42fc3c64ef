#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# swingctl doctor where the module is loaded: nothing to complain of; then rights, io_uring, versions and the device are
# changed one at a time. tools/swingctl/test.sh has what needs no module.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
[ -e /dev/swingcoll ] || skip_all "swingcoll is not loaded"
command -v swingctl > /dev/null || skip_all "swingctl is not on PATH"
out=$(mktemp)
dir=$(mktemp -d)
disabled=/proc/sys/kernel/io_uring_disabled
[ ! -e $disabled ] || io_uring=$(cat $disabled)
# Whatever has been changed when this ends.
trap 'umount /sys/module/swingcoll/version 2> /dev/null; [ ! -e /dev/swingcoll.away ] || mv /dev/swingcoll.away /dev/swingcoll
	[ ! -e $disabled ] || echo "$io_uring" > $disabled; rm -rf "$out" "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
echo 1..6

says() { # says NAME LINE NEXT: a line of the output, and the one below it
	grep -E -A 1 -- "$2" "$out" | grep -qE -- "next: .*$3"
	status=$?
	[ $status -eq 0 ] || show "$out"
	result $status "$1"
}

swingctl doctor > "$out"
status=$?
[ $status -eq 0 ] && ! grep -q '^FAIL' "$out" && grep -q '^OK    device' "$out" && grep -q '^OK    interface' "$out" &&
	grep -q '^OK    module' "$out"
status=$?
[ $status -eq 0 ] || show "$out"
result $status "no fault"

# Nobody cannot read the folder of the build, perhaps.
cp "$(command -v swingctl)" "$dir" && chmod 755 "$dir"
group=$(stat -c %G /dev/swingcoll)
mode=$(stat -c %a /dev/swingcoll)
chmod 660 /dev/swingcoll
[ "$group" != root ] || chgrp daemon /dev/swingcoll
setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/swingctl" doctor > "$out"
faulty=$?
says "no rights" '^FAIL  device .*no permission to open it' "usermod -aG $(stat -c %G /dev/swingcoll) "
[ $faulty -eq 1 ]
result $? "no rights is status 1"
chgrp "$group" /dev/swingcoll
chmod "$mode" /dev/swingcoll

if [ -e $disabled ]; then
	echo 2 > $disabled
	swingctl doctor > "$out"
	says "io_uring forbidden" '^WARN  io_uring .*kernel.io_uring_disabled=2' 'sysctl kernel.io_uring_disabled=0'
	echo "$io_uring" > $disabled
else
	skip "io_uring forbidden" "this kernel has no io_uring_disabled"
fi

echo 0.0.1 > "$dir/version"
mount --bind "$dir/version" /sys/module/swingcoll/version
swingctl doctor > "$out"
says "a module of another version" '^WARN  module .*is of version 0.0.1, these tools are of' 'one release.*modprobe swingcoll'
umount /sys/module/swingcoll/version

mv /dev/swingcoll /dev/swingcoll.away
swingctl doctor > "$out"
says "the module without its device" '^FAIL  device .*No such file' 'udevadm trigger'
mv /dev/swingcoll.away /dev/swingcoll
[ "$failed" -eq 0 ]
