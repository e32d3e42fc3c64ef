#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# MPI programs under the preload libraries where something is missing: all ranks turn to MPI, or one line says what is
# wrong, and nothing hangs.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=launch.sh
. "$(dirname "$0")/launch.sh"
((!EUID)) || skip_all needs root

disabled=/proc/sys/kernel/io_uring_disabled
comms=/sys/module/swingcoll/parameters/user_comms
user_comms=$(cat $comms)
[[ ! -e $disabled ]] || io_uring=$(cat $disabled)
said=$(mktemp) disk=$(mktemp -d)
trap 'umount "$disk" 2>/dev/null; rm -rf "$log" "$said" "$disk" "$disk.image"; [[ ! -e /dev/swingcoll.away ]] || mv /dev/swingcoll.away /dev/swingcoll
	[[ ! -e $disabled ]] || echo "$io_uring" >$disabled; echo "$user_comms" >$comms' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export SWINGCOLL_PMPI_STATS=1 SWINGCOLL_PMPI_MIN=0

# As without CAP_IPC_LOCK, and with so few KiB of locked memory.
limited() { # limited KIB COMMAND...
	printf '%s\n' bash -c "ulimit -l $1; shift; exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \"\$@\"" - "$@"
}

# Three ranks, of which the last one dies. MPICH's launcher then tells the others by SIGUSR1, and may close their pipes.
dies() { # dies NAME FUNCTION PROGRAM ARGUMENT...
	local name=$1 function=$2 program=$built/$mpi/$3
	shift 3
	if [[ ! -x $program ]]; then
		skip "$name" "no gfortran, or no mpif90.$mpi"
		return
	fi
	: >"$said"
	"$mpi" 3 "${survive[@]}" bash -c "trap '' USR1; exec >>$said 2>&1 \"\$@\"" - "$ctl" mpi "$program" "$@" </dev/null >"$log" 2>&1
	(($? != 124))
	status=$?
	cat "$said" >>"$log"
	contains "$name" $status "$log" '^survivor 0: error$' '^survivor 1: error$' \
		"^swingcoll-pmpi: rank [01]: $function: .*rank 2"
}

# What Allreduce_init does with so many communicators: MPI_COMM_WORLD has one of them, and each request, too.
declare -A few_comms=([1]='0 offloaded, [0-9]+ fallback \(communicator [0-9]+, persistent 1\)'
	[3]='1 offloaded, [0-9]+ fallback \(communicator [0-9]+\)'
	[12]='[1-9][0-9]* offloaded, [0-9]+ fallback \(communicator [0-9]+, persistent [1-9][0-9]*\)')

echo "1..$((${#mpis[@]} * 68))"
for mpi in "${mpis[@]}"; do
	calls=$built/$mpi/pmpi_calls
	other=$([[ $mpi = openmpi ]] && echo mpich || echo openmpi)

	mv /dev/swingcoll /dev/swingcoll.away
	run "$mpi, no device" 19 "$mpi" 2 "$ctl" mpi "$calls" quick
	mv /dev/swingcoll.away /dev/swingcoll
	prints "$mpi, no device: everything is left to MPI" 'MPI_Bcast: 0 offloaded, [0-9]+ fallback \(no device [0-9]+\)'

	# Both ranks decide by what the one may lock.
	mapfile -t few < <(limited 256 "$ctl" mpi "$calls" quick)
	run "$mpi, little locked memory on one rank" 19 "$mpi" 1 "$ctl" mpi "$calls" quick : -n 1 "${few[@]}"
	prints "$mpi, little locked memory on one rank: large buffers, or everything, is left to MPI" \
		'MPI_Bcast: [0-9]+ offloaded, [1-9][0-9]* fallback \((buffer|communicator) [0-9]+\)'

	mapfile -t few < <(limited 8192 "$ctl" mpi "$built/$mpi/pmpi_refused" requests)
	run "$mpi, 8 MiB of locked memory, requests" 3 "$mpi" 2 "${few[@]}"
	prints "$mpi, 8 MiB of locked memory: requests are left to MPI" \
		'MPI_Iallreduce: 0 offloaded, 8 fallback \(buffer 8\)' 'MPI_Ibcast: 0 offloaded, 1 fallback \(buffer 1\)' \
		'MPI_Bcast_init: 0 offloaded, 8 fallback \(buffer 8\)'
	if mountpoint -q "$disk" || make_disk "$disk"; then
		run "$mpi, requests in a mapped file" 3 "$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_refused" requests "$disk"
		prints "$mpi, requests in a mapped file are offloaded" \
			'MPI_Iallreduce: 8 offloaded, 0 fallback' 'MPI_Ibcast: 1 offloaded, 0 fallback' \
			'MPI_Igatherv: 1 offloaded, 0 fallback' 'MPI_Bcast_init: 8 offloaded, 0 fallback'
	else
		for name in 1 2 3 4 5; do
			skip "$mpi, requests in a mapped file, $name" "no file system on a disk can be made"
		done
	fi

	if [[ -e $disabled ]]; then
		echo 2 >$disabled
		"$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_requests" </dev/null >"$log" 2>&1
		contains "$mpi, io_uring disabled" $? "$log" '^ok 14 ' '^swingcoll-pmpi: MPI_Iallreduce: [1-9]'
		echo "$io_uring" >$disabled
	else
		skip "$mpi, io_uring disabled" "this kernel has no io_uring_disabled"
	fi

	"$mpi" 1 "$ctl" mpi "$calls" quick : -n 1 "$calls" quick </dev/null >"$log" 2>&1
	contains "$mpi, a rank without the library" $? "$log" '^ok 19 ' \
		'^swingcoll-pmpi: rank 1 runs without this library: nothing'

	# It gets no message of the library's.
	"$mpi" 1 "$built/$mpi/pmpi_any" : -n 2 "$ctl" mpi "$built/$mpi/pmpi_any" </dev/null >"$log" 2>&1
	contains "$mpi, rank 0 without the library" $? "$log" '^ok 1 ' \
		'^swingcoll-pmpi: rank 0 runs without this library: nothing'

	preload=$(dirname "$("$ctl" doctor "$calls" | grep -oE '/[^ ]*/libswingcoll_pmpi_[a-z]*.so' | head -n 1)")
	if [[ -e $preload/libswingcoll_pmpi_$other.so ]]; then
		"$mpi" 2 env LD_PRELOAD="$preload/libswingcoll_pmpi_$other.so" "$calls" quick </dev/null >"$log" 2>&1
		(($? != 0 && $? != 124))
		contains "$mpi, the library of $other" $? "$log" \
			'^swingcoll-pmpi: pmpi_calls: this is the library for .*, too: start '
	else
		skip "$mpi, the library of $other" "there is none"
	fi

	for n in 1 3 12; do
		echo $n >$comms
		"$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_persistent" own </dev/null >"$log" 2>&1
		contains "$mpi, $n communicators: persistent requests" $? "$log" '^ok 9 ' \
			"^swingcoll-pmpi: MPI_Allreduce_init: ${few_comms[$n]}"
	done
	echo 1 >$comms
	"$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_requests" own </dev/null >"$log" 2>&1
	contains "$mpi, 1 communicator" $? "$log" '^ok 14 ' '^swingcoll-pmpi: MPI_Allreduce: .* fallback \(.*communicator [1-9]'
	echo "$user_comms" >$comms

	survive=()
	[[ $mpi = openmpi ]] || survive=(-disable-auto-cleanup)
	[[ $mpi = mpich ]] || survive=(--enable-recovery)
	dies "$mpi, a rank dies in a collective" MPI_Allreduce pmpi_death
	for way in wait waitany waitall testsome; do
		dies "$mpi, a rank dies in a persistent collective, $way" MPI_Allreduce_init pmpi_death $way
	done
	for form in h mpi f08; do
		dies "$mpi, the same in Fortran, $form" MPI_Allreduce_init pmpi_death_fortran_$form
	done
done
((!failed))
