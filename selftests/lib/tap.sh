# SPDX-License-Identifier: GPL-2.0-only
# TAP output and waiting for tests that are scripts; to be sourced. Results are numbered from 1, and $failed counts
# those that are not ok.
# shellcheck shell=sh
number=0 failed=0

result() { # result STATUS NAME
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number $2"
	else
		failed=$((failed + 1))
		echo "not ok $number $2"
	fi
}

skip() { # skip NAME REASON
	number=$((number + 1))
	echo "ok $number # SKIP $1: $2"
}

skip_all() { # skip_all REASON...: nothing is tested
	echo "1..0 # SKIP $*"
	exit 4
}

show() { # show FILE...: as diagnostics
	sed 's/^/# /' "$@"
}

contains() { # contains NAME STATUS FILE PATTERN...: a result, good if STATUS is 0 and some line matches each pattern
	contains_name=$1 contains_status=$2 contains_file=$3
	shift 3
	for contains_pattern; do
		grep -qE -- "$contains_pattern" "$contains_file" || contains_status=1
	done
	[ "$contains_status" -eq 0 ] || show "$contains_file"
	result "$contains_status" "$contains_name"
}

# An event that has not come by then is not going to come.
event_s=60

wait_for() { # wait_for COMMAND...: until it succeeds; its status, and what it says, if that does not happen
	wait_end=$(($(date +%s) + event_s))
	until "$@" > /dev/null 2>&1; do
		if [ "$(date +%s)" -ge $wait_end ]; then
			"$@"
			return
		fi
		sleep 0.1
	done
}

# A file system on a disk, whose files the kernel does not pin from Linux 6.5 on.
make_disk() { # make_disk FOLDER: mounts it there; it is in FOLDER.image
	modprobe -qa loop ext4 # without udev there is no device by which the first is loaded
	truncate -s 64M "$1.image" && mke2fs -q -t ext4 "$1.image" && mount -o loop "$1.image" "$1"
}

echo "TAP version 13"
