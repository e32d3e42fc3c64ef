#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ranks that Slurm's srun starts: they find each other by its environment and a root, and by PMIx. Runs on every
# node of a cluster at once: node 0 has the controller and speaks TAP, and each has a slurmd until node 0 is done.
# Slurm is what tools/setup slurm has unpacked, or Debian's if that is installed.
set -u
declare -A pids
node=${SWINGCOLL_NODE:-0} nodes=${SWINGCOLL_NNODES:-0}
dir=/run/swingcoll_srun # the same on all nodes, for PMIx

. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
((nodes)) || skip_all "this is for the nodes of a cluster: tools/vm/run --nodes"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
slurm=$(realpath -m ../build/slurm)
if [[ -d $slurm ]]; then
	PATH=$slurm/usr/sbin:$slurm/usr/bin:$PATH
else
	slurm=''
fi
for program in munged slurmctld-wlm slurmd-wlm slurmstepd-wlm srun swingperf; do
	command -v $program >/dev/null || skip_all "no $program: tools/setup slurm"
done
plugins=$(compgen -G "$slurm/usr/lib/*/slurm-wlm")
[[ ! $slurm ]] || export LD_LIBRARY_PATH=$plugins${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
mkdir $dir || skip_all "$dir is not to be there"

# Slurm takes down its daemons on all nodes.
finish() {
	((node)) || { timeout 20 scontrol shutdown && wait "${pids[slurmctld]}"; } >/dev/null 2>&1
	kill "${pids[@]}" 2>/dev/null
	wait
	rm -rf $dir
}
trap finish EXIT

fail() {
	echo "# node $node: $*"
	tail -n 20 $dir/*.log | sed 's/^/# /'
	exit 1
}

by() { # by SECONDS COMMAND...: it succeeds in that time
	local end=$((SECONDS + $1))
	until "${@:2}" >/dev/null 2>&1; do
		((SECONDS < end)) || return 1
		sleep 0.1
	done
}

background() { # background NAME COMMAND...
	"${@:2}" </dev/null >"$dir/$1.log" 2>&1 &
	pids[$1]=$!
}

# Programs of one user, that keep all they have in this folder, and no cgroups.
export SLURM_CONF=$dir/slurm.conf
cat >$SLURM_CONF <<END
ClusterName=swingcoll
SlurmctldHost=node0
SlurmUser=root
AuthInfo=socket=$dir/munge
PluginDir=$plugins
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
StateSaveLocation=$dir
SlurmdSpoolDir=$dir
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmdParameters=config_overrides
NodeName=node[0-$((nodes - 1))] CPUs=2
PartitionName=all Nodes=ALL Default=YES
END

# All nodes must have the same key; it protects nothing.
printf %1024s swingcoll >$dir/key
chmod 400 $dir/key
background munged munged --foreground --force --key-file=$dir/key --socket=$dir/munge --pid-file=$dir/munged.pid \
	--log-file=$dir/munge.log --seed-file=$dir/seed
by 60 munge --no-input --socket=$dir/munge || fail no munged
((node)) || background slurmctld slurmctld-wlm -D
by 60 scontrol ping || fail no slurmctld
background slurmd slurmd-wlm -D -N "node$node" -d "$(command -v slurmstepd-wlm)"
if ((node)); then
	wait "${pids[slurmd]}" || fail slurmd has failed
	exit
fi

echo 1..5
idle() { [[ $(sinfo --noheader --Node --format=%t | sort | uniq -c) =~ ^\ *$nodes\ idle$ ]]; }
by 60 idle || fail not all nodes are idle

# ranks NUMBER OPTION...: an allreduce of so many ranks on all nodes, every element checked.
ranks() {
	local log=$dir/srun.log began=$SECONDS status
	timeout -k 5 60 srun --nodes="$nodes" --ntasks="$1" "${@:2}" \
		swingperf --sizes 8,4096,100000 --iters 2 --repeats 1 --warmup 0 </dev/null >$log 2>&1 &&
		grep -q ", $1 ranks of a launcher," $log && grep -q "^# nodes: $nodes," $log &&
		grep -q '^# wrong elements: 0 OK' $log
	status=$?
	((!status)) || sed 's/^/# /' $log
	result $status "srun ${*:2}: $1 ranks, $((SECONDS - began)) s"
}

# What the testbed says of this node is not for the others, who get srun's environment.
unset SWINGCOLL_NODE SWINGCOLL_NNODES SWINGCOLL_ADDRS SWINGCOLL_TOPO
ranks "$nodes" --mpi=none
ranks $((2 * nodes)) --mpi=none
unset SWINGCOLL_ROOT
ranks "$nodes" --mpi=pmix
ranks $((2 * nodes)) --mpi=pmix

# One comes too late: the others do not wait for ever.
late() {
	local log=$dir/srun.log began=$SECONDS status
	# shellcheck disable=SC2016 # the variable is srun's
	SWINGCOLL_BOOT_TIMEOUT=3 timeout -k 5 60 srun --nodes="$nodes" --ntasks="$nodes" --mpi=pmix --kill-on-bad-exit=1 \
		bash -c '((SLURM_PROCID != 1)) || sleep 45; exec swingperf --sizes 8 --iters 1' </dev/null >$log 2>&1
	status=$?
	((status && SECONDS - began < 40)) && grep -q -- '(-110)' $log && return
	sed 's/^/# /' $log
	return 1
}
late
result $? "srun --mpi=pmix: a rank that does not come"
((!failed))
