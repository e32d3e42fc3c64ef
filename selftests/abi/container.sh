#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Containers of podman without root, by the recipe of swingcoll(7): the device, the user's groups, locked memory, and a
# seccomp profile with io_uring; ranks in one container and in two; and what doctor says in one that lacks something.
# The user, and the file system of the containers, exist only here. For virtual machines: files of /etc are covered.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
[[ -e /dev/swingcoll ]] || skip_all "swingcoll is not loaded"
for program in podman crun newuidmap swingperf swingctl; do
	command -v $program >/dev/null || skip_all "no $program: tools/setup container"
done
profile=/usr/share/containers/seccomp.json
[[ -e $profile ]] || skip_all "no $profile"
grep -q ' cgroup2 ' /proc/mounts || skip_all "no cgroup2"

user=4242 group=4243
dir=$(mktemp -d)
root=$dir/root old=$(stat -c '%a %G' /dev/swingcoll)

# shellcheck disable=SC2317 # by the trap
clean() {
	local pid
	pid=$(cat "$dir/run/libpod/tmp/pause.pid" 2>/dev/null) && kill "$pid"
	umount /etc/passwd /etc/group /etc/subuid /etc/subgid 2>/dev/null
	chmod "${old% *}" /dev/swingcoll
	chgrp "${old#* }" /dev/swingcoll
	rm -rf "$dir"
}
trap clean EXIT
chmod 755 "$dir"

# A file system with the tools and the libraries they need.
mkdir -p "$root"/{bin,lib64,proc,sys,dev,tmp,etc,run} "$dir"/{home,run,etc}
for program in swingctl swingperf; do
	program=$(command -v $program)
	cp "$program" "$root/bin"
	while read -r library; do
		# From a build tree, too, they find it in /bin/../lib.
		to=$library
		[[ $to != */libswingcoll* ]] || to=/lib/${to##*/}
		mkdir -p "$root/${to%/*}"
		cp -L "$library" "$root/$to"
	done < <(ldd "$program" | grep -o '/[^ ]*')
done
# A user of the device's group, with ids for its containers.
{ cat /etc/passwd && echo "swctest:x:$user:$user::$dir/home:/bin/sh"; } >"$dir/etc/passwd"
{ cat /etc/group && printf '%s\n' "swctest:x:$user:" "swcdev:x:$group:swctest"; } >"$dir/etc/group"
echo swctest:200000:65536 >"$dir/etc/subuid"
cp "$dir/etc/subuid" "$dir/etc/subgid"
for file in passwd group subuid subgid; do
	mount --bind "$dir/etc/$file" /etc/$file || skip_all "/etc/$file cannot be covered"
done
chgrp $group /dev/swingcoll
chmod 660 /dev/swingcoll
chown -R $user:$user "$root" "$dir/home" "$dir/run"
chmod 700 "$dir/run"
ulimit -l unlimited
sed 's/^\s*"accept",/& "io_uring_setup", "io_uring_enter", "io_uring_register",/' $profile >"$dir/seccomp.json"

container() { # container OPTION... -- COMMAND...
	local options=()
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	# Without systemd there are no cgroups of the user's.
	setpriv --reuid $user --regid $user --init-groups env -i HOME="$dir/home" XDG_RUNTIME_DIR="$dir/run" \
		PATH=/usr/bin:/bin:/usr/sbin:/sbin timeout 120 podman --log-level=error --cgroup-manager=cgroupfs \
		--storage-driver=vfs --runtime=crun run --rm --cgroups=disabled "${options[@]}" --rootfs "$root" "$@"
}
recipe=(--device /dev/swingcoll --group-add keep-groups)
io_uring=(--security-opt seccomp="$dir/seccomp.json")
sizes=(--sizes "8,256K" --iters 2 --repeats 1)

echo 1..7
container "${recipe[@]}" --network none -- /bin/swingctl doctor >"$dir/out" 2>&1
status=$?
((!status)) && grep -q '^OK    device' "$dir/out" && grep -q '^OK    memlock' "$dir/out" && ! grep -q '^FAIL' "$dir/out"
status=$?
((!status)) || show "$dir/out"
result $status "device, groups and locked memory"

if grep -q io_uring $profile; then
	skip "doctor tells of the seccomp profile" "this podman allows io_uring"
else
	grep -A 1 '^WARN  io_uring .*a seccomp filter is active' "$dir/out" | grep -q 'next: .*allows io_uring_setup'
	result $? "doctor tells of the seccomp profile"
fi

container "${recipe[@]}" --network none -- /bin/swingperf -n 2 "${sizes[@]}" >"$dir/out" 2>&1
status=$?
((!status)) || show "$dir/out"
result $status "two ranks in a container, with podman's own seccomp profile"

container "${recipe[@]}" "${io_uring[@]}" --network none -- /bin/swingperf -n 2 --io-uring must "${sizes[@]}" >"$dir/out" 2>&1
status=$?
((!status)) || show "$dir/out"
result $status "by io_uring, with a profile that allows it"

ranks=(-e SWINGCOLL_ROOT=127.0.0.1:29417 -e SWINGCOLL_NRANKS=2 --network host)
container "${recipe[@]}" "${ranks[@]}" -e SWINGCOLL_RANK=1 -- /bin/swingperf "${sizes[@]}" >"$dir/other" 2>&1 &
container "${recipe[@]}" "${ranks[@]}" -e SWINGCOLL_RANK=0 -- /bin/swingperf "${sizes[@]}" >"$dir/out" 2>&1
status=$?
wait $! || status=1
grep -q '^# wrong elements: 0 OK' "$dir/out" || status=1
((!status)) || show "$dir/out" "$dir/other"
result $status "two containers are two ranks"

container --device /dev/swingcoll --network none -- /bin/swingctl doctor >"$dir/out" 2>&1
(($? == 1)) && grep -q '^FAIL  device .*no permission' "$dir/out"
status=$?
((!status)) || show "$dir/out"
result $status "without the groups the device cannot be opened"

container --network none -- /bin/swingctl doctor >"$dir/out" 2>&1
(($? == 1)) && grep -q '^FAIL  device .*No such file' "$dir/out"
status=$?
((!status)) || show "$dir/out"
result $status "without the device there is none"
((!failed))
