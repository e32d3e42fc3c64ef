#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# MPI programs under the preload libraries, with each MPI that is installed, on one node.
set -u
built=$(realpath "${OUTPUT:-.}")

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
ctl=$(command -v swingctl) || skip_all "no swingctl: make tools"

mpis=()
for mpi in openmpi mpich; do
	[[ ! -x $built/$mpi/pmpi_calls ]] || mpis+=("$mpi")
done
((${#mpis[@]})) || skip_all "no pmpi_calls for any MPI: tools/setup mpi, make selftests"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export HWLOC_HIDE_ERRORS=1

openmpi() { # openmpi RANKS COMMAND...
	timeout -k 5 100 mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca btl vader,self -n "$@"
}

mpich() { # mpich RANKS COMMAND...
	timeout -k 5 100 mpiexec.mpich -n "$@"
}

# The program's results become this test's; one more says how it ended.
run() { # run NAME TESTS COMMAND...
	local name=$1 tests=$2 status line began=$SECONDS
	shift 2
	"$@" </dev/null >"$log" 2>&1
	status=$?
	while read -r line; do
		number=$((number + 1))
		[[ $line = ok* ]] || failed=$((failed + 1))
		if [[ $line =~ ^(ok|not ok)\ [0-9]+\ (.*) ]]; then
			echo "${BASH_REMATCH[1]} $number $name: ${BASH_REMATCH[2]}"
		fi
	done < <(grep -E '^(not )?ok ' "$log")
	((!status && $(grep -cE '^(not )?ok ' "$log") == tests))
	status=$?
	((!status)) || show <(grep -vE '^(not )?ok ' "$log")
	result $status "$name: all $tests tests ran, $((SECONDS - began)) s"
}

prints() { # prints NAME PATTERN...: lines of the last run, without what its results say
	local name=$1 pattern status=0
	shift
	for pattern in "$@"; do
		grep -qE -- "^swingcoll-pmpi: $pattern\$" "$log" || status=1
	done
	((!status)) || show "$log"
	result $status "$name"
}

is_silent() { ! grep -q swingcoll "$log"; }

declare -A ranks=([openmpi]="2 4" [mpich]="2")
[[ ! ${SWC_TEST_SHORT-} ]] || ranks[openmpi]=2
plan=0
for mpi in "${mpis[@]}"; do
	for n in ${ranks[$mpi]}; do
		plan=$((plan + 16 + 2 + 12 + 1))
	done
	[[ ${SWC_TEST_SHORT-} ]] || plan=$((plan + 17 + 16 + 3))
done
echo "1..$plan"

for mpi in "${mpis[@]}"; do
	calls=$built/$mpi/pmpi_calls requests=$built/$mpi/pmpi_requests
	export SWINGCOLL_PMPI_STATS=1 SWINGCOLL_PMPI_MIN=0
	for n in ${ranks[$mpi]}; do
		quick=()
		[[ $n = 2 && ! ${SWC_TEST_SHORT-} ]] || quick=(quick)
		run "$mpi, $n ranks" 15 "$mpi" "$n" "$ctl" mpi "$calls" "${quick[@]}"
		prints "$mpi, $n ranks: what goes to swingcoll does" \
			'MPI_Allreduce: [1-9][0-9]* offloaded, 11 fallback \(user op 8, op 1, type 1, buffer 1\)' \
			'MPI_Bcast: [1-9][0-9]* offloaded, 0 fallback' \
			'MPI_Gather: [1-9][0-9]* offloaded, 0 fallback' \
			'MPI_Scatter: [1-9][0-9]* offloaded, 0 fallback' \
			'MPI_Allgatherv: 1 offloaded, 1 fallback \(counts 1\)' \
			'MPI_Reduce_scatter: [1-9][0-9]* offloaded, [0-9]* fallback \(counts [0-9]*\)'
		[[ $(grep -c '^swingcoll-pmpi' "$log") = $(grep -cE '^swingcoll-pmpi: MPI_[A-Z][a-z_]*: [0-9]+ offloaded' "$log") ]]
		result $? "$mpi, $n ranks: nothing else is printed"
		run "$mpi, $n ranks" 11 "$mpi" "$n" "$ctl" mpi "$requests"
		prints "$mpi, $n ranks: persistent requests are counted" \
			'MPI_Allreduce_init: 0 offloaded, 1 fallback \(function 1\)' \
			'MPI_Bcast_init: 0 offloaded, 1 fallback \(function 1\)'
	done
	unset SWINGCOLL_PMPI_STATS SWINGCOLL_PMPI_MIN
	[[ ! ${SWC_TEST_SHORT-} ]] || continue
	run "$mpi, measured" 15 "$mpi" 2 "$ctl" mpi "$calls" quick
	is_silent
	result $? "$mpi, measured: nothing is printed"
	run "$mpi, off" 15 "$mpi" 2 env SWINGCOLL_PMPI=off SWINGCOLL_PMPI_STATS=1 "$ctl" mpi "$calls" quick
	prints "$mpi, off: everything is left to MPI" 'MPI_Bcast: 0 offloaded, [0-9]+ fallback \(off [0-9]+\)'
	SWINGCOLL_PMPI=nothing $mpi 2 "$ctl" mpi "$calls" quick </dev/null >"$log" 2>&1
	result $? "$mpi: a wrong name does no harm"
	[[ $(grep -c swingcoll "$log") = 1 ]] && grep -q "'nothing' is no collective" "$log"
	result $? "$mpi: a wrong name is told once"
done
((!failed))
