# SPDX-License-Identifier: GPL-2.0-only
# MPI programs of a test, on one node, with each MPI that is installed; to be sourced after tap.sh.
# shellcheck shell=bash
built=$(realpath "${OUTPUT:-.}")
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
# shellcheck disable=SC2034 # of those that source this
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

# All lines are one text, and no process is started for a pattern: emulated machines are slow at that.
prints() { # prints NAME PATTERN...: lines of the last run, without what its results say
	local name=$1 pattern status=0 text end=$'\n'
	shift
	text=$end$(<"$log")$end
	for pattern in "$@"; do
		pattern="${end}swingcoll-pmpi: ($pattern)$end"
		[[ $text =~ $pattern ]] || status=1
	done
	((!status)) || show "$log"
	result $status "$name"
}
