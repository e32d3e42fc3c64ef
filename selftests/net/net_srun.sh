#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ranks started by Slurm's srun, which find each other by its environment and a root, and by PMIx; and what swingcoll(7)
# has for Slurm: the device as a resource that is counted, and a prolog that takes a node out of service. Runs on every
# node of a cluster at once: node 0 has the controller and prints TAP, and every node runs slurmd until node 0 ends. Slurm
# is what tools/setup slurm has unpacked, or the installed one.
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
for program in munged slurmctld-wlm slurmd-wlm slurmstepd-wlm srun swingperf swingctl; do
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
	[[ ! -e /dev/swingcoll.away ]] || mv /dev/swingcoll.away /dev/swingcoll
	rm -rf $dir
}
trap finish EXIT

fail() {
	echo "# node $node: $*"
	tail -n 20 $dir/*.log | show
	exit 1
}

# The daemons read all of the configuration only under the names that the installed packages give them by links.
mkdir $dir/sbin
for program in slurmctld slurmd slurmstepd; do
	ln -s "$(command -v $program-wlm)" $dir/sbin/$program
done
PATH=$dir/sbin:$PATH

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
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=swingcoll
StateSaveLocation=$dir
SlurmdSpoolDir=$dir
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmdParameters=config_overrides
Prolog=$dir/prolog
PropagateResourceLimitsExcept=MEMLOCK
NodeName=node[0-$((nodes - 1))] CPUs=2 Gres=swingcoll:16
PartitionName=all Nodes=ALL Default=YES
END
# The plugin of version 1 does nothing unless it is asked; that of version 2, the guess, wants systemd.
echo CgroupPlugin=cgroup/v1 >$dir/cgroup.conf
# slurmd's environment is not its prolog's.
cat >$dir/prolog <<END
#!/bin/sh
exec $(command -v swingctl) doctor > $dir/doctor.log 2>&1
END
chmod 755 $dir/prolog

# The same key on all nodes; it protects nothing here.
printf %1024s swingcoll >$dir/key
chmod 400 $dir/key
background munged munged --foreground --force --key-file=$dir/key --socket=$dir/munge --pid-file=$dir/munged.pid \
	--log-file=$dir/munge.log --seed-file=$dir/seed
wait_for munge --no-input --socket=$dir/munge || fail no munged
((node)) || background slurmctld slurmctld -D
wait_for scontrol ping || fail no slurmctld
background slurmd slurmd -D -N "node$node" -d $dir/sbin/slurmstepd
if ((node)); then
	wait "${pids[slurmd]}" || fail slurmd has failed
	exit
fi

echo 1..9
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

# The device as a resource: jobs get what a node has left of it.
ranks $((2 * nodes)) --mpi=pmix --gres=swingcoll:2
timeout -k 5 60 srun --gres=swingcoll:17 true </dev/null >$dir/srun.log 2>&1
contains "srun --gres: more than a node has" $((!$?)) $dir/srun.log 'Requested node configuration is not available'

# A job that has 10 of node 1's 16, and ends when it may read from the pipe. Another gets 6; the next, which wants 7,
# waits for the first.
share() {
	local status waits
	mkfifo $dir/hold
	timeout -k 5 200 srun --nodelist=node1 --gres=swingcoll:10 sh -c 'echo runs; exec cat' <$dir/hold >$dir/held.log 2>&1 &
	pids[job]=$!
	exec {hold}>$dir/hold
	wait_for grep -q runs $dir/held.log &&
		timeout -k 5 60 srun --nodelist=node1 --gres=swingcoll:6 true </dev/null >$dir/srun.log 2>&1 {hold}>&-
	status=$?
	timeout -k 5 200 srun --nodelist=node1 --gres=swingcoll:7 true </dev/null >>$dir/srun.log 2>&1 {hold}>&- &
	waits=$!
	wait_for pending || status=1
	exec {hold}>&-
	wait "${pids[job]}" && wait "$waits" || status=1
	unset "pids[job]"
	((!status)) || show $dir/held.log $dir/srun.log <(squeue)
	return $status
}
pending() { [[ $(squeue --noheader --states=PENDING --format=%r) = Resources ]]; }
share
result $? "srun --gres: jobs share the 16 of a node"

# The next job's prolog finds no device on node 1, which gets no jobs after it; this one ends with the node it has lost.
timeout -k 5 60 srun --nodelist=node1 --nodes=1 mv /dev/swingcoll /dev/swingcoll.away </dev/null >$dir/srun.log 2>&1
timeout -k 5 60 srun --nodes="$nodes" --ntasks="$nodes" true </dev/null >>$dir/srun.log 2>&1 &
pids[job]=$!
drained() { [[ $(sinfo --noheader --Node --nodes=node1 --format=%t) = drain* ]]; }
wait_for drained && [[ $(sinfo --noheader --Node --nodes=node0 --format=%t) != drain* ]]
status=$?
((!status)) || show $dir/srun.log <(sinfo --Node --long) $dir/slurmctld.log
result $status "a prolog with swingctl doctor drains a node without the device"
((!failed))
