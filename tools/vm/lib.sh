# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Shared by the scripts: where the repository and the cache are, where modules are
# built, and messages, which go to stderr, as stdout is for results only.

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

# Kernels with checkers, which tools/vm/source-kernel builds.
has_checkers() { # has_checkers KVER
	[[ $1 = 6.12-k[ac]san ]]
}

# Kbuild accepts only plain characters in the path of a folder that it builds in.
plain_path() {
	[[ $1 != *[![:alnum:]_./+@,-]* ]]
}

# The folder that modules are built in. If the path of the repository is not plain, build/modules is a link to a
# folder in the cache.
modules_dir() {
	local dir=$repo/build/modules plain
	mkdir -p "$repo/build"
	if plain_path "$repo"; then
		[[ ! -L $dir ]] || rm "$dir"
		mkdir -p "$dir"
		echo "$dir"
		return
	fi
	plain=$cache/modules/$(sha256sum <<<"$repo" | cut -c1-12)
	plain_path "$plain" || die "modules cannot be built below $repo nor $cache, for their special characters:" \
		"set SWINGCOLL_CACHE to a folder without a blank in its path"
	mkdir -p "$plain"
	[[ -L $dir ]] || rm -rf "$dir"
	ln -sfn "$plain" "$dir"
	echo "$plain"
}

# One script at a time changes the cache. The lock is held until the script ends.
lock_cache() {
	mkdir -p "$cache"
	exec {cache_lock}>"$cache/lock"
	flock -n "$cache_lock" || {
		say "waiting for another script that is filling $cache"
		flock "$cache_lock"
	}
}
