# SPDX-License-Identifier: GPL-2.0-only
"""What the benches share: where the programs are, how they are run, and how results are kept.

A result is a JSON object; its member "origin" names the machine, the command and the date.
"""

import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
BIN = os.path.join(HERE, "../../build/bin")
MODULES = os.path.join(HERE, "../../build/modules", platform.release())
NAME = os.path.basename(sys.argv[0])
KNOBS = "/sys/module/swingcoll/parameters"


class Failed(Exception):
    """A program failed; the text says which and how."""


def run(*command, limit=None, env=None):
    """The standard output of a program that must end with status 0 within so many seconds."""
    name = os.path.basename(command[0])
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False,
                           env=dict(os.environ, **env) if env else None)
    except subprocess.TimeoutExpired:
        raise Failed(f"{name}: did not end within {limit} s") from None
    except OSError as e:
        raise Failed(f"{name}: {e}") from None
    if r.returncode:
        lines = (r.stderr or r.stdout).strip().splitlines()
        raise Failed(f"{name}: exit status {r.returncode}: " + " / ".join(lines[-4:]))
    return r.stdout


def records(text):
    """The JSON objects of an output that has one per line, among other lines."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def machine():
    model, flags = "unknown", ""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
            elif line.startswith("flags"):
                flags = line
    virt = "hardware"
    if "TCG" in model:
        virt = "QEMU TCG (emulated)"
    elif " hypervisor" in flags:
        kind = ""
        if shutil.which("systemd-detect-virt"):
            kind = subprocess.run(["systemd-detect-virt", "--vm"], capture_output=True, text=True,
                                  check=False).stdout.strip()
        virt = "QEMU TCG (emulated)" if kind == "qemu" else f"virtual machine ({kind or 'unknown'})"
    return {"kernel": platform.release(), "cpu": model, "virt": virt, "cpus": len(os.sched_getaffinity(0))}


def write(path, result):
    """Keep a result with its origin."""
    origin = {"machine": machine(), "command": " ".join([f"tools/bench/{NAME}", *sys.argv[1:]]),
              "date": datetime.date.today().isoformat()}
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"bench": NAME, "origin": origin, **result}, f, indent=1)
        f.write("\n")
    print("written: " + path)


def default_out(name):
    """Where a result goes if no place is given: the folder of the virtual machine, or none."""
    return f"/out/{name}" if os.path.isdir("/out") else None


def median(rows, field="time_us"):
    return statistics.median(r[field] for r in rows) if rows else None


def spread(rows):
    """Noise: the interquartile range over the rounds, as a share of the median.

    With fewer than three rounds, the range over the repeats within a round.
    """
    if not rows:
        return None
    if len(rows) < 3:
        return max(r.get("iqr_us", 0) / r["time_us"] for r in rows)
    q = statistics.quantiles([r["time_us"] for r in rows], n=4, method="inclusive")
    return (q[2] - q[0]) / q[1]


def cell(value, form, width, scale=1):
    """A value in a column of a table, or a dash if there is none."""
    return (form % (value * scale) if value is not None else "-").rjust(width)


def main(body):
    """Run a bench and end the program with its exit status, 2 if a program that it needs failed."""
    try:
        sys.exit(body())
    except Failed as e:
        sys.exit(f"{NAME}: {e}")
