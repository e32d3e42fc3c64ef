#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What connections take is on account of who has made the communicator, though kernel threads allocate it. Runs on
# two or more nodes at once, each of which looks at its own; node 0 speaks TAP.
set -u
node=${SWINGCOLL_NODE:-0}
knobs=/sys/module/swingcoll/parameters
top=/sys/fs/cgroup group=$top/swingcoll_net

. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
[[ ${SWINGCOLL_NNODES-} ]] || skip_all "this is for the nodes of a cluster: tools/vm/run --nodes"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
command -v swingperf >/dev/null || skip_all swingperf is not on PATH
[[ -e $top/cgroup.controllers ]] || mount -t cgroup2 none $top 2>/dev/null || skip_all "no cgroups, version 2"
echo +memory >$top/cgroup.subtree_control 2>/dev/null || skip_all no memory controller
mkdir $group || skip_all "$group is not to be there"

held() { awk '$1 == "kernel" { print $2 }' $group/memory.stat; }

# All connections of this node, while an operation runs.
slots=$(($(cat $knobs/rdma_slots) * $(cat $knobs/rdma_slot_kib) * 1024))
(echo $BASHPID >$group/cgroup.procs && exec swingperf -n 1 --sizes 4096 --time-ms 3000 --repeats 1) >/run/net_memory.log 2>&1 &
most=0
while kill -0 $! 2>/dev/null; do
	now=$(held)
	((now <= most)) || most=$now
	sleep 0.2
done
wait $!
status=$?
# What a process leaves behind may stay for a while, what connections have does not.
for ((tries = 0; tries < 50 && $(held) >= slots; tries++)); do
	sleep 0.1
done
left=$(held)
rmdir $group
((!status)) || sed 's/^/# /' /run/net_memory.log
((!status && most >= slots && left < slots))
status=$?
if ((node)); then
	((!status)) || echo "# node $node: $most bytes at most, then $left; slots of one connection are $slots"
	exit $status
fi
echo 1..1
result $status "the maker's memory cgroup has what connections take ($most bytes, then $left)"
((!failed))
