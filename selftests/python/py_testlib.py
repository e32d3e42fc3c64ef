# SPDX-License-Identifier: GPL-2.0-only
"""What the tests in Python share: TAP, and ranks that are children of the test."""

import importlib.util
import os
import signal
import sys
import traceback

# Built beside the tests; where that is not, the installed package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

_results = [0, 0]  # in all, and not ok


def skip_all(reason):
    """Nothing is tested."""
    print(f"TAP version 13\n1..0 # SKIP {reason}")
    sys.exit(4)


def plan(count):
    """Say how many results come."""
    print(f"TAP version 13\n1..{count}", flush=True)


def result(good, name):
    """One result."""
    _results[0] += 1
    _results[1] += not good
    print(f"{'' if good else 'not '}ok {_results[0]} {name}", flush=True)


def skip(name, reason):
    """One result that could not be had."""
    _results[0] += 1
    print(f"ok {_results[0]} # SKIP {name}: {reason}", flush=True)


def finish():
    """The exit status of the test."""
    sys.exit(1 if _results[1] else 0)


def need_device():
    """Skip the test without the module. A module that has made no device is a failure."""
    if not os.path.exists("/dev/swingcoll"):
        if os.path.exists("/sys/module/swingcoll"):
            sys.exit("swingcoll is loaded, and /dev/swingcoll does not exist")
        skip_all("swingcoll is not loaded")


def need_modules(advice, *names):
    """Skip the test if a Python module does not exist. One that exists and cannot be imported is a failure."""
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:  # or an empty folder
            skip_all(f"no Python module {name}: {advice}")


def start_ranks(size, function, *args):
    """Fork so many ranks, each of which calls function(rank, size, *args). Their pids."""
    sys.stdout.flush()
    pids = []
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.alarm(120)
                function(rank, size, *args)
                status = 0
            except BaseException:  # pylint: disable=broad-except
                text = "".join(f"# rank {rank}: {line}\n" for line in traceback.format_exc().splitlines())
                os.write(1, text.encode())
            finally:
                os._exit(status)
        pids.append(pid)
    return pids


def wait_ranks(pids, killed=()):
    """Whether all have succeeded, but those that were to be killed."""
    good = True
    for rank, pid in enumerate(pids):
        status = os.waitpid(pid, 0)[1]
        wanted = -signal.SIGKILL if rank in killed else 0
        if os.waitstatus_to_exitcode(status) != wanted:
            print(f"# rank {rank}: exit status {os.waitstatus_to_exitcode(status)}", flush=True)
            good = False
    return good


def run_ranks(size, function, *args, killed=()):
    """Both."""
    return wait_ranks(start_ranks(size, function, *args), killed)


def die():
    """As by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)
