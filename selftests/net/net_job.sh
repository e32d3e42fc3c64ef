#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# swingctl status --job tells from node 0 which rank of which host keeps all others waiting: a process on the last node is
# stopped. Runs on every node of a cluster at once; node 0 prints TAP.
set -u
node=${SWINGCOLL_NODE:-0} last=$((${SWINGCOLL_NNODES:-1} - 1))

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
((last)) || skip_all "needs a cluster: tools/vm/run --nodes 2"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
for need in swingperf swingctl; do
	command -v $need >/dev/null || skip_all $need is not on PATH
done
log=$(mktemp) trace=$(mktemp)
trap 'kill -KILL $job 2>/dev/null; wait $job 2>/dev/null; rm -f "$log" "$trace"' EXIT

# The ranks of the job, which do not end by themselves.
swingperf -n 1 --sizes 4096 --iters 1000000 --warmup 0 --repeats 1 --timeout-ms 600000 </dev/null >"$log" 2>&1 &
job=$!

# In the series: what comes before it goes by other means, too, and none is late then.
# shellcheck disable=SC2317 # by wait_for
works() { swingctl status --json | grep -qE '"completed":[[:space:]]*[0-9]{3}'; }
if ! wait_for works; then
	show "$log"
	((node)) || result 1 "the job runs"
	exit 1
fi
# The rank is a child of the program; no newline ends the list of children.
read -r rank _ <"/proc/$job/task/$job/children" || :
((node != last)) || kill -STOP "$rank"

# Not the ports of the job. All do this together, until node 0 has seen what it waits for.
export SWINGCOLL_ROOT=${SWINGCOLL_ROOT%:*}:$((${SWINGCOLL_ROOT##*:} + 7))
if ((node)); then
	swingctl status --job --watch 1 >/dev/null 2>&1
	exit 0
fi
echo 1..3
late='"late":\[\{"rank":'$last',"pid":[0-9]+,[^]]*"host":"node'$last'"\}\],"behind":\[\],"absent":\[\]'
found=1 seen=0
# In records, as JSON of a line each; the reader ends the others by closing.
while read -r line; do
	echo "$line" >"$trace"
	[[ ! $line =~ $late ]] || found=0
	((found && ++seen < 60)) || break
done < <(exec swingctl status --job --json --watch 1 2>&1)
((!found)) || show "$trace"
result $found "rank $last on node$last is late"
grep -qE '"hosts":\[\{"host":"node0"\},.*\{"host":"node'$last'"\}\]' "$trace"
result $? "all hosts have answered"
grep -qE '"seq":[0-9]+,"since_s":[0-9.]+' "$trace"
result $? "the operation that waits, and since when"
((!failed))
