#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Large vectors are shared evenly among the network cards of a node, with one rank on it and with several, by what the
# cards have sent; small ones take one. Runs on every node of a cluster at once; each checks its own cards, and node 0
# prints TAP: tools/vm/run --topology switch:2@4rails.
set -u
node=${SWINGCOLL_NODE:-0}

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
IFS=, read -ra addrs <<<"${SWINGCOLL_ADDRS-}"
[[ ${SWINGCOLL_TOPO-} = switch:*rails ]] || skip_all "needs a cluster: tools/vm/run --topology switch:2@4rails"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
command -v swingperf >/dev/null || skip_all swingperf is not on PATH
log=$(mktemp)
trap 'rm -f "$log"' EXIT

sent() { # bytes, of one card after the other
	local i
	for i in "${!addrs[@]}"; do
		cat "/sys/class/net/nic$i/statistics/tx_bytes"
	done
}

# run RANKS OPTION...: what each card has sent meanwhile, least first; fails if an element is wrong.
run() {
	local before after i
	mapfile -t before < <(sent)
	swingperf -n "$1" --iters 2 --repeats 1 --warmup 0 "${@:2}" </dev/null >"$log" 2>&1 || return
	mapfile -t after < <(sent)
	((node)) || grep -q '^# wrong elements: 0 OK' "$log" || return
	for i in "${!addrs[@]}"; do
		echo $((after[i] - before[i]))
	done | sort -n
}

# judge NAME COMMAND...: the command gets what the cards have sent.
judge() {
	local status=1 bytes=()
	mapfile -t bytes < <(run "${@:3}")
	((${#bytes[@]} == ${#addrs[@]})) && $2 "${bytes[@]}"
	status=$?
	((!status)) || show "$log"
	((node)) || result $status "$1: ${bytes[*]} bytes"
	((!node || !status)) || echo "# node $node: $1: ${bytes[*]} bytes"
	((!status)) || failed=1
}

are_even() { ((${*: -1} > 1000000 && ${*: -1} - $1 <= ${*: -1} / 20)); }
# Besides, the ranks find each other by one of the cards.
are_idle() { (($1 < 1000)); }

((node)) || echo 1..5
judge "allreduce, 1 rank a node" are_even 1 --sizes 4M
judge "allreduce, 4 ranks a node" are_even 4 --sizes 4M
judge "allgather, 1 rank a node" are_even 1 --op allgather --sizes 4M
judge "all-to-all, 2 ranks a node" are_even 2 --op alltoall --sizes 4M
judge "allreduce of 8 bytes: one card" are_idle 1 --sizes 8
((!failed))
