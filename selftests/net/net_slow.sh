#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A slow link moves the automatic choice: swingperf finds it among the others, and with what it has written the library
# takes a forest, which goes round that link. Runs on every node of a cluster at once, of which all links are limited,
# and that between nodes 0 and 1 to a quarter; node 0 prints TAP:
# tools/vm/run --topology torus:2x2 --link 4mbit --slow 0-1=1mbit.
set -u
node=${SWINGCOLL_NODE:-0} nnodes=${SWINGCOLL_NNODES:-1} topo=${SWINGCOLL_TOPO-}
size=256K once="--sizes 256K --repeats 1 --warmup 0 --inplace"

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
case $topo in
torus:* | mesh:* | ring:*) ;;
*) skip_all "needs a cluster: tools/vm/run --topology torus:2x2 --link 4mbit --slow 0-1=1mbit" ;;
esac
tc qdisc show | grep -q " rate " || skip_all "needs links that are limited: --link 4mbit --slow 0-1=1mbit"
[[ -c /dev/swingcoll ]] || skip_all swingcoll is not loaded
for need in swingperf swingplan python3; do
	command -v $need >/dev/null || skip_all $need is not on PATH
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

perf() { # perf NAME OPTION...: on all nodes; what it prints goes to files of this name
	swingperf -n 1 --iters 1 --timeout-ms 300000 "${@:2}" </dev/null >"$dir/$1.out" 2>"$dir/$1.err"
}

# Rank 0 has written the file; all nodes need it, as each chooses by itself.
share() { # share FILE
	python3 - "$1" "$node" "$nnodes" "${SWINGCOLL_ROOT%:*}" $((${SWINGCOLL_ROOT##*:} + 7)) <<-'END'
		import socket, sys, time
		path, node, nnodes, host, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
		if node == 0:
		    with socket.create_server(("", port)) as server:
		        for _ in range(nnodes - 1):
		            with server.accept()[0] as s:
		                s.sendall(open(path, "rb").read())
		    sys.exit()
		end = time.monotonic() + 60
		while True:
		    try:
		        s = socket.create_connection((host, port))
		        break
		    except OSError:
		        if time.monotonic() > end:
		            raise
		        time.sleep(0.1)
		with s, open(path, "wb") as f:
		    while part := s.recv(65536):
		        f.write(part)
	END
}

algo() { # algo NAME: what the library has taken
	sed -n 's/.*"algo":"\([^"]*\)".*/\1/p' "$dir/$1.out"
}

((node)) || echo 1..5
# Large enough that the link, not the machine, decides.
perf links --sizes 1M --repeats 3 --tune-links "$dir/tuning"
status=$?
((!status)) || show "$dir/links.err"
((node)) || result $status "the rates of all links are measured"
((!status)) && share "$dir/tuning" || exit 1

if ((!node)); then
	show "$dir/tuning"
	# By name, both ways, at clearly less than what the others of its dimension have.
	python3 - "$dir/tuning" "$topo" <<-'END'
		import re, sys
		m = re.fullmatch(r"links ([^@\s]+)@(\S+)\n", open(sys.argv[1]).read())
		figures = m[2].split(",") if m and m[1] == sys.argv[2] else [""]
		rate = float(figures[0].split("/")[-1].removesuffix("Gbps") or 0)
		slow = {k: float(v.removesuffix("Gbps")) for k, v in (f.split("=") for f in figures[1:])}
		ways = [slow.get("0-1") or slow.get(way, rate) for way in ("0>1", "1>0")]
		sys.exit(not rate or max(ways) > 0.7 * rate)
	END
	result $? "the slow link is told from the others"
	swingplan choose --topo "$topo" --size $size --tuning "$dir/tuning" >"$dir/choose" 2>&1
	contains "swingplan: a forest with these rates" $? "$dir/choose" ' forest:[0-9]+ .*by the model'
fi

# shellcheck disable=SC2086 # several words
perf blind $once --json
status=$?
((!status)) || show "$dir/blind.err"
((node)) || {
	echo "# $(algo blind) without the rates"
	((!status)) && [[ $(algo blind) && $(algo blind) != forest* ]]
	result $? "the library: no forest without the rates"
}
# shellcheck disable=SC2086 # likewise
perf knows $once --json --tuning "$dir/tuning"
status=$?
((!status)) || show "$dir/knows.err"
((node)) || {
	echo "# $(algo knows) with the rates"
	((!status)) && [[ $(algo knows) = forest* ]] && ! grep -q '"errors":[1-9]' "$dir/knows.out"
	result $? "the library: a forest with the rates"
}
((!failed && !status))
