#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judges what swingplan forest says about random graphs, from the definitions, by no code of the generator:

bounds against all cuts; every tree spans; loads over capacities give the stated time; roots add up; the plans are
right as swingplan import proves them, and take the stated time if their messages are added up.

usage: forest_judge.py SWINGPLAN FOLDER GRAPHS PLANS [SEED]

GRAPHS small ones are judged by all cuts, PLANS larger ones by their plans. Prints what is wrong; status 1 if there is
anything.
"""

import itertools
import json
import random
import subprocess
import sys
from fractions import Fraction

prog, folder, count, plans = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
seed = int(sys.argv[5]) if len(sys.argv) > 5 else random.randrange(1 << 32)
rnd = random.Random(seed)
faults = 0


def fault(graph, text):
    global faults
    faults += 1
    print(f"{text}: seed {seed}, graph:")
    print("".join("    " + line + "\n" for line in graph.text().splitlines()), end="")


class Graph:
    def __init__(self, links, switches=()):
        self.links = links  # (a, b): capacity
        self.switches = list(switches)
        self.ranks = []
        for ends in links:
            for v in ends:
                if v not in self.switches and v not in self.ranks:
                    self.ranks.append(v)
        self.nodes = self.ranks + self.switches

    def text(self):
        lines = ["switch " + " ".join(self.switches)] if self.switches else []
        return "\n".join(lines + [f"{a} > {b} {c}" for (a, b), c in self.links.items()]) + "\n"

    def reverse(self):
        return Graph({(b, a): c for (a, b), c in self.links.items()}, self.switches)

    def cuts(self):
        """All sets of nodes that miss a rank and have one: its ranks, and the capacity that leaves it."""
        for chosen in itertools.product((False, True), repeat=len(self.nodes)):
            side = {v for v, c in zip(self.nodes, chosen) if c}
            ranks = [r for r in self.ranks if r in side]
            if 0 < len(ranks) < len(self.ranks):
                yield ranks, sum(c for (a, b), c in self.links.items() if a in side and b not in side)

    def inv_x(self):
        return max(Fraction(len(ranks), out) if out else Fraction(10**9) for ranks, out in self.cuts())

    def rate_from(self, root):
        return min(out for ranks, out in self.cuts() if root in ranks)


def maximum(objective, rows):
    """The largest objective with all rows (coefficients, bound >= 0) kept, variables not negative: simplex in
    fractions, by the rule of Bland."""
    n, m = len(objective), len(rows)
    table = [
        [Fraction(c) for c in row] + [Fraction(i == j) for j in range(m)] + [Fraction(bound)]
        for i, (row, bound) in enumerate(rows)
    ]
    gain = [Fraction(c) for c in objective] + [Fraction(0)] * (m + 1)
    basis = [n + i for i in range(m)]
    while True:
        enter = next((j for j in range(n + m) if gain[j] > 0), None)
        if enter is None:
            return -gain[-1]
        ratio, _, leave = min((row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0)
        pivot = table[leave][enter]
        table[leave] = [v / pivot for v in table[leave]]
        for row in table + [gain]:
            factor = row[enter]
            if row is not table[leave] and factor:
                for j, v in enumerate(table[leave]):
                    if v:
                        row[j] -= factor * v
        basis[leave] = enter


def best_rate(graph):
    """Of any roots: the linear program over all cuts."""
    ranks, links = graph.ranks, list(graph.links)
    rows = []

    def row(x, f, bound):
        rows.append(([Fraction(r in x) for r in ranks] + [Fraction(f.get(e, 0)) for e in links], bound))

    for e in links:
        row((), {e: 1}, graph.links[e])
    for s in graph.switches:
        turn = {e: (e[0] == s) - (e[1] == s) for e in links}
        row((), turn, 0)
        row((), {e: -v for e, v in turn.items()}, 0)
    for chosen in itertools.product((False, True), repeat=len(graph.nodes)):
        side = {v for v, c in zip(graph.nodes, chosen) if c}
        inside = [r for r in ranks if r in side]
        if 0 < len(inside) < len(ranks):
            row(inside, {e: -1 for e in links if e[0] in side and e[1] not in side}, 0)
            into = [e for e in links if e[0] not in side and e[1] in side]
            row(inside, {e: 1 for e in into}, sum(graph.links[e] for e in into))
    return maximum([1] * len(ranks) + [0] * len(links), rows)


def random_graph(most, most_switches):
    """Connected, with links both ways or one way, of capacities that differ; switches pass on what they get."""
    switches = rnd.choice((0, rnd.randint(0, most_switches)))
    n = rnd.randint(2, most - switches)
    names = [f"r{i}" for i in range(n)]
    extra = [f"s{i}" for i in range(switches)]
    links = {}

    def both(a, b, c):
        links[a, b] = links.get((a, b), 0) + c
        links[b, a] = links.get((b, a), 0) + c

    largest = rnd.choice((1, 3, 5, 12))
    nodes = names + extra
    rnd.shuffle(nodes)
    for i in range(1, len(nodes)):
        both(nodes[i], nodes[rnd.randrange(i)], rnd.randint(1, largest))
    for _ in range(rnd.randint(0, 2 * n)):
        a, b = rnd.sample(nodes, 2)
        both(a, b, rnd.randint(1, largest))
    for _ in range(rnd.choice((0, 0, n)) if n > 1 else 0):
        a, b = rnd.sample(names, 2)
        links[a, b] = links.get((a, b), 0) + rnd.randint(1, largest)
    if extra and rnd.random() < 0.3 and n > 2:  # a circle of one-way links over a switch
        a, b = rnd.sample(names, 2)
        c = rnd.randint(1, largest)
        for pair in ((a, extra[0]), (extra[0], b)):
            links[pair] = links.get(pair, 0) + c
    return Graph(links, extra)


def run(graph, *args):
    path = folder + "/graph"
    with open(path, "w") as f:
        f.write(graph.text())
    done = subprocess.run([prog, "forest", "--graph", path, "--json", *args], capture_output=True, text=True)
    if done.returncode or done.stderr:
        fault(graph, f"{' '.join(args)}: status {done.returncode}: {done.stderr.strip()}")
        return None
    return json.loads(done.stdout)


def judge_trees(graph, what, trees, up, loads):
    """Trees span, and in this order nothing is sent before it has come. Returns the weight of each root."""
    roots = {}
    for tree in trees:
        weight = Fraction(tree["weight"])
        holds = {tree["root"]}
        edges = tree["edges"][::-1] if up else tree["edges"]
        for a, b in edges:
            old, new = (b, a) if up else (a, b)
            if old not in holds or new in holds:
                fault(graph, f"{what}: {a} to {b} is no next edge")
                return None
            holds.add(new)
        if holds != set(graph.ranks):
            fault(graph, f"{what}: a tree of {tree['root']} does not span")
            return None
        for i, (a, b) in enumerate(tree["edges"]):
            paths = tree["paths"][i] if graph.switches else [{"path": [a, b], "weight": tree["weight"]}]
            if sum(Fraction(p["weight"]) for p in paths) != weight:
                fault(graph, f"{what}: the paths of {a} to {b} do not add up")
            for p in paths:
                way = p["path"]
                if way[0] != a or way[-1] != b or any(v not in graph.switches for v in way[1:-1]):
                    fault(graph, f"{what}: a path from {a} to {b} is {way}")
                for pair in zip(way, way[1:]):
                    loads[pair] = loads.get(pair, 0) + Fraction(p["weight"])
        roots[tree["root"]] = roots.get(tree["root"], 0) + weight
    return roots


def slowest(graph, loads):
    for pair in loads:
        if pair not in graph.links:
            fault(graph, f"there is no link {pair}")
            return Fraction(0)
    return max(load / graph.links[pair] for pair, load in loads.items())


def judge_equal(graph):
    bound, back = graph.inv_x(), graph.reverse().inv_x()
    n = len(graph.ranks)
    for op, up, want in (("allgather", False, bound), ("reduce_scatter", True, back)):
        d = run(graph, "--op", op, "--trees")
        if not d:
            return
        if Fraction(d["inv_x"]) != want:
            fault(graph, f"{op}: the bound is {want}, not {d['inv_x']}")
            continue
        loads = {}
        roots = judge_trees(graph, op, d["trees"], up, loads)
        if roots and roots != {r: d["k"] for r in graph.ranks}:
            fault(graph, f"{op}: {roots} trees, not {d['k']} for each rank")
        # A tree of weight 1 carries 1/k of a shard.
        if roots and slowest(graph, loads) / d["k"] != want:
            fault(graph, f"{op}: the trees take {slowest(graph, loads) / d['k']}, not {want}")
    if d and Fraction(d["allreduce_time_fraction"]) != (bound + back) / n:
        fault(graph, f"allreduce: {d['allreduce_time_fraction']} is not {(bound + back) / n}")


def judge_rooted(graph):
    root = rnd.choice(graph.ranks)
    for op, up, want in (
        ("broadcast", False, graph.rate_from(root)),
        ("reduce", True, graph.reverse().rate_from(root)),
    ):
        d = run(graph, "--op", op, "--root", root, "--trees")
        if not d:
            return
        if d["rate"] != want:
            fault(graph, f"{op} of {root}: the rate is {want}, not {d['rate']}")
        loads = {}
        roots = judge_trees(graph, op, d["trees"], up, loads)
        if roots and slowest(graph, loads) / roots[root] != Fraction(1, want):
            fault(graph, f"{op}: the trees take {slowest(graph, loads) / roots[root]}, not 1/{want}")


def judge_any(graph):
    d = run(graph, "--roots", "any", "--trees")
    if not d:
        return
    want = best_rate(graph)
    if abs(d["rate"] / want - 1) > 1e-6 or abs(d["time"] * want - 1) > 1e-6:
        fault(graph, f"any roots: the rate is {float(want)}, not {d['rate']}")
    if abs(sum(d["roots"].values()) / want - 1) > 1e-6:
        fault(graph, f"any roots: the roots have {sum(d['roots'].values())}, not {float(want)}")
    equal = (graph.inv_x() + graph.reverse().inv_x()) / len(graph.ranks)
    if abs(d["equal_roots_time"] / equal - 1) > 1e-9:
        fault(graph, f"any roots: equal roots take {equal}, not {d['equal_roots_time']}")
    loads = {}
    down = judge_trees(graph, "broadcast", d["broadcast"], False, loads)
    up = judge_trees(graph, "reduce", d["reduce"], True, loads)
    if not down or not up:
        return
    if down != up:
        fault(graph, f"any roots: {down} trees down, {up} up")
    all_trees = sum(down.values())
    for r in graph.ranks:
        if abs(down.get(r, 0) / all_trees - Fraction(d["roots"].get(r, 0)) / want) > 1e-6:
            fault(graph, f"any roots: {r} has {down.get(r, 0)} of {all_trees} trees, not {d['roots'].get(r, 0)}")
    if abs(slowest(graph, loads) / all_trees * want - 1) > 1e-6:
        fault(graph, f"any roots: the trees take {float(slowest(graph, loads) / all_trees)}, not {float(1 / want)}")


def plan_time(path, graph):
    """The share of the vector on the busiest link over its capacity; of graphs without switches."""
    loads, blocks, shards = {}, 0, 0
    for line in open(path):
        word = line.split() or [""]
        if word[0] == "shards":
            shards = int(word[1])
        elif word[0] == "blocks":
            blocks = int(word[1])
        elif word[0] == "rank":
            rank = int(word[1])
        elif word[0] == "send":
            pair = graph.ranks[rank], graph.ranks[int(word[1])]
            loads[pair] = loads.get(pair, 0) + int(word[3].split("+")[1])
    return slowest(graph, loads) / (blocks * shards)


def judge_plans(graph):
    root = rnd.randrange(len(graph.ranks))
    rooted = ["--root", graph.ranks[root]]
    path = folder + "/plan"
    for op, more in (
        ("allreduce", ["--roots", "any"]),
        ("allreduce", []),
        ("allgather", []),
        ("reduce_scatter", []),
        ("broadcast", rooted),
        ("reduce", rooted),
    ):
        pieces = str(rnd.randint(1, 9))
        d = run(graph, "--op", op, *more, "--out", path, "--pieces", pieces)
        if not d:
            return
        done = subprocess.run([prog, "import", path, "--json"], capture_output=True, text=True)
        if done.returncode or not json.loads(done.stdout)["verified"]:
            fault(graph, f"{op} {more}: {done.stderr.strip()}")
            return
        if graph.switches:
            continue
        if "time" in d:
            want = d["time"]
        else:
            want = Fraction(d[op + "_time_fraction"])
        # Parts are whole numbers of blocks.
        least = 0 if op == "allreduce" and not more else 0.999  # both halves may be at once
        if not least < plan_time(path, graph) / want < 1.02:
            fault(graph, f"{op} {more}: the plan takes {float(plan_time(path, graph))}, not {float(want)}")


# With 3 trees for each root down, and 5 up: a unit of capacity carries more of those up.
judge_plans(
    Graph(
        {
            ("c", "a"): 1,
            ("a", "c"): 1,
            ("b", "a"): 6,
            ("a", "b"): 4,
            ("c", "b"): 4,
            ("b", "c"): 5,
        }
    )
)
# Whose weights need parts of 660 blocks to come within half a percent.
MANY_BLOCKS = """
    11>3:2 3>11:4 0>3:2 3>0:2 9>0:4 0>9:1 4>3:5 3>4:5 6>4:6 4>6:6 10>6:7 6>10:7 5>9:6 9>5:6 2>0:5 0>2:5
    8>4:5 4>8:5 7>11:2 11>7:2 1>7:5 7>1:2 4>5:2 5>4:2 3>8:1 8>3:1 11>2:5 2>11:3 7>9:4 9>7:4 6>2:2 2>6:2
    0>4:5 4>0:5 1>2:3 2>1:3 8>0:2 0>8:2 1>0:1 0>1:1 11>6:2 6>11:6 6>5:7 5>6:7 9>4:4 4>9:4 2>7:5 7>2:5 8>5:6
    5>8:3 10>4:1 4>10:1 0>11:1 11>0:1 11>1:2 1>11:2 10>1:5 6>3:4 1>6:4 7>10:4 3>9:3 0>10:2
"""
judge_plans(
    Graph(
        {
            (link.split(">")[0], link.split(">")[1].split(":")[0]): int(link.split(":")[1])
            for link in MANY_BLOCKS.split()
        }
    )
)
for _ in range(count):
    graph = random_graph(6, 2)
    if len(graph.nodes) < 6:
        judge_any(graph)
    judge_equal(graph)
    judge_rooted(graph)
for _ in range(plans):
    judge_plans(random_graph(12, 3))
print(f"{count} graphs, {plans} plans, {faults} faults, seed {seed}")
sys.exit(faults > 0)
