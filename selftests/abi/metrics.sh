#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# swingctl metrics: the counters of swingctl stats as text for Prometheus and as OpenMetrics.
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
echo 1..8

swingctl metrics > "$file"
result $? "printed"
swingctl --openmetrics metrics > "$dir/openmetrics"
result $? "printed as OpenMetrics"

# Each metric has a type and a text before its one value. In the classic format they have the name of the
# sample, and there are other types; only OpenMetrics has a last line, which says that it is the last.
well_formed() { # well_formed NAME FILE INFO_TYPE SUFFIXES EOF
	awk -v info="$3" -v suffixes="$4" -v eof="$5" '
		/^# TYPE swingcoll_[a-z0-9_]+ [a-z]+$/ && !want && ($4 == "counter" || $4 == info) {
			name = $3
			suffix = $4 == info ? "_info" : "_total"
			sample = suffixes ? name suffix : name
			if (substr(sample, length(sample) - length(suffix) + 1) != suffix || seen[sample]++)
				print "line " NR ": " $0
			want = 2
			next
		}
		/^# HELP / && want == 2 && $3 == name { want = 1; next }
		/^swingcoll_[a-z0-9_]+([{]version="[^"\\]+"[}])? [0-9]+$/ && want == 1 {
			split($1, part, "{")
			if (part[1] != sample || (suffix == "_info") != (part[1] != $1))
				print "line " NR ": " $0
			want = 0
			next
		}
		/^# EOF$/ && eof && !want { over = NR; next }
		{ print "line " NR ": " $0 }
		END { if (want || (eof && over != NR) || NR < 10) print "it ends too soon" }' "$2" > "$dir/bad"
	[ ! -s "$dir/bad" ]
	status=$?
	show "$dir/bad"
	result $status "$1"
}
well_formed "each metric has its type and one value" "$file" gauge 0 0
well_formed "each metric has its type and one value as OpenMetrics" "$dir/openmetrics" info 1 1

samples() { awk '!/^#/ { print $1 }' "$1"; }
[ "$(samples "$file")" = "$(samples "$dir/openmetrics")" ]
result $? "the same names in both"

[ "$(sed -n 's/^swingcoll_\(.*\)_total .*/\1/p' "$file")" = "$(swingctl stats | awk '{ print $1 }')" ]
result $? "the counters of swingctl stats"

value() { awk '$1 == "swingcoll_ops_completed_total" { print $2 }' "$file"; }
before=$(value)
swingperf -n 2 --sizes 1024 --iters 4 --repeats 1 --slot-max -1 > /dev/null 2>&1
swingctl metrics > "$file"
[ "$(value)" -gt "$before" ]
result $? "counters grow"

# What a node_exporter makes of the file, if there is one.
scrape() {
	prometheus-node-exporter --collector.disable-defaults --collector.textfile \
		--collector.textfile.directory="$dir" --web.listen-address=127.0.0.1:19100 > "$dir/log" 2>&1 &
	exporter=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		curl -s -o "$dir/scraped" http://127.0.0.1:19100/metrics && return
		sleep 1
	done
	show "$dir/log"
	return 1
}
if command -v prometheus-node-exporter > /dev/null && command -v curl > /dev/null; then
	scrape && grep -qx 'node_textfile_scrape_error 0' "$dir/scraped" &&
		grep -qx '# TYPE swingcoll_ops_completed_total counter' "$dir/scraped" &&
		[ "$(samples "$dir/scraped" | grep '^swingcoll_' | sort)" = "$(samples "$file" | sort)" ]
	result $? "node_exporter reads it"
else
	skip "node_exporter reads it" "no prometheus-node-exporter, or no curl"
fi
[ "$failed" -eq 0 ]
