#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ranks started by Slurm's srun, which find each other by its environment and a root, and by PMIx. Runs on every node of
# a cluster at once: node 0 has the controller and prints TAP, and every node runs slurmd until node 0 ends. Slurm is
# what tools/setup slurm has unpacked, or the installed one.
set -u
declare -A pids
node=${SWINGCOLL_NODE:-0} nodes=${SWINGCOLL_NNODES:-0}
dir=/run/swingcoll_srun # the same on all nodes, for PMIx

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((!EUID)) || skip_all needs root
((nodes)) || skip_all "needs a cluster: tools/vm/run --nodes 2"
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
mkdir $dir || skip_all "$dir exists already"

# Slurm shuts down its daemons on all nodes.
finish() {
	((node)) || { timeout 20 scontrol shutdown && wait "${pids[slurmctld]}"; } >/dev/null 2>&1
	kill "${pids[@]}" 2>/dev/null
	wait
	rm -rf $dir
}
trap finish EXIT

fail() {
	echo "# node $node: $*"
	tail -n 20 $dir/*.log | show
	exit 1
}

background() { # background NAME COMMAND...
	"${@:2}" </dev/null >"$dir/$1.log" 2>&1 &
	pids[$1]=$!
}

# One user, all files in this folder, no cgroups.
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

# The same key on all nodes; it protects nothing here.
printf %1024s swingcoll >$dir/key
chmod 400 $dir/key
background munged munged --foreground --force --key-file=$dir/key --socket=$dir/munge --pid-file=$dir/munged.pid \
	--log-file=$dir/munge.log --seed-file=$dir/seed
wait_for munge --no-input --socket=$dir/munge || fail no munged
((node)) || background slurmctld slurmctld-wlm -D
wait_for scontrol ping || fail no slurmctld
background slurmd slurmd-wlm -D -N "node$node" -d "$(command -v slurmstepd-wlm)"
if ((node)); then
	wait "${pids[slurmd]}" || fail slurmd has failed
	exit
fi

echo 1..5
idle() { [[ $(sinfo --noheader --Node --format=%t | sort | uniq -c) =~ ^\ *$nodes\ idle$ ]]; }
wait_for idle || fail not all nodes are idle

# An allreduce of so many ranks on all nodes, every element checked.
ranks() { # ranks NUMBER OPTION...
	local log=$dir/srun.log began=$SECONDS status
	timeout -k 5 120 srun --nodes="$nodes" --ntasks="$1" "${@:2}" \
		swingperf --sizes 8,4096,100000 --iters 2 --repeats 1 --warmup 0 </dev/null >$log 2>&1 &&
		grep -q ", $1 ranks of a launcher," $log && grep -q "^# nodes: $nodes," $log &&
		grep -q '^# wrong elements: 0 OK' $log
	status=$?
	((!status)) || show $log
	result $status "srun ${*:2}: $1 ranks, $((SECONDS - began)) s"
}

# The variables of this node are not for the ranks, which get the environment of srun.
unset SWINGCOLL_NODE SWINGCOLL_NNODES SWINGCOLL_ADDRS SWINGCOLL_TOPO
ranks "$nodes" --mpi=none
ranks $((2 * nodes)) --mpi=none
unset SWINGCOLL_ROOT
ranks "$nodes" --mpi=pmix
ranks $((2 * nodes)) --mpi=pmix

# One rank comes after the timeout of the bootstrap: the others fail, long before it comes.
late() {
	local log=$dir/srun.log began=$SECONDS status
	# shellcheck disable=SC2016 # the variable is srun's
	SWINGCOLL_BOOT_TIMEOUT=3 timeout -k 5 180 srun --nodes="$nodes" --ntasks="$nodes" --mpi=pmix --kill-on-bad-exit=1 \
		bash -c '((SLURM_PROCID != 1)) || sleep 120; exec swingperf --sizes 8 --iters 1' </dev/null >$log 2>&1
	status=$?
	((status && SECONDS - began < 100)) && grep -q -- '(-110)' $log && return
	show $log
	return 1
}
late
result $? "srun --mpi=pmix: a rank that comes too late"
((!failed))
