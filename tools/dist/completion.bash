# SPDX-License-Identifier: GPL-2.0-only
# Completes verbs and options from what the programs themselves print by --help.
# shellcheck shell=bash
_swingcoll() {
	local program=$1 word=$2 help
	help=$("$program" --help 2>/dev/null)
	if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then
		help=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null)
	fi
	if [[ $word = -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(grep -oE -- '--[a-z][a-z_-]*' <<<"$help")" -- "$word")
	elif ((COMP_CWORD == 1)); then
		# A verb is the first word of an indented line.
		mapfile -t COMPREPLY < <(compgen -W "$(sed -nE 's/^ {2}([a-z]+)\b.*/\1/p' <<<"$help")" -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}
complete -o filenames -F _swingcoll swingctl swingperf swingplan \
	all_reduce_perf all_gather_perf reduce_scatter_perf broadcast_perf reduce_perf alltoall_perf gather_perf scatter_perf
