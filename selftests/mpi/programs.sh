#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Real programs with and without the preload library: their results must agree. Needs packages that no other test does:
# make mpi-programs. Arguments name the programs: lammps petsc hpcc scalapack pw gromacs mpi4py rmpi; all without any.
# SEED=N: other random calls of mpi4py.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
ctl=$(command -v swingctl) || skip_all "no swingctl: make tools"

solver=$(realpath "$(dirname "$0")/solver.py")
sums=$(realpath "$(dirname "$0")/sums.R")
random_calls=$(realpath "$(dirname "$0")/random_calls.py")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export HWLOC_HIDE_ERRORS=1 OMP_NUM_THREADS=1

openmpi() { # openmpi COMMAND...
	timeout -k 5 900 mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca btl vader,self \
		-n "$ranks" "$@"
}

mpich() { # mpich COMMAND...
	timeout -k 5 900 mpiexec.mpich -n "$ranks" "$@"
}

# Without the library, with all calls offloaded that can be, and by measurement. loaded: the program is linked with no
# MPI, but loads one, as Python does.
mpi=openmpi ranks=2 loaded=''
plain() { "$mpi" "$@"; }
forced() { "$mpi" env SWINGCOLL_PMPI_MIN=0 SWINGCOLL_PMPI_STATS=1 "$ctl" mpi ${loaded:+--mpi openmpi} "$@"; }
measured() { "$mpi" env SWINGCOLL_PMPI_STATS=1 "$ctl" mpi ${loaded:+--mpi openmpi} "$@"; }

fresh() { # fresh FILE...: an empty folder for each way, with copies of these
	local way
	for way in plain forced measured; do
		rm -rf $way && mkdir $way
		((!$#)) || cp "$@" $way/
	done
}

says='^swingcoll-pmpi: MPI_[A-Za-z_]+: '

# In all ways, each in its folder, with the output in the file out. The library says nothing but its numbers.
try() { # try NAME COMMAND...
	local name=$1 way status began
	shift
	for way in plain forced measured; do
		began=$SECONDS
		(cd $way && $way "$@" </dev/null >out 2>err)
		status=$?
		((!status)) || show <(tail -n 20 $way/out $way/err)
		grep -h swingcoll $way/out $way/err | sed 's/^/# /'
		! grep -h swingcoll $way/out $way/err | grep -qvE "${says}[0-9]+ offloaded, " || status=1
		[[ $way != forced ]] || grep -qE "${says}[1-9]" $way/err || status=1
		result $status "$name, $way, $((SECONDS - began)) s"
	done
}

skip_program() { # skip_program NAME
	local way
	for way in plain forced measured "the same results"; do
		skip "$1, $way" "it is not installed: make mpi-programs"
	done
}

# Numbers that two runs print, within a tolerance; at least so many.
close() { # close COUNT TOLERANCE FILE FILE
	paste -d ' ' "$3" "$4" | awk -v count="$1" -v tolerance="$2" '
		{
			if (NF % 2)
				bad++
			for (i = 1; i <= NF / 2; i++) {
				d = $i - $(i + NF / 2)
				if (!(d <= tolerance && d >= -tolerance))
					bad++
				n++
			}
		}
		END { exit bad || n < count }'
}

agree() { # agree NAME COUNT TOLERANCE COMMAND...: of what COMMAND FOLDER prints
	local name=$1 count=$2 tolerance=$3 way status
	shift 3
	for way in plain forced measured; do
		"$@" $way >$way/numbers
	done
	close "$count" "$tolerance" plain/numbers forced/numbers &&
		close "$count" "$tolerance" plain/numbers measured/numbers
	status=$?
	((!status)) || show <(paste plain/numbers forced/numbers measured/numbers)
	result $status "$name"
}

# ---- molecular dynamics: energies and pressures of a Lennard-Jones liquid

# The columns that LAMMPS prints every so many steps. Sums in another order differ in the last bits; after so few steps
# the trajectories have not diverged.
thermo() { awk '/^ *Step/ { on = 1; next } /^Loop/ { on = 0 } on' "$1/out"; }

run_lammps() {
	local lammps
	if ! lammps=$(command -v lmp); then
		skip_program LAMMPS
		return
	fi
	cat >melt.in <<-END
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
	fresh melt.in
	try LAMMPS "$lammps" -in melt.in -log none
	agree "LAMMPS: the same energies and pressures" 50 1e-5 thermo
}

# ---- a solver: conjugate gradients, whose steps depend on every bit of the dot products

# The program checks the solution itself; rounding may cost or spare a step.
same_steps() {
	paste <(grep -o 'iterations [0-9]*' plain/out) <(grep -o 'iterations [0-9]*' "$1/out") |
		awk '{ n++; d = $2 - $4 } END { exit !(n == 1 && d >= -2 && d <= 2) }'
}
run_petsc() {
	local PYTHONPATH status
	PYTHONPATH=$(compgen -G '/usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages' | head -n 1)
	export PYTHONPATH
	if [[ ! $PYTHONPATH ]] || ! /usr/bin/python3 -c 'import petsc4py'; then
		skip_program PETSc
		return
	fi
	fresh
	loaded=yes
	try PETSc /usr/bin/python3 "$solver"
	loaded=''
	same_steps forced && same_steps measured
	status=$?
	((!status)) || show plain/out forced/out measured/out
	result $status "PETSc: the same steps to the same solution"
}

# ---- the HPC Challenge, which checks its results itself
run_hpcc() {
	local hpcc way status=0
	if ! hpcc=$(command -v hpcc); then
		skip_program HPCC
		return
	fi
	# One matrix, one block size, one grid of processes; the other lines of HPL's input in its usual values.
	{
		printf '%s\n' "a small run" "" HPL.out 8 1 320 1 40 0 1 1 2 16.0 1 1 1 4 1 2 1 1 1 1 1 1 2 64 0 0 1 8
		printf '%s\n' "lines for PTRANS" 0 320 0 40
	} >hpccinf.txt
	fresh hpccinf.txt
	try HPCC "$hpcc"
	for way in plain forced measured; do
		grep -q '^Success=1' $way/hpccoutf.txt && ! grep -q FAILED $way/hpccoutf.txt || status=1
	done
	((!status)) || show <(grep -h -E '^Success|FAILED' ./*/hpccoutf.txt)
	result $status "HPCC: all results are right"
}

# ---- tests of ScaLAPACK, which check their results: broadcasts of columns of matrices, as types with gaps, and
# reductions by operations of its own

# How many of a test's checks passed, failed and were left out.
checks() {
	sed -nE 's/^ *([0-9]+) tests (completed|skipped).*/\1/p' "$1/out"
	sed -nE 's/.* TESTS; *([0-9]+) PASSED, *([0-9]+) SKIPPED, *([0-9]+) FAILED.*/\1 \2 \3/p' "$1/out"
}

run_scalapack() {
	local line name program folder
	folder=$(compgen -G "/usr/lib/*/scalapack")
	# Without its last part, which ends by MPI_Abort(), and with two types of five. LU.dat: no grid of one process.
	cp /usr/share/scalapack/{,BLACS/}*.dat . 2>/dev/null &&
		sed -i "s/^'T'\( *Run AUX\)/'F'\1/; s/^5\( *Number of precisions\)/2\1/; s/^'I' .*/'I' 'Z'/" bt.dat &&
		sed -i '/values of P/s/^1 2 1 4[ 0-9]*/1 2 2 1 /; /values of Q/s/^1 2 4 1[ 0-9]*/2 1 2 4 /' LU.dat
	# MPICH's ranks poll: four of them on two processors take minutes. xFbtest needs four.
	for line in openmpi\ {2,4}\ {xdlu,xdinv} openmpi\ 4\ xFbtest mpich\ 2\ {xdlu,xdinv}; do
		read -r mpi ranks program <<<"$line"
		name="ScaLAPACK, $mpi, $ranks ranks: $program"
		if [[ ! -x $folder/$mpi-tests/$program ]]; then
			skip_program "$name"
			continue
		fi
		fresh ./*.dat
		try "$name" "$folder/$mpi-tests/$program"
		agree "$name, the same checks passed" 3 0 checks
	done
}

# ---- plane waves of two atoms of silicon, with Quantum ESPRESSO in Fortran: alltoalls of FFTs, sums of matrices

# The energy of the electrons, and the Fermi energy.
energies() { sed -nE 's/^! +total energy += +([-0-9.]+) Ry/\1/p; s/.*Fermi energy is +([-0-9.]+) ev/\1/p' "$1/out"; }

run_pw() {
	local pw
	if ! pw=$(command -v pw.x) || ! command -v ld1.x >/dev/null; then
		for ranks in 2 4; do
			skip_program "Quantum ESPRESSO, $ranks ranks"
		done
		return
	fi
	# The potential of an atom, which another of its programs makes.
	ld1.x >ld1.out 2>&1 <<-END
		 &input
		 title='Si', zed=14.0, rel=1, config='[Ne] 3s2 3p2 3d-2', iswitch=3, dft='PZ'
		 /
		 &inputp
		 pseudotype=1, file_pseudopw='Si.UPF', author='none', lloc=2, tm=.true.
		 /
		3
		3S  1  0  2.00  0.00  2.00  2.00 0.0
		3P  2  1  2.00  0.00  2.00  2.00 0.0
		3D  3  2 -2.00  0.10  2.00  2.00 0.0
	END
	cat >scf.in <<-END
		&control
		 calculation='scf', prefix='si', pseudo_dir='.', outdir='.', disk_io='none'
		/
		&system
		 ibrav=2, celldm(1)=10.20, nat=2, ntyp=1, ecutwfc=10.0, nbnd=8, occupations='smearing', degauss=0.01
		/
		&electrons
		 conv_thr=1d-10
		/
		ATOMIC_SPECIES
		 Si 28.086 Si.UPF
		ATOMIC_POSITIONS alat
		 Si 0.00 0.00 0.00
		 Si 0.27 0.25 0.25
		K_POINTS automatic
		 2 1 1 0 0 0
	END
	for ranks in 2 4; do
		fresh scf.in Si.UPF
		try "Quantum ESPRESSO, $ranks ranks" "$pw" -in scf.in
		agree "Quantum ESPRESSO, $ranks ranks: the same energies" 2 1e-4 energies
	done
}

# ---- molecular dynamics of water, with GROMACS in double precision: PME on all ranks

# Energies, temperature and pressure in steps 0, 10 and 20, with six digits.
water() { awk '/^ +Energies/ { on = 1; next } /^$/ { on = 0 } /A V E R/ { exit } on && !/[A-Za-df-z]/' "$1/md.log"; }

run_gromacs() {
	local mdrun
	if ! mdrun=$(command -v gmx_mpi_d) || ! command -v gmx_d >/dev/null; then
		for ranks in 2 4; do
			skip_program "GROMACS, $ranks ranks"
		done
		return
	fi
	printf '%s\n' '#include "oplsaa.ff/forcefield.itp"' '#include "oplsaa.ff/spce.itp"' \
		'[ system ]' water '[ molecules ]' >topol.top
	printf '%s\n' 'integrator = md' 'dt = 0.001' 'nsteps = 20' 'nstenergy = 10' 'nstlog = 10' \
		'nstcalcenergy = 10' 'coulombtype = PME' 'rcoulomb = 0.8' 'rvdw = 0.8' 'tcoupl = v-rescale' 'tc-grps = System' 'tau-t = 0.1' \
		'ref-t = 300' 'gen-vel = yes' 'gen-temp = 300' 'gen-seed = 4711' 'ld-seed = 4711' >grompp.mdp
	{
		gmx_d solvate -cs spc216.gro -box 2 2 2 -o conf.gro -p topol.top && gmx_d grompp -c conf.gro
	} >gmx.out 2>&1
	[[ -e topol.tpr ]] || show gmx.out
	for ranks in 2 4; do
		fresh topol.tpr
		try "GROMACS, $ranks ranks" "$mdrun" mdrun -s topol.tpr -ntomp 1 -reprod -dlb no -notunepme
		agree "GROMACS, $ranks ranks: the same energies" 27 1 water
	done
}

# ---- Python: random calls of all collectives, whose results are exact

same_digests() { # same_digests WAY
	local file
	for file in plain/digests.*; do
		cmp "$file" "$1/${file#*/}" || return
	done
}

run_mpi4py() {
	local status seed=${SEED:-$((RANDOM))}
	for ranks in 2 4; do
		if ! /usr/bin/python3 -c 'import mpi4py, numpy'; then
			skip_program "mpi4py, $ranks ranks"
			continue
		fi
		fresh
		loaded=yes
		try "mpi4py, $ranks ranks" /usr/bin/python3 "$random_calls" "$seed" 300
		loaded=''
		compgen -G 'plain/digests.*' >/dev/null && same_digests forced && same_digests measured
		status=$?
		((!status)) || echo "# SEED=$seed"
		result $status "mpi4py, $ranks ranks: the same results"
	done
}

# ---- R: a package whose C functions have names of Fortran's, such as mpi_allreduce

sums() { grep '^sums ' "$1/out"; }

run_rmpi() {
	local status
	if ! Rscript -e 'library(Rmpi); invisible(mpi.finalize())' 2>/dev/null; then
		skip_program Rmpi
		return
	fi
	fresh
	loaded=yes
	try Rmpi Rscript "$sums"
	loaded=''
	cmp <(sums plain) <(sums forced) && cmp <(sums plain) <(sums measured)
	status=$?
	((!status)) || show plain/out forced/out measured/out
	result $status "Rmpi: the same results"
}

declare -A results=([lammps]=4 [petsc]=4 [hpcc]=4 [scalapack]=28 [pw]=8 [gromacs]=8 [mpi4py]=8 [rmpi]=4)
(($#)) || set -- lammps petsc hpcc scalapack pw gromacs mpi4py rmpi
plan=0
for name; do
	plan=$((plan + results[$name]))
done
echo "1..$plan"
for name; do
	mpi=openmpi ranks=2
	"run_$name"
done
((!failed))
