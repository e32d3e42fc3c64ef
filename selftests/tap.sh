# SPDX-License-Identifier: GPL-2.0-only
# What tests that are scripts share; to be sourced. Results are numbered from 1, and $failed counts the bad ones.
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

skip_all() { # skip_all REASON...: nothing is tested
	echo "1..0 # SKIP $*"
	exit 4
}

echo "TAP version 13"
