# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# swingplan forest: part of test.sh, by whose functions it tests. Known numbers, a judge on random networks, plans,
# members, messages.

# shellcheck disable=SC2154 # dir, prog
graph() { # graph LINES: to the file graph
	printf '%b' "$1" >"$dir/graph"
}

# 1/x*, allgather, equal roots, any roots, k, U, network: by --topo, or the links of a graph.
known() {
	python3 - "$prog" "$dir/graph" "$1" <<-'END' >"$dir/out" 2>"$dir/err"
		import json, subprocess, sys
		from fractions import Fraction
		known = """
		7/2 7/16 7/8 7/8 2 7 ring:8
		3 3/4 3/2 1 1 3 a b 1, b c 1, c e 1
		1 1/4 1/2 1/2 1 1 a b 1, a c 1, a e 1, b c 1, b e 1, c e 1
		15/4 15/64 15/32 15/32 4 15 torus:4x4
		7/2 7/16 7/8 7/10 2 7 mesh:2x4
		7/4 7/32 7/16 7/16 4 7 torus:2x4
		15/2 15/32 15/16 5/8 2 15 mesh:4x4
		63/2 63/128 63/64 9/16 2 63 mesh:8x8
		7 7/8 7/4 7/4 1 7 switch:8
		3/2 3/8 3/4 1/2 1 3/2 a s 8, b s 8, c s 8, e s 2, switch s
		1 1/4 1/2 1/2 1 1 a s 3, b s 3, c t 3, e t 3, a u 1, b u 1, c u 1, e u 1, switch s t u
		3 3/4 3/2 1 1 3 c x 2, c y 1, c z 1
		"""
		prog, path, kind = sys.argv[1:]
		for inv_x, gather, equal, any_roots, k, slots, network in (line.split(None, 6) for line in known.strip().splitlines()):
		    open(path, "w").write(network.replace(", ", "\n") + "\n")
		    where = ["--graph", path] if " " in network else ["--topo", network]
		    d = json.loads(subprocess.check_output([prog, "forest", *where, "--roots", kind, "--json"]))
		    if kind == "equal":
		        got = d["inv_x"], d["allgather_time_fraction"], d["allreduce_time_fraction"], d["k"], d["U"], d["trees"]
		        good = got == (inv_x, gather, equal, int(k), slots, int(k) * d["ranks"])
		        good = good and 0 < len(d["bottleneck_ranks"]) < d["ranks"]
		    else:
		        good = abs(d["time"] / Fraction(any_roots) - 1) < 1e-6 and abs(d["rate"] * d["time"] - 1) < 1e-9
		        good = good and abs(d["equal_roots_time"] / Fraction(equal) - 1) < 1e-9
		        good = good and abs(sum(d["roots"].values()) - d["rate"]) < 1e-6
		    if not good:
		        sys.exit(f"{network}: {d}")
	END
	verdict $? "forest: known numbers, $1 roots"
}

known equal
known any

# The judge knows nothing but the definitions.
rounds='100 200'
[[ ! ${SWC_TEST_SHORT-} ]] || rounds='8 8'
# shellcheck disable=SC2086
python3 tools/swingplan/forest_judge.py "$prog" "$dir" $rounds >"$dir/out" 2>"$dir/err"
verdict $? "forest: random networks: bounds, trees, plans ($rounds)"

# As many units of capacity as links of two hosts, in the plan of a topology with two rates.
json "forest: rates by dimension" "d['unit_gbps'] == 10 and d['inv_x'] == '15/8'" forest --topo torus:4x4@30Gbps/10Gbps
json "forest: from one rank" "d['rate'] == 2 and d['root'] == 3 and
	sum(t['weight'] for t in d['trees']) == 2 and all(t['root'] == 3 for t in d['trees'])" \
	forest --topo mesh:3x4 --op broadcast --root 3 --trees
graph 'a b 1\nb c 1\nc e 1\ne a 1\n'
json "forest: others forward" "d['ranks'] == 2 and d['switches'] == 2 and d['inv_x'] == '1/2' and
	sorted(tuple(p['path']) for t in d['trees'] for e in t['paths'] for p in e) ==
	[('a', 'b', 'c'), ('a', 'e', 'c'), ('c', 'b', 'a'), ('c', 'e', 'a')]" \
	forest --graph "$dir/graph" --members a,c --op allgather --trees
good "forest in words" "^allgather +7/16 of the vector" forest --topo ring:8
many=torus:16x16
[[ ! ${SWC_TEST_SHORT-} ]] || many=torus:8x8
good "forest: many ranks" "^forest +[0-9]+ down" forest --topo $many --op allgather --trees

for op in allreduce allgather reduce_scatter broadcast reduce; do
	run forest --topo torus:2x3 --op $op --pieces 5 --out "$dir/plan" &&
		run verify --algo "file:$dir/plan" --topo torus:2x3 --op $op && grep -q "^forest .* ok: 6 ranks" "$dir/out"
	verdict $? "forest: a plan of $op is right"
done
run forest --topo mesh:4x4 --roots any --out "$dir/plan"
json "forest: its plan is faster than all others on a mesh" \
	"min(d, key=lambda a: a['time_ns'])['algo'] == 'forest' and len(d) == 4" \
	simulate --algo "bucket2,swing-b,swing-h:2,file:$dir/plan" --topo mesh:4x4 --size 256M --model flow
json "forest: as an algorithm of the library" "d[0]['time_ns'] < d[1]['time_ns'] and d[0]['algo'] == 'forest:64'" \
	simulate --algo forest:64,bucket2 --topo mesh:4x4 --size 256M
good "forest: the library's plans are right" "^forest .*ok: 8 ranks" verify --algo forest --topo torus:2x4@2Gbps/1Gbps
bad "forest is not possible on torus:16x16: forest is for up to 64 nodes" verify --algo forest --topo torus:16x16
bad "has plans for 16 ranks, ring:8 has 8" verify --algo "file:$dir/plan" --topo ring:8
bad "for another collective" simulate --algo "file:$dir/plan" --topo mesh:4x4 --op allgather
bad "nowhere: No such file" verify --algo file:/nowhere --topo ring:8

refused() { # refused PATTERN LINES
	graph "$2"
	bad "$1" forest --graph "$dir/graph"
}
refused "rank a cannot reach rank c: add links" 'a b 1\nc e 1\n'
refused "rank b cannot reach rank a" 'a > b 1\n'
refused "line 2: '-1' is no capacity: expected a whole number from 1" '# x\na b -1\n'
refused "'0' is no capacity" 'a b 0\n'
refused "'1.5' is no capacity" 'a b 1.5\n'
refused "'99999999999999999999' is no capacity" 'a b 99999999999999999999\n'
refused "there is one rank only: expected at least two" 'switch s\na s 1\n'
refused "there are no ranks" ''
refused "line 1: expected A B CAPACITY" 'a b\n'
refused "a link from a to itself" 'a a 1\n'
refused "a name has byte 0x01" 'a\01 b 1\n'
refused "a name has byte 0xc3" 'ä b 1\n'
refused "a zero byte" 'a b\0 1\n'
refused "switch s gets up to 2 and passes on up to 3" 'switch s\na s 1\nb > s 1\ns > b 2\na b 3\n'
refused "there are more than 4096 nodes" "$(seq -f 'n%.0f m 1\n' 5000 | tr -d '\n')"
refused "all capacities add up to more than" "$(printf 'a b 1000000000\\n%.0s' {1..600})"
graph 'switch s t\nr s 1\ns t 1\nt q 1\n'
json "forest: ranks behind switches only" "d['inv_x'] == '1'" forest --graph "$dir/graph"
awk 'BEGIN { for (i = 0; i < 1e6; i++) print "n" i % 30, "m" i % 29, 1 + i % 3 }' >"$dir/graph"
run forest --graph "$dir/graph"
status=$?
((status == 0 ? $(wc -l <"$dir/out") == 6 : status == 2 && $(wc -l <"$dir/err") == 1))
verdict $? "forest: a million lines"
bad "expected a network: --graph FILE or --topo T" forest
bad "expected a network" forest --graph "$dir/graph" --topo ring:8
bad "forests are for allreduce" forest --topo ring:8 --op alltoall
bad "--roots any: is for --op allreduce" forest --topo ring:8 --op allgather --roots any
bad "--root 8: the network has no such rank" forest --topo ring:8 --op broadcast --root 8
bad "--root 1: only --op broadcast and reduce" forest --topo ring:8 --root 1
bad "--members 1,1: 1 is there twice" forest --topo ring:8 --members 1,1
bad "nodes have several ranks" forest --topo ring:4*2 --op allgather
run forest --topo 'mesh:2x3*2' --roots any --pieces 4 --out "$dir/plan" &&
	run verify --algo "file:$dir/plan" --topo 'mesh:2x3*2' && grep -q "^forest .* ok: 12 ranks" "$dir/out"
verdict $? "forest: several ranks on each node"
json "forest: one slow link" "d['unit_gbps'] == 1 and d['inv_x'] == '15/7'" \
	forest --topo torus:4x4@2Gbps,5-6=1Gbps --op allgather
json "forest: a port that is slow one way" "d['unit_gbps'] == 2 and d['inv_x'] == '1'" \
	forest --topo 'switch:4@8Gbps,3>=2Gbps' --op allgather
json "forest: a broadcast to a port that sends slowly" "d['unit_gbps'] * d['rate'] == 8" \
	forest --topo 'switch:4@8Gbps,3>=2Gbps' --op broadcast --root 1
echo 'links torus:4x4@2Gbps,5-6=1Gbps' >"$dir/tuning"
json "forest: one slow link by measurement" "d['unit_gbps'] == 1 and d['inv_x'] == '15/7'" \
	forest --topo torus:4x4@4Gbps --op allgather --tuning "$dir/tuning"
json "choose: a slow link moves the choice to a forest" \
	"d[0]['algo'].startswith('forest:') and d[0]['best'][0]['algo'] == d[0]['algo'] and d[0]['reason'] == 'model'" \
	choose --topo torus:4x4@2Gbps --size 1G --tuning "$dir/tuning"
json "choose: no forest where links are alike" "all('forest' not in b['algo'] for b in d[0]['best'])" \
	choose --topo torus:4x4@2Gbps --size 1G
bad "--tuning: needs --topo" forest --graph "$dir/graph" --tuning "$dir/tuning"
