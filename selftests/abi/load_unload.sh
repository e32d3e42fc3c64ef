#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Loads and unloads the module: after use, while in use, many times, with parameters. The module's file is SWINGCOLL_KO,
# or the one that modprobe knows. SWC_TEST_SHORT=1: fewer times.
set -u
bin=${OUTPUT:-.}

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
[[ -d /sys/module/swingcoll ]] || skip_all swingcoll is not loaded
ko=${SWINGCOLL_KO:-$(modinfo -n swingcoll 2>/dev/null)}
if [[ ! -e $ko ]]; then
	# In the testbed's virtual machine.
	for ko in /vm/load/swingcoll.ko ../build/modules/"$(uname -r)"/swingcoll.ko; do
		[[ ! -e $ko ]] || break
	done
fi
[[ -e $ko ]] || skip_all "no swingcoll.ko: set SWINGCOLL_KO"

# The last process may still be exiting.
unload() { wait_for rmmod swingcoll; }
load() { insmod "$ko" "$@"; }

echo 1..9

"$bin/helper" check
result $? "collectives work"

unload && [[ ! -e /dev/swingcoll && ! -d /sys/module/swingcoll ]]
result $? "unloaded after use"

load && [[ -c /dev/swingcoll ]] && "$bin/helper" check
result $? "loaded again, and collectives work"

# An open device, or a mapping of it, keeps the module loaded.
held() { # held MODE
	local pid line status=0
	coproc "$bin/helper" "$1"
	# shellcheck disable=SC2154 # set by coproc
	pid=$COPROC_PID
	read -r line <&"${COPROC[0]}"
	[[ $line = open ]] || status=1
	if rmmod swingcoll 2>/dev/null; then
		echo "# rmmod has succeeded"
		status=1
		kill -9 "$pid"
		load
	fi
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	return $status
}
held hold
result $? "not unloaded while the device is open"
held hold-mapping
result $? "not unloaded while the ring is mapped"
unload
result $? "unloaded when it is not used any more"

status=0 times=20
[[ ! ${SWC_TEST_SHORT-} ]] || times=6
for ((i = 0; i < times && !status; i++)); do
	load || status=1
	((i % 5)) || "$bin/helper" check || status=1
	unload || status=1
done
result $status "loaded and unloaded $times times"

status=0
bad=(ring_entries=7 ring_entries=1000 ring_entries=0 max_comms=0 max_comms=100000 max_plans=0 max_plans=65536
	reduce=nonsense)
# Parameters for DMA, RDMA and TCP exist where the kernel has these.
! modinfo -p "$ko" | grep -q ^dma: || bad+=(dma=perhaps dma_least=4096)
! modinfo -p "$ko" | grep -q ^rdma_port: ||
	bad+=(rdma_port=0 rdma_port=65536 rdma_ack_timeout=7 rdma_ack_timeout=256 rdma_rx_bufs=3 rdma_rx_buf_kib=1025)
! modinfo -p "$ko" | grep -q ^tcp_port: ||
	bad+=(tcp_port=0 tcp_port=65536 tcp_timeout_ms=99 tcp_rx_bufs=3 tcp_rx_buf_kib=1025 tcp_zerocopy_min=0 tls_port=0)
for bad in "${bad[@]}"; do
	if load "$bad" 2>/dev/null; then
		echo "# $bad was accepted"
		status=1
		unload
	fi
done
result $status "wrong parameters are refused"

status=0
for good in ring_entries=8 reduce=scalar max_plans=3; do
	load $good && "$bin/helper" check && unload || status=1
done
load || status=1
result $status "good parameters are accepted"

((!failed))
