#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judges what swingplan forest says about random graphs, from the definitions, by no code of the generator:

bounds against all cuts; every tree spans; loads over capacities give the stated time; roots add up; the plans are
right as swingplan import proves them, and take the stated time if their messages are added up.

usage: forest_judge.py SWINGPLAN FOLDER GRAPHS [SEED]    prints one line for each fault; status 1 if there are any
"""

import itertools
import json
import random
import subprocess
import sys
from fractions import Fraction

prog, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
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


def random_graph():
    """Connected, with links both ways or one way, of capacities that differ; switches pass on what they get."""
    n, switches = rnd.randint(2, 6), rnd.choice((0, 0, 1, 2))
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


for _ in range(count):
    graph = random_graph()
    judge_equal(graph)
    judge_rooted(graph)
print(f"{count} graphs, {faults} faults, seed {seed}")
sys.exit(faults > 0)
