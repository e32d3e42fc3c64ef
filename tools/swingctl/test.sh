#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What swingctl doctor says where something is missing, of libraries and of MPI programs; the programs are made here and
# never run. Needs no module: selftests/abi/doctor.sh has what does. Speaks TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
# shellcheck source=../../selftests/lib/tap.sh
. selftests/lib/tap.sh
[[ -x build/bin/swingctl ]] || skip_all "no build/bin/swingctl: make tools"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for name in $(compgen -e | grep -E '^(SWINGCOLL|OMPI|PMI|PMIX|SLURM)_|^LD_PRELOAD$'); do
	unset "$name"
done

verdict() { # verdict STATUS NAME: what the last run said if it failed
	(($1 == 0)) || show "$dir/out" | tail -n 20
	result "$@"
}

# As they are installed, where any user can read them: programs, libraries, and preload libraries for both MPIs.
mkdir -p "$dir/bin" "$dir/lib/swingcoll" "$dir/mpi" "$dir/tools"
chmod -R 755 "$dir"
cp build/bin/swingctl "$dir/bin"
cp build/lib/libswingcoll.so.1 "$dir/lib"

library() { # library FILE SONAME [TEXT]
	printf '%s\n' "${3-int swingcoll_test_unused;}" | cc -shared -fPIC -Wl,-soname,"$2" -x c -o "$1" -
}
library "$dir/mpi/libmpi.so.40" libmpi.so.40
library "$dir/mpi/libmpich.so.12" libmpich.so.12
library "$dir/lib/swingcoll/libswingcoll_pmpi_openmpi.so" libswingcoll_pmpi_openmpi.so

program() { # program NAME LIBRARY...
	local name=$1
	shift
	echo 'int main(void) { return 0; }' | cc -x c -o "$dir/mpi/$name" - -x none -Wl,--no-as-needed "${@/#/$dir/mpi/}" \
		-Wl,-rpath,"$dir/mpi"
}
program of_openmpi libmpi.so.40
program of_mpich libmpich.so.12
program of_both libmpich.so.12 libmpi.so.40
program of_none

# The machine's launchers are not looked at.
for name in mpirun.openmpi mpiexec.hydra; do
	printf '#!/bin/sh\n' >"$dir/tools/$name"
	chmod 755 "$dir/tools/$name"
done
launchers() { # launchers MPIRUN MPIEXEC
	ln -sf "$1" "$dir/tools/mpirun"
	ln -sf "$2" "$dir/tools/mpiexec"
}
launchers mpirun.openmpi mpirun.openmpi

# doctor NAME PATTERN... -- COMMAND...: consecutive pairs of lines match, "LINE|NEXT"; a "!" in front: no line matches
doctor() {
	local name=$1 bad=0 pattern
	local patterns=()
	shift
	while [[ $1 != -- ]]; do
		patterns+=("$1")
		shift
	done
	shift
	PATH=$dir/tools:/usr/bin:/bin "$@" >"$dir/out" 2>&1
	for pattern in "${patterns[@]}"; do
		if [[ $pattern = !* ]]; then
			! grep -qE -- "${pattern#!}" "$dir/out" || bad=1
		elif [[ $pattern = *'|'* ]]; then
			grep -E -A 1 -- "${pattern%%|*}" "$dir/out" | grep -qE "^ *next: .*${pattern#*|}" || bad=1
		else
			grep -qE -- "$pattern" "$dir/out" || bad=1
		fi
	done
	verdict $bad "$name"
}
ctl=$dir/bin/swingctl

if [[ -e /dev/swingcoll ]]; then
	skip "no module and no device" "/dev/swingcoll exists"
else
	doctor "no module and no device" '^FAIL  module +not loaded|modprobe swingcoll' \
		'^FAIL  device +/dev/swingcoll: No such file|load the module' -- "$ctl" doctor
	"$ctl" doctor >"$dir/out"
	(($? == 1))
	verdict $? "a fault is status 1"
fi
doctor "a limit of locked memory" '^WARN  memlock +RLIMIT_MEMLOCK is 64 KiB, 1 MiB needed|ulimit -l 1024' -- \
	setpriv --reuid 65534 --clear-groups bash -c "ulimit -l 64; '$ctl' doctor --need 1M"
doctor "a limit that is large enough" '^OK +memlock +64 KiB may be locked; 32 KiB needed' -- \
	setpriv --reuid 65534 --clear-groups bash -c "ulimit -l 64; '$ctl' doctor --need 32K"

doctor "the library of the same version" '^OK +library +libswingcoll.so.1, version [0-9.]+$' -- "$ctl" doctor
mkdir "$dir/old"
library "$dir/old/libswingcoll.so.1" libswingcoll.so.1 'const char *swingcoll_version(void) { return "0.0.1"; }'
doctor "another library in front" '^WARN  library +.* is of version 0.0.1, these tools are of [0-9.]+|ldconfig -p' -- \
	env LD_LIBRARY_PATH="$dir/old" "$ctl" doctor
rm "$dir/lib/libswingcoll.so.1"
if [[ $(ldconfig -p 2>/dev/null) = *'libswingcoll.so.1 '* ]]; then
	skip "no library" "one is installed"
else
	doctor "no library" '^WARN  library +libswingcoll.so.1 is not found|ldconfig' -- "$ctl" doctor
fi

if grep -qw tls /proc/sys/net/ipv4/tcp_available_ulp; then
	doctor "encryption without a secret" '^FAIL  tls +SWINGCOLL_TRANSPORT=tls needs a secret|SWINGCOLL_SECRET_FILE' -- \
		env -u SWINGCOLL_SECRET -u SWINGCOLL_SECRET_FILE SWINGCOLL_TRANSPORT=tls "$ctl" doctor
else
	doctor "encryption that the kernel does not have" '^FAIL  tls +.* tls is not loaded|modprobe tls' -- \
		env SWINGCOLL_TRANSPORT=tls "$ctl" doctor
fi
if grep -qw tls /proc/sys/net/ipv4/tcp_available_ulp; then
	doctor "an empty secret is none" '^FAIL  tls +SWINGCOLL_TRANSPORT=tls needs a secret' -- \
		env SWINGCOLL_SECRET= SWINGCOLL_SECRET_FILE= SWINGCOLL_TRANSPORT=tls "$ctl" doctor
fi
doctor "no encryption" '!  tls ' -- env -u SWINGCOLL_TRANSPORT "$ctl" doctor

doctor "MPIs and their preload libraries" '^OK +mpi +Open MPI: preload library /.*/libswingcoll_pmpi_openmpi.so$' \
	'^WARN  mpi +MPICH: there is no libswingcoll_pmpi_mpich.so|swingcoll-mpi.*libmpich-dev' -- \
	env LD_LIBRARY_PATH="$dir/mpi" "$ctl" doctor
launchers mpirun.openmpi mpiexec.hydra
doctor "launchers of two MPIs" '^WARN  mpi +two are mixed: mpirun is Open MPI.* mpiexec MPICH|swingctl doctor PROGRAM' -- \
	"$ctl" doctor
launchers mpirun.openmpi mpirun.openmpi
doctor "launchers of one MPI" '!two are mixed' -- "$ctl" doctor

of=$dir/mpi/of
doctor "a program of Open MPI" '^OK +program .* linked with Open MPI$' \
	'^WARN  program +LD_PRELOAD has no preload library|swingctl mpi PROGRAM' '!two MPIs' -- "$ctl" doctor "${of}_openmpi"
doctor "with its preload library" '^OK +program +LD_PRELOAD has the preload library' '!has no preload' -- \
	env LD_PRELOAD="$dir/lib/swingcoll/libswingcoll_pmpi_openmpi.so" "$ctl" doctor "${of}_openmpi"
doctor "with that of another MPI" '^FAIL  program +two MPIs are mixed: LD_PRELOAD has the library for MPICH|swingctl mpi' \
	'^WARN  preload +LD_PRELOAD names .*/libswingcoll_pmpi_mpich.so, which cannot be read|correct LD_PRELOAD' -- \
	env LD_PRELOAD="$dir/lib/swingcoll/libswingcoll_pmpi_mpich.so" "$ctl" doctor "${of}_openmpi"
doctor "with those of both" '^WARN  preload +two are mixed: LD_PRELOAD has|swingctl mpi' -- \
	env LD_PRELOAD="libswingcoll_pmpi_mpich.so:libswingcoll_pmpi_openmpi.so" "$ctl" doctor
doctor "the preload library switched off" '^WARN  preload +SWINGCOLL_PMPI=off|unset' -- env SWINGCOLL_PMPI=off "$ctl" doctor
doctor "in capitals" '^WARN  preload +SWINGCOLL_PMPI=OFF' -- env SWINGCOLL_PMPI=OFF "$ctl" doctor
doctor "variables of a launcher that are empty" '!the launcher is' -- env OMPI_COMM_WORLD_SIZE= PMI_RANK= "$ctl" doctor "${of}_mpich"
doctor "a program of MPICH, without a preload library" '^OK +program .* linked with MPICH$' \
	'^FAIL  mpi +MPICH: there is no libswingcoll_pmpi_mpich.so' \
	'^WARN  program +mpirun is Open MPI.s|mpiexec.mpich' -- "$ctl" doctor "${of}_mpich"
doctor "mpi without a preload library" \
	'^swingctl mpi: there is no libswingcoll_pmpi_mpich.so: install swingcoll-mpi, .*libmpich-dev' -- \
	"$ctl" mpi "${of}_mpich"
doctor "a program of MPICH under Open MPI's launcher" \
	'^FAIL  program +two MPIs are mixed: the launcher is Open MPI.s|mpiexec.mpich' -- \
	env OMPI_COMM_WORLD_SIZE=2 "$ctl" doctor "${of}_mpich"
doctor "a program of both" '^FAIL  program .* linked with two MPIs|ldd' -- "$ctl" doctor "${of}_both"
doctor "a program of none" '^WARN  program .* linked with neither|--mpi NAME' -- "$ctl" doctor "${of}_none"
doctor "no program" '^FAIL  program +/nope: there is no such program|PATH' -- "$ctl" doctor /nope
doctor "a folder in place of a program" '^FAIL  program +.*/mpi: there is no such program|PATH' -- "$ctl" doctor "$dir/mpi"
mkdir "$dir/tools/of_none"
doctor "a folder with the program's name" '^WARN  program .*/mpi/of_none is linked with neither|--mpi NAME' -- \
	env PATH="$dir/tools:$dir/mpi:/usr/bin:/bin" "$ctl" doctor of_none
doctor "the same as JSON" '"check":\s+"program"' '"level":\s+"FAIL"' '"next":' -- "$ctl" --json doctor "${of}_both"

doctor "no such command" '^swingctl: COMMAND nosuch: expected doctor, .*, trace or mpi ' -- "$ctl" nosuch
doctor "options of other commands" '^swingctl: --need is an option of doctor' -- "$ctl" --need 1M status
doctor "metrics has one form" '^swingctl: metrics takes no --json: stats ' -- "$ctl" --json metrics
doctor "the version" '^swingctl [0-9]+[.][0-9]+' -- "$ctl" --version
doctor "a program that cannot start" '^swingctl mpi: cannot start /nope: No such file .*: give its path, or a name' -- \
	"$ctl" mpi --mpi openmpi /nope
doctor "options in front of mpi" '^swingctl: mpi takes no options in front of it' -- "$ctl" --json mpi

for command in --help doctor "--json doctor"; do
	status=0
	# shellcheck disable=SC2086 # options are words
	"$ctl" $command >/dev/full 2>"$dir/out" || status=$?
	((status == 2)) && grep -q '^swingctl: cannot write to standard output$' "$dir/out"
	verdict $? "output to a full disk: $command"
done

echo "1..$number"
exit $((failed > 0))
