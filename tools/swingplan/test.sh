#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# swingplan's command line: exit statuses, JSON, numbers that are known, messages. Speaks TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
# shellcheck source=../../selftests/lib/tap.sh
. selftests/lib/tap.sh
prog=$PWD/build/bin/swingplan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

verdict() { # verdict STATUS NAME: what the last run said if it failed
	(($1 == 0)) || show "$dir/out" "$dir/err" | tail -n 20
	result "$@"
}

run() {
	"$prog" "$@" >"$dir/out" 2>"$dir/err"
}

good() { # good NAME PATTERN ARGUMENTS...: status 0, and a line of the output matches
	local name=$1 pattern=$2
	shift 2
	run "$@" && grep -qE -- "$pattern" "$dir/out"
	verdict $? "$name"
}

json() { # json NAME CONDITION ARGUMENTS...: status 0, and the condition on d holds
	local name=$1 condition=$2
	shift 2
	run "$@" --json && python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not ($condition))" "$dir/out" 2>>"$dir/err"
	verdict $? "$name"
}

bad() { # bad PATTERN ARGUMENTS...: status 2, one line that matches, nothing else
	local pattern=$1 status=0
	shift
	run "$@" || status=$?
	((status == 2)) && [[ ! -s $dir/out ]] && (($(wc -l <"$dir/err") == 1)) &&
		grep -qE -- "$pattern" "$dir/err"
	verdict $? "refused: ${*//$'\n'/?}"
}

near() { # near A B: in python, within one in a thousand
	echo "abs(($1) - ($2)) <= abs($2) / 1000"
}

[[ -x $prog ]] || skip_all "no $prog: make tools"

good "help" "^  verify" --help
good "help of a verb" "--link-gbps G" simulate --help
good "list" "^swing-b " list
json "list as JSON" "any(a['algo'] == 'swing-h' and a['param'] and 'allreduce' in a['ops'] for a in d)" list

json "show: keys and the known numbers of swing-b on 4x4" "all(k in d for k in
	('algo topo ranks ports steps hops psi_xi messages_per_rank bytes_per_rank_over_n ' +
	 'max_runs_per_message deterministic').split()) and 'plan' not in d and
	(d['steps'], d['hops'], d['ranks']) == (8, 8, 16) and d['deterministic'] and
	$(near "d['psi_xi']" 0.9375)" show --algo swing-b --topo torus:4x4
json "show: swing-l on 8x8" "(d['steps'], d['hops'], d['deterministic']) == (6, 10, False) and
	$(near "d['psi_xi']" 5)" show --algo swing-l --topo torus:8x8
figures() { # figures STEPS/HOPS/PSI_XI ARGUMENTS...: what show should print, and what it prints, as JSON
	printf '["%s", ' "$*"
	"$prog" show --json "${@:2}" || echo '{}'
	echo '],'
}
while read -r topo one all sag alltoall_one alltoall; do
	figures "$one" --topo "$topo" --algo bine --op broadcast --ports 1
	figures "$all" --topo "$topo" --algo bine --op reduce --root 2
	[[ $sag ]] || continue
	figures "$sag" --topo "$topo" --algo bine-sag --op broadcast --root 3
	figures "$alltoall_one" --topo "$topo" --algo bine --op alltoall --ports 1
	figures "$alltoall" --topo "$topo" --algo bine --op alltoall
done <<-'END' >"$dir/known"
	ring:8 3/5/3 3/5/1.5 6/10/1.125 3/5/2 3/5/1.25
	ring:16 4/10/4 4/10/2 8/20/1.4375 4/10/3.5 4/10/2.5
	ring:64 6/42/6 6/42/3 12/84/2.10938 6/42/12 6/42/10.5
	torus:4x4 4/4/8 4/4/2 8/8/0.9375 4/4/4 4/4/1
	torus:8x8 6/10/12 6/10/3 12/20/1.07812 6/10/8 6/10/2.5
	torus:16x4 6/12/12 6/12/4 12/24/1.28125 6/12/9 6/12/5
	torus:4x4x4 6/6/18 6/6/3 12/12/0.984375 6/6/9 6/6/1.5
	ring:13 4/10/4 4/10/3
	torus:3x5 5/6/10 5/6/3
	END
figures 4/15/4 --topo ring:16 --algo tree --op broadcast >>"$dir/known"
while read -r topo one all; do
	figures "$one" --topo "$topo" --algo bine --op gather --ports 1 --root 5
	figures "$all" --topo "$topo" --algo bine --op scatter
done <<-'END' >>"$dir/known"
	ring:16 4/10/0.9375 4/10/0.46875
	torus:8x8 6/10/1.96875 6/10/0.492188
	torus:16x4 6/12/1.96875 6/12/0.867188
	END
python3 -c '
import json, sys
cases = json.loads("[" + open(sys.argv[1]).read() + "null]")[:-1]
wrong = [c for c in cases if "{steps}/{hops}/{psi_xi:g}".format(**c[1]) != c[0].split()[0]]
print(*wrong, sep="\n")
sys.exit(len(cases) != 46 or bool(wrong))' "$dir/known" >"$dir/out" 2>"$dir/err"
verdict $? "show: steps, hops and psi_xi of bine, bine-sag and tree"
good "verify: gather from any root" "gather .*ok: 12 ranks" verify --op gather --algo bine --topo torus:4x3 --root 7
bad "have a root" verify --op alltoall --algo all --topo ring:4 --root 1
bad "even sizes, not 13: use rotate" show --algo bine --op alltoall --topo ring:13
bad "the radix is 2 to 8" show --algo bruck:1 --op alltoall --topo ring:13
json "show: a rank's plan" "d['plan']['rank'] == 5 and len(d['plan']['channels']) == 2 and
	sum(x['final'] for c in d['plan']['channels'] for s in c for x in s['recvs']) == 2" \
	show --algo ring2 --topo ring:8 --rank 5
good "show: steps in words" "recv from rank 1 .*reduced with .*final" \
	show --algo recdoub --topo switch:2 --rank 0
echo "torus:4x4@100Gbps" >"$dir/topo"
good "show: stored marks and paths" "send to   rank 3 .*, stored, path 1" \
	show --algo mirrored --topo ring:4 --rank 1
json "show: the same in JSON" "[(s['stored'], s['path']) for c in d['plan']['channels'] for t in c
	for s in t['sends'] if s['rank'] == 3] == [(False, 0), (True, 0), (False, 1), (True, 1)]" \
	show --algo mirrored --topo ring:4 --rank 1
json "topology from a file" "d['topo'] == 'torus:4x4@100Gbps'" show --algo ring --topo "@$dir/topo"

for topo in ring:7 torus:4x4 torus:3x5 switch:3*2,1,4 'switch:1*4'; do
	json "verify everything on $topo" "all(r['verdict'] in ('ok', 'not possible') for r in d) and
		sum(r['verdict'] == 'ok' for r in d) >= 10 and
		all(r['together'] for r in d if r['verdict'] == 'ok') and
		all(r['why'] for r in d if r['verdict'] != 'ok')" \
		verify --algo all --topo "$topo" --op all
done
good "verify: says that it looked at some ranks only" "4 of 4096 plans .*not run together" \
	verify --algo swing-b --topo torus:64x64 --ranks 4

json "simulate: swing-b on 8x8 at 2 MiB" "len(d) == 1 and d[0]['steps'] == 12 and
	$(near "d[0]['time_ns']" 37808)" simulate --algo swing-b --topo torus:8x8 --size 2M
json "simulate: options come before the topology's figures" \
	"$(near "d[0]['time_ns']" "6 * 600 + 10 * 1000 + 2.5 * 4096 * 8 / 200")" simulate --algo swing-l \
	--topo torus:8x8@100Gbps,1us --link-gbps 200 --size 4K
json "simulate: all algorithms, default sizes" "len({r['bytes'] for r in d}) == 13 and
	{'ring', 'bucket', 'swing-h:0', 'swing-h:4', 'mirrored:4'} <= {r['algo'] for r in d} and
	'swing-h:5' not in {r['algo'] for r in d} and all(r['time_ns'] > 0 for r in d)" \
	simulate --algo all --topo torus:4x4
json "simulate: the library's choice among all" "len(c := [r for r in d if r['algo'] == 'auto']) == 13 and
	all(any(r['algo'] == a['chosen'] and (r['bytes'], r['time_ns']) == (a['bytes'], a['time_ns'])
	for r in d) for a in c)" simulate --algo all --topo torus:4x4
json "simulate: estimates of folded butterflies and trees do not mislead" \
	"{a['bytes']: a['chosen'] for a in d if a['algo'] == 'auto'} == {1 << 18: 'swing-b', 1 << 24: 'swing-b'}" \
	simulate --algo all --topo mesh:63x65 --size 256K,16M
json "simulate: flow model" "0 < d[0]['time_ns'] < 40000" \
	simulate --algo swing-b --topo torus:4x4 --size 2M --model flow
json "simulate: flow model, with headers" \
	"$(near "d[0]['time_ns']" "6 * (600 + 400 + (1024 + 64 + 58) * 8 / 400)")" \
	simulate --algo ring --topo switch:4 --size 4K --model flow
json "simulate: plans too large for the flow model" "d[0]['model'] == 'step' and d[0]['packet_group'] == 0" \
	simulate --algo swing-b --topo torus:1024x1024 --size 2M --model flow
json "simulate: simple is step" "d[0]['model'] == 'step'" simulate --algo ring --topo ring:4 --size 4K --model simple
json "choose: in order unless --reorder" "d[0]['reason'] == 'model' and len(d[0]['best']) == 5 and
	d[0]['best'][0]['time_ns'] <= d[0]['time_ns'] <= 1.02 * d[0]['best'][0]['time_ns'] and
	d[0]['algo'] not in ('swing-l', 'twosided')" \
	choose --topo torus:8x8 --size 32
json "choose: with --reorder" "d[0]['algo'] in ('swing-l', 'swing-h:0', 'twosided')" \
	choose --topo torus:8x8 --size 32 --reorder
run choose --topo torus:11x13 --size 128K --json
chosen=$(python3 -c "import json, sys; d = json.load(open(sys.argv[1]))[0]; print(d['algo'], d['time_ns'])" "$dir/out")
json "simulate: with --kernel, the times of choose" "d[-1]['algo'] == 'auto' and d[-1]['reduce_gbps'] == 80 and
	d[-1]['chosen'] == '${chosen% *}' and $(near "d[-1]['time_ns']" "${chosen#* }")" \
	simulate --algo all --topo torus:11x13 --size 128K --kernel
bad "is for the step model" simulate --algo ring --topo ring:4 --kernel --model flow
json "choose: few connections where times are alike" "d[0]['algo'] == 'recdoub' and
	d[0]['time_ns'] <= 1.02 * d[0]['best'][0]['time_ns'] and
	min(b['connections'] for b in d[0]['best']) > 4" choose --topo 'torus:2x2*2' --size 2K
json "choose: all steps that copy count" "d[0]['algo'] == 'by-nodes:1' and 55e3 < d[0]['time_ns'] < 58e3" \
	choose --op alltoall --topo 'switch:64*8@100Gbps' --size 8K
json "choose: one node" "d[0]['reason'] == 'one_node'" choose --topo 'switch:1*8' --size 8
json "choose: one node with few CPUs" "d[0]['algo'] == 'direct2:2'" choose --topo 'switch:1*64' --size 3K --cpus 2
json "choose: one node with several caches" "[x['algo'] for x in d] == ['direct2:16', 'grouped:2']" \
	choose --topo 'switch:1*16' --size 64K,1M --caches 2
bad "not one node with as many ranks for each" choose --topo 'switch:1*16' --caches 3
python3 - "$prog" >"$dir/out" 2>"$dir/err" <<'EOF'
import json, resource, subprocess, sys

topos = "torus:1024x1024 torus:32x32x32x32 torus:8x8x8x8x4x4x4x4 mesh:16x16x16x16x16 ring:1048576 switch:1048576"
for topo in topos.split():
    for op in "allreduce reduce_scatter allgather broadcast reduce gather scatter alltoall barrier".split():
        args = [sys.argv[1], "choose", "--topo", topo, "--op", op, "--size", "4K,512M", "--json"]
        r = subprocess.run(args, capture_output=True, text=True)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        # Every all-to-all has longer plans than there may be.
        known = op == "alltoall" and "would have more than" in r.stderr if r.returncode else \
            len(json.loads(r.stdout)) == 2
        if r.returncode not in (0, 2) or not known or most > 64 << 10:
            sys.exit(f"{topo} {op}: status {r.returncode}, {most} KiB so far, {r.stderr}")
for args in ["--topo", "@/dev/zero"], ["--topo", "ring:4", "--tuning", "/dev/zero"]:
    r = subprocess.run([sys.argv[1], "choose", *args], capture_output=True, text=True)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if r.returncode != 2 or "too large" not in r.stderr or most > 64 << 10:
        sys.exit(f"{args}: status {r.returncode}, {most} KiB, {r.stderr}")
EOF
verdict $? "choose: a million ranks, all collectives, and files without an end in 64 MiB"
echo "allreduce f32 ring:8 1024 tree 1.5" >"$dir/tuning"
json "choose: measured" "(d[0]['algo'], d[0]['reason'], d[0]['time_ns']) == ('tree', 'measured', 1500)" \
	choose --topo ring:8 --size 1K --tuning "$dir/tuning"

run export --algo swing-b --topo torus:4x4 --out "$dir/plans" && run import "$dir/plans" --json
verdict $? "export, then import"
run export -a swing-b -t torus:4x4 --out "$dir/again" && run import - <"$dir/plans" &&
	cmp "$dir/again" "$dir/plans" && cmp "$dir/out" "$dir/plans"
verdict $? "export and import by short options, by standard output and input"
run export --algo swing-b --topo torus:2x4 --format msccl --out "$dir/xml" && run import "$dir/xml" --out "$dir/again" &&
	run import "$dir/again" --format msccl && grep -q "<algo name=.swing-b. .*ngpus=.8. coll=.allreduce." "$dir/out" &&
	run verify --algo "file:$dir/again" --topo torus:2x4
verdict $? "to MSCCL's XML and back"
run export --algo rotate --op alltoall --topo ring:4 --out "$dir/plans" && grep -q not-in-place "$dir/plans" &&
	run verify --algo "file:$dir/plans" --op alltoall --topo ring:4 &&
	grep -q "ok: 4 ranks, out of place; not for operations in place$" "$dir/out"
verdict $? "verify: plans of a file that are not for operations in place"
json "verify: which form holds, as JSON" "(d[0]['verdict'], d[0]['in_place']) == ('ok', False)" \
	verify --algo "file:$dir/plans" --op alltoall --topo ring:4
sed 's/ not-in-place//' "$dir/plans" >"$dir/claims"
! run verify --algo "file:$dir/claims" --op alltoall --topo ring:4 &&
	grep -q "FAILED: right out of place, but in place: rank" "$dir/out"
verdict $? "verify: plans that are right out of place only, and do not say so"
good "export: ranks without a topology" "^ranks 16" export -a swing-b -n 16
json "export as JSON" "d['verified'] and d['ranks'] == 16" export --algo swing-b --topo torus:4x4
json "figures of one torus" "len(d) == 26 and
	all(r['time_ns']['auto'] <= 1.02 * min(t for t in r['time_ns'].values() if t) for r in d)" \
	figures --out "$dir/figures" --topo torus:4x4
[[ $(find "$dir/figures" -size +0 | sort | xargs -n1 basename | tr '\n' ' ') == \
	"figures figures.json figures.txt " ]]
verdict $? "figures: all files"

spec() { # spec JSON: the file of a specification
	echo "$1" >"$dir/spec"
}

spec '{"sizes": [8,4,4], "bandwidth": [60,30,10], "op": "allreduce", "bytes": 1e9}'
json "orders: keys and known numbers" "$(near "d['time_ns']" 19843750) and
	$(near "d['best_single_ns']" 29166666.7) and d['fixed_ns'] == d['best_single_ns'] and
	d['bound_ns'] == d['time_ns'] and len(d['orders']) <= 3 and
	abs(sum(o['fraction'] for o in d['orders']) - 1) < 1e-6 and
	all(sorted(o['order']) == [0, 1, 2] for o in d['orders'])" orders --spec "$dir/spec"
good "orders in words" "65.2381%  0, 1, 2" orders --spec "$dir/spec"
good "orders: how much the split gains" "^fixed order .* 1.47 times the split" orders --spec "$dir/spec"
echo '{"sizes": [4,4], "bandwidth": [80,20], "op": "allreduce", "bytes": 1e9}' >"$dir/spec"
json "orders: where no split helps" "$(near "d['speedup_over_fixed']" 1) and $(near "d['speedup_over_single']" 1) and
	d['orders'] == [{'order': [0, 1], 'fraction': 1}]" orders --spec "$dir/spec"
json "split: near the closed form" "1 < d[0]['time_ns'] / 18750000 < 1.1 and
	d[0]['steps'] == 39 and d[1]['time_ns'] > 1.9 * d[0]['time_ns']" \
	simulate --algo split,bucket2 --topo torus:4x4@320Gbps/80Gbps --size 1000000000

phases='{"v": [1.5e9, 2.5e8, 0], "count": 2}, {"v": [0, 0, 3e8]}, {"v": [1.5e8, 1e8, 1e8]}, {"v": [6e7, 1e7, 0]}'
spec "{\"sizes\": [4,2,2], \"total\": 100, \"compute_ns\": 1e7, \"phases\": [$phases]}"
json "allocate: the least time" "$(near "d['time_ns']" 78.29e6) and $(near "d['time_equal_ns']" 115.3e6) and
	abs(sum(d['bandwidth']) - 100) < 1e-4 and len(d['sensitivity']) == 3 and 'cost' not in d" \
	allocate --spec "$dir/spec"
spec "{\"sizes\": [4,2,2], \"total\": 100, \"compute_ns\": 1e7, \"phases\": [$phases],
	\"objective\": \"time_cost\", \"prices\": [2,4,57.4]}"
json "allocate: the least time times cost" "$(near "d['time_cost']" 6.40586e10) and
	$(near "d['per_cost_over_equal']" 3.8038)" allocate --spec "$dir/spec"
spec '{"sizes": [4,8,4], "prices": [2,4,57.4], "total": 300, "compute_ns": 5e6, "cap": [300,300,20],
	"linear": [[[1,-1,0], ">=", 0]], "phases": [{"op": "allreduce", "bytes": 1e9},
	{"op": "alltoall", "bytes": 2e8, "count": 4},
	{"op": "allgather", "bytes": 1e6, "count": 10, "groups": [4,8,1]}]}'
json "allocate: caps and linear constraints" "$(near "d['time_ns']" 43026790)" allocate --spec "$dir/spec"
# Equations that follow from others: the total again, twice, and as the cost where all prices are alike.
spec '{"sizes": [4,2,2], "total": 100, "phases": [{"op": "allreduce", "bytes": 1e9}],
	"linear": [[[1,1,1], "==", 100], [[-2,-2,-2], "==", -200], [[0,1,1], "<=", 100]]}'
json "allocate: a total that is given again" "$(near "d['time_ns']" 18750000)" allocate --spec "$dir/spec"
spec '{"sizes": [4,2,2], "total": 100, "phases": [{"op": "allreduce", "bytes": 1e9}], "prices": [3,3,3],
	"objective": "time_cost", "linear": [[[1,1,1], "==", 100]]}'
json "allocate: all prices alike" "$(near "d['time_ns']" 18750000)" allocate --spec "$dir/spec"
spec '{"sizes": [4,2], "total": 100, "phases": [{"op": "allreduce", "bytes": 1e9}], "cap": [26, 100],
	"linear": [[[1,1], "==", 100]]}'
json "allocate: a cap, and the total again" "$(near "d['bandwidth'][0]" 26)" allocate --spec "$dir/spec"
# What constraints leave of the total is not spent.
spec '{"sizes": [4,4], "total": 100, "phases": [{"op": "allreduce", "bytes": 1e9}], "cap": [30, 30]}'
json "allocate: caps below the total" "all(29.9999 < b < 30.0001 for b in d['bandwidth']) and
	$(near "d['time_ns']" 50e6)" allocate --spec "$dir/spec"
spec '{"sizes": [4,4], "total": 100, "phases": [{"op": "allreduce", "bytes": 1e9}], "cap": [30, 40],
	"linear": [[[1,-1], "==", 0]], "prices": [1,2], "objective": "time_cost", "compute_ns": 1e8}'
json "allocate: the total is never spent" "all(29.9999 < b < 30.0001 for b in d['bandwidth']) and
	$(near "d['time_cost']" 135e8)" allocate --spec "$dir/spec"
spec '{"sizes": [4,2], "total": 100, "phases": [{"op": "allreduce", "bytes": 1e9}],
	"linear": [[[1,1], "==", 90]]}'
json "allocate: less than the total" "89.9999 < sum(d['bandwidth']) < 90.0001" allocate --spec "$dir/spec"
spec '{"sizes": [4,2], "total": 100, "phases": [{"op": "allreduce", "bytes": 1e9}],
	"linear": [[[1,1], "==", 110]]}'
bad "no bandwidths respect all" allocate --spec "$dir/spec"
# As many proportions as phases; each has its mirror image, so equal bandwidths are the best.
spec "{\"sizes\": [4,4], \"prices\": [1,1], \"total\": 100, \"phases\": [$(
	python3 -c "print(','.join(f'{{\"v\":[{i}e6,{4097 - i}e6]}}' for i in range(1, 4097)))")]}"
json "allocate: 4096 phases, all different" "$(near "d['bandwidth'][0]" 50) and $(near "d['time_ns']" \
	"sum(max(i, 4097 - i) for i in range(1, 4097)) * 1e6 / 50")" allocate --spec "$dir/spec"
spec "$(head -c 17M /dev/zero | tr '\0' ' ')"
bad "too large: more than 16 MiB" allocate --spec "$dir/spec"
# Bandwidths of all scales.
spec '{"sizes": [12,15,10,6,13], "total": 1000, "phases": [
	{"op": "reduce_scatter", "bytes": 142350, "groups": [12,15,1,1,13]}, {"op": "reduce_scatter", "bytes": 1210387},
	{"op": "reduce_scatter", "bytes": 60799285, "count": 2, "groups": [12,15,10,1,1]}]}'
json "allocate: bandwidths of all scales" "$(near "d['time_ns']" 123397)" allocate --spec "$dir/spec"
# The best cost is near the least that a cap and constraints leave.
spec '{"sizes": [10,4,13], "prices": [1,2,4], "total": 1000, "compute_ns": 1e7, "objective": "time_cost",
	"cap": [986.32924,855.633,158.03777], "linear": [[[-1,0,2], "<=", -301.61417], [[0.5,-1,2], ">=", -23.19642],
	[[0.5,1,1], "==", 753.41768], [[0,2,1], ">=", 841.16689]], "phases": [{"op": "alltoall", "bytes": 908873.85, "count": 2}]}'
json "allocate: the best cost is in a small range" "$(near "d['time_cost']" 16684084101)" allocate --spec "$dir/spec"
# One dimension has half of its rate: what it would get without the measurement is not enough.
spec '{"sizes": [4,4], "total": 90, "phases": [{"op": "allreduce", "bytes": 1e9}]}'
printf 'links torus:4x4@9Gbps\nlinks torus:4x4@60Gbps/15Gbps\nlinks ring:16@1Gbps\n' >"$dir/tuning"
json "allocate: corrected by measured rates" "$(near "d['time_ns']" 25e6) and
	$(near "d['bandwidth'][0]" 60) and d['efficiency'] == [1, 0.5] and $(near "d['nominal_bandwidth'][0]" 72) and
	$(near "d['time_nominal_ns']" 41666667) and $(near "d['speedup_over_nominal']" 1.66667)" \
	allocate --spec "$dir/spec" --topo torus:4x4@60Gbps/30Gbps --tuning "$dir/tuning"
good "allocate: what the rates have changed" "^dimension 1 .* 0.5 of its rate: 30 GB/s, 18 without" \
	allocate --spec "$dir/spec" --topo torus:4x4@60Gbps/30Gbps --tuning "$dir/tuning"
bad "needs --topo with the rates" allocate --spec "$dir/spec" --topo torus:4x4 --tuning "$dir/tuning"
bad "other sizes than the spec" allocate --spec "$dir/spec" --topo torus:2x8@1Gbps --tuning "$dir/tuning"
bad "--topo: is for --tuning" allocate --spec "$dir/spec" --topo torus:4x4@1Gbps
echo 'links torus:4x4@0ns' >"$dir/tuning"
bad "line 1: expected .*figures of its links" allocate --spec "$dir/spec" --topo torus:4x4@1Gbps --tuning "$dir/tuning"
echo 'links torus:4x4@5us' >"$dir/tuning"
bad "no rates of the links" allocate --spec "$dir/spec" --topo torus:4x4@1Gbps --tuning "$dir/tuning"
# Speed-up, and gain of time times cost, at totals of 100, 500 and 1000 GB/s.
tools/bench/workloads --out "$dir/workloads" >"$dir/err" && python3 - "$dir/workloads/workloads.json" <<'END' >>"$dir/err"
import json, sys
known = {"GPT-3": (1.30, 6.9, 1.07, 6.8, 1.04, 7.0), "MSFT-1T": (1.69, 5.5, 1.24, 5.2, 1.13, 5.4),
         "Turing-NLG": (1.10, 7.3, 1.02, 7.6, 1.01, 7.8), "ResNet-50": (1.97, 11.4, 1.31, 7.9, 1.17, 7.4)}
rows = json.load(open(sys.argv[1]))["rows"]
for name, want in known.items():
    at = {r["total"]: r for r in rows if r["workload"] == name}
    got = [at[total][key] for total in (100, 500, 1000) for key in ("speedup", "per_cost")]
    if any(abs(g - w) > (0.06, 0.006)[w < 3] for g, w in zip(got, want)):
        sys.exit(print(name, got, want) or 1)
END
verdict $? "workloads: what is published for four models"
# The tables of bench/pairs, of samples as its programs print them; the number of steps is by swingplan.
SWINGCOLL_NNODES=2 python3 - >"$dir/out" 2>"$dir/err" <<'END'
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "tools/bench")
loader = importlib.machinery.SourceFileLoader("pairs", "tools/bench/pairs")
pairs = importlib.util.module_from_spec(importlib.util.spec_from_loader("pairs", loader))
loader.exec_module(pairs)
times = {"swingcoll": 100, "swc-tcp": 50, "ompi-ucx": 300, "mpich-rc": 200, "ompi-tcp": 250, "mpich-tcp": 150}
samples = {(name, size): [{"bytes": size, "time_us": time * size / 8, "busy_us": time / 2, "algo": "recdoub"}]
           for name, time in times.items() for size in (64, 8)}
samples["ib_write", 8] = [{"bytes": 8, "latency_us": 20}]
samples["ib_write", 65536] = [{"bytes": 65536, "gbps": 0.001}]
failed = 0

def expect(only, want):
    """Both tables have both sizes, and the first row of the first has these values."""
    global failed
    some = {key: rows for key, rows in samples.items() if key[0] in only}
    lat, gbps, table = pairs.summarise(some)
    pairs.print_table(lat, gbps, table, 1)
    busy = pairs.print_busy(some, 1)
    got = {key: table[0].get(key) for key in want} if table else None
    cpu = {name: time / 2 for name, time in times.items() if name in only}
    if [r["bytes"] for r in table] != [8, 64] or got != want or [r["bytes"] for r in busy] != [8, 64] or cpu.items() - busy[0].items():
        print(only, got, busy, file=sys.stderr)
        failed = 1

expect([*times, "ib_write"], {"swingcoll": 100, "swc-tcp": 50, "algo": "recdoub", "steps": 1, "latencies": 5,
                              "speedup-rdma": 2, "speedup-tcp": 1.5, "tcp-by-tcp": 3, "of_link": 0.64})
expect(["swingcoll", "ompi-tcp"], {"swc-tcp": None, "speedup-rdma": None, "speedup-tcp": 2.5, "tcp-by-tcp": None})
expect(["swc-tcp", "ompi-tcp", "ib_write"], {"swingcoll": None, "swc-tcp": 50, "algo": "recdoub", "noise": 0, "latencies": None,
                                             "speedup-tcp": None, "tcp-by-tcp": 5, "of_link": None})
expect(["ompi-tcp", "mpich-tcp"], {"swc-tcp": None, "mpich-tcp": 150, "algo": None, "noise": None, "tcp-by-tcp": None})
if pairs.summarise({key: rows for key, rows in samples.items() if key[0] == "ib_write"}) != (20, 0.001, []):
    failed = 1
sys.exit(failed)
END
verdict $? "pairs: tables of all programs, and of some"
# Damaged specifications are refused by one line, or still make sense.
python3 - "$prog" "$dir/spec" <<'END' >"$dir/out" 2>"$dir/err"
import random, subprocess, sys
text = open(sys.argv[2]).read()
words = ["-1", "1e999", "[]", "{}", '"x"', "null", "0", "", ",", "[", "1e-300", '"sizes"', "1e18"]
random.seed(1)
for i in range(150):
    at = random.randrange(len(text))
    bad = text[:at] + random.choice(words) + text[at + random.randrange(6):]
    for verb in "allocate", "orders":
        p = subprocess.run([sys.argv[1], verb, "--spec", "-"], input=bad, capture_output=True, text=True, timeout=60)
        if p.returncode not in (0, 2) or (p.returncode == 2 and (p.stdout or p.stderr.count("\n") != 1)):
            sys.exit(f"{verb}: {p.returncode}: {p.stderr}: {bad}")
END
verdict $? "150 damaged specifications"

# Pictures of what has been written so far.
if /usr/bin/python3 -c "import matplotlib" 2>/dev/null; then
	pictures() { # pictures NAME WORDS FILE...: the pictures of the files have these words, one a line
		local name=$1 words=$2
		shift 2
		rm -rf "$dir/pictures"
		tools/bench/plot --out "$dir/pictures" "$@" >"$dir/out" 2>"$dir/err" &&
			comm -13 <(cat "$dir"/pictures/*.svg | grep -oE '>[^<]+</text>' | sed 's/^>//; s/<.*//' | sort -u) \
				<(sort -u <<<"$words") >"$dir/missing" && ! sed 's/^/missing: /' "$dir/missing" | tee -a "$dir/err" | grep -q .
		verdict $? "pictures: $name"
	}
	run simulate --algo all --topo torus:4x4 --json && cp "$dir/out" "$dir/simulate.json"
	run simulate --algo all --topo ring:16 --json && cp "$dir/out" "$dir/ring.json"
	pictures "of simulate" $'allreduce on torus:4x4 (model)\nauto: the library\'s choice\nswing-b\n512 MiB' \
		"$dir/simulate.json"
	pictures "of two topologies" $'allreduce: fastest by size and topology (model)\ntorus:4x4\nring:16' \
		"$dir/simulate.json" "$dir/ring.json"
	pictures "of figures" $'allreduce on torus:4x4: gain over the best classic (model)\none-port-rd\nhybrid' \
		"$dir/figures/figures.json"
	[[ ! -e $dir/workloads/workloads.json ]] || pictures "of workloads" $'iteration time over the total of bandwidth (model)\nMSFT-1T\nleast time' \
		"$dir/workloads/workloads.json"
	pictures "of the README, from data in the tree" $'allreduce on torus:4x4 (measured and model)\nmeasured\nmodel' \
		--readme
else
	for name in simulate topologies figures README; do
		skip "pictures: $name" "no matplotlib: apt-get install python3-matplotlib"
	done
fi

spec '{"sizes": [4,2], "bandwidth": [10,-1], "op": "allreduce", "bytes": 1e9}'
bad '"bandwidth": expected numbers from' orders --spec "$dir/spec"
spec '{"sizes": [4,2], "bandwidth": [10], "op": "allreduce", "bytes": 1e9}'
bad 'expected 2 numbers, one for each of "sizes"' orders --spec "$dir/spec"
spec '{"sizes": [4,2], "bandwidth": [10, NaN], "op": "allreduce", "bytes": 1e9}'
bad 'not JSON' orders --spec "$dir/spec"
spec '{"sizes": [4,2], "total": 10, "floor": [8,8], "phases": [{"op": "allreduce", "bytes": 1e9}]}'
bad "total of 10 is below the floors' 16" allocate --spec "$dir/spec"
spec "{\"sizes\": [4,2], \"total\": 10, \"phases\": [$(printf '{"v":[1,2]},%.0s' {1..5000}){\"v\":[1,2]}]}"
bad "expected 1 to 4096 phases" allocate --spec "$dir/spec"
bad "--spec .*is missing" orders
bad "no verb 'frob'.*list, show, verify" frob
bad "no such algorithm.*swing-b" show --algo frob --topo ring:8
bad "number must be" show --algo swing-h:99 --topo ring:8
bad "takes no number" show --algo ring:1 --topo ring:8
bad "--algo .*is missing" show --topo ring:8
bad "--topo .*is missing" show --algo ring
bad "torus:4x" show --algo ring --topo torus:4x
bad "torus:4[?]x4: " show --algo ring --topo $'torus:4\nx4'
bad "no algorithm is possible for alltoall on torus:1024x1024: rotate: the plan would have more than" \
	choose --topo torus:1024x1024 --op alltoall
bad "no algorithm is possible for alltoall on torus:1024x1024: rotate: the plan would have more than" \
	simulate --topo torus:1024x1024 --op alltoall --algo all
bad "--cpus 2: torus:4x4 has several nodes" choose --topo torus:4x4 --cpus 2
bad "4x4@-1Gbps: .*not a figure" choose --topo torus:4x4@-1Gbps
bad "one for each of the 3 dimensions" choose --topo torus:4x4x2@1Gbps/2Gbps
bad "out of range: 1e-09 to 1e[+]12 Gbps" choose --topo torus:4x4@1e-300Gbps/1Gbps
bad "not possible on torus:4x6.*such as 8x8" show --algo hamiltonian --topo torus:4x6
bad "does not offer" verify --algo swing-b --topo ring:8 --op alltoall
bad "--size 3x: expected a size" simulate --algo ring --topo ring:8 --size 3x
bad "--size needs a value" simulate --algo ring --topo ring:8 --size
bad "expected a number from" simulate --algo ring --topo ring:8 --link-gbps 0
bad "--size is not an option here .see swingplan show --help" show --algo ring --topo ring:8 --size 8
bad "ranks 0 to 7" show --algo ring --topo ring:8 --rank 8
bad "--ranks 64" verify --algo ring --topo torus:64x64
bad "integer type" choose --topo ring:8 --redop band
bad "No such file" choose --topo ring:8 --tuning /nowhere
bad "--ports 0: expected a whole number from 1 to" export --algo ring --topo ring:8 --ports 0
bad "ranks 0 to 3" export --algo ring --op broadcast --ranks 4 --root 4
bad "no such algorithm.*swing-b" export --algo frob
# On a terminal only. Each bar is drawn at once, and erased.
for args in "export --topo ring:9 --out '$dir/plans'" "export --topo ring:9 --json" "verify --algo tree --topo ring:9" \
	"import '$dir/plans' --json"; do
	script -qec "'$prog' $args >'$dir/out'" /dev/null >"$dir/err" </dev/null &&
		grep -qE $'\r\\[[# ]{30}\\] +[0-9]+% (plans|tree|verification) .*\r +\r' "$dir/err"
	verdict $? "progress: ${args%% *}"
done
bad "FILE is missing" import
bad "nowhere: No such file" import /nowhere
bad "unexpected argument" import - -
echo '{' >"$dir/nothing of JSON"
bad "nothing of JSON: line 1: this is no JSON" import "$dir/nothing of JSON"
bad "MSCCL has no barrier" export --algo rotate --op barrier --ranks 3 --format msccl
bad "expected plan or msccl" export --algo ring --ranks 3 --format xml

# 8 ranks, 5 %, 16 Mi elements of 4 bytes: bytes by hand.
big=(sparse --ranks 8 --count 16777216 --density 0.05)
json "sparse: bytes of a rank" "$(near "d[0]['bytes_per_rank']" 117440512) and $(near "d[1]['bytes_per_rank']" 43198093) and $(near "d[2]['bytes_per_rank']" 56374118)" "${big[@]}"
json "sparse: break-even" "$(near "d[1]['break_even_union']" 0.96875) and $(near "d[1]['break_even_local']" 0.3516) and $(near "d[2]['break_even_union']" 0.72656) and $(near "d[2]['break_even_local']" 0.14963) and d[0]['break_even_union'] is None" "${big[@]}"
json "sparse: pack on slow links" "[m['mode'] for m in d if m['chosen']] == ['pack'] and d[1]['rounds'] == 2 and d[2]['rounds'] == 1" "${big[@]}" --link-gbps 12
json "sparse: dense on fast links" "[m['mode'] for m in d if m['chosen']] == ['dense']" "${big[@]}" --link-gbps 14
json "sparse: sketch where starting costs most, of integers only" "[m['mode'] for m in d if m['chosen']] == ['sketch'] and d[2]['lossless']" sparse --ranks 8 --count 65536 --density 0.001 --dtype i32 --link-gbps 0.1 --step-ns 1e6
json "sparse: no sketch of floats" "[m['mode'] for m in d if m['chosen']] == ['pack'] and not d[2]['lossless']" sparse --ranks 8 --count 65536 --density 0.01 --dtype f32 --link-gbps 0.1 --step-ns 1e5
json "sparse: rows" "d[2]['mode'] == 'pack-rows' and $(near "d[2]['reduced_bytes']" "65536 / 128 + 65536 * 4 * (1 - 0.95**4)")" sparse --ranks 4 --count 65536 --density 0.05 --overlap rows:16
json "sparse: disjoint places fill up" "d[0]['union_density'] == 1" sparse --ranks 8 --count 100 --density 0.2 --overlap disjoint
json "sparse: identical places" "$(near "d[0]['union_density']" 0.2)" sparse --ranks 8 --count 100 --density 0.2 --overlap identical
json "sparse: bf16 in code on slow links" "[m['mode'] for m in d if m['chosen']] == ['coded'] and $(near "d[3]['reduced_bytes']" "1048576 * 2 * 0.7676")" sparse --ranks 4 --count 1048576 --density 1 --dtype bf16 --link-gbps 0.1
json "sparse: bf16 dense on fast links" "[m['mode'] for m in d if m['chosen']] == ['dense']" sparse --ranks 4 --count 1048576 --density 1 --dtype bf16 --link-gbps 20
json "sparse: no other type in code" "len(d) == 3" sparse --ranks 4 --count 1048576 --density 1 --dtype f16
json "sparse: a common share" "$(near "d[0]['union_density']" "0.1 + 0.9 * (1 - (8 / 9) ** 3)")" sparse --ranks 3 --count 100 --density 0.2 --overlap mixed:0.5
json "sparse: one rank sends nothing" "all(m['bytes_per_rank'] == 0 for m in d)" sparse --ranks 1 --count 100 --density 0.2
bad "--overlap rows:0: expected independent" sparse --ranks 8 --count 100 --density 0.2 --overlap rows:0
bad "--density 1.5: expected a number from 0 to 1" sparse --ranks 8 --count 100 --density 1.5
bad "--count N is missing" sparse --ranks 8 --density 0.5

# shellcheck source=test_forest.sh
. tools/swingplan/test_forest.sh

# An empty name, an empty item of a list, and what does not fit.
bad "^swingplan show: '': No such file or directory" show -t ring:4 -a file:
bad "^swingplan simulate: --size '': expected a size" simulate -t ring:4 -a ring --size 1,,2
bad "^swingplan simulate: --size '': expected a size" simulate -t ring:4 -a ring --size 1,
bad "^swingplan simulate: --algo '': no such algorithm" simulate -t ring:4 -a ring,
bad '^swingplan verify: --ranks 9: ring:8 has 8 ranks' verify -t ring:8 -a ring -n 9
bad '^swingplan choose: --size 3: no whole number of elements of f64: give a multiple of 8$' choose -t ring:4 --size 3 -d f64

for verb in --help --version list "list --json" "show --help"; do
	status=0
	# shellcheck disable=SC2086 # options are words
	"$prog" $verb >/dev/full 2>"$dir/err" || status=$?
	((status == 2)) && grep -qE '^swingplan( [a-z]+)?: cannot write to standard output$' "$dir/err"
	verdict $? "output to a full disk: $verb"
done

echo "1..$number"
exit $((failed > 0))
