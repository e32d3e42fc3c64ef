#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ranks started by MPI launchers, and by a shell loop. Runs on every node of a cluster at once: node 0 prints TAP and
# starts commands on the others. SWC_TEST_SHORT=1: 2 ranks per node instead of 4, and an unchanged program
# and each way to refuse memory with one MPI.
set -u
node=${SWINGCOLL_NODE:-0} nodes=${SWINGCOLL_NNODES:-0} server=''
remote=$(realpath ../tools/vm/remote)
built=$(realpath "${OUTPUT:-.}")

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
((nodes)) || skip_all "needs a cluster: tools/vm/run --nodes 2"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
[[ -x $remote ]] || skip_all "no $remote"
grep -qw swc.guest /proc/cmdline || skip_all "needs guests of tools/vm/run, where anyone may start commands"
perf=$(command -v swingperf) || skip_all "no swingperf: make tools"
ctl=$(command -v swingctl) || skip_all "no swingctl: make tools"

# The variables of this node are not for ranks that launchers start here.
unset SWINGCOLL_NODE SWINGCOLL_NNODES SWINGCOLL_ADDRS SWINGCOLL_TOPO SWINGCOLL_ROOT
"$remote" --serve >/dev/null 2>&1 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
if ((node)); then
	wait $server
	exit
fi

hosts=()
for ((i = 0; i < nodes; i++)); do
	hosts+=("node$i")
done
log=$(mktemp) disk=$(mktemp -d)
finish() {
	timeout 30 "$remote" --quit "${hosts[@]:1}"
	kill $server 2>/dev/null
	wait $server
	umount "$disk" 2>/dev/null
	rm -rf "$log" "$disk" "$disk.image"
}
trap finish EXIT

echo 1..15
for host in "${hosts[@]}"; do
	wait_for "$remote" "$host" true || { echo "Bail out! no server on $host" && exit 1; }
done
limited=(timeout -k 5 300)
sizes=(--sizes "8,4096,100000" --iters 2 --repeats 1 --warmup 0)
per_node=4
[[ ! ${SWC_TEST_SHORT-} ]] || per_node=2
root=$(hostname):29400

# So many ranks on all nodes have run, and all elements are right.
is_right() {
	grep -q ", $all ranks of a launcher," "$log" && grep -q "^# nodes: $nodes," "$log" &&
		grep -q '^# wrong elements: 0 OK' "$log"
}

# An unchanged program has run all its tests, and calls of these functions went to swingcoll.
is_offloaded() { # is_offloaded FUNCTION...
	local function
	for function; do
		grep -qE "^swingcoll-pmpi: $function: [1-9][0-9]* offloaded" "$log" || return
	done
	[[ $(sed -nE 's/^1\.\.//p' "$log") = $(grep -c '^ok ' "$log") ]] && ! grep -q '^not ok' "$log"
}

are_all_good() { grep -q "^all good: $all ranks" "$log"; }

has_turned() { # has_turned COUNT: calls of MPI_Reduce for want of memory
	[[ $(sed -nE 's/^1\.\.//p' "$log") = $(grep -c '^ok ' "$log") ]] && ! grep -q '^not ok' "$log" &&
		{ ((!$1)) || grep -qE "^swingcoll-pmpi: MPI_Reduce: 0 offloaded, $1 fallback \(buffer $1\)" "$log"; }
}

# The rank that is behind says why, and the program ends.
fails() { ! "$@" && ! grep -q '^ok' "$log" && grep -qE '^swingcoll-pmpi: rank [0-9]*: MPI_Bcast: .*RLIMIT_MEMLOCK' "$log"; }

# In the short form, what the library does alike under both is left to the other one.
is_left() { # is_left MPI
	[[ ${SWC_TEST_SHORT-} && $mpi = "$1" ]] && command -v mpiexec.openmpi mpiexec.mpich >/dev/null
}

try() { # try NAME CHECK COMMAND...
	local began=$SECONDS status
	"${@:3}" </dev/null >"$log" 2>&1 && $2
	status=$?
	((!status)) || show "$log"
	result $status "$1: $all ranks, $((SECONDS - began)) s"
}

spread() { # spread RANKS
	all=$1 hosts_slots=$(printf "%s:$(($1 / nodes))," "${hosts[@]}")
}
spread $((per_node * nodes))
export HWLOC_HIDE_ERRORS=1
openmpi() { # openmpi PROGRAM...
	"${limited[@]}" mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent "$remote" --host "${hosts_slots%,}" -n "$all" \
		--mca oob_tcp_if_include nic0 --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include nic0 "$@"
}

mpich() { # mpich PROGRAM...
	"${limited[@]}" mpiexec.mpich -launcher rsh -launcher-exec "$remote" -hosts "${hosts_slots%,}" -n "$all" \
		-iface nic0 -genv UCX_NET_DEVICES nic0 -genv UCX_TLS tcp,self "$@"
}

# Likewise; the alarm that the program has set may end it in MPI_Finalize, and MPICH the other ranks then, by a hangup,
# or its server fails when it writes to a rank that has ended.
mpich_or_alarm() {
	mpich "$@" && return
	grep -qE 'EXIT (STRING: (Alarm clock|Hangup)|CODE: 14$)|HYDU_sock_write .*\(Broken pipe\)' "$log" &&
		echo "# MPICH: no return from MPI_Finalize" >&3
}

loop() {
	local rank status=0 pids=()
	for ((rank = 0; rank < all; rank++)); do
		"${limited[@]}" "$remote" "node$((rank * nodes / all))" SWINGCOLL_ROOT="$root" \
			SWINGCOLL_RANK=$rank SWINGCOLL_NRANKS="$all" "$perf" "${sizes[@]}" &
		pids+=($!)
	done
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}" || status=1
	done
	return $status
}
exec 3>&1
try "a shell loop" is_right loop
for mpi in openmpi mpich; do
	if ! command -v mpiexec.$mpi >/dev/null; then
		skip "$mpi: swingperf" "no mpiexec.$mpi: tools/setup mpi"
		skip "$mpi: communicators of MPI" "no mpiexec.$mpi: tools/setup mpi"
		skip "$mpi: an unchanged program" "no mpiexec.$mpi: tools/setup mpi"
		skip "$mpi: an unchanged program, counts" "no mpiexec.$mpi: tools/setup mpi"
		for name in file limit behind; do
			skip "$mpi: refused memory, $name" "no mpiexec.$mpi: tools/setup mpi"
		done
		continue
	fi
	[[ $mpi = openmpi ]] && run=openmpi || run=mpich_or_alarm
	# Of MPICH's ranks, few return from MPI_Finalize: they need not poll there for long.
	if [[ $mpi = mpich ]]; then
		export FINALIZE_SECONDS=10
		[[ ! ${SWC_TEST_SHORT-} ]] || FINALIZE_SECONDS=3
	fi
	# Open MPI offers PMIx.
	[[ $mpi = openmpi ]] || export SWINGCOLL_ROOT=$root
	try "$mpi: swingperf" is_right $mpi "$perf" "${sizes[@]}"
	unset SWINGCOLL_ROOT
	if [[ ! -x $built/$mpi/mpi_ranks ]]; then
		skip "$mpi: communicators of MPI" "no mpi_ranks for it: tools/setup mpi, make selftests"
	else
		try "$mpi: communicators of MPI" are_all_good "$run" "$built/$mpi/mpi_ranks"
	fi
	if [[ ! -x $built/$mpi/pmpi_calls ]]; then
		skip "$mpi: an unchanged program" "no pmpi_calls for it: tools/setup mpi, make selftests"
		skip "$mpi: an unchanged program, counts" "no pmpi_vectors for it: tools/setup mpi, make selftests"
		for name in file limit behind; do
			skip "$mpi: refused memory, $name" "no pmpi_refused for it: tools/setup mpi, make selftests"
		done
	else
		spread $((2 * nodes)) # MPI takes long with more ranks than processors
		preloaded=(env SWINGCOLL_PMPI_MIN=0 SWINGCOLL_PMPI_STATS=1 "$ctl" mpi)
		if is_left openmpi; then
			skip "$mpi: an unchanged program" "in the short form with mpich"
		else
			try "$mpi: an unchanged program" "is_offloaded MPI_Allreduce MPI_Allgatherv" "$run" \
				"${preloaded[@]}" "$built/$mpi/pmpi_calls" quick
		fi
		spread "$nodes"
		if [[ ${SWC_TEST_SHORT-} ]]; then
			skip "$mpi: an unchanged program, counts" "takes a minute or two"
		else
			try "$mpi: an unchanged program, counts" \
				"is_offloaded MPI_Gatherv MPI_Scatterv MPI_Alltoallv MPI_Igatherv" \
				"$run" "${preloaded[@]}" "$built/$mpi/pmpi_vectors"
		fi
		refused=("$run" "${preloaded[@]}" "$built/$mpi/pmpi_refused")
		if is_left openmpi; then
			skip "$mpi: refused memory, file" "in the short form with mpich"
		elif mountpoint -q "$disk" || make_disk "$disk"; then
			try "$mpi: refused memory, file" "has_turned 0" "${refused[@]}" "$disk"
		else
			skip "$mpi: refused memory, file" "no file system on a disk can be made"
		fi
		if is_left mpich; then
			skip "$mpi: refused memory, limit" "in the short form with openmpi"
		else
			try "$mpi: refused memory, limit" "has_turned 1" "${refused[@]}" limit
		fi
		if [[ $mpi = openmpi ]]; then
			try "$mpi: refused memory, behind" true fails "${refused[@]}" behind "$ctl"
		else
			skip "$mpi: refused memory, behind" "MPICH's rank 0 goes on after the other has called MPI_Abort"
		fi
		spread $((per_node * nodes))
	fi
done
((!failed))
