#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The memory of connections is charged to the cgroup of the process that has created the communicator, though kernel
# threads allocate it. Runs on every node of a cluster at once; each checks its own, and node 0 prints TAP.
set -u
node=${SWINGCOLL_NODE:-0}
knobs=/sys/module/swingcoll/parameters
top=/sys/fs/cgroup group=$top/swingcoll_net

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
[[ ${SWINGCOLL_NNODES-} ]] || skip_all "needs a cluster: tools/vm/run --nodes 2"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
command -v swingperf >/dev/null || skip_all swingperf is not on PATH
[[ -e $top/cgroup.controllers ]] || mount -t cgroup2 none $top 2>/dev/null || skip_all "no cgroups, version 2"
echo +memory >$top/cgroup.subtree_control 2>/dev/null || skip_all no memory controller
mkdir $group || skip_all "$group exists already"

# Without what the kernel gives back by itself: names and inodes of the files that the program has looked up.
held() {
	awk '$1 == "kernel" { n += $2 } $1 == "slab_reclaimable" { n -= $2 } END { print n }' $group/memory.stat
}

# The receive buffers of one connection.
rx_bytes=$(($(cat $knobs/rdma_rx_bufs) * $(cat $knobs/rdma_rx_buf_kib) * 1024))
(echo $BASHPID >$group/cgroup.procs && exec swingperf -n 1 --sizes 4096 --time-ms 3000 --repeats 1) >/run/net_memory.log 2>&1 &
most=0
while kill -0 $! 2>/dev/null; do
	now=$(held)
	((now <= most)) || most=$now
	sleep 0.2
done
wait $!
status=$?
# Other memory of an exited process may stay charged for a while.
is_released() { (($(held) < rx_bytes)); }
wait_for is_released
left=$(held)
rmdir $group
((!status)) || show /run/net_memory.log
((!status && most >= rx_bytes && left < rx_bytes))
status=$?
if ((node)); then
	((!status)) || echo "# node $node: $most bytes at most, then $left; receive buffers of one connection: $rx_bytes"
	exit $status
fi
echo 1..1
result $status "the memory of connections is charged to their creator's cgroup ($most bytes, then $left)"
((!failed))
