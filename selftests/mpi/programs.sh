#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Real programs with and without the preload library: their results must agree. Needs packages that no other test does:
# make mpi-programs.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
ctl=$(command -v swingctl) || skip_all "no swingctl: make tools"

solver=$(realpath "$(dirname "$0")/solver.py")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
mkdir plain forced measured
export HWLOC_HIDE_ERRORS=1 OMP_NUM_THREADS=1

launch() { # launch COMMAND...
	timeout -k 5 900 mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca btl vader,self -n 2 "$@"
}

# Without the library, with all calls offloaded that can be, and by measurement. loaded: the program is linked with no
# MPI, but loads one, as Python does.
loaded=''
plain() { launch "$@"; }
forced() { launch env SWINGCOLL_PMPI_MIN=0 SWINGCOLL_PMPI_STATS=1 "$ctl" mpi ${loaded:+--mpi openmpi} "$@"; }
measured() { launch env SWINGCOLL_PMPI_STATS=1 "$ctl" mpi ${loaded:+--mpi openmpi} "$@"; }

try() { # try NAME COMMAND...: in all ways, each in its folder, with the output in the file out
	local name=$1 way status
	shift
	for way in plain forced measured; do
		(cd $way && $way "$@" </dev/null >out 2>err)
		status=$?
		((!status)) || show <(tail -n 20 $way/out $way/err)
		grep '^swingcoll-pmpi' $way/err | sed 's/^/# /'
		result $status "$name, $way"
	done
}

skip_program() { # skip_program NAME
	local way
	for way in plain forced measured "the same results"; do
		skip "$1, $way" "it is not installed: make mpi-programs"
	done
}

echo 1..12

# ---- molecular dynamics: energies and pressures of a Lennard-Jones liquid

# The columns that LAMMPS prints every so many steps. Sums in another order differ in the last bits; after so few steps
# the trajectories have not diverged.
thermo() { awk '/^ *Step/ { on = 1; next } /^Loop/ { on = 0 } on' "$1/out"; }
same_thermo() {
	paste <(thermo plain) <(thermo "$1") | awk '
		{ n++; for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d * d > 1e-10) bad++ } }
		END { exit bad || n < 10 }'
}

for way in plain forced measured; do
	cat >$way/melt.in <<-END
		units lj
		atom_style atomic
		lattice fcc 0.8442
		region box block 0 6 0 6 0 6
		create_box 1 box
		create_atoms 1 box
		mass 1 1.0
		velocity all create 1.44 4711 loop geom
		pair_style lj/cut 2.5
		pair_coeff 1 1 1.0 1.0 2.5
		neighbor 0.3 bin
		fix 1 all nve
		thermo 10
		run 100
	END
done
if lammps=$(command -v lmp); then
	try LAMMPS "$lammps" -in melt.in -log none
	same_thermo forced && same_thermo measured
	status=$?
	((!status)) || show <(paste <(thermo plain) <(thermo forced) <(thermo measured))
	result $status "LAMMPS: the same energies and pressures"
else
	skip_program LAMMPS
fi

# ---- a solver: conjugate gradients, whose steps depend on every bit of the dot products

# The program checks the solution itself; rounding may cost or spare a step.
same_steps() {
	paste <(grep -o 'iterations [0-9]*' plain/out) <(grep -o 'iterations [0-9]*' "$1/out") |
		awk '{ n++; d = $2 - $4 } END { exit !(n == 1 && d >= -2 && d <= 2) }'
}
PYTHONPATH=$(compgen -G '/usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages' | head -n 1)
export PYTHONPATH
if [[ $PYTHONPATH ]] && /usr/bin/python3 -c 'import petsc4py'; then
	loaded=yes
	try PETSc /usr/bin/python3 "$solver"
	loaded=''
	same_steps forced && same_steps measured
	status=$?
	((!status)) || show plain/out forced/out measured/out
	result $status "PETSc: the same steps to the same solution"
else
	skip_program PETSc
fi

# ---- the HPC Challenge, which checks its results itself
for way in plain forced measured; do
	# One matrix, one block size, one grid of processes; the other lines of HPL's input in its usual values.
	{
		printf '%s\n' "a small run" "" HPL.out 8 1 320 1 40 0 1 1 2 16.0 1 1 1 4 1 2 1 1 1 1 1 1 2 64 0 0 1 8
		printf '%s\n' "lines for PTRANS" 0 320 0 40
	} >$way/hpccinf.txt
done
if hpcc=$(command -v hpcc); then
	try HPCC "$hpcc"
	status=0
	for way in plain forced measured; do
		grep -q '^Success=1' $way/hpccoutf.txt && ! grep -q FAILED $way/hpccoutf.txt || status=1
	done
	((!status)) || show <(grep -h -E '^Success|FAILED' ./*/hpccoutf.txt)
	result $status "HPCC: all results are right"
else
	skip_program HPCC
fi
((!failed))
