#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# swingctl trace: the recording of a communicator that has ended, as text, as JSON, and as trace events for Perfetto.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
[ "$(id -u)" = 0 ] || skip_all needs root
[ -e /dev/swingcoll ] || skip_all "swingcoll is not loaded"
for program in swingperf swingctl python3; do
	command -v $program > /dev/null || skip_all "$program is not on PATH"
done
[ "$(cat /sys/module/swingcoll/parameters/trace_records)" -gt 0 ] || skip_all "trace_records is 0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
text=$folder/text json=$folder/json perfetto=$folder/perfetto

# Three ranks, whose operations go through the kernel. In so short a time swingperf adds few operations or none to those
# asked for; otherwise a fast machine fills the recording, and its first events are lost.
swingperf -n 3 -o allgather --sizes 3000 --iters 4 --repeats 1 --warmup 0 --time-ms 1 --slot-max -1 \
	> "$folder/perf" 2>&1
status=$?
[ $status = 0 ] || show "$folder/perf"
result $status "a communicator is made and ends"

# The last one, when it has been freed.
has_ended() { swingctl trace --last 0 | tail -n 1 | grep ' 3 ranks .*ended .* ago'; }
wait_for has_ended
result $? "it is listed as ended"
comm=$(swingctl trace --last 0 | awk '$1 == "communicator" { n = $2 } END { print n }')

swingctl trace "$comm" > "$text"
status=$?
for word in join submit start step complete leave; do
	grep -q " $word " "$text" || { echo "# no event $word"; status=1; }
done
grep -Eq '^ +[0-9.]+ +[012] +submit +[0-9]+ +- +allgather, [0-9]+ bytes$' "$text" || status=1
[ $status = 0 ] || show "$text"
result $status "text: events of operations, in words"

[ "$(swingctl trace --last 3 "$comm" | wc -l)" = 5 ]
result $? "text: --last"

swingctl --json trace "$comm" > "$json" && python3 -m json.tool < "$json" > /dev/null
result $? "JSON: is valid"
python3 - "$json" << 'END'
import json, sys
[comm] = json.load(open(sys.argv[1]))
assert comm["ended"] and not comm["aborted"] and comm["nranks"] == 3, comm
assert len(comm["trace"]) == comm["events"], len(comm["trace"])
done = [e for e in comm["trace"] if e["event"] == "complete"]
called = [e for e in comm["trace"] if e["event"] in ("submit", "start")]
assert len(done) == len(called) and len(done) % 3 == 0 and all(e["what"] == "success" for e in done), (done, called)
assert all("step" in e and "channel" in e for e in comm["trace"] if e["event"] == "step")
END
result $? "JSON: has every event"

swingctl trace --perfetto "$perfetto" "$comm" && python3 -m json.tool < "$perfetto" > /dev/null
result $? "Perfetto: is valid JSON"
python3 - "$perfetto" "$comm" "$json" << 'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
assert all(e["pid"] == int(sys.argv[2]) for e in events)
names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert {"rank 0", "rank 1", "rank 2"} <= names, names
slices = [e for e in events if e["ph"] == "X"]
done = [e for e in json.load(open(sys.argv[3]))[0]["trace"] if e["event"] == "complete"]
calls = [e for e in slices if not e["name"].startswith("step ")]
assert len(calls) == len(done), (len(calls), len(done))
assert all(e["args"]["result"] == "success" and e["dur"] > 0 for e in calls), calls
assert len(slices) > len(calls)
# Slices of a track lie apart, or one in the other.
for track in {e["tid"] for e in slices}:
    open_ends = []
    for e in sorted((e for e in slices if e["tid"] == track), key=lambda e: (e["ts"], -e["dur"])):
        while open_ends and open_ends[-1] <= e["ts"] + 1e-3:
            open_ends.pop()
        assert not open_ends or e["ts"] + e["dur"] <= open_ends[-1] + 1e-3, e
        open_ends.append(e["ts"] + e["dur"])
END
result $? "Perfetto: a track for each rank, with slices for operations and steps"

swingctl trace 999999999 > "$text" 2>&1
[ $? = 2 ] && grep -q 'swingctl trace without a number' "$text"
result $? "a number that does not exist is an error"
swingctl --last 3 status > "$text" 2>&1
[ $? = 2 ]
result $? "options of trace are refused elsewhere"

# A communicator that lives has the same number for both.
swingperf -n 3 -o allgather --sizes 3000 --repeats 1 --time-ms 3000 --slot-max -1 > "$folder/perf" 2>&1 &
live() { swingctl status | sed -n 's/^communicator \([0-9]*\) ([0-9a-f]\{8\})  live  3 ranks, .*/\1/p' | grep .; }
wait_for live
comm=$(live) && swingctl trace --last 0 "$comm" | grep -q "^communicator $comm  3 ranks .* alive" &&
	swingctl --json status | grep -q "\"number\":[[:space:]]*$comm,"
result $? "status: the number that trace takes"
wait

echo "1..$number"
[ "$failed" -eq 0 ]
