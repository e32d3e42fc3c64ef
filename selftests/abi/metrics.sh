#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# swingctl metrics: OpenMetrics text, with the counters of swingctl stats.
set -u

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/tap.sh"
[ -e /dev/swingcoll ] || skip_all "swingcoll is not loaded"
for program in swingperf swingctl; do
	command -v $program > /dev/null || skip_all "$program is not on PATH"
done
dir=$(mktemp -d)
exporter=
trap '[ -z "$exporter" ] || kill "$exporter"; rm -rf "$dir"' EXIT
file=$dir/swingcoll.prom
echo 1..5

swingctl metrics > "$file"
result $? "printed"

# Each metric has a type and a text before its one value, and the last line says that it is the last.
awk '
	/^# TYPE swingcoll_[a-z0-9_]+ (counter|gauge)$/ && !want {
		name = $3
		suffix = $4 == "counter" ? "_total" : ""
		if (name ~ /_total$/ || ($4 == "gauge") != (name == "swingcoll_module_info"))
			bad = 1
		want = 2
		next
	}
	/^# HELP / && want == 2 && $3 == name { want = 1; next }
	/^swingcoll_[a-z0-9_]+([{]version="[^"]+"[}])? [0-9]+$/ && want == 1 && split($1, part, "{") && part[1] == name suffix { want = 0; next }
	/^# EOF$/ && !want { over = NR; next }
	{ print "line " NR ": " $0; bad = 1 }
	END { exit bad || over != NR || NR < 10 }' "$file" > "$dir/bad"
status=$?
[ $status = 0 ] || show "$dir/bad"
result $status "each metric has its type and one value"

[ "$(sed -n 's/^swingcoll_\(.*\)_total .*/\1/p' "$file")" = "$(swingctl stats | awk '{ print $1 }')" ]
result $? "the counters of swingctl stats"

value() { awk '$1 == "swingcoll_ops_completed_total" { print $2 }' "$file"; }
before=$(value)
swingperf -n 2 --sizes 1024 --iters 4 --repeats 1 --slot-max -1 > /dev/null 2>&1
swingctl metrics > "$file"
[ "$(value)" -gt "$before" ]
result $? "counters grow"

# What a node_exporter makes of the file, if there is one.
samples() { awk '/^swingcoll_/ { print $1 }' "$1" | sort; }
scrape() {
	prometheus-node-exporter --collector.disable-defaults --collector.textfile \
		--collector.textfile.directory="$dir" --web.listen-address=127.0.0.1:19100 > "$dir/log" 2>&1 &
	exporter=$!
	wait_for curl -s -o "$dir/scraped" http://127.0.0.1:19100/metrics || { show "$dir/log" && return 1; }
}
if command -v prometheus-node-exporter > /dev/null && command -v curl > /dev/null; then
	scrape && grep -qx 'node_textfile_scrape_error 0' "$dir/scraped" &&
		[ "$(samples "$dir/scraped")" = "$(samples "$file")" ]
	result $? "node_exporter reads it"
else
	skip "node_exporter reads it" "no prometheus-node-exporter, or no curl"
fi
[ "$failed" -eq 0 ]
