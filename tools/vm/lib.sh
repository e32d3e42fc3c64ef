# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Shared by the testbed scripts: where the repository and the cache are, and how
# a script speaks. Everything said goes to stderr; stdout carries results only.

shopt -s inherit_errexit

# shellcheck disable=SC2034 # used by the scripts that source this file
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cache=${SWINGCOLL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swingcoll}
PATH=$PATH:/usr/sbin:/sbin # depmod and modprobe, for ordinary users

say() {
	echo "${0##*/}: $*" >&2
}

die() {
	say "$*"
	exit 1
}

# Held until the script ends: one script at a time changes the cache.
lock_cache() {
	mkdir -p "$cache"
	exec {cache_lock}>"$cache/lock"
	flock -n "$cache_lock" || {
		say "waiting for another script that is filling $cache"
		flock "$cache_lock"
	}
}
