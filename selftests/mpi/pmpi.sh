#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# MPI programs under the preload libraries, with each MPI that is installed, on one node. SWC_TEST_SHORT=1:
# 2 ranks, and what does not depend on the MPI with one of them.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=launch.sh
. "$(dirname "$0")/launch.sh"

# Open MPI with threads uses an instruction that emulated processors of old do not have.
threads_run() { [[ $1 != openmpi ]] || grep -qw cx16 /proc/cpuinfo; } # threads_run MPI

# Communicators of swingcoll so far.
made() { "$ctl" stats | awk '$1 == "comms_created" { print $2 }'; }

is_silent() { ! grep -q swingcoll "$log"; }

declare -A ranks=([openmpi]="2 4" [mpich]="2")
# Functions without _c, and with it: those of MPI 4.
declare -A forms=([openmpi]=1 [mpich]=2)
declare -A large=([openmpi]="" [mpich]="Allreduce Bcast Allgather Allgatherv Reduce_scatter_block")
declare -A refused=([openmpi]='[0-9]+ fallback \((counts [12](, communicator 1)?)\)'
	[mpich]='[01] fallback( \(communicator 1\))?')
declare -A persistent=([openmpi]="type 1, " [mpich]="")
# All-to-alls that MPI carries out in the end.
declare -A left=([openmpi]=38 [mpich]=46)
# A call with arguments that MPI refuses, and one after it; MPICH of Debian does not look at them.
declare -A retried=([openmpi]=1 [mpich]=0)
declare -A igatherv=([openmpi]='2 fallback \(counts 1, communicator 1\)' [mpich]='1 fallback \(communicator 1\)')
# Least sizes where memory is short, and on which rank (all if not said), programs with large elements, measured ones, and Fortran's interfaces,
# of which the first two end in the same functions.
declare -A mins=([openmpi]="0 1" [mpich]="0 1") short_of=([openmpi]="" [mpich]="")
declare -A larges=([openmpi]="calls requests" [mpich]="calls requests")
declare -A measures=([openmpi]="calls vectors" [mpich]="calls vectors")
interfaces=(h mpi f08)
if [[ ${SWC_TEST_SHORT-} ]]; then
	ranks[openmpi]=2 mins=([openmpi]=0 [mpich]=1) interfaces=(h f08)
	larges=([openmpi]=calls [mpich]=requests) measures=([openmpi]=calls [mpich]=vectors)
	((${#mpis[@]} < 2)) || short_of=([openmpi]=first [mpich]=last)
fi
declare -A large_plan=([calls]=22 [requests]=15) measured_plan=([calls]=3 [vectors]=6)
plan=0
for mpi in "${mpis[@]}"; do
	for n in ${ranks[$mpi]}; do
		plan=$((plan + 21 + 2 + 31 + 1 + 15 + 1 + 10 + 2 + 1 + 10 + 1 + 2 + 1))
	done
	plan=$((plan + 9))
	for min in ${mins[$mpi]}; do
		plan=$((plan + $([[ ${short_of[$mpi]} ]] && echo 1 || echo 2) + 2))
	done
	for name in ${larges[$mpi]}; do
		plan=$((plan + large_plan[$name]))
	done
	for name in ${measures[$mpi]}; do
		plan=$((plan + measured_plan[$name]))
	done
	plan=$((plan + 2 * ${#interfaces[@]} + $([[ $mpi = mpich ]] && echo 5 || echo 0)))
	[[ ${SWC_TEST_SHORT-} ]] || plan=$((plan + $(threads_run "$mpi" && echo 35 || echo 1) + 22 + 22 + 4))
done
echo "1..$plan"

for mpi in "${mpis[@]}"; do
	calls=$built/$mpi/pmpi_calls requests=$built/$mpi/pmpi_requests vectors=$built/$mpi/pmpi_vectors
	inits=$built/$mpi/pmpi_persistent contexts=$built/$mpi/pmpi_contexts
	export SWINGCOLL_PMPI_STATS=1 SWINGCOLL_PMPI_MIN=0
	for n in ${ranks[$mpi]}; do
		quick=()
		[[ $n = 2 && ! ${SWC_TEST_SHORT-} ]] || quick=(quick)
		run "$mpi, $n ranks" 20 "$mpi" "$n" "$ctl" mpi "$calls" "${quick[@]}"
		prints "$mpi, $n ranks: what goes to swingcoll does" \
			'MPI_Allreduce: [1-9][0-9]* offloaded, 11 fallback \(user op 8, op 1, type 1, buffer 1\)' \
			'MPI_Bcast: [1-9][0-9]* offloaded, 0 fallback' \
			'MPI_Gather: [1-9][0-9]* offloaded, 0 fallback' \
			'MPI_Scatter: [1-9][0-9]* offloaded, 0 fallback' \
			'MPI_Allgatherv: 27 offloaded, 1 fallback \(counts 1\)' \
			'MPI_Scan: 8 offloaded, 1 fallback \(function 1\)' 'MPI_Exscan: 8 offloaded, 0 fallback' \
			'MPI_Reduce_scatter: [1-9][0-9]* offloaded, [0-9]* fallback \(counts [0-9]*\)'
		[[ $(grep -c '^swingcoll-pmpi' "$log") = $(grep -cE '^swingcoll-pmpi: MPI_[A-Z][a-z_]*: [0-9]+ offloaded' "$log") ]]
		result $? "$mpi, $n ranks: nothing else is printed"
		run "$mpi, $n ranks" 30 "$mpi" "$n" "$ctl" mpi "$vectors"
		prints "$mpi, $n ranks: calls whose counts not all ranks know go to swingcoll" \
			"MPI_Gatherv: $((24 * n * forms[$mpi] + 4)) offloaded, ${refused[$mpi]}" \
			"MPI_Scatterv: $((24 * n * forms[$mpi] + 4)) offloaded, ${refused[$mpi]}" \
			"MPI_Alltoallv: $((16 * forms[$mpi])) offloaded, [0-9]+ fallback \\(counts [0-9]+\\)" \
			"MPI_Alltoallw: $((16 * forms[$mpi])) offloaded, [0-9]+ fallback \\(counts $((8 * forms[$mpi]))\\)" \
			"MPI_Igatherv: $((24 * n * forms[$mpi] + 10 + 8 + 2 + retried[$mpi])) offloaded, ${igatherv[$mpi]}" \
			"MPI_Iscatterv: $((24 * n * forms[$mpi])) offloaded, 0 fallback" \
			"MPI_Ialltoallv: $((16 * forms[$mpi] + 50)) offloaded, ${left[$mpi]} fallback \(counts ${left[$mpi]}\)" \
			"MPI_Ialltoallw: $((16 * forms[$mpi])) offloaded, $((8 * forms[$mpi])) fallback \(counts [0-9]+\)" \
			"MPI_Gatherv_init: $((24 * n * forms[$mpi])) offloaded, 0 fallback" \
			"MPI_Scatterv_init: $((24 * n * forms[$mpi])) offloaded, 0 fallback" \
			"MPI_Alltoallv_init: $((24 * forms[$mpi])) offloaded, 0 fallback" \
			"MPI_Alltoallw_init: $((24 * forms[$mpi])) offloaded, 0 fallback"
		run "$mpi, $n ranks" 14 "$mpi" "$n" "$ctl" mpi "$requests"
		prints "$mpi, $n ranks: requests of swingcoll and of MPI are counted" \
			'MPI_Iallreduce: [1-9][0-9]* offloaded, 1 fallback \(trial 1\)' \
			'MPI_Iallgatherv: 20 offloaded, 0 fallback' 'MPI_Igather: 20 offloaded, 0 fallback' \
			'MPI_Iscatter: 20 offloaded, 0 fallback' 'MPI_Iexscan: 60 offloaded, 0 fallback' \
			'MPI_Iscan: 40 offloaded, 0 fallback'
		run "$mpi, $n ranks" 9 "$mpi" "$n" "$ctl" mpi "$built/$mpi/pmpi_effects"
		# What has been freed is not to be used.
		run "$mpi, $n ranks, freed requests" 1 "$mpi" "$n" env MALLOC_PERTURB_=165 "$ctl" mpi "$requests" end
		prints "$mpi, $n ranks, freed requests: they are offloaded" 'MPI_Ibarrier: 16 offloaded, 0 fallback'
		run "$mpi, $n ranks" 9 "$mpi" "$n" "$ctl" mpi "$inits"
		prints "$mpi, $n ranks: persistent requests of swingcoll and of MPI are counted" \
			"MPI_Allreduce_init: [1-9][0-9]* offloaded, [0-9]+ fallback \(${persistent[$mpi]}persistent [0-9]+\)"
		run "$mpi, $n ranks, while MPI ends" 1 "$mpi" "$n" "$ctl" mpi "$inits" end
		prints "$mpi, $n ranks, while MPI ends: calls go to swingcoll" \
			'MPI_Allreduce: 4 offloaded, 0 fallback' 'MPI_Iallreduce: 3 offloaded, 0 fallback' \
			'MPI_Allreduce_init: 1 offloaded, 0 fallback'
	done
	run "$mpi, a tool in one of two programs" 1 "$mpi" 1 "$ctl" mpi "$built/$mpi/pmpi_tool" barriers \
		: -n 1 "$ctl" mpi "$built/$mpi/pmpi_effects" barriers
	run "$mpi, a tool" 2 "$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_tool"
	prints "$mpi, a tool: persistent requests, which it starts, are left to MPI" \
		'MPI_Iallreduce: 1 offloaded, 0 fallback' 'MPI_Allreduce_init: 0 offloaded, 1 fallback \(off 1\)'
	for min in ${mins[$mpi]}; do
		export SWINGCOLL_PMPI_MIN=$min
		# Words, or none.
		# shellcheck disable=SC2086
		run "$mpi, memory is short, least size $min" "$([[ ${short_of[$mpi]} ]] && echo 1 || echo 2)" \
			"$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_memory" ${short_of[$mpi]}
		prints "$mpi, memory is short, least size $min: all ranks turn to MPI" \
			'MPI_Allreduce_init: [1-9][0-9]* offloaded, [1-9][0-9]* fallback \(communicator [0-9]+, persistent [0-9]+\)'
	done
	export SWINGCOLL_PMPI_MIN=0
	# Elements of more than 8 bytes go the way of those of more than 1 GiB.
	preload="$built/../lib/libswingcoll_pmpi_${mpi}_large.so"
	if [[ ${larges[$mpi]} = *calls* ]]; then
		run "$mpi, large elements" 20 "$mpi" 2 env LD_PRELOAD="$preload" "$calls" quick
		prints "$mpi, large elements: they are offloaded" 'MPI_Bcast: [1-9][0-9]* offloaded, 0 fallback' \
			'MPI_Gather: [1-9][0-9]* offloaded, 0 fallback'
	fi
	[[ ${larges[$mpi]} != *requests* ]] ||
		run "$mpi, large elements" 14 "$mpi" 2 env LD_PRELOAD="$preload" "$requests"
	for form in "${interfaces[@]}"; do
		if [[ ! -x $built/$mpi/pmpi_fortran_$form ]]; then
			for name in runs "is offloaded"; do
				skip "$mpi, Fortran, $form: $name" "no gfortran, or no mpif90.$mpi"
			done
			continue
		fi
		"$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_fortran_$form" </dev/null >"$log" 2>&1
		(($? == 0 && $(grep -c '^ok ' "$log") == 9)) && ! grep -q '^not ok' "$log"
		status=$?
		((!status)) || show "$log"
		result $status "$mpi, Fortran, $form: runs"
		prints "$mpi, Fortran, $form: is offloaded" 'MPI_Allreduce: (2|11) offloaded, 0 fallback' \
			'MPI_Reduce: 1 offloaded, 0 fallback' 'MPI_Bcast: 1 offloaded, 0 fallback' \
			'MPI_Allgather: 2 offloaded, 0 fallback' 'MPI_Allgatherv: 1 offloaded, 0 fallback' \
			'MPI_Alltoall: 1 offloaded, 0 fallback' 'MPI_Gather: 1 offloaded, 0 fallback' \
			'MPI_Scatter: 1 offloaded, 0 fallback' 'MPI_Reduce_scatter_block: 1 offloaded, 0 fallback' \
			'MPI_Barrier: [24] offloaded, 0 fallback' 'MPI_Iallreduce: 1 offloaded, 0 fallback' \
			'MPI_Igather: 1 offloaded, 0 fallback' 'MPI_Iexscan: 1 offloaded, 0 fallback' \
			'MPI_Iscan: 1 offloaded, 0 fallback' 'MPI_Igatherv: 1 offloaded, 0 fallback' \
			'MPI_Iscatterv: 1 offloaded, 0 fallback' 'MPI_Ialltoallv: 1 offloaded, 0 fallback' \
			'MPI_Scan: 1 offloaded, 0 fallback' \
			'MPI_Exscan: 1 offloaded, 0 fallback' 'MPI_Gatherv: 1 offloaded, 0 fallback' \
			'MPI_Scatterv: 1 offloaded, 0 fallback' 'MPI_Alltoallv: 1 offloaded, 0 fallback' \
			'MPI_Alltoallw: 1 offloaded, 0 fallback' 'MPI_Allreduce_init: 1 offloaded, 0 fallback' \
			'MPI_Gather_init: 1 offloaded, 0 fallback' 'MPI_Barrier_init: 1 offloaded, 0 fallback' \
			'MPI_Ialltoallw: 1 offloaded, 0 fallback' 'MPI_Gatherv_init: 1 offloaded, 0 fallback' \
			'MPI_Scatterv_init: 1 offloaded, 0 fallback' 'MPI_Alltoallv_init: 1 offloaded, 0 fallback' \
			'MPI_Alltoallw_init: 1 offloaded, 0 fallback'
	done
	if [[ $mpi = mpich ]]; then
		run "$mpi, all communicators, without the library" 1 "$mpi" 2 "$contexts"
		made=$(sed -n 's/^# made \([0-9]*\) comm.*/\1/p' "$log") end=$(grep -o 'then class .*' "$log")
		run "$mpi, all communicators" 1 "$mpi" 2 "$ctl" mpi "$contexts"
		less=$((made - $(sed -n 's/^# made \([0-9]*\) comm.*/\1/p' "$log")))
		[[ $(grep -o 'then class .*' "$log") = "$end" ]] && ((less >= 0 && less <= 2))
		result $? "$mpi: the library takes $less communicators of $made, and errors are the same"
	fi
	unset SWINGCOLL_PMPI_MIN
	if [[ ${measures[$mpi]} = *calls* ]]; then
		run "$mpi, measured" 1 "$mpi" 2 "$ctl" mpi "$calls" trials
		prints "$mpi, measured: equal and uneven shares are measured apart from MPI_Allgather" \
			'MPI_Allgatherv: [1-9][0-9]* offloaded, [0-9]+ fallback \((small [0-9]+, )?trial 16\)'
	fi
	before=$(made)
	run "$mpi, measured" 1 "$mpi" 2 "$ctl" mpi "$built/$mpi/pmpi_effects" lives
	before=$(($(made) - before))
	((before <= 8))
	result $? "$mpi, measured: of 40 communicators that are soon freed, $before got one of swingcoll"
	# One trial for all sizes, and another one for smaller ones if swingcoll was the faster one until then.
	if [[ ${measures[$mpi]} = *vectors* ]]; then
		run "$mpi, measured" 4 "$mpi" 2 "$ctl" mpi "$vectors" trials
		measured=('MPI_Gatherv: [1-9][0-9]* offloaded, [0-9]+ fallback \((small [0-9]+, )?trial (16|24|32)\)'
			'MPI_Igatherv: [0-9]+ offloaded, [1-9][0-9]* fallback \((small [0-9]+, )?trial [0-9]+\)')
		for name in ${large[$mpi]}; do
			measured+=("MPI_$name: (8|12) offloaded, (8|12) fallback \\((small 4, )?trial 8\\)")
		done
		prints "$mpi, measured: MPI_Gatherv, and functions with counts of MPI_Count" "${measured[@]}"
	fi
	unset SWINGCOLL_PMPI_STATS
	[[ ! ${SWC_TEST_SHORT-} ]] || continue
	if threads_run "$mpi"; then
		run "$mpi, threads" 14 "$mpi" 2 env SWINGCOLL_PMPI_MIN=0 "$ctl" mpi "$requests" threads
		run "$mpi, threads" 9 "$mpi" 2 env SWINGCOLL_PMPI_MIN=0 "$ctl" mpi "$inits" threads
		if [[ -x $built/$mpi/pmpi_fortran_f08 ]]; then
			run "$mpi, threads, Fortran" 9 "$mpi" 2 env SWINGCOLL_PMPI_MIN=0 "$ctl" mpi \
				"$built/$mpi/pmpi_fortran_f08" threads
		else
			for name in {1..10}; do
				skip "$mpi, threads, Fortran, $name" "no gfortran, or no mpif90.$mpi"
			done
		fi
	else
		skip "$mpi, threads" "no cmpxchg16b: tools/vm/run --cx16"
	fi
	run "$mpi, measured" 20 "$mpi" 2 "$ctl" mpi "$calls" quick
	is_silent
	result $? "$mpi, measured: nothing is printed"
	run "$mpi, off" 20 "$mpi" 2 env SWINGCOLL_PMPI=off SWINGCOLL_PMPI_STATS=1 "$ctl" mpi "$calls" quick
	prints "$mpi, off: everything is left to MPI" 'MPI_Bcast: 0 offloaded, [0-9]+ fallback \(off [0-9]+\)'
	SWINGCOLL_PMPI=nothing $mpi 2 "$ctl" mpi "$calls" quick </dev/null >"$log" 2>&1
	result $? "$mpi: a wrong name does no harm"
	[[ $(grep -c swingcoll "$log") = 1 ]] && grep -q "'nothing' is no collective" "$log"
	result $? "$mpi: a wrong name is told once"
	$mpi 1 "$ctl" mpi "$calls" quick : -n 1 env SWINGCOLL_PMPI_MIN=1x "$ctl" mpi "$calls" quick </dev/null >"$log" 2>&1
	result $? "$mpi: a wrong least size on one rank does no harm"
	[[ $(grep -c swingcoll "$log") = 1 ]] && grep -q "rank 1 has a wrong" "$log"
	result $? "$mpi: a wrong least size on one rank is told once"
done
((!failed))
