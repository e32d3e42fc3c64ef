#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Tests that MPICH ships, with MPICH and Open MPI and everything offloaded that can be: what passes without the preload
# library must pass with it. SUITE_FOLDERS names folders of the suite (coll, the tests of collectives), SUITE_RANKS is the
# most ranks of a test (4), SUITE_SECONDS how long one may take (60), SUITE_MPIS names the MPIs, SUITE_TESTS tests of the
# suite. make mpi-suite compiles them, and runs this.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
ctl=$(command -v swingctl) || skip_all "no swingctl: make tools"
suite=$(realpath "$(dirname "$0")/../../build/mpi-suite")
export HWLOC_HIDE_ERRORS=1

openmpi() { # openmpi RANKS COMMAND...
	mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca btl vader,self -n "$@"
}

mpich() { # mpich RANKS COMMAND...
	mpiexec.mpich -n "$@"
}
export -f openmpi mpich

# Each program once for each set of arguments, with as many ranks as it is given, up to the limit. Not those with special
# results or settings, and not the one that needs gigabytes.
tests_of() { # tests_of FOLDER: lines "GIGABYTES RANKS PROGRAM ARGUMENT...", as many gigabytes as all ranks need
	awk -v most="${SUITE_RANKS:-4}" -v only=" ${SUITE_TESTS-} " '
		/^#/ || NF < 2 || $1 == "coll_large" || (only != "  " && !index(only, " " $1 " ")) { next }
		{
			ranks = $2 < most ? $2 : most
			line = ranks " " $1
			gigabytes = 0
			for (i = 3; i <= NF; i++) {
				if ($i ~ /^arg=/)
					line = line " " substr($i, 5)
				else if ($i ~ /^mem=/)
					gigabytes = int(substr($i, 5) * ranks / $2 + 0.5)
				else if ($i !~ /^(timeLimit|strict|mpiversion)=/)
					next
			}
			if (!seen[line]++)
				print gigabytes " " line
		}' "$1/testlist"
}

# The suite says it itself; exit statuses are not all what they should be. A slow machine is no failure of an MPI, and
# is not to be taken for one: MPICH's ranks poll, and tests with more ranks than processors may take minutes.
passes() { # passes MPI RANKS COMMAND...: output in $log, what went wrong in $why
	local limit=${SUITE_SECONDS:-60}
	why=fails
	timeout -k 5 "$limit" bash -c '"$@"' - "$@" </dev/null >"$log" 2>&1
	case $? in
	0) grep -q '^ *No Errors' "$log" ;;
	124 | 137)
		why="has not ended after $limit s"
		false
		;;
	*) false ;;
	esac
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
lines=() # "MPI FOLDER GIGABYTES RANKS PROGRAM ARGUMENT..."
for mpi in ${SUITE_MPIS-openmpi mpich}; do
	for folder in ${SUITE_FOLDERS:-coll}; do
		[[ -e $suite/$mpi/$folder/done ]] || continue
		while read -r line; do
			read -r _ _ program _ <<<"$line"
			[[ ! -x $suite/$mpi/$folder/$program ]] || lines+=("$mpi $folder $line")
		done < <(tests_of "$suite/$mpi/$folder")
	done
done
((${#lines[@]})) || skip_all "no tests of MPICH: make mpi-suite"

read -r _ memory _ </proc/meminfo # MemTotal, in KiB
echo "1..${#lines[@]}"
offloaded=0 fallback=0
for line in "${lines[@]}"; do
	read -r mpi folder gigabytes ranks program arguments <<<"$line"
	cd "$suite/$mpi/$folder" || exit 1
	read -ra arguments <<<"$arguments"
	name="$mpi, $ranks ranks: $folder/$program ${arguments[*]}"
	# Its result depends on what was in the memory before, with the library and without.
	if [[ "$mpi $folder/$program" = "openmpi pt2pt/rqstatus" ]]; then
		skip "${name% }" "reads MPI_ERROR of an empty status, which Open MPI leaves unset"
		continue
	fi
	# Running out of memory is trouble in the kernel log.
	if ((gigabytes << 20 > memory)); then
		skip "${name% }" "needs $gigabytes GiB of memory"
		continue
	fi
	passes "$mpi" "$ranks" env SWINGCOLL_PMPI_MIN=0 SWINGCOLL_PMPI_STATS=1 "$ctl" mpi "./$program" "${arguments[@]}"
	status=$?
	while read -r _ _ n _ m _; do
		offloaded=$((offloaded + n)) fallback=$((fallback + m))
	done < <(grep '^swingcoll-pmpi: MPI_' "$log")
	if ((status)); then
		output=$(echo "$why" && tail -n 20 "$log")
		if ! passes "$mpi" "$ranks" "./$program" "${arguments[@]}"; then
			skip "${name% }" "$why without the library"
			continue
		fi
		show <(echo "$output")
	fi
	result $status "${name% }"
done
echo "# calls of rank 0: $offloaded offloaded, $fallback fallback"
((!failed))
